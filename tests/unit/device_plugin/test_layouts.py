"""MIG layouts, sharing and labels: the matrix of the reference, row by row, and its neighbours."""

import pytest
from gpufleet.device_plugin import NodeLayout, Prediction, parse_mig, predict

from tests.unit.device_plugin.cases import GPU4, sharing

A100 = "NVIDIA A100-SXM4-80GB"


def on(config: str, gpus: int, mig: str = "", **node: object) -> Prediction:
    return predict(config, NodeLayout(gpus, product=A100, mig=parse_mig(mig), **node))  # type: ignore[arg-type]


def config(rows: str = GPU4, mig: str = "none", extra: str = "", method: str = "timeSlicing") -> str:
    return sharing(rows, method, extra, f"migStrategy: {mig}, mpsRoot: /m")


RENAME = "    renameByDefault: true\n"


def test_plain_gpus_shared() -> None:
    found = on(config(), 2)
    assert found.capacity == {"nvidia.com/gpu": 8}
    assert found.labels == {
        "gpu.count": "2",
        "gpu.product": "NVIDIA-A100-SXM4-80GB-SHARED",
        "gpu.replicas": "4",
        "gpu.sharing-strategy": "time-slicing",
    }


def test_renamed_keeps_the_product() -> None:
    found = on(config(extra=RENAME), 2)
    assert found.capacity == {"nvidia.com/gpu.shared": 8}
    assert found.labels is not None
    assert (found.labels["gpu.product"], found.labels["gpu.replicas"]) == ("NVIDIA-A100-SXM4-80GB", "4")


def test_strategy_none_with_mig_enabled_shares_whole_gpus_and_labels_say_nothing() -> None:
    found = on(config(), 2, "0=1g.10gb;1=1g.10gb")
    assert found.capacity == {"nvidia.com/gpu": 8}
    assert found.labels is not None
    assert (found.labels["gpu.replicas"], found.labels["gpu.sharing-strategy"]) == ("0", "none")
    assert found.labels["gpu.product"] == "NVIDIA-A100-SXM4-80GB"


def test_strategy_none_with_one_mig_gpu_labels_from_the_plain_one() -> None:
    found = on(config(), 2, "0=1g.10gb")
    assert found.capacity == {"nvidia.com/gpu": 8}
    assert found.labels is not None and found.labels["gpu.replicas"] == "4"


def test_single_counts_instances() -> None:
    found = on(config(mig="single"), 2, "0=1g.10gb,1g.10gb;1=1g.10gb,1g.10gb")
    assert found.capacity == {"nvidia.com/gpu": 16}
    assert found.labels is not None
    assert (found.labels["gpu.count"], found.labels["gpu.product"]) == ("4", "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb-SHARED")


def test_single_has_no_profile_resource_to_share() -> None:
    found = on(
        config("{name: nvidia.com/mig-1g.10gb, replicas: 4}", "single"), 2, "0=1g.10gb,1g.10gb;1=1g.10gb,1g.10gb"
    )
    assert found.capacity == {"nvidia.com/gpu": 4}
    assert found.strategy == "time-slicing"
    assert found.labels is not None and found.labels["gpu.replicas"] == "1"


def test_single_without_mig_is_like_none() -> None:
    assert on(config(mig="single"), 2).capacity == on(config(), 2).capacity


@pytest.mark.parametrize(
    ("mig", "layout", "reason"),
    [
        ("single", "0=1g.10gb", "same migEnabled value"),
        ("single", "0=1g.10gb,2g.20gb;1=1g.10gb", "more than one MIG device type"),
        ("single", "0=1g.10gb;1=", "GPU 1 has MIG enabled and no instance"),
        ("single", "0=;1=", "GPU 0 has MIG enabled and no instance"),
        ("mixed", "0=1g.10gb;1=", "GPU 1 has MIG enabled and no instance"),
        ("mixed", "0=1c.3g.40gb", "does not match any resource patterns"),
        ("single", "0=1g.10gb;1=1g.10gb+me", "more than one MIG device type"),
    ],
)
def test_layouts_that_the_plugin_refuses(mig: str, layout: str, reason: str) -> None:
    found = on(config(mig=mig), 2, layout)
    assert found.outcome == "reject-devices"
    assert reason in found.reason
    assert found.capacity is None and found.labels is None


def test_single_shares_compute_instances_of_one_kind() -> None:
    assert on(config(mig="single"), 1, "0=1c.3g.40gb,1c.3g.40gb").capacity == {"nvidia.com/gpu": 8}


def test_mixed_shares_each_resource_by_its_own_entry() -> None:
    rows = f"{GPU4}, {{name: nvidia.com/mig-1g.10gb, replicas: 2}}, {{name: mig-3g.40gb, replicas: 3}}"
    found = on(config(rows, "mixed"), 2, "0=1g.10gb,3g.40gb")
    assert found.capacity == {"nvidia.com/gpu": 4, "nvidia.com/mig-1g.10gb": 2, "nvidia.com/mig-3g.40gb": 3}
    assert found.labels is not None
    assert found.labels["gpu.count"] == "2"  # physical: count x replicas is not what is allocatable
    assert found.labels["mig-1g.10gb.product"] == "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb-SHARED"
    assert found.labels["mig-3g.40gb.replicas"] == "3"
    assert found.other_labels["mig.strategy"] == "mixed"


def test_mixed_renames_only_what_is_shared() -> None:
    rows = f"{GPU4}, {{name: nvidia.com/mig-1g.10gb, replicas: 2}}"
    found = on(config(rows, "mixed", RENAME), 2, "0=1g.10gb,3g.40gb")
    assert found.capacity == {
        "nvidia.com/gpu.shared": 4,
        "nvidia.com/mig-1g.10gb.shared": 2,
        "nvidia.com/mig-3g.40gb": 1,
    }
    assert found.labels is not None and found.labels["mig-1g.10gb.product"].endswith("-MIG-1g.10gb")


def test_media_extension_profile_has_a_dot_in_its_resource() -> None:
    rows = "{name: nvidia.com/mig-1g.10gb.me, replicas: 2}"
    found = on(config(rows, "mixed"), 1, "0=1g.10gb,1g.10gb+me,1g.10gb")
    assert found.capacity == {"nvidia.com/mig-1g.10gb": 2, "nvidia.com/mig-1g.10gb.me": 2}
    assert found.labels is not None and found.labels["mig-1g.10gb.me.count"] == "1"


def test_mixed_with_all_gpus_partitioned_has_no_plain_gpu() -> None:
    found = on(config(mig="mixed"), 1, "0=7g.80gb")
    assert found.capacity == {"nvidia.com/mig-7g.80gb": 1}
    assert found.labels is not None
    assert (found.labels["gpu.count"], found.labels["gpu.replicas"]) == ("1", "0")


def test_other_suffixes() -> None:
    found = on(config(mig="mixed"), 1, "0=1g.24gb-me,1g.24gb+gfx,1g.24gb+me.all")
    assert found.capacity == {
        "nvidia.com/mig-1g.24gb-me": 1,
        "nvidia.com/mig-1g.24gb.gfx": 1,
        "nvidia.com/mig-1g.24gb.me.all": 1,
    }


def test_no_gpu_at_all() -> None:
    found = on(config(), 0)
    assert (found.outcome, found.capacity, found.labels) == ("accept", {}, {})


def test_memory_label_only_where_gpus_are_whole() -> None:
    shared = on(config(), 2, memory_mib=81920)
    assert shared.labels is not None and shared.labels["gpu.memory"] == "81920"
    single = on(config(mig="single"), 1, "0=1g.10gb", memory_mib=81920)
    assert single.labels is not None and "gpu.memory" not in single.labels


@pytest.mark.parametrize(("replicas", "starts"), [(48, True), (49, False)])
def test_mps_client_limit(replicas: int, starts: bool) -> None:
    found = on(config(f"{{name: gpu, replicas: {replicas}}}", method="mps"), 2)
    assert found.capacity == {"nvidia.com/gpu": 2 * replicas}
    assert (found.labels is not None) is starts
    assert ("maximum allowed replicas exceeded" in found.reason) is not starts


@pytest.mark.parametrize(
    ("node", "starts"),
    [
        (NodeLayout(1, product="Tesla V100-SXM2-32GB"), False),
        (NodeLayout(1, product="Tesla T4"), True),
        (NodeLayout(1, product="NVIDIA P4"), False),
        (NodeLayout(1, product="x", compute_capability=(7, 0)), False),
        (NodeLayout(1, product="x", compute_capability=(7, 5)), True),
        (NodeLayout(1, product="Tesla V100-SXM2-32GB", compute_capability=(8, 0)), True),
    ],
)
def test_mps_limit_is_16_below_compute_capability_7_5(node: NodeLayout, starts: bool) -> None:
    found = predict(config("{name: gpu, replicas: 17}", method="mps"), node)
    assert (found.labels is not None) is starts


def test_mps_beside_a_mig_gpu_loses_every_label() -> None:
    for strategy, layout in (("none", "0=1g.10gb"), ("single", "0=1g.10gb;1=1g.10gb")):
        found = on(config(method="mps", mig=strategy), 2, layout)
        assert (found.outcome, found.labels, found.labels_lost) == ("accept", None, True)


def test_mps_wins_over_time_slicing_even_when_it_shares_nothing() -> None:
    text = (
        "flags: {mpsRoot: /m}\nsharing:\n  timeSlicing:\n    resources: [{name: gpu, replicas: 4}]\n"
        "  mps:\n    resources: [{name: nope, replicas: 2}]\n"
    )
    found = on(text, 2)
    assert (found.strategy, found.capacity) == ("mps", {"nvidia.com/gpu": 2})
    assert [n.kind.value for n in found.no_effect] == ["mps-wins", "no-such-resource"]


def test_mps_may_allow_larger_requests_since_0_20() -> None:
    assert on(config(method="mps"), 1).fail_gt1 is True
    assert on(config(method="mps", extra="    failRequestsGreaterThanOne: false\n"), 1).fail_gt1 is False
    assert on(config(extra="    failRequestsGreaterThanOne: true\n"), 1).fail_gt1 is True
    assert on(config(), 1).fail_gt1 is None


@pytest.mark.parametrize("text", ["0", "0=1g", "0=1g.5gb;0=2g.10gb", "x=1g.5gb", "0=1g.5gb,,", "-1=1g.5gb", "²=1g.5gb"])
def test_malformed_layouts(text: str) -> None:
    with pytest.raises(ValueError, match=r"MIG|profile"):
        NodeLayout(1, mig=parse_mig(text))


def test_layout_text() -> None:
    assert parse_mig("") == {}
    assert parse_mig(" 0=1g.5gb, 3g.20gb ;1= ;") == {0: ("1g.5gb", "3g.20gb"), 1: ()}
