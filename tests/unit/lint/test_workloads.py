"""Pods that use GPUs: requests, variables, tolerations, memory, spread."""

import pytest
from gpufleet.parts.taints import parse_taint

from tests.unit.lint.told import GPU4, codes, config_map, limits, one, pod, told

SHARED = GPU4.replace("failRequestsGreaterThanOne: true", "failRequestsGreaterThanOne: false")
RENAMED = GPU4.replace("    resources:", "    renameByDefault: true\n    resources:")
BOUND = "env: [{name: XLA_PYTHON_CLIENT_MEM_FRACTION, value: '0.2'}]\n"


def test_a_plain_gpu_pod_is_quiet() -> None:
    assert codes(pod(limits())) == []
    assert codes(pod()) == []


def test_several_shares_of_one_gpu() -> None:
    two = pod(limits(number=2) + BOUND)
    assert codes(two) == []  # nothing says that the GPU is shared
    assert codes(two, SHARED) == ["GF600"]
    assert codes(two, config_map(GPU4)) == ["GF601"]
    assert codes(pod(limits("nvidia.com/gpu.shared", 2) + BOUND)) == ["GF600", "GF610"]
    assert codes(pod(limits(number=8192) + BOUND), SHARED.replace("4", "24576")) == ["GF526", "GF600"]


@pytest.mark.parametrize(
    ("name", "closest"),
    [
        ("nvidia.com/mig1g.5gb", "nvidia.com/mig-1g.5gb"),
        ("nvidia.com/gpus", "nvidia.com/gpu"),
        ("nvidia.com/gpu-shared", "nvidia.com/gpu"),
        ("nvidia.com/mig-1g5gb", None),
        ("nvidia.com/mig-1g.5gb+me", None),
    ],
)
def test_names_that_no_plugin_gives(name: str, closest: str | None) -> None:
    found = one("GF602", pod(limits(f'"{name}"')))
    assert found.value == name
    assert closest is None or found.closest == closest


EXISTING = "gpu mig-1g.5gb mig-1g.5gb.me mig-1g.24gb-me mig-1g.24gb.me.all gpu.shared GA102GL_A10 gpumem hostdev"


@pytest.mark.parametrize("name", EXISTING.split(" "))
def test_names_that_exist(name: str) -> None:
    assert "GF602" not in codes(pod(limits(f"nvidia.com/{name}")))


def test_a_resource_that_the_described_node_does_not_offer() -> None:
    found = one("GF603", pod(limits("nvidia.com/gpu") + BOUND), RENAMED, gpus="4xA100-80GB")
    assert (found.closest, found.allowed) == ("nvidia.com/gpu.shared", ("nvidia.com/gpu.shared",))
    assert "nvidia.com/gpu.shared: 16" in found.reason
    assert codes(pod(limits("nvidia.com/gpu") + BOUND), RENAMED) == []  # another node may offer it


@pytest.mark.parametrize("number", ["0.5", '"0.5"', "500m", "true", "null", '""'])
def test_fractions(number: str) -> None:
    assert one("GF604", pod(limits(number=number))).path.endswith('limits["nvidia.com/gpu"]')


@pytest.mark.parametrize("number", ["1", '"1"', "1.0"])
def test_whole_numbers(number: str) -> None:
    assert codes(pod(limits(number=number))) == []


def test_requests_need_equal_limits() -> None:
    assert codes(pod("resources: {requests: {nvidia.com/gpu: 1}}\n")) == ["GF605"]
    assert codes(pod("resources: {requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 2}}\n")) == ["GF605"]
    assert codes(pod("resources: {requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 1}}\n")) == []


TOLERANT = "tolerations: [{key: nvidia.com/gpu, operator: Exists, effect: NoSchedule}]\n"


def test_several_mig_devices_in_one_container() -> None:
    both = "resources: {limits: {nvidia.com/mig-1g.5gb: 1, nvidia.com/mig-2g.10gb: 1}}\n"
    assert codes(pod(both, TOLERANT)) == ["GF606"]
    assert codes(pod(limits("nvidia.com/mig-1g.5gb", 2), TOLERANT)) == ["GF606"]
    assert codes(pod(limits("nvidia.com/mig-1g.5gb", 1), TOLERANT)) == []


def test_variables_that_choose_gpus() -> None:
    def with_env(name: str, value: str, resources: str = limits()) -> str:
        return pod(f"env: [{{name: {name}, value: '{value}'}}]\n{resources}")

    assert codes(with_env("NVIDIA_VISIBLE_DEVICES", "all")) == ["GF607"]
    assert codes(with_env("NVIDIA_VISIBLE_DEVICES", "all", "")) == ["GF608"]
    assert codes(with_env("NVIDIA_VISIBLE_DEVICES", "none")) == []
    assert codes(with_env("CUDA_VISIBLE_DEVICES", "0")) == ["GF609"]
    assert codes(with_env("CUDA_VISIBLE_DEVICES", "0", "")) == []


def test_renamed_and_mig_resources_need_a_toleration() -> None:
    assert codes(pod(limits("nvidia.com/gpu.shared") + BOUND)) == ["GF610"]
    assert codes(pod(limits("nvidia.com/mig-1g.5gb"))) == ["GF610"]
    assert codes(pod(limits("nvidia.com/mig-1g.5gb"), "tolerations: [{operator: Exists}]\n")) == []
    assert codes(pod(limits("nvidia.com/mig-1g.5gb"), "tolerations: [{key: sku, operator: Exists}]\n")) == ["GF610"]


def test_taints_that_admission_does_not_tolerate() -> None:
    sku, own = parse_taint("sku=gpu:NoSchedule"), parse_taint("nvidia.com/gpu=present:NoSchedule")
    assert codes(pod(limits()), taints=(own,)) == []
    found = one("GF620", pod(limits()), taints=(sku, own))
    assert (found.value, found.path) == ("sku=gpu:NoSchedule", "spec.tolerations")
    assert codes(pod(), taints=(sku,)) == []


def test_user_namespaces() -> None:
    assert codes(pod(limits(), "hostUsers: false\n")) == ["GF611"]
    assert codes(pod("", "hostUsers: false\n")) == []


def test_memory_bound_under_sharing() -> None:
    assert codes(pod(limits()), SHARED) == ["GF612"]
    assert codes(pod(limits() + BOUND), SHARED) == []
    assert codes(pod(limits() + "args: [--gpu-memory-fraction=0.2]\n"), SHARED) == []
    mps = "flags: {mpsRoot: /m}\nsharing: {mps: {resources: [{name: gpu, replicas: 4}]}}\n"
    assert codes(pod(limits()), mps) == []  # the daemon bounds every client


HARD = (
    "affinity: {podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
    "[{topologyKey: kubernetes.io/hostname}]}}\n"
)
SOFT = "topologySpreadConstraints: [{topologyKey: kubernetes.io/hostname, maxSkew: 1, whenUnsatisfiable: X}]\n"


def test_spread_of_shared_pods() -> None:
    def spread(spec: str) -> list[str]:
        return codes(pod(limits() + BOUND, spec, "Deployment"), SHARED)

    assert spread("") == ["GF614"]
    assert spread(HARD) == ["GF613"]
    assert spread(SOFT.replace("X", "DoNotSchedule")) == ["GF613"]
    assert spread(SOFT.replace("X", "ScheduleAnyway")) == []
    assert codes(pod(limits(), "", "Deployment")) == []  # whole GPUs: the scheduler cannot pile up


def server(fraction: str = "", image: str = "vllm/vllm-openai:v0.6.3", kind: str = "Deployment") -> str:
    text = f"args: [{fraction}]\n" if fraction else ""
    spread = SOFT.replace("X", "ScheduleAnyway") if kind == "Deployment" else ""
    return pod(text + limits(), spread, kind).replace("example/app:1", image)


def test_memory_promised_twice() -> None:
    found = one("GF618", server(), SHARED)
    assert found.message.startswith("Pods that share a GPU reserve 2.70 of 1.00")  # three pods, 0.9 each by default
    assert codes(server("--gpu-memory-utilization=0.3"), SHARED) == []
    assert codes(server("--gpu-memory-utilization, '0.3'"), SHARED) == []
    assert codes(server("'vllm serve m --gpu-memory-utilization 0.34'"), SHARED) == ["GF618"]
    assert codes(server("--gpu-memory-utilization=0.9", kind="Pod"), SHARED) == []
    two = server("--gpu-memory-utilization=0.6", kind="Pod")
    assert codes(two, two.replace("name: p", "name: q"), SHARED) == ["GF618"]
    assert codes(server()) == []  # not shared
    assert codes(server(image="lmsysorg/sglang:v0.4"), SHARED) == ["GF618"]


def test_only_as_many_pods_count_as_share_one_gpu() -> None:
    half = server("--gpu-memory-utilization=0.5")
    assert codes(half, SHARED.replace("replicas: 4", "replicas: 2")) == []
    assert codes(half, SHARED) == ["GF618"]


def test_product_selector_breaks_when_sharing_starts() -> None:
    selector = "nodeSelector: {nvidia.com/gpu.product: NVIDIA-H200}\n"
    found = one("GF619", pod(limits() + BOUND, selector), SHARED, gpus="2xH200")
    assert "NVIDIA-H200-SHARED" in found.remedy
    assert codes(pod(limits() + BOUND, selector), SHARED) == ["GF619"]
    right = selector.replace("H200", "H200-SHARED")
    assert codes(pod(limits() + BOUND, right), SHARED, gpus="2xH200") == []
    renamed = pod(limits("nvidia.com/gpu.shared") + BOUND, selector + TOLERANT)
    assert codes(renamed, RENAMED, gpus="2xH200") == []


def test_every_kind_of_pod_carrier() -> None:
    inner = pod(limits(number='"0.5"')).split("spec:\n", 1)[1]
    deep = "".join("    " + line + "\n" for line in inner.splitlines())
    head = "apiVersion: x\nmetadata: {name: n}\nspec:\n  template:\n    spec:\n"
    for kind in ("Deployment", "StatefulSet", "ReplicaSet", "Job", "DaemonSet"):
        assert codes(f"kind: {kind}\n{head}{deep}") == ["GF604"], kind
    cron = "".join("    " + line + "\n" for line in (head.split("spec:\n", 1)[1] + deep).splitlines())
    assert codes(f"kind: CronJob\napiVersion: x\nspec:\n  jobTemplate:\n    spec:\n{cron}") == ["GF604"]


def test_init_containers_count() -> None:
    text = pod("", "initContainers: [{name: i, image: x, resources: {limits: {nvidia.com/gpus: 1}}}]\n")
    assert one("GF602", text).path.startswith("spec.initContainers[0]")


@pytest.mark.parametrize(
    ("number", "wanted"),
    [("2", 2), ('"2"', 2), ("2000m", 2), ("1k", 1000), ("1Ki", 1024), ("2e0", 2), ("2.0", 2), ('"1.5k"', 1500)],
)
def test_quantities_that_are_whole_numbers(number: str, wanted: int) -> None:
    found = told(pod(limits(number=number) + BOUND), SHARED)
    assert [(x.code, x.value) for x in found if x.code != "GF527"] == [("GF600", str(wanted))]


@pytest.mark.parametrize("number", ["1500m", "1m", "2e-1", "1Q", "0x", '"-"'])
def test_quantities_that_are_none(number: str) -> None:
    assert "GF604" in codes(pod(limits(number=number)))


def test_zero_of_a_resource_is_no_request() -> None:
    for zero in ("0", '"0"', "0m", "0.0"):
        assert codes(pod(limits(number=zero)), GPU4) == []
    zero = pod(limits(number=0) + "env: [{name: NVIDIA_VISIBLE_DEVICES, value: all}]\n")
    assert codes(zero) == ["GF608"]


@pytest.mark.parametrize(
    "name",
    ["gpu", "gpus", "nvidia/gpu", "nvidia-gpu", "nvidia.com.gpu", "alpha.kubernetes.io/nvidia-gpu", "NVIDIA/GPU"],
)
def test_names_without_the_prefix(name: str) -> None:
    found = one("GF602", pod(limits(f'"{name}"')))
    assert (found.value, found.closest, found.line) == (name, "nvidia.com/gpu", 11)


@pytest.mark.parametrize(
    "name", ["amd.com/gpu", "aliyun.com/gpu-mem", "cpu", "example.com/nvidia-gpu", "gpu.intel.com/i915"]
)
def test_names_of_others(name: str) -> None:
    assert codes(pod(limits(f'"{name}"'))) == []


@pytest.mark.parametrize("name", ["GPU", "MIG-1g.5gb", "GPU.shared", "mig-1c.3g.20gb"])
def test_names_in_capitals_and_parts_of_instances(name: str) -> None:
    assert one("GF602", pod(limits(f"nvidia.com/{name}"))).value == f"nvidia.com/{name}"


def test_products_in_a_required_affinity() -> None:
    wanted = "{key: nvidia.com/gpu.product, operator: In, values: [%s]}"
    term = "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [%s]}}}\n"

    def lint(values: str, more: str = "") -> list[str]:
        spec = term % (f"{{matchExpressions: [{wanted % values}]}}{more}")
        return codes(pod(limits() + BOUND, spec), GPU4, gpus="2xT4")

    assert lint("Tesla-T4") == ["GF619"]
    assert lint("Tesla-P4, Tesla-T4") == ["GF619"]
    assert lint("Tesla-T4-SHARED") == lint("Tesla-T4, Tesla-T4-SHARED") == []
    assert lint("NVIDIA-L4") == []  # of other nodes
    assert lint("Tesla-T4", ", {matchExpressions: [{key: a, operator: Exists}]}") == []  # another term will do


def test_a_product_that_is_only_there_with_sharing_under_its_own_name() -> None:
    selector = "nodeSelector: {nvidia.com/gpu.product: Tesla-T4-SHARED}\n"
    wanted = pod(limits("nvidia.com/gpu.shared") + BOUND, selector + "tolerations: [{operator: Exists}]\n")
    found = one("GF619", wanted, RENAMED, gpus="2xT4")
    assert (found.value, found.remedy) == ("Tesla-T4-SHARED", "Select Tesla-T4.")
    assert "GF619" not in codes(wanted.replace("-SHARED", ""), RENAMED, gpus="2xT4")
