"""Rules about queues that count GPUs: Kueue, Volcano."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

_QUEUE = """
        apiVersion: kueue.x-k8s.io/v1beta2
        kind: ClusterQueue
        metadata: {name: q}
        spec:
          resourceGroups:
          - coveredResources: [cpu, nvidia.com/gpu]
            flavors:
            - name: a100
              resources: [{name: cpu, nominalQuota: 40}, {name: nvidia.com/gpu, nominalQuota: 8}]
"""
_FLAVOR = """
        ---
        apiVersion: kueue.x-k8s.io/v1beta2
        kind: ResourceFlavor
        metadata: {name: a100}
"""

_ON_STACK = """
        # gpufleet lint FILE --stack-file Pulumi.lab.yaml
        config:
          gpufleet:cluster: {kind: existing, name: lab, kubeconfig: {path: lab.conf}}
          gpufleet:pools:
          - {name: h100, hosts: {n1: {}}, gpu: H100-PCIE-80GB, gpusPerNode: 4, driver: operator}
          - {name: t4, hosts: {n2: {}}, gpu: T4, gpusPerNode: 4, driver: operator, sharing: s}
          gpufleet:stack: {kind: operator}
          gpufleet:sharing: {s: {strategy: timeSlicing, replicas: 4, renameByDefault: true}}
        ---"""

GF640 = rule(
    "GF640", Severity.ERROR,
    title="No pool of this stack has nodes with {value}.",
    reason="Kueue puts a flavor's nodeLabels into the node selector of the pods that it admits; they stay Pending.",
    remedy="Name a label that the nodes have, such as {selector}.",
    source="kubernetes-sigs/kueue (ResourceFlavor)",
    wrong=_ON_STACK + """
        apiVersion: kueue.x-k8s.io/v1beta2
        kind: ResourceFlavor
        metadata: {name: big}
        spec: {nodeLabels: {gpufleet.dev/pool: h1OO}}
    """,
    fix=("h1OO", "h100"),
)

GF641 = rule(
    "GF641", Severity.ERROR,
    title="The nodes of the flavor {flavor} do not offer {value}.",
    reason="Kueue admits work for this flavor and sends the pods to its nodes; they stay Pending.",
    because="The flavor means the pools {pools}. Kueue sends the pods there, and they stay Pending.",
    remedy="Set its nominalQuota under this flavor to 0, or give what these nodes offer.",
    source="kubernetes-sigs/kueue (ClusterQueue, ResourceFlavor)",
    wrong=_ON_STACK.removesuffix("        ---")
    + "".join(
        _FLAVOR.replace("a100}", pool + "}\n        spec: {nodeLabels: {gpufleet.dev/pool: " + pool + "}}").lstrip("\n")
        for pool in ("h100", "t4")
    )
    + "        ---"
    + _QUEUE.replace("name: a100", "name: t4"),
    fix=("- name: t4", "- name: h100"),
)

GF670 = rule(
    "GF670", Severity.ERROR,
    title="No node offers {value}, which this queue gives out.",
    reason="The queue admits work for it, and the pods stay Pending.",
    remedy="Use the name that nodes offer.",
    source="kubernetes-sigs/kueue (ClusterQueue); PLUGIN",
    wrong="""
        apiVersion: scheduling.volcano.sh/v1beta1
        kind: Queue
        metadata: {name: q}
        spec: {capability: {nvidia.com/gpu: 8}}
        ---
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: slices}
        data:
          any: |
            version: v1
            sharing:
              timeSlicing:
                renameByDefault: true
                failRequestsGreaterThanOne: true
                resources: [{name: nvidia.com/gpu, replicas: 4}]
    """,
    fix=("capability: {nvidia.com/gpu: 8}", "capability: {nvidia.com/gpu.shared: 32}"),
)

GF671 = rule(
    "GF671", Severity.ERROR,
    title="The flavor {flavor} gives {value}, the group covers {covered}.",
    reason="Each flavor of a group names all covered resources, in the same order. Kueue refuses the queue.",
    remedy="List under the flavor what coveredResources lists, in its order.",
    source="kubernetes-sigs/kueue (pkg/webhooks/clusterqueue_webhook.go)",
    wrong=_QUEUE.replace("{name: cpu, nominalQuota: 40}, ", ""),
    right=_QUEUE,
)

GF672 = rule(
    "GF672", Severity.ERROR,
    title="There is no {kind} {value} among what was given.",
    reason="Until there is one, the queue is not active, and its work waits.",
    remedy="Correct the name.",
    source="kubernetes-sigs/kueue (ClusterQueue, LocalQueue)",
    wrong=_QUEUE + _FLAVOR.replace("a100", "a100s"),
    right=_QUEUE + _FLAVOR,
)

GF673 = rule(
    "GF673", Severity.ERROR,
    title="No node of this stack offers {value}.",
    reason="It comes from Volcano's own device plugin, which no stack installs. The pod stays Pending.",
    remedy="Ask for the resource that the pool offers, such as nvidia.com/gpu.",
    source="Project-HAMi/volcano-vgpu-device-plugin; volcano-sh/volcano (how_to_use_volcano_vgpu.md)",
    wrong="""
        # gpufleet lint FILE --stack-file Pulumi.a10.yaml
        apiVersion: v1
        kind: Pod
        metadata: {name: p}
        spec:
          schedulerName: volcano
          containers:
          - name: c
            image: example/app:1
            resources: {limits: {volcano.sh/vgpu-number: 1}}
    """,
    fix=("volcano.sh/vgpu-number: 1", "nvidia.com/gpu: 1"),
)
