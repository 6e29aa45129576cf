"""Rules about reading what is given."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF500 = rule(
    "GF500", Severity.ERROR,
    title="This file cannot be read: {fault}.",
    reason="Nothing in it was checked.",
    remedy="Give a UTF-8 text file.",
    source="YAML",
    wrong="""
        # saved as Latin-1
        # für zwei Pods
        version: v1
        sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
    """,
    fix=("as Latin-1", "as UTF-8"),
)

GF501 = rule(
    "GF501", Severity.ERROR,
    title="This is not valid YAML: {fault}",
    reason="Every reader of this text refuses it; nothing in the document was checked.",
    remedy="Correct the text; indentation uses spaces, never tabs.",
    source="YAML",
    wrong="""
        version: v1
        sharing: [
    """,
    fix=("sharing: [", "sharing: {}"),
)

GF502 = rule(
    "GF502", Severity.NOTE,
    title="Nothing here is known to gpufleet lint; the document was not checked.",
    reason="Known are plugin configurations, MIG layouts, ConfigMaps, values of GPU charts, Kustomizations, and "
    "objects of Kubernetes that set up or use GPUs.",
    remedy="Nothing, or say what it is with --as.",
    source="docs/your-yaml.md",
    wrong="colour: blue",
    right="""
        version: v1
        sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
    """,
)

GF503 = rule(
    "GF503", Severity.NOTE,
    title="This is a template, not YAML; it was not checked.",
    reason="Only the rendered text says what it will do.",
    remedy="Render it and lint the result: `helm template ... | gpufleet lint -`",
    source="HELM-DOC (chart_template_guide)",
    wrong="""
        {{- if .Values.gpu }}
        version: v1
        {{- end }}
    """,
    right="""
        version: v1
        sharing: {}
    """,
)

GF504 = rule(
    "GF504", Severity.ERROR,
    title="The key {value} stands here twice; the last one counts.",
    reason="The earlier value is lost silently.",
    remedy="Keep one.",
    source="YAML",
    wrong="""
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: sharing}
        data:
          any: |
            version: v1
            sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
          any: |
            version: v1
            flags: {}
    """,
    right="""
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: sharing}
        data:
          any: |
            version: v1
            sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 4}]}}
          other: |
            version: v1
            flags: {}
    """,
)

GF505 = rule(
    "GF505", Severity.NOTE,
    title="Objects of the kind {kind} are not known to gpufleet lint; what this one says about GPUs was not checked.",
    reason="It names GPUs at a place that lint does not know.",
    remedy="Lint the pods that it makes.",
    source="docs/your-yaml.md",
    wrong="""
        apiVersion: tekton.dev/v1
        kind: Task
        metadata: {name: train}
        spec: {steps: [{computeResources: {limits: {nvidia.com/gpu: 1}}}]}
    """,
    right="""
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          containers:
          - name: app
            image: example/app:1
            resources: {limits: {nvidia.com/gpu: 1}}
    """,
)
