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
