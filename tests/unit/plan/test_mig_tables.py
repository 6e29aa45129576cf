"""MIG: every profile of every GPU, every neighbour's profile, what fits together, and MIG together with time-slicing.

Counts and names are the catalogue's (typed a second time in tests/unit/catalog); placements, combinations and what the
plugin does are typed here from NVIDIA's MIG guide, go-nvml and the recorded answers.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from typing import Any

import pytest
from gpufleet.catalog import GpuModel, gpu_models
from gpufleet.catalog.mig_placement import Placement, fits, placement
from gpufleet.plan.compile import Plan

from tests.unit.config.samples import compile_base, compile_data, sections, told
from tests.unit.device_plugin.cases import rows

MODELS = {name: model for name, model in gpu_models().items() if model.mig_profiles}
NAMES = sorted({p for m in MODELS.values() for p in (*m.mig_profiles, *m.mig_renamed.values())})
every_model = pytest.mark.parametrize("gpu", MODELS)


def told_of(gpu: str, **profile: Any) -> list[tuple[str, str]]:
    """What the plan says of a pool of this GPU that is cut so."""
    changes = {"sharing.cut": {"strategy": "mig", **profile}, "pools[0].sharing": "cut", "pools[0].gpu": gpu}
    return told(compile_data(sections("existing-plugin", changes)))


CUT = "pools[0].sharing"


def test_the_catalogue_has_all_families() -> None:
    assert len(MODELS) >= 25 and len(NAMES) > 60
    assert {m.mig_slices for m in MODELS.values()} == {2, 4, 7}


@every_model
def test_every_profile_is_accepted_and_cuts_the_gpu_as_often_as_the_table_says(gpu: str) -> None:
    for profile, most in MODELS[gpu].mig_profiles.items():
        assert told_of(gpu, profile=profile) == [], profile
        assert told_of(gpu, instances={profile: most}) == [], profile
        node = plan_of(gpu, 2, profile=profile).pools[0].node
        assert node.resources == {"nvidia.com/gpu": 2 * most}, profile
        named = plan_of(gpu, 2, profile=profile, naming="mixed").pools[0].node
        assert named.resources == {f"nvidia.com/mig-{profile.replace('+', '.')}": 2 * most}, profile


@every_model
def test_one_more_than_the_most_is_refused(gpu: str) -> None:
    for profile, most in MODELS[gpu].mig_profiles.items():
        code = "GF312" if most < 7 else "GF105"  # no GPU has more than 7
        assert [c for c, _ in told_of(gpu, instances={profile: most + 1})] == [code], profile


@every_model
def test_every_profile_of_another_gpu_is_refused(gpu: str) -> None:
    model = MODELS[gpu]
    foreign = [name for name in NAMES if model.mig_profile(name) is None]
    assert len(foreign) > 40
    for name in foreign:
        assert told_of(gpu, profile=name) == [("GF311", CUT)], name
        assert fits(model, {name: 1}) is None


@pytest.mark.parametrize("gpu", sorted(set(gpu_models()) - set(MODELS)))
def test_gpus_without_mig_take_no_profile(gpu: str) -> None:
    assert [c for c, _ in told_of(gpu, profile="1g.10gb")] == ["GF310"]


def test_the_other_name_of_a_profile_is_the_same_profile() -> None:
    """GB200 cards report 3g.93gb or 3g.95gb; the stack file takes what the card says, and the node shows that."""
    assert told_of("GB200", profile="3g.95gb") == told_of("GB200", profile="3g.93gb") == []
    assert plan_of("GB200", 1, profile="3g.95gb", naming="mixed").pools[0].node.resources == {
        "nvidia.com/mig-3g.95gb": 2
    }
    assert told_of("GB200", instances={"4g.95gb": 1, "3g.93gb": 1}) == []
    assert told_of("GB200", instances={"7g.189gb": 2}) == [("GF312", CUT)]
    assert told_of("B200", profile="3g.95gb") == [("GF311", CUT)]


# ---- what fits together


#: go-nvml's placements of an A100 with 40 GB, and of an A30: profile -> (memory slots to begin at, slots taken).
PLACEMENTS = {
    "A100-SXM4-40GB": {
        "1g.5gb": ((0, 1, 2, 3, 4, 5, 6), 1),
        "1g.5gb+me": ((0, 1, 2, 3, 4, 5, 6), 1),
        "1g.10gb": ((0, 2, 4, 6), 2),
        "2g.10gb": ((0, 2, 4), 2),
        "3g.20gb": ((0, 4), 4),
        "4g.20gb": ((0,), 4),
        "7g.40gb": ((0,), 8),
    },
    "A30": {
        "1g.6gb": ((0, 1, 2, 3), 1),
        "1g.6gb+me": ((0, 1, 2, 3), 1),
        "2g.12gb": ((0, 2), 2),
        "2g.12gb+me": ((0, 2), 2),
        "4g.24gb": ((0,), 4),
    },
}


@pytest.mark.parametrize("gpu", PLACEMENTS)
def test_placements_are_those_of_nvml(gpu: str) -> None:
    assert set(PLACEMENTS[gpu]) == set(MODELS[gpu].mig_profiles)
    for profile, (starts, size) in PLACEMENTS[gpu].items():
        assert placement(MODELS[gpu], profile) == Placement(starts, size)


@every_model
def test_every_profile_has_a_placement_for_its_largest_count_and_no_more(gpu: str) -> None:
    """The number of places is the count of the table, but for media extensions, which fit once."""
    for profile, most in MODELS[gpu].mig_profiles.items():
        where = placement(MODELS[gpu], profile)
        assert where is not None
        apart = _most_apart(where)
        assert apart == most or ("+me" in profile and most == 1 <= apart), profile


def _most_apart(where: Placement) -> int:
    """Most places that do not overlap."""
    taken, count = 0, 0
    for start in where.starts:
        if start >= taken:
            taken, count = start + where.size, count + 1
    return count


#: MIG user guide, combinations of an A100: the largest ones, by compute slices. Everything below one of them fits.
LARGEST_A100 = [
    (7,), (4, 3), (4, 2, 1), (4, 1, 1, 1), (3, 3), (3, 2, 2), (3, 2, 1, 1), (3, 1, 1, 1, 1),
    (2, 2, 2, 1), (2, 2, 1, 1, 1), (2, 1, 1, 1, 1, 1), (1, 1, 1, 1, 1, 1, 1),
]  # fmt: skip
LARGEST_A30 = [(4,), (2, 2), (2, 1, 1), (1, 1, 1, 1)]
BY_SLICES = {
    "A100-SXM4-40GB": {1: "1g.5gb", 2: "2g.10gb", 3: "3g.20gb", 4: "4g.20gb", 7: "7g.40gb"},
    "H100-NVL": {1: "1g.12gb", 2: "2g.24gb", 3: "3g.47gb", 4: "4g.47gb", 7: "7g.94gb"},
    "H200": {1: "1g.18gb", 2: "2g.35gb", 3: "3g.71gb", 4: "4g.71gb", 7: "7g.141gb"},
    "B200": {1: "1g.23gb", 2: "2g.45gb", 3: "3g.90gb", 4: "4g.90gb", 7: "7g.180gb"},
    "A30": {1: "1g.6gb", 2: "2g.12gb", 4: "4g.24gb"},
}


def _counts(slices: tuple[int, ...], names: Mapping[int, str]) -> dict[str, int]:
    return {names[s]: slices.count(s) for s in set(slices)}


@pytest.mark.parametrize("gpu", BY_SLICES)
def test_combinations_are_those_of_the_guide(gpu: str) -> None:
    names, largest = BY_SLICES[gpu], LARGEST_A30 if gpu == "A30" else LARGEST_A100
    below = {tuple(sorted(part)) for combo in largest for n in range(1, 8) for part in itertools.combinations(combo, n)}
    for n in range(1, 9):
        for combo in itertools.combinations_with_replacement(sorted(names), n):
            assert fits(MODELS[gpu], _counts(combo, names)) is (combo in below), combo
    for combo in largest:
        assert told_of(gpu, instances=_counts(combo, names)) == [], combo


def test_a_combination_that_does_not_fit_is_refused_by_the_plan() -> None:
    for combo in ((3, 3, 1), (4, 4), (4, 2, 2), (3, 2, 2, 1), (7, 1)):
        assert {c for c, _ in told_of("A100-SXM4-40GB", instances=_counts(combo, BY_SLICES["A100-SXM4-40GB"]))} == {
            "GF312"
        }, combo


def _brute(model: GpuModel, wanted: list[str]) -> bool:
    """Every way to put the instances down, one after the other."""
    places = [placement(model, profile) for profile in wanted]
    for starts in itertools.product(*(p.starts for p in places if p)):
        slots = [s + i for s, p in zip(starts, places, strict=True) if p for i in range(p.size)]
        if len(slots) == len(set(slots)):
            return True
    return False


@every_model
def test_the_solver_agrees_with_brute_force(gpu: str) -> None:
    """All multisets of up to 4 instances of all profiles."""
    model = MODELS[gpu]
    for n in range(1, 5):
        for combo in itertools.combinations_with_replacement(model.mig_profiles, n):
            counts = {p: combo.count(p) for p in combo}
            within = all(c <= model.mig_profiles[p] for p, c in counts.items()) and sum("+me" in p for p in combo) <= 1
            assert fits(model, counts) is (within and _brute(model, list(combo))), combo


def test_one_media_extension_of_all_kinds() -> None:
    assert told_of("A30", instances={"1g.6gb+me": 1, "2g.12gb+me": 1}) == [("GF312", CUT)]
    assert told_of("A30", instances={"1g.6gb": 2, "2g.12gb+me": 1}) == []
    assert told_of("A100-SXM4-40GB", instances={"1g.5gb+me": 1, "1g.5gb": 6}) == []
    assert told_of("A100-SXM4-40GB", instances={"1g.5gb+me": 1, "1g.5gb": 7}) == [("GF312", CUT)]


def test_all_balanced_fits_as_the_operator_ships_it() -> None:
    """NVIDIA/gpu-operator, default MIG configuration."""
    assert fits(MODELS["A100-SXM4-80GB"], {"1g.10gb": 2, "2g.20gb": 1, "3g.40gb": 1}) is True
    assert fits(MODELS["A30"], {"1g.6gb": 2, "2g.12gb": 1}) is True


# ---- MIG together with time-slicing: the measured matrix


def plan_of(gpu: str, gpus: int, base: str = "existing-plugin", also: dict[str, Any] | None = None, **mig: Any) -> Plan:
    changes = {
        "sharing.cut": {"strategy": "mig", **mig},
        "pools[0].sharing": "cut",
        "pools[0].gpu": gpu,
        "pools[0].gpusPerNode": gpus,
        **(also or {}),
    }
    compiled = compile_base(base, changes)
    assert compiled.plan is not None, told(compiled)
    return compiled.plan


A100 = "A100-SXM4-40GB"
PRODUCT = "NVIDIA-A100-SXM4-40GB"
TWO_SMALL, SMALL_AND_LARGE = {"1g.5gb": 2}, {"1g.5gb": 1, "3g.20gb": 1}


def shown(plan: Plan, pool: int = 0) -> tuple[dict[str, int], dict[str, str]]:
    """Resources, and the labels that sharing and MIG decide, without prefix and without the product's own name."""
    node = plan.pools[pool].node
    words = ("gpu.count", "gpu.product", "gpu.replicas", "gpu.sharing-strategy", "mig-")
    labels = {k.removeprefix("nvidia.com/"): v for k, v in node.labels.items()}
    return node.resources, {k: v.removeprefix(PRODUCT) for k, v in labels.items() if k.startswith(words)}


def test_single_with_replicas_multiplies_every_instance() -> None:
    plan = plan_of(A100, 2, "existing-operator", instances=TWO_SMALL, replicas=4, failRequestsGreaterThanOne=False)
    resources, labels = shown(plan)
    assert resources == {"nvidia.com/gpu": 16}
    assert labels == {
        "gpu.count": "4", "gpu.product": "-MIG-1g.5gb-SHARED", "gpu.replicas": "4",
        "gpu.sharing-strategy": "time-slicing",
    }  # fmt: skip


def test_single_without_replicas() -> None:
    resources, labels = shown(plan_of(A100, 2, "existing-operator", instances=TWO_SMALL))
    assert resources == {"nvidia.com/gpu": 4}
    assert labels["gpu.replicas"] == "1" and labels["gpu.product"] == "-MIG-1g.5gb"


def test_mixed_with_replicas_counts_each_kind_by_its_name() -> None:
    plan = plan_of(A100, 2, "existing-operator", instances=SMALL_AND_LARGE, replicas=3)
    resources, labels = shown(plan)
    assert resources == {"nvidia.com/mig-1g.5gb": 6, "nvidia.com/mig-3g.20gb": 6}
    assert labels["gpu.count"] == "2"  # physical GPUs
    assert labels["mig-1g.5gb.count"] == "2" and labels["mig-1g.5gb.replicas"] == "3"
    assert labels["mig-3g.20gb.product"] == "-MIG-3g.20gb-SHARED"


def test_mixed_with_rename() -> None:
    plan = plan_of(A100, 1, instances=SMALL_AND_LARGE, replicas=2, renameByDefault=True)
    assert plan.pools[0].node.resources == {"nvidia.com/mig-1g.5gb.shared": 2, "nvidia.com/mig-3g.20gb.shared": 2}


def test_media_extensions_are_written_with_a_dot() -> None:
    plan = plan_of(A100, 1, instances={"1g.5gb+me": 1}, naming="mixed", replicas=2)
    assert plan.pools[0].node.resources == {"nvidia.com/mig-1g.5gb.me": 2}
    assert "nvidia.com/mig-1g.5gb.me" in plan.profiles[0].config


def test_time_slicing_beside_mig_under_one_operator_stays_what_it_is() -> None:
    """MIG_STRATEGY=single in the environment of every plugin; on nodes without MIG it is the same as none."""
    other = {"name": "b", "hosts": {"n2": {}}, "gpu": A100, "gpusPerNode": 2, "sharing": "ts"}
    also = {"sharing.ts": {"strategy": "timeSlicing", "replicas": 4}, "pools[1]": other}
    plan = plan_of(A100, 2, "existing-operator", also, instances=TWO_SMALL, replicas=4)
    assert plan.operator is not None and plan.operator.values["mig"]["strategy"] == "single"
    assert shown(plan, 1) == (
        {"nvidia.com/gpu": 8},
        {"gpu.count": "2", "gpu.product": "-SHARED", "gpu.replicas": "4", "gpu.sharing-strategy": "time-slicing"},
    )


#: Recorded answers with MIG -> the same wish in a stack file, or why it has no word for it.
VECTORS: dict[str, dict[str, Any] | str] = {
    "single uniform gpu x4": {"instances": TWO_SMALL, "replicas": 4},
    "single one MIG one not": "the GPUs of a node are cut alike",
    "single empty MIG gpu": "a pool states instances, and each of its GPUs gets them",
    "mixed share only gpu": "the GPUs of a node are cut alike, so none is left whole",
    "mixed me plus": {"instances": {"1g.5gb+me": 1}, "naming": "mixed", "replicas": 2},
    "mixed typo profile mig1g.5gb": "the plan writes the names; nobody can mistype them",
    "mps none MIG on": "a pool has one method: MPS, or MIG",
    "env MIG_STRATEGY=single over mixed": "file and environment get the same MIG strategy, or GF316 says why not",
    "env MIG_STRATEGY=single over none": "the GPUs of a node are cut alike",
    "mixed unshared MIG": "the plan writes the names; no name is shared that does not exist",
}


def test_every_recorded_answer_with_mig_is_here() -> None:
    assert set(VECTORS) == {row["name"] for row in rows("vectors.jsonl") if row["mig"]}


@pytest.mark.parametrize("name", [n for n, wish in VECTORS.items() if not isinstance(wish, str)])
def test_the_plan_predicts_the_recorded_answer(name: str) -> None:
    row, wish = next(r for r in rows("vectors.jsonl") if r["name"] == name), VECTORS[name]
    assert isinstance(wish, dict)
    resources, labels = shown(plan_of(A100, row["gpus"], "existing-operator", **wish))
    if row["outcome"] == "accept":
        assert resources == row["capacity"]
        assert labels == {k: v.removeprefix("Mock-" + PRODUCT) for k, v in row["labels"].items()}
    else:  # the plugin refuses `1g.5gb+me` as a name; the plan writes the one that it takes
        assert resources == {"nvidia.com/mig-1g.5gb.me": 2 * row["gpus"]}


def test_two_kinds_under_single_are_refused_as_the_plugin_would() -> None:
    assert told_of(A100, instances=SMALL_AND_LARGE, naming="single") == [("GF110", "sharing.cut")]


def test_mps_does_not_go_with_mig_names() -> None:
    other = {"name": "b", "hosts": {"n2": {}}, "gpu": A100, "gpusPerNode": 2, "sharing": "m"}
    changes = {
        "sharing.cut": {"strategy": "mig", "instances": SMALL_AND_LARGE},
        "sharing.m": {"strategy": "mps", "replicas": 2},
        "pools[0].sharing": "cut",
        "pools[0].gpu": A100,
        "pools[1]": other,
    }
    assert ("GF321", "pools[1].sharing") in told(compile_base("existing-operator", changes))
    assert told(compile_base("existing-plugin", changes)) == []  # each node has its own plugin


@every_model
def test_resource_names_are_what_the_node_offers(gpu: str) -> None:
    """The plan's own list of names, and the prediction from the deployed text, say the same."""
    for profile in MODELS[gpu].mig_profiles:
        for naming in ("single", "mixed"):
            plan = plan_of(gpu, 1, profile=profile, naming=naming, replicas=2, renameByDefault=True)
            assert tuple(sorted(plan.pools[0].node.resources)) == plan.profiles[0].resources
