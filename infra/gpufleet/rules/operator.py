"""Rules about the GPU Operator's version and its raw Helm values."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF220 = rule(
    "GF220", Severity.ERROR,
    title="This Helm value is derived from the stack file.",
    reason="Driver, toolkit, runtime class, sharing and tolerations must agree with the pools; a raw value could "
    "contradict them.",
    remedy="Remove it, and change the pool, the sharing profile or the taint that it follows from.",
    source="GPUO",
    wrong="gpufleet:stack: {kind: operator, values: {driver: {enabled: false}}}",
    right="gpufleet:stack: {kind: operator, values: {driver: {rdma: {enabled: true}}}}",
)

GF221 = rule(
    "GF221", Severity.WARNING,
    title="Operator {value} is not the version that gpufleet's rules describe ({known}).",
    reason="Values, defaults and supported systems differ between releases.",
    remedy="Leave `version` out, or check the release notes and acknowledge this.",
    source="GPUO",
    wrong="gpufleet:stack: {kind: operator, version: v26.3.3}",
    right="gpufleet:stack: {kind: operator, version: v26.7.0}",
)

GF224 = rule(
    "GF224", Severity.ERROR,
    title="The value {value} does nothing here.",
    reason="Null never reaches the chart, and an empty text that the chart renders makes the ClusterPolicy invalid "
    "(NVIDIA/gpu-operator#1745).",
    remedy="Remove the key, or write the value that is meant.",
    source="NVIDIA/gpu-operator#1745; NVIDIA/gpu-operator#1993",
    wrong="""
        gpufleet:cluster: {kind: existing}
        gpufleet:stack: {kind: operator, values: {dcgmExporter: {env2: null}}}
    """,
    fix=("env2: null", "env2: x"),
)

GF226 = rule(
    "GF226", Severity.ERROR,
    title="A credential stands in the stack file in clear.",
    reason="A stack file is reviewed and committed, and its values appear in plans.",
    remedy="Put it into a Kubernetes Secret of the operator's namespace, and name the Secret in the values.",
    source="PULUMI-DOC (secrets); K8S-DOC (secrets)",
    wrong="""
        gpufleet:cluster: {kind: existing}
        gpufleet:stack: {kind: operator, values: {driver: {licensingConfig: {secretToken: abc}}}}
    """,
    fix=("secretToken: abc", "secretName: licence"),
)
