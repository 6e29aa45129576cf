"""Rules about values of charts against the tables of their releases."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF550 = rule(
    "GF550", Severity.ERROR,
    title="The chart has no value {key}; it does nothing.",
    reason="Helm passes unknown values to the templates, which ignore them.",
    because="It is not among the values of {chart}. Helm passes it on, and no template reads it.",
    remedy="Use the value that is meant, or remove it.",
    source="HELM-DOC (values); GPUO (values.yaml)",
    wrong="""
        devicePlugin: {enabled: true}
        migmanager: {enabled: true}
    """,
    fix=("migmanager:", "migManager:"),
)

GF573 = rule(
    "GF573", Severity.WARNING,
    title="{key} is no value of {chart}, which these values look like.",
    reason="Only the content says which chart this is for, and not all of its keys are known from there. If it is that "
    "chart, the key does nothing.",
    remedy="Say what it is with --as, or remove the key.",
    source="HELM-DOC (values)",
    wrong="""
        dcgmExporter: {enabled: true}
        migManager: {enabled: true}
        ourOwnThing: {enabled: true}
    """,
    fix=("ourOwnThing: {enabled: true}", "gfd: {enabled: true}"),
)

GF574 = rule(
    "GF574", Severity.ERROR,
    title="{expected} is expected here.",
    reason="The chart reads keys below the value, or puts it into an object. Another shape stops helm or the API "
    "server.",
    remedy="Write it in the shape that the chart expects.",
    do="Write e.g. `{example}`.",
    source="GPUO (values.yaml, crds); HELM-DOC (values)",
    wrong="""
        toolkit: {enabled: true, imagePullSecrets: [{name: regcred}]}
        migManager: {enabled: true}
    """,
    fix=("[{name: regcred}]", "[regcred]"),
)

GF575 = rule(
    "GF575", Severity.WARNING,
    title="{expected} is expected here.",
    reason="Templates take any text for true, `\"false\"` too, or pass a value of another type over.",
    remedy="Write it in the type that the chart expects.",
    do="Write e.g. `{example}`.",
    source="HELM-DOC (chart_template_guide)",
    wrong="""
        nfd: {enabled: "false"}
        migManager: {enabled: true}
    """,
    fix=('"false"', "false"),
)

GF576 = rule(
    "GF576", Severity.NOTE,
    title="These are taken for values of the chart {value}.",
    reason="Some of their keys are known from this chart alone.",
    remedy="Nothing, or say what they are with --as.",
    source="docs/your-yaml.md",
    wrong="gpuResourcesEnabledOverride: true",
    right="migManager: {enabled: true}\ntoolkit: {enabled: true}",
)

GF577 = rule(
    "GF577", Severity.NOTE,
    title="The values are not compared with the keys of {value}: no table has this release.",
    reason="Keys come and go between releases, so those of another one would not do.",
    remedy="Compare them with the values.yaml of the release. Tables are there for {known}.",
    source="docs/your-yaml.md",
    wrong="""
        apiVersion: helm.toolkit.fluxcd.io/v2
        kind: HelmRelease
        metadata: {name: gpu-operator}
        spec:
          chart: {spec: {chart: gpu-operator, version: v25.10.1}}
          values: {driver: {rdma: {enabled: true}}}
    """,
    fix=("v25.10.1", "v26.7.0"),
)

GF578 = rule(
    "GF578", Severity.ERROR,
    title="The chart does not take these values together.",
    reason="Rendering stops with an error, or what is installed does.",
    remedy="Change one of them.",
    source="GPUO (validations.yaml); PLUGIN (validation.yml)",
    wrong="""
        cdi: {enabled: false, nriPluginEnabled: true}
        migManager: {enabled: true}
    """,
    fix=("enabled: false", "enabled: true"),
)

GF579 = rule(
    "GF579", Severity.WARNING,
    title="{value} is a value of older releases; none after {until} is known to have it.",
    reason="A chart that does not know a value ignores it without a word.",
    remedy="Remove it, or keep it if an older release is installed.",
    source="HELM-DOC (values)",
    wrong="""
        operator: {defaultRuntime: containerd}
        migManager: {enabled: true}
    """,
    fix=("defaultRuntime: containerd", "runtimeClass: nvidia"),
)

GF580 = rule(
    "GF580", Severity.WARNING,
    title="With these values {key} does nothing.",
    reason="The part that it is about does not run.",
    remedy="Remove it, or switch on what it needs.",
    source="GPUO (state_manager.go, object_controls.go)",
    wrong="""
        vgpuManager: {enabled: true}
        migManager: {enabled: true}
    """,
    fix=("migManager: {enabled: true}", "sandboxWorkloads: {enabled: true}"),
)
