"""Rules about facts of hosts that contradict the stack."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF820 = rule(
    "GF820", Severity.ERROR,
    title="These facts cannot be read: {fault}",
    reason="Facts are JSON as playbooks/verify.yml collects it; one document with host and fact, or a folder with "
    "HOST.json.",
    remedy="Collect them again: `ansible-playbook playbooks/verify.yml -e verify_facts_dir=FOLDER`.",
    source="roles/README.md",
    wrong="""
        gpufleet:pools: [{name: t4, hosts: {n1: {}}, gpu: T4}]
        n1.json: {healthy: "yes"}
    """,
    fix=('healthy: "yes"', "healthy: true"),
)

GF822 = rule(
    "GF822", Severity.ERROR,
    title="There are facts of {value}, which is in no pool of this stack.",
    reason="A host that was prepared and is not in the plan is either misspelt or forgotten.",
    remedy="Add the host to its pool, or remove its facts.",
    source="docs/hosts.md",
    wrong="""
        gpufleet:pools:
          - {name: t4, hosts: {n1: {}}, gpu: T4}
        n1.json: {healthy: true}
        n2.json: {healthy: true}
    """,
    fix=("n1: {}", "n1: {}, n2: {}"),
)

GF823 = rule(
    "GF823", Severity.ERROR,
    title="There are no facts of {value}.",
    reason="Nothing is known about a host that the roles have not been through, and the plan would count on it.",
    remedy="Run playbooks/site.yml on it, then playbooks/verify.yml on all hosts.",
    source="docs/hosts.md",
    wrong="""
        gpufleet:pools:
          - {name: t4, hosts: {n1: {}, n2: {}}, gpu: T4}
        n1.json: {healthy: true}
    """,
    fix=("n1.json: {healthy: true}", "n1.json: {healthy: true}\nn2.json: {healthy: true}"),
)

GF824 = rule(
    "GF824", Severity.ERROR,
    title="{host} has a driver of its own, {value}, and its pool's owner is the operator.",
    reason="Two owners of one driver break each other: the operator's driver container does not start on a host "
    "that has one.",
    remedy="Set `driver: host` on the pool, or remove the driver (`gpu_driver_state: absent`).",
    source="GPUO; NVIDIA/gpu-operator#525",
    wrong="""
        gpufleet:cluster: {kind: existing}
        gpufleet:stack: {kind: operator}
        gpufleet:pools: [{name: t4, driver: operator}]
        n1.json:
          driver: {owner: other, version: 595.91.07, flavour: open, library: 580.126.09}
          toolkit: {version: null}
          runtime: {owner: containerd, handler: null, default: false}
    """,
    fix=("library: 580.126.09", "library: null"),
)

GF825 = rule(
    "GF825", Severity.ERROR,
    title="{host} has the container toolkit {value}, and the operator brings its own.",
    reason="Both write the configuration of the container runtime, and the last one wins.",
    remedy="Run playbooks/site.yml (it removes the roles' toolkit there), remove one that others installed, or set "
    "`driver: host`.",
    source="GPUO; CTK",
    wrong="""
        gpufleet:cluster: {kind: existing}
        gpufleet:stack: {kind: operator}
        gpufleet:pools: [{name: t4, driver: operator}]
        n1.json:
          driver: {owner: other, version: 595.91.07, flavour: open, library: null}
          toolkit: {version: 1.19.1}
          runtime: {owner: containerd, handler: null, default: false}
    """,
    fix=("version: 1.19.1", "version: null"),
)

GF826 = rule(
    "GF826", Severity.ERROR,
    title="No driver is loaded on {host}; on disk: {value}.",
    reason="The pool's owner is the host, so nobody else brings a driver; the operator's and the plugin's pods "
    "would fail.",
    remedy="Run playbooks/site.yml on it and look at what it says.",
    source="GPUO",
    wrong="""
        gpufleet:cluster: {kind: existing}
        n1.json: {driver: {owner: none, version: null, flavour: null, library: null}}
    """,
    fix=("driver: {owner: none, version: null, flavour: null, library: null}", "healthy: true"),
)

GF827 = rule(
    "GF827", Severity.ERROR,
    title="{host} runs driver {value}, not the pool's driverVersion.",
    reason="The plan was checked with the version in the stack file; images, MIG and GPUs may not fit the other one.",
    remedy="Move the host with playbooks/upgrade.yml, or correct driverVersion.",
    source="DIG",
    wrong="""
        gpufleet:cluster: {kind: existing}
        gpufleet:pools: [{name: t4, driverVersion: 580.95.05}]
        n1.json: {healthy: true}
    """,
    fix=("healthy: true", "driver: {version: 580.95.05, library: 580.95.05}"),
)

GF828 = rule(
    "GF828", Severity.ERROR,
    title="{host} runs driver {value}, not one of the pool's driverBranch.",
    reason="The plan was checked with the branch in the stack file; images, MIG and GPUs may not fit the other one.",
    remedy="Move the host with playbooks/upgrade.yml, or correct driverBranch.",
    source="DIG",
    wrong="""
        gpufleet:cluster: {kind: existing}
        gpufleet:pools: [{name: t4, driverBranch: "580"}]
        n1.json: {driver: {version: "570.26", library: "570.26"}}
    """,
    fix=('driver: {version: "570.26", library: "570.26"}', "healthy: true"),
)

GF829 = rule(
    "GF829", Severity.ERROR,
    title="MIG on {host}: {value}.",
    reason="The plan counts on the devices of another layout; pods would find other resources, or none.",
    remedy="Run playbooks/site.yml on the drained host, or correct the pool's sharing profile.",
    source="MIGP; MIG-UG",
    wrong="""
        gpufleet:sharing: {cut: {strategy: mig, profile: 1g.10gb}}
        gpufleet:pools: [{name: t4, gpu: A100-SXM4-80GB, sharing: cut}]
        n1.json:
          gpus: [{slot: "0000:00:00.0", device: "0000", model: A100-SXM4-80GB}]
          mig: {layout: all-2g.20gb, applied: true, modes: [Enabled]}
    """,
    fix=("layout: all-2g.20gb", "layout: all-1g.10gb"),
)

GF830 = rule(
    "GF830", Severity.ERROR,
    title="{host} is cut by its own MIG layout {value}, and the operator's MIG manager cuts it too.",
    reason="At every boot each of them puts its own layout in place of the other's.",
    remedy="Run playbooks/site.yml (it takes the roles' layout away there), or set `driver: host`.",
    source="MIGP; GPUO",
    wrong="""
        gpufleet:stack: {kind: operator}
        gpufleet:sharing: {cut: {strategy: mig, profile: 1g.10gb}}
        gpufleet:pools: [{name: t4, driver: operator, gpu: A100-SXM4-80GB, sharing: cut}]
        n1.json:
          driver: {owner: other, version: 595.91.07, flavour: open, library: null}
          toolkit: {version: null}
          runtime: {owner: containerd, handler: null, default: false}
          mig: {layout: all-1g.10gb}
          gpus: [{slot: "0000:00:00.0", device: "0000", model: A100-SXM4-80GB}]
    """,
    fix=("mig: {layout: all-1g.10gb}\n  ", ""),
)

GF831 = rule(
    "GF831", Severity.ERROR,
    title="There is no container toolkit on {host}.",
    reason="With `driver: host` nobody else brings one, and without it no container sees a GPU.",
    remedy="Run playbooks/site.yml on it.",
    source="CTK",
    wrong="""
        gpufleet:cluster: {kind: existing}
        n1.json: {toolkit: {version: null}}
    """,
    fix=("toolkit: {version: null}", "healthy: true"),
)

GF832 = rule(
    "GF832", Severity.ERROR,
    title="The container runtime of {host} knows no handler `nvidia`; it has: {value}.",
    reason="Pods with the runtime class nvidia stay in ContainerCreating where the runtime does not know its "
    "handler.",
    remedy="Run playbooks/site.yml on it, with gpu_container_toolkit_runtime_name left at nvidia.",
    source="NVIDIA/k8s-device-plugin#479; K8S-DOC (runtime-class)",
    wrong="""
        gpufleet:cluster: {kind: existing}
        n1.json: {runtime: {handler: null}}
    """,
    fix=("runtime: {handler: null}", "healthy: true"),
)

GF833 = rule(
    "GF833", Severity.ERROR,
    title="{host} has {value} GPUs, the pool says otherwise.",
    reason="Capacity, quotas and time-sliced shares are computed from the pool's number.",
    remedy="Correct gpusPerNode, look for the missing GPU, or move the host to another pool.",
    source="gpus",
    wrong="""
        gpufleet:cluster: {kind: existing}
        n1.json:
          gpus: [{slot: "0000:00:00.0", device: "0000", model: T4}, {slot: "0000:01:00.0", device: "0000", model: T4}]
    """,
    right="""
        gpufleet:cluster: {kind: existing}
        n1.json: {healthy: true}
    """,
)

GF834 = rule(
    "GF834", Severity.ERROR,
    title="{host} has a {value}, which is not the pool's GPU.",
    reason="Memory, MIG profiles, drivers and labels are computed from the pool's model.",
    remedy="Correct gpu, or move the host to another pool.",
    source="gpus; pci_gpus",
    wrong="""
        gpufleet:cluster: {kind: existing}
        n1.json: {gpus: [{slot: "0000:00:00.0", device: "0000", model: A10}]}
    """,
    fix=('gpus: [{slot: "0000:00:00.0", device: "0000", model: A10}]', "healthy: true"),
)

GF835 = rule(
    "GF835", Severity.WARNING,
    title="{host} has a GPU that the catalogue does not know: {value}.",
    reason="It cannot be compared with the pool's model.",
    remedy="Add its PCI id to infra/gpufleet/catalog/tables/pci.yaml.",
    source="PCI-IDS; pci_gpus",
    wrong="""
        gpufleet:cluster: {kind: existing}
        n1.json: {gpus: [{slot: "0000:00:00.0", device: "0000", model: "10de:ffff"}]}
    """,
    fix=('gpus: [{slot: "0000:00:00.0", device: "0000", model: "10de:ffff"}]', "healthy: true"),
)

GF836 = rule(
    "GF836", Severity.ERROR,
    title="The fabric software of {host} has version {value}, its driver another.",
    reason="Fabric manager and driver agree to the last field, or CUDA ends with error 802 (system not yet "
    "initialized).",
    remedy="Run playbooks/site.yml on the drained host.",
    source="DIG; fabric",
    wrong="""
        gpufleet:cluster: {kind: existing}
        n1.json:
          fabric: {platform: hgx-a100-h100-h200, unit: nvidia-fabricmanager.service, version: 580.95.05}
    """,
    right="""
        gpufleet:cluster: {kind: existing}
        n1.json:
          fabric:
            platform: hgx-a100-h100-h200
            unit: nvidia-fabricmanager.service
            version: 580.126.09
            ready: true
    """,
)

GF837 = rule(
    "GF837", Severity.ERROR,
    title="{host} waits for a reboot: {value}.",
    reason="Until then it is not in the state that the plan counts on.",
    remedy="Reboot it with playbooks/upgrade.yml and a rebootPolicy that allows it, or by hand after a drain.",
    source="roles/README.md",
    wrong="""
        gpufleet:cluster: {kind: existing}
        n1.json: {reboot_required: [MIG mode is pending on 1 GPUs], healthy: false}
    """,
    fix=("reboot_required: [MIG mode is pending on 1 GPUs], healthy: false", "healthy: true"),
)

GF838 = rule(
    "GF838", Severity.ERROR,
    title="{host} is {value}.",
    reason="The health check of the roles failed there (driver, library, fabric, memory errors, or drift from the "
    "plan).",
    remedy="Run `ansible-playbook playbooks/verify.yml --limit {host}`; it says what is wrong.",
    source="roles/gpu_health/README.md",
    wrong="""
        gpufleet:cluster: {kind: existing}
        n1.json: {healthy: false}
    """,
    fix=("healthy: false", "healthy: true"),
)

GF839 = rule(
    "GF839", Severity.ERROR,
    title="nvidia is the default runtime of {host}: {value}; nvidiaDefaultRuntime says otherwise.",
    reason="Without the default, pods need the runtime class nvidia; with it, every pod runs under NVIDIA's runtime.",
    remedy="Correct nvidiaDefaultRuntime, or run playbooks/site.yml on the host.",
    source="CTK; K8S-DOC (runtime-class)",
    wrong="""
        gpufleet:cluster: {kind: existing}
        gpufleet:pools: [{name: t4, nvidiaDefaultRuntime: true}]
        n1.json: {runtime: {default: false}}
    """,
    fix=("default: false", "default: true"),
)

GF840 = rule(
    "GF840", Severity.ERROR,
    title="{host} has loaded {value} kernel modules.",
    reason="The GPU, or hostDriver.flavour, asks for the others.",
    remedy="Move the host with playbooks/upgrade.yml, or correct the flavour.",
    source="DIG; OGKM",
    wrong="""
        gpufleet:pools: [{name: t4, hostDriver: {flavour: proprietary}}]
        n1.json: {driver: {flavour: open}}
    """,
    fix=("flavour: open", "flavour: proprietary"),
)

GF841 = rule(
    "GF841", Severity.ERROR,
    title="{host} has loaded driver {value}, its libraries are {library}.",
    reason="nvidia-smi and CUDA end with 'Driver/library version mismatch'.",
    remedy="Load the new module with playbooks/upgrade.yml, which drains the node first.",
    source="NVIDIA/k8s-device-plugin#1431; NVIDIA/k8s-device-plugin#221",
    wrong="""
        gpufleet:cluster: {kind: existing}
        n1.json: {driver: {library: 580.178.04}}
    """,
    fix=("driver: {library: 580.178.04}", "healthy: true"),
)

GF842 = rule(
    "GF842", Severity.ERROR,
    title="{host} runs driver {value}, and {gpu} needs {oldest} or newer.",
    reason="An older driver does not know the GPU.",
    remedy="Set driverBranch or driverVersion on the pool and move the host with playbooks/upgrade.yml.",
    source="OGKM; gpus",
    wrong="""
        gpufleet:pools: [{name: t4, gpu: B200}]
        n1.json:
          gpus: [{slot: "0000:00:00.0", device: "0000", model: B200}]
          driver: {version: "570.26", library: "570.26"}
    """,
    right="""
        gpufleet:pools: [{name: t4, gpu: B200}]
        n1.json: {gpus: [{slot: "0000:00:00.0", device: "0000", model: B200}]}
    """,
)

GF843 = rule(
    "GF843", Severity.ERROR,
    title="The container runtime of {host} belongs to {value}.",
    reason="The distribution of the cluster, or hosts.runtimeOwner, says who owns its configuration and how it is "
    "changed.",
    remedy="Correct cluster.distribution or hosts.runtimeOwner, or put the host into the stack of its own cluster.",
    source="docs/hosts.md; roles/README.md",
    wrong="""
        gpufleet:cluster: {kind: existing}
        n1.json: {runtime: {owner: k3s}}
    """,
    fix=("runtime: {owner: k3s}", "healthy: true"),
)

GF844 = rule(
    "GF844", Severity.ERROR,
    title="{host} runs driver {value}, too old for {image} of team {team}.",
    reason="The driver is older than the CUDA of the image: the container ends with 'unsatisfied condition', or "
    "CUDA with error 803.",
    because="CUDA {cuda} does not start there: 'unsatisfied condition', or error 803.",
    remedy="Raise the driver of the pool and move the host with playbooks/upgrade.yml, or use an image with an "
    "older CUDA.",
    source="COMPAT",
    wrong="""
        gpufleet:cluster: {kind: existing}
        gpufleet:teams:
          - {name: x, namespace: x, pools: [t4], images: ["registry.example.com/train:cuda13.0"]}
        n1.json: {driver: {version: 535.309.01, library: 535.309.01}}
    """,
    fix=("driver: {version: 535.309.01, library: 535.309.01}", "healthy: true"),
)

GF845 = rule(
    "GF845", Severity.ERROR,
    title="The fabric of {host} ({value}) is not ready.",
    reason="Until every GPU reports it as Completed with status Success, CUDA ends with error 802 (system not yet "
    "initialized).",
    remedy="Run playbooks/verify.yml again in a few minutes; if it stays so, look at nvidia-fabricmanager.service.",
    source="DIG; fabric",
    wrong="""
        gpufleet:cluster: {kind: existing}
        n1.json:
          fabric:
            platform: hgx-a100-h100-h200
            unit: nvidia-fabricmanager.service
            version: 580.126.09
            ready: false
    """,
    fix=("ready: false", "ready: true"),
)
