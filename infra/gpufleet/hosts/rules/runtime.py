"""Rules about the container runtime and the container toolkit."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF744 = rule(
    "GF744", Severity.ERROR,
    title="Container runtime is ambiguous: found {found}, gpu_runtime_owner is auto",
    reason="Each runtime has its own file and service; the wrong one would be changed.",
    remedy="Set gpu_runtime_owner.",
    source="NVIDIA/nvidia-container-toolkit#982",
    cases=("BM-33",),
    wrong="""
        # containerd and k3s run
        gpu_runtime_owner: auto
    """,
    right="""
        # containerd and k3s run
        gpu_runtime_owner: k3s
    """,
)

GF745 = rule(
    "GF745", Severity.ERROR,
    title="Declared container runtime not found: gpu_runtime_owner is {owner}, found {found}",
    reason="There is nothing to configure.",
    remedy="Install the runtime first or correct gpu_runtime_owner.",
    source="NVIDIA/nvidia-container-toolkit#982",
    cases=("BM-33",),
    wrong="""
        # containerd runs, Docker is not installed
        gpu_runtime_owner: docker
    """,
    right="""
        # containerd runs, Docker is not installed
        gpu_runtime_owner: containerd
    """,
)

GF746 = rule(
    "GF746", Severity.ERROR,
    title="Container toolkit too old for this host: {version}, needs {minimum}: {reason}",
    reason="The runtime would not start or would lose settings.",
    remedy="Set gpu_container_toolkit_version to {minimum} or newer.",
    source="NVIDIA/aicr#1688; NVIDIA/nvidia-container-toolkit#1222",
    cases=("NV-34", "NV-36"),
    wrong="""
        # containerd's file is of version 3
        gpu_container_toolkit_version: 1.17.3
    """,
    right="""
        # containerd's file is of version 3
        gpu_container_toolkit_version: 1.19.1
    """,
)

GF747 = rule(
    "GF747", Severity.ERROR,
    title="Runtime configuration cannot be read: {file}: {reason}",
    reason="An edit on top of a broken file leaves a broken file.",
    remedy="Repair the file first.",
    source="NVIDIA/nvidia-container-toolkit#433",
    cases=("BM-31", "BM-35"),
    wrong="""
        version = 2
        version = 2
    """,
    right="version = 2",
)

GF748 = rule(
    "GF748", Severity.WARNING,
    title="Drop-in is not imported: {file}; imports of the root file: {imports}",
    reason="containerd does not read the file.",
    remedy="gpu_container_toolkit writes the runtime where it is read.",
    source="NVIDIA/nvidia-container-toolkit#1260",
    cases=("NV-35",),
    wrong="""
        version = 2
        imports = []
    """,
    right="""
        version = 2
        imports = ["/etc/containerd/conf.d/*.toml"]
    """,
)

GF749 = rule(
    "GF749", Severity.ERROR,
    title="Drop-in of a newer version than the root file: {file} is version {drop_in}, the root file is version {root}",
    reason="containerd refuses to start.",
    remedy="Write the drop-in in the root file's version, or remove it.",
    source="NVIDIA/aicr#1688",
    cases=("NV-36",),
    wrong="config.toml: version = 2; conf.d/site.toml: version = 3",
    right="config.toml: version = 2; conf.d/site.toml: version = 2",
)

GF750 = rule(
    "GF750", Severity.ERROR,
    title="GPU workloads are running: {what} would disturb {holders}",
    reason="In legacy mode with the systemd cgroup driver a daemon-reload or restart takes the GPUs away from "
    "running containers.",
    remedy="Drain the host (playbooks/upgrade.yml does), or set gpu_node_drained when nothing of value runs.",
    source="NVIDIA/nvidia-container-toolkit#48",
    cases=("BM-30", "NV-37"),
    wrong="""
        # python3 holds a GPU, and the runtime has to be restarted
        gpu_container_toolkit_mode: legacy
    """,
    right="""
        # nothing holds a GPU any more
        gpu_container_toolkit_mode: legacy
    """,
)

GF751 = rule(
    "GF751", Severity.WARNING,
    title="Second CDI specification: {files}",
    reason="Two specifications of one kind conflict.",
    remedy="Remove the one in /etc/cdi.",
    source="CTK",
    wrong="/etc/cdi/nvidia.yaml and /var/run/cdi/nvidia.yaml are there",
    right="/var/run/cdi/nvidia.yaml alone is there",
)

GF783 = rule(
    "GF783", Severity.ERROR,
    title="Runtime does not know nvidia: {what}",
    reason="Pods with the runtime class nvidia do not start.",
    remedy="Run playbooks/site.yml; see the runtime's configuration.",
    source="NVIDIA/k8s-device-plugin#479",
    cases=("NV-23", "NV-35"),
    wrong="containerd config dump: no runtime nvidia",
    right="containerd config dump: a runtime nvidia",
)

GF789 = rule(
    "GF789", Severity.ERROR,
    title="Effective runtime configuration changed elsewhere: {paths}",
    reason="Only runtime entries and enable_cdi may differ after the toolkit step.",
    remedy="The old files were put back; look at imports and drop-ins of containerd.",
    source="NVIDIA/nvidia-container-toolkit#1222",
    cases=("NV-34",),
    wrong="after the toolkit step the effective cni.bin_dir is another one",
    right="after the toolkit step only runtimes and enable_cdi differ",
)

GF790 = rule(
    "GF790", Severity.ERROR,
    title="Units wait for each other at boot: {units}; systemd gives up {lost}",
    reason="systemd breaks the cycle by not starting one of them, which may be the container runtime.",
    remedy="See `systemd-analyze verify default.target`; a drop-in of the host, or a container toolkit older than "
    "1.19.1, orders them so.",
    source="NVIDIA/nvidia-container-toolkit#1735",
    cases=("BM-36",),
    wrong="nvidia-cdi-refresh.service and docker.service wait for each other",
    right="nvidia-cdi-refresh.service waits for docker.service, and nothing waits for it",
)

GF791 = rule(
    "GF791", Severity.ERROR,
    title="Container runtime too old for CDI: {runtime} {version}, needs {minimum}",
    reason="It does not resolve the CDI devices that the device plugin hands out; pods start without their GPU and "
    "nothing says so.",
    remedy="Update {runtime} to {minimum} or newer (containerd 2 has CDI on by default). Or take the plugin route "
    "(`gpufleet:stack: {{kind: plugin}}`), which needs no CDI.",
    source="kubernetes/kubernetes#121350; CTK",
    wrong="""
        # containerd is 1.6.20
        gpu_container_toolkit_cdi: true
    """,
    right="""
        # containerd is 1.7.29
        gpu_container_toolkit_cdi: true
    """,
)

GF792 = rule(
    "GF792", Severity.ERROR,
    title="CDI is off in the containerd that the distribution carries: {seen}",
    reason="Pods that get their GPU as a CDI device start without it. The distribution writes the file anew at every "
    "start, so no role can change it.",
    remedy="Update {owner} to a release that carries containerd 2, where CDI is on (k3s: any after v1.31.5 and "
    "v1.32.1). A template of your own ({template}) must not set enable_cdi to false.",
    source="k3s-io/k3s#11745; k3s-io/k3s#11746",
    wrong="""
        # k3s carries containerd 1.7.23
        gpu_container_toolkit_cdi: true
    """,
    right="""
        # k3s carries containerd 2.0.2
        gpu_container_toolkit_cdi: true
    """,
)

GF793 = rule(
    "GF793", Severity.ERROR,
    title="CDI is not in effect: {what}",
    reason="Pods that get their GPU as a CDI device start without it, and nothing says so.",
    remedy="Run playbooks/site.yml. Where containerd's file belongs to another tool (kubespray), set "
    "`enable_cdi: true` there; a drop-in that is read later must not set it to false.",
    source="CTK; kubernetes/kubernetes#121350",
    wrong="containerd config dump: enable_cdi = false, and gpu_container_toolkit_cdi is true",
    right="containerd config dump: enable_cdi = true",
)

GF794 = rule(
    "GF794", Severity.ERROR,
    title="No CDI for a kubelet over this container runtime: {runtime}",
    reason="A recent cri-dockerd with CDI switched on in Docker was seen to start pods without their CDI devices.",
    remedy="Run the kubelet over containerd or CRI-O. Or take the plugin route (`gpufleet:stack: {{kind: plugin}}`), "
    "which needs no CDI.",
    source="Mirantis/cri-dockerd#558",
    wrong="""
        gpu_container_toolkit_cdi: true
        gpu_runtime_owner: docker
    """,
    right="""
        gpu_container_toolkit_cdi: true
        gpu_runtime_owner: containerd
    """,
)

GF795 = rule(
    "GF795", Severity.ERROR,
    title="containerd 2 ignores the CRI settings of this file: {file} is of version 1, containerd is {version}",
    reason="It reads such a file, but not the tables of the CRI plugin, so a runtime that stands there does not exist "
    "(read from containerd 2.2.1 itself).",
    remedy="Write `version = 2` at its top and `plugins.\"io.containerd.grpc.v1.cri\"` in place of `plugins.cri`; look "
    "at `containerd config dump` afterwards.",
    source="CTD",
    wrong="""
        # containerd 2.2.1
        [plugins.cri.containerd.runtimes.runc]
    """,
    right="""
        # containerd 2.2.1
        version = 2
        [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    """,
)
