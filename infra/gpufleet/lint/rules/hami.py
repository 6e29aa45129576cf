"""Rules about requests for HAMi's resources. Sources are read at Project-HAMi/HAMi v2.10.0."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

_SOURCE = "Project-HAMi/HAMi (v2.10.0, pkg/device/nvidia/device.go)"

GF630 = rule(
    "GF630", Severity.ERROR,
    title="{value} vGPUs in one container are more than the cards of a node: {most}.",
    reason="HAMi takes each vGPU of a container from another card, and all of them from one node; the pod stays "
    "Pending.",
    remedy="Ask for at most {most}. For a larger part of a card raise nvidia.com/gpumem instead.",
    source="Project-HAMi/HAMi#1535; Project-HAMi/HAMi (v2.10.0, pkg/scheduler/score.go)",
    wrong="""
        # gpufleet lint FILE --stack-file Pulumi.lab.yaml
        config:
          gpufleet:cluster: {kind: existing, name: lab, kubeconfig: {path: lab.conf}}
          gpufleet:pools: [{name: l4, hosts: {n1: {}}, gpu: L4, gpusPerNode: 1, sharing: vgpu}]
          gpufleet:stack: {kind: plugin}
          gpufleet:sharing: {vgpu: {strategy: hami, splitCount: 10}}
        ---
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          runtimeClassName: nvidia
          containers:
          - name: app
            image: example/app:1
            resources: {limits: {nvidia.com/gpu: 9, nvidia.com/gpumem: 3000}}
    """,
    fix=("nvidia.com/gpu: 9, nvidia.com/gpumem: 3000", "nvidia.com/gpu: 1, nvidia.com/gpumem: 20000"),
)

GF631 = rule(
    "GF631", Severity.ERROR,
    title="{value} MiB of GPU memory are more than there is: {most}.",
    reason="gpumem counts MiB of one card, for each vGPU; no card has as much, and the pod stays Pending.",
    remedy="Ask for at most {most} MiB.",
    source=f"Project-HAMi/HAMi#1535; {_SOURCE}",
    wrong="""
        # gpufleet lint FILE --stack-file Pulumi.lab.yaml
        config:
          gpufleet:cluster: {kind: existing, name: lab, kubeconfig: {path: lab.conf}}
          gpufleet:pools: [{name: l4, hosts: {n1: {}}, gpu: L4, gpusPerNode: 1, sharing: vgpu}]
          gpufleet:stack: {kind: plugin}
          gpufleet:sharing: {vgpu: {strategy: hami, splitCount: 10}}
        ---
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          containers:
          - name: app
            image: example/app:1
            resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 27000}}
    """,
    fix=("27000", "20000"),
)

GF632 = rule(
    "GF632", Severity.ERROR,
    title="nvidia.com/gpumem counts MiB; {value} is too large a number.",
    reason="HAMi reads a plain number of MiB of at most 31 bits, and drops the request of a container with a larger "
    "one.",
    because="HAMi reads it as {bytes} MiB, more than 31 bits, and drops the container's request.",
    remedy="Write MiB without a unit: {mib}.",
    source=_SOURCE,
    wrong="""
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          containers:
          - name: app
            image: example/app:1
            resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 8Gi}}
    """,
    fix=("8Gi", "8192"),
)

GF633 = rule(
    "GF633", Severity.ERROR,
    title="nvidia.com/gpumem-percentage is a number from 0 to 100, not {value}.",
    reason="HAMi's webhook refuses the pod.",
    remedy="Write the part of one card's memory that each vGPU gets, in percent: 25.",
    source=_SOURCE,
    wrong="""
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          containers:
          - name: app
            image: example/app:1
            resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem-percentage: 150}}
    """,
    fix=("150", "50"),
)

GF634 = rule(
    "GF634", Severity.WARNING,
    title="nvidia.com/gpucores: {value} is cut to 100.",
    reason="gpucores is the percentage of one card that each vGPU gets; at 100 the pod has the card for itself.",
    remedy="Write a number up to 100. For more than one card raise nvidia.com/gpu.",
    source=_SOURCE,
    wrong="""
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          containers:
          - name: app
            image: example/app:1
            resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 4000, nvidia.com/gpucores: 200}}
    """,
    fix=("200", "50"),
)

GF635 = rule(
    "GF635", Severity.WARNING,
    title="nvidia.com/gpumem-percentage: {value} does nothing beside nvidia.com/gpumem.",
    reason="Both say how much memory a vGPU gets; HAMi takes gpumem where it is set.",
    because="Both say how much memory a vGPU gets; HAMi takes gpumem, {memory} MiB.",
    remedy="Remove one of the two.",
    source=_SOURCE,
    wrong="""
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          containers:
          - name: app
            image: example/app:1
            resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 4000, nvidia.com/gpumem-percentage: 50}}
    """,
    fix=(", nvidia.com/gpumem-percentage: 50", ""),
)

GF636 = rule(
    "GF636", Severity.NOTE,
    title="Without nvidia.com/gpumem each vGPU takes a whole card.",
    reason="HAMi gives such a container all memory and all cores of its cards, so no other pod shares them.",
    because="HAMi gives such a container all memory and all cores of its cards. Each card is there for {split} pods.",
    remedy="To share a card, say how much of it is needed, for example nvidia.com/gpumem: {each}.",
    source=f"Project-HAMi/HAMi#194; {_SOURCE}",
    wrong="""
        # gpufleet lint FILE --stack-file Pulumi.lab.yaml
        config:
          gpufleet:cluster: {kind: existing, name: lab, kubeconfig: {path: lab.conf}}
          gpufleet:pools: [{name: l4, hosts: {n1: {}}, gpu: L4, gpusPerNode: 1, sharing: vgpu}]
          gpufleet:stack: {kind: plugin}
          gpufleet:sharing: {vgpu: {strategy: hami, splitCount: 10}}
        ---
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          containers:
          - name: app
            image: example/app:1
            resources: {limits: {nvidia.com/gpu: 1}}
    """,
    fix=("nvidia.com/gpu: 1", "nvidia.com/gpu: 1, nvidia.com/gpumem: 2000"),
)

GF637 = rule(
    "GF637", Severity.ERROR,
    title="The container {value} is privileged, and HAMi refuses the pod.",
    reason="A privileged container sees every GPU, so HAMi's webhook denies pods that have one and ask for a vGPU.",
    remedy="Remove privileged: true.",
    source="Project-HAMi/HAMi (v2.10.0, pkg/scheduler/webhook.go)",
    wrong="""
        # gpufleet lint FILE --stack-file Pulumi.lab.yaml
        config:
          gpufleet:cluster: {kind: existing, name: lab, kubeconfig: {path: lab.conf}}
          gpufleet:pools: [{name: l4, hosts: {n1: {}}, gpu: L4, gpusPerNode: 1, sharing: vgpu}]
          gpufleet:stack: {kind: plugin}
          gpufleet:sharing: {vgpu: {strategy: hami, splitCount: 10}}
        ---
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          containers:
          - name: app
            image: example/app:1
            securityContext: {privileged: true}
            resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 2000}}
    """,
    fix=("securityContext: {privileged: true}\n    ", ""),
)

GF639 = rule(
    "GF639", Severity.ERROR,
    title="The containers do not fit on the cards of one node together: {value}.",
    reason="All containers of a pod are on one node, and what they take of a card adds up; the pod stays Pending.",
    because="A node has {have}, and what the containers take of a card adds up. The pod stays Pending.",
    remedy="Ask for less in each container, or make them pods of their own.",
    source="Project-HAMi/HAMi (v2.10.0, pkg/scheduler/score.go)",
    wrong="""
        # gpufleet lint FILE --stack-file Pulumi.lab.yaml
        config:
          gpufleet:cluster: {kind: existing, name: lab, kubeconfig: {path: lab.conf}}
          gpufleet:pools: [{name: l4, hosts: {n1: {}}, gpu: L4, gpusPerNode: 1, sharing: vgpu}]
          gpufleet:stack: {kind: plugin}
          gpufleet:sharing: {vgpu: {strategy: hami, splitCount: 10}}
        ---
        apiVersion: v1
        kind: Pod
        metadata: {name: train}
        spec:
          containers:
          - {name: a, image: "example/app:1", resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 12000}}}
          - {name: b, image: "example/app:1", resources: {limits: {nvidia.com/gpu: 1, nvidia.com/gpumem: 12001}}}
    """,
    fix=("12001", "11000"),
)
