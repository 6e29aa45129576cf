"""What counts GPUs beside nodes: ResourceQuotas, queues of Kueue and Volcano."""

import pytest
from gpufleet.findings.finding import Finding
from gpufleet.lint import Options, lint
from gpufleet.lint.whole_cluster import on_all

from tests.unit.lint.conftest import OnStack
from tests.unit.lint.fleets import host_pool, lint_stack, sections
from tests.unit.lint.told import GPU4, codes, config_map, d, limits, one, pod, told

RENAMED = GPU4.replace("failRequests", "renameByDefault: true\n    failRequests")
VALUES = "devicePlugin: {config: {name: slices, default: any}}\n"
VALUES += "dcgmExporter: {env: [{name: KUBERNETES_VIRTUAL_GPUS, value: 'true'}]}\n"
SLICES = config_map(GPU4, name="slices"), VALUES
SHARED = config_map(RENAMED, name="slices"), VALUES
QUEUE = d("""
    apiVersion: kueue.x-k8s.io/v1beta2
    kind: ClusterQueue
    metadata: {name: team-queue}
    spec:
      resourceGroups:
      - coveredResources: [nvidia.com/gpu]
        flavors:
        - name: a100
          resources: [{name: nvidia.com/gpu, nominalQuota: 8}]
""")
FLAVOR = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata: {name: a100}\n"
LOCAL = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {name: users, namespace: lab}\n"
LOCAL += "spec: {clusterQueue: team-queue}\n"


def quota(key: str, value: str = "4") -> str:
    head = "apiVersion: v1\nkind: ResourceQuota\nmetadata: {name: q, namespace: lab}\n"
    return head + f"spec: {{hard: {{{key}: '{value}'}}}}\n"


def test_a_quota_on_limits_counts_nothing_rp_27() -> None:
    found = one("GF431", quota("limits.nvidia.com/gpu"), *SLICES)
    assert (found.path, found.line) == ('spec.hard["limits.nvidia.com/gpu"]', 4)
    assert (found.value, found.closest) == ("limits.nvidia.com/gpu", "requests.nvidia.com/gpu")
    assert codes(quota("requests.nvidia.com/gpu"), *SLICES) == []
    assert codes(quota("limits.nvidia.com/gpu")) == ["GF431"]  # no configuration says otherwise
    assert one("GF431", quota("limits.nvidia.com/gpu"), *SHARED).closest == "requests.nvidia.com/gpu.shared"


@pytest.mark.parametrize(
    ("key", "wrong"),
    [
        ("nvidia.com/gpu", True),
        ("limits.nvidia.com/mig-1g.5gb", True),
        ("limits.volcano.sh/vgpu-number", True),
        ("requests.nvidia.com/gpus", True),
        ("requests.nvidia.com/mig-1g.5gb", False),
        ("requests.nvidia.com/gpu.shared", False),
        ("limits.cpu", False),
        ("limits.amd.com/gpu", False),
        ("requests.nvidia.com/GA102GL_A10", False),
        ("gpu.nvidia.com.deviceclass.resource.k8s.io/devices", False),
    ],
)
def test_keys_of_quotas(key: str, wrong: bool) -> None:
    assert codes(quota(key)) == (["GF431"] if wrong else [])


def test_a_quota_on_what_no_node_offers_rp_27() -> None:
    found = one("GF431", quota("requests.nvidia.com/gpu"), *SHARED)
    assert (found.closest, found.reason) == ("requests.nvidia.com/gpu.shared", "No node offers nvidia.com/gpu.")
    assert codes(quota("requests.nvidia.com/gpu", "0"), *SHARED) == []  # forbids it, whoever offers it
    assert codes(quota("requests.nvidia.com/mig-1g.5gb"), *SLICES) == []  # nobody says what the node is
    assert "GF431" in codes(quota("requests.nvidia.com/mig-1g.5gb"), *SLICES, gpus="2xT4")
    assert codes(quota("requests.nvidia.com/gpu"), *SLICES, config_map(RENAMED, "b", "other")) == []


@pytest.mark.parametrize(
    "beside",
    [
        quota("limits.nvidia.com/gpumem", "3000"),
        pod(limits("nvidia.com/gpumem", 3000).replace("limits:\n", "limits:\n    nvidia.com/gpu: 1\n")),
        "devicePlugin: {deviceSplitCount: 5}\n",
    ],
)
def test_hami_counts_quotas_on_limits_itself(beside: str) -> None:
    assert "GF431" not in codes(quota("limits.nvidia.com/gpucores"), beside)
    # It counts memory and cores, no vGPUs.
    assert one("GF431", quota("limits.nvidia.com/gpu"), beside).closest == "requests.nvidia.com/gpu"
    assert one("GF431", quota("nvidia.com/gpumem"), beside).closest == "limits.nvidia.com/gpumem"


def test_the_closest_of_all_pools() -> None:
    """A quota is of all pools, so the name most like it is chosen among what all of them offer."""
    renamed = {"strategy": "timeSlicing", "replicas": 2, "renameByDefault": True}
    data = sections(host_pool("a", sharing="s"), host_pool("b"), sharing={"s": renamed})
    [found] = [x for x in lint_stack(data, quota("limits.nvidia.com/gpu")) if x.code == "GF431"]
    assert found.allowed == ("requests.nvidia.com/gpu.shared", "requests.nvidia.com/gpu")
    assert found.closest == "requests.nvidia.com/gpu"


def test_a_queue_for_what_no_node_offers_rp_26() -> None:
    found = one("GF670", QUEUE, *SHARED)
    assert (found.path, found.closest) == ("spec.resourceGroups[0].coveredResources[0]", "nvidia.com/gpu.shared")
    assert found.message == "No node offers nvidia.com/gpu, which this queue gives out."
    assert codes(QUEUE, *SLICES) == []
    assert codes(QUEUE) == []
    assert codes(QUEUE.replace("nvidia.com/gpu", "nvidia.com/gpus")) == ["GF670"]
    assert codes(QUEUE.replace("v1beta2", "v1beta1"), *SHARED) == ["GF670"]
    assert codes(QUEUE.replace("nominalQuota: 8", "nominalQuota: 0"), *SHARED) == []
    cohort = QUEUE.replace("ClusterQueue", "Cohort")
    assert codes(cohort, *SHARED) == ["GF670"]


def test_names_that_only_kueue_counts() -> None:
    hami = QUEUE.replace("nvidia.com/gpu]", "nvidia.com/total-gpumem]").replace(
        "name: nvidia.com/gpu,", "name: nvidia.com/total-gpumem,"
    )
    assert codes(hami, *SHARED) == []
    configuration = (
        "apiVersion: config.kueue.x-k8s.io/v1beta2\nresources: {transformations: [{outputs: {nvidia.com/gpu: 1}}]}\n"
    )
    kueue = config_map(configuration, "controller_manager_config.yaml", "kueue-manager-config")
    assert codes(QUEUE, kueue, *SHARED) == []


def test_flavors_give_what_the_group_covers() -> None:
    found = one("GF671", QUEUE.replace("[nvidia.com/gpu]", "[cpu, nvidia.com/gpu]"))
    assert (found.path, found.value) == ("spec.resourceGroups[0].flavors[0].resources", "nvidia.com/gpu")
    assert codes(QUEUE.replace("nvidia.com/gpu", "example.com/x").replace("[example.com/x]", "[cpu]")) == []


def test_names_between_queues() -> None:
    assert codes(QUEUE, FLAVOR, LOCAL) == []
    assert one("GF672", QUEUE.replace("name: a100\n", "name: a100s\n"), FLAVOR).closest == "a100"
    assert codes(QUEUE.replace("name: a100\n", "name: spot\n"), FLAVOR) == []
    assert one("GF672", QUEUE, LOCAL.replace("team-queue", "team-queu")).path == "spec.clusterQueue"
    job = pod().replace("name: p\n", "name: p\n  namespace: lab\n  labels: {kueue.x-k8s.io/queue-name: user}\n")
    assert one("GF672", LOCAL, job).closest == "users"
    assert codes(LOCAL, job.replace("namespace: lab", "namespace: prod")) == []
    assert codes(LOCAL, job.replace("name: user}", "name: users}")) == []


def test_a_flavor_with_the_product_of_unshared_gpus() -> None:
    label = "spec: {nodeLabels: {nvidia.com/gpu.product: Tesla-T4}}\n"
    assert one("GF619", FLAVOR + label, GPU4, gpus="2xT4").path == 'spec.nodeLabels["nvidia.com/gpu.product"]'
    assert "GF619" not in codes(FLAVOR + label.replace("T4}", "T4-SHARED}"), GPU4, gpus="2xT4")
    assert codes(FLAVOR + label) == []


def test_queues_of_volcano() -> None:
    queue = "apiVersion: scheduling.volcano.sh/v1beta1\nkind: Queue\nmetadata: {name: q}\n"
    queue += "spec: {capability: {cpu: 8, nvidia.com/gpu: 4}, deserved: {nvidia.com/gpu: 2}}\n"
    assert [x.path for x in told(queue, *SHARED) if x.code == "GF670"] == [
        'spec.capability["nvidia.com/gpu"]',
        'spec.deserved["nvidia.com/gpu"]',
    ]
    assert codes(queue, *SLICES) == []


def test_volcanos_parts_of_gpus_rp_26(on_stack: OnStack) -> None:
    text = pod(limits("volcano.sh/vgpu-number"))
    assert [x["value"] for x in on_stack(text) if x["code"] == "GF673"] == ["volcano.sh/vgpu-number"]
    assert codes(text) == []


def test_a_quota_is_told_once_for_all_pools(on_stack: OnStack) -> None:
    found = [x for x in on_stack(quota("limits.nvidia.com/gpu")) if x["code"] == "GF431"]
    assert len(found) == 1 and "On pool" not in str(found[0]["message"])


def test_a_quota_on_what_one_pool_offers() -> None:
    """It holds where it holds on every pool."""
    here, there = (
        lint([("f.yaml", "---\n".join((quota("requests.nvidia.com/gpu"), *texts)))], Options())
        for texts in (SLICES, SHARED)
    )
    assert [x.code for x in there.found if x.code == "GF431"] == ["GF431"]
    assert on_all([here, there]) == []
    assert [x.code for x in on_all([there, there])] == ["GF431"]


def test_a_teams_quota_on_hamis_memory() -> None:
    """The plan takes such a quota, so lint compares with it; what the plan tells the team is quiet."""
    data = sections(
        host_pool("l4", gpu="L4", sharing="v"),
        route="plugin",
        sharing={"v": {"strategy": "hami", "splitCount": 4}},
        teams=[{"name": "a", "namespace": "a", "pools": ["l4"], "quota": {"nvidia.com/gpumem": 6000}}],
    )

    def asks(mib: int) -> list[Finding]:
        both = limits("nvidia.com/gpumem", mib).replace("limits:\n", "limits:\n    nvidia.com/gpu: 1\n")
        text = pod(both, "runtimeClassName: nvidia\n").replace("  name: p\n", "  name: p\n  namespace: a\n")
        return lint_stack(data, text)

    assert asks(5000) == []
    [found] = asks(7000)
    assert (found.code, found.value) == ("GF629", "7000 of nvidia.com/gpumem")
    assert found.reason.endswith("HAMi's scheduler counts this, and leaves pods beyond it Pending.")
