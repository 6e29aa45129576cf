"""Decisions: method, replicas, and the reasons, for the users that the tree was made for."""

from __future__ import annotations

import json
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from gpufleet.advise import docs
from gpufleet.advise.advice import METHODS, UNKNOWN, Advice, advise
from gpufleet.advise.fragment import settings
from gpufleet.advise.request import CLASSES, ENVIRONMENTS, ISOLATIONS, Request, facts, mig_fit, problems
from gpufleet.advise.tree import Leaf, Question, nodes
from gpufleet.catalog import gpu_model
from gpufleet.cli.main import main
from gpufleet.findings.registry import finding
from gpufleet.measure.beside import Beside
from gpufleet.measure.isolation import companies
from gpufleet.measure.measurements import measurements, select
from gpufleet.measure.objections import objections
from gpufleet.stackfile.kinds import METHODS as KNOWN_METHODS


def request(workload: str = "inference", gpu: str = "H200", **more: Any) -> Request:
    model = gpu_model(gpu)
    assert model is not None
    return Request(**{"workload": workload, "gpu": model, "memory_gib": 4.0, "users": 8, **more})


def ask(workload: str = "inference", gpu: str = "H200", **more: Any) -> Advice:
    return advise(request(workload, gpu, **more), measurements())


def measured(workload: str, method: str, n: int) -> dict[str, Any]:
    """The point in the catalogue's best PyTorch series."""
    found = [
        (len(m.series.points), len(p.totals), p)
        for m in measurements()
        for p in m.series.points
        if (m.series.workload, m.series.backend, m.series.method, p.n) == (workload, "torch", method, n)
    ]
    return {"total": max(found, key=lambda f: f[:2])[2].total}


def test_training_gets_whole_gpus_because_sharing_gains_nothing() -> None:
    found = ask("training", memory_gib=20, users=4)
    assert (found.method, found.replicas, found.gpus) == ("none", None, 4)
    assert "no more than one alone" in found.basis
    assert "H200, driver" in found.basis


def test_training_that_may_wait_shares_as_far_as_the_bound_goes() -> None:
    found = ask("training", memory_gib=20, users=4, slowdown=2.5)
    assert (found.method, found.replicas) == ("timeSlicing", 2)
    assert found.expected is not None and found.expected.slowdown <= 2.5
    assert found.expected.total == measured("training", "timeSlicing", 2)["total"]
    assert ask("training", memory_gib=20, users=4, slowdown=1.5).method == "none"


def test_eight_notebooks_share_evenly_over_two_gpus() -> None:
    found = ask("notebook", memory_gib=12)
    assert (found.method, found.replicas, found.gpus) == ("timeSlicing", 4, 2)
    assert found.expected is not None and found.expected.between is None
    assert found.expected.total == measured("notebook", "timeSlicing", 4)["total"]


def test_a_latency_bound_that_time_slicing_breaks_leads_to_mps() -> None:
    found = ask(users=12, latency_ms=6)
    assert found.method == "mps"
    assert found.expected is not None and found.expected.p99_ms is not None and found.expected.p99_ms <= 6
    assert found.expected.total == measured("inference", "mps", found.expected.n)["total"]
    assert "pods per GPU" in found.not_others["timeSlicing"]


def inference_beside(method: str, neighbour: str, n: int) -> Beside:
    """The catalogue's point of inference beside another class, measured with PyTorch."""
    (found,) = [
        p
        for one in companies()
        for p in one.series.points
        if (one.series.method, one.series.neighbour, one.series.backend, p.n) == (method, neighbour, "torch", n)
    ]
    return found


def ask_with_neighbours(**more: Any) -> Advice:
    return advise(request(**more), measurements(), companies())


def test_a_bound_that_a_neighbour_breaks_asks_for_a_pool_of_its_own() -> None:
    found = ask_with_neighbours(users=2, slowdown=1.5, gpu="H200")
    assert found.method == "timeSlicing"
    said = {(one.workload, one.others): one for one in found.neighbours}
    assert set(said) == {(w, k) for w in ("training", "notebook", "copy") for k in (1, 3)}
    for (workload, others), one in said.items():
        point = inference_beside("timeSlicing", workload, others + 1)
        assert (one.share, one.p99_ms) == (point.share, point.p99_ms)
        assert one.keeps == (point.share >= 1 / 1.5)
    assert not said["training", 1].keeps and not said["copy", 3].keeps
    note = found.notes[-1]
    assert "breaks the slowdown of at most 1.5" in note and "1 x training: p99 7.949 ms, 48% of its rate" in note
    assert "a profile and a pool of their own" in note and "H200, driver" in note
    assert "# in a pool for inference alone:" in found.fragment


def test_a_bound_that_the_measured_neighbours_keep_promises_nothing_beyond_them() -> None:
    found = ask_with_neighbours(users=4, latency_ms=8)
    assert found.method == "mps" and all(one.keeps for one in found.neighbours)
    assert found.notes[-1].startswith("up to 3 pods of training, notebook, copy beside one of these kept the p99")
    assert "it is not known" in found.notes[-1]


def test_neighbours_are_named_only_where_a_bound_and_sharing_make_them_matter() -> None:
    assert ask_with_neighbours(users=4).neighbours == []
    assert ask_with_neighbours(users=4, latency_ms=0.5).neighbours == []  # whole GPUs
    found = advise(request("notebook", slowdown=3.0), measurements(), companies())
    assert found.neighbours == [] and "were not measured: give these a pool of their own" in found.notes[-1]
    other = advise(request(users=4, latency_ms=8, gpu="H200"), measurements(), ())
    assert "were not measured" in other.notes[-1]


def test_a_bound_that_nothing_keeps_gives_whole_gpus() -> None:
    found = ask(latency_ms=0.5)
    assert found.method == "none"
    assert "0.5 ms" in found.basis


def test_fault_isolation_is_mig_or_a_whole_gpu() -> None:
    found = ask(memory_gib=20, users=12, isolation="fault")
    assert (found.method, found.pods_per_gpu, found.gpus, found.expected) == ("mig", 4, 3, None)
    assert "no measurement of inference under mig" in found.basis
    assert yaml.safe_load(found.fragment)["gpufleet:sharing"]["inference-dev"]["profile"] == "1g.35gb"
    assert ask(gpu="T4", isolation="fault").method == "none"


def test_production_prefers_mig_and_never_time_slicing() -> None:
    assert ask(environment="production").method == "mig"
    assert ask(environment="production", latency_ms=8).method == "mps"
    for workload, users, bound in product(CLASSES, (2, 8), (None, 20.0)):
        for gpu in ("H200", "T4", "A100-SXM4-80GB"):
            assert ask(workload, gpu, users=users, latency_ms=bound, environment="production").method != "timeSlicing"


def test_unequal_pods_with_a_memory_limit_are_hamis_case() -> None:
    found = ask(isolation="memory", alike=False, users=5)
    assert (found.method, found.expected) == ("hami", None)
    assert "no measurement" in found.basis
    assert ask(isolation="memory").method == "mps"


def test_memory_bounds_the_replicas() -> None:
    assert ask("notebook", memory_gib=40).pods_per_gpu <= 3
    assert ask("notebook", memory_gib=100).method == "none"


def test_replicas_never_pass_the_largest_measured_number() -> None:
    for bound in (None, 1e6):
        found = ask(users=100, memory_gib=0.5, latency_ms=bound)
        assert found.replicas is not None and found.replicas <= 8


def test_an_unmeasured_gpu_gets_no_numbers_and_no_promise() -> None:
    found = ask("notebook", "T4", memory_gib=3)
    assert (found.method, found.replicas, found.expected) == ("timeSlicing", 2, None)
    assert "nothing was measured for notebook under timeSlicing on T4" in found.basis
    assert "gpufleet bench" in found.basis
    bound = ask("notebook", "T4", memory_gib=3, latency_ms=500)
    assert bound.method == "none" and "cannot be promised" in bound.basis


def test_cost_is_the_price_divided_by_the_pods() -> None:
    found = ask("notebook", memory_gib=12, price=10)
    assert found.cost_per_pod == pytest.approx(2.5)
    assert ask("notebook", memory_gib=12).cost_per_pod is None


def test_every_other_method_has_a_reason() -> None:
    for workload, gpu, isolation, environment, alike in product(
        CLASSES, ("H200", "T4"), ISOLATIONS, ENVIRONMENTS, (True, False)
    ):
        for users in (1, 2, 9):
            found = ask(workload, gpu, isolation=isolation, environment=environment, alike=alike, users=users)
            assert set(found.not_others) == set(METHODS) - {found.method}
            assert all(found.not_others.values())
            assert found.pods_per_gpu * found.gpus >= users


def _strategy(values: dict[str, Any]) -> str:
    """The strategy of a sharing profile that the stack file takes."""
    return str(KNOWN_METHODS[values["strategy"]].model_validate(values).strategy)  # type: ignore[attr-defined]


def test_the_fragment_is_what_the_stack_file_takes() -> None:
    seen = set()
    for isolation, environment, alike in product(ISOLATIONS, ENVIRONMENTS, (True, False)):
        for workload in CLASSES:
            found = ask(workload, isolation=isolation, environment=environment, alike=alike)
            ((name, values),) = yaml.safe_load(found.fragment)["gpufleet:sharing"].items()
            assert _strategy(values) == found.method
            assert re.fullmatch(r"[a-z0-9]([-a-z0-9]{0,28}[a-z0-9])?", name)
            seen.add(found.method)
    assert seen == {"timeSlicing", "mps", "mig", "hami", "none"}


def test_settings_carry_the_replicas_and_memory() -> None:
    known = facts(request(), measurements())
    assert settings(known, "mps", 4) == {
        "strategy": "mps", "replicas": 4, "memoryPerPodGib": 4.0, "workload": "inference",
    }  # fmt: skip
    assert settings(known, "hami", 3) == {"strategy": "hami", "splitCount": 3, "memoryPerPodGib": 4.0}


@pytest.mark.parametrize(
    ("workload", "word"),
    [
        ("training", "training"),
        ("inference", "inference"),
        ("graph", "inference"),
        ("decoder", "inference"),
        ("notebook", "notebooks"),
        ("copy", None),
    ],
)
def test_the_fragment_says_the_workload_in_the_stack_files_word(workload: str, word: str | None) -> None:
    for more in ({}, {"isolation": "fault"}, {"isolation": "memory"}):
        found = ask(workload, memory_gib=8.0, **more)
        ((_, values),) = yaml.safe_load(found.fragment)["gpufleet:sharing"].items()
        if found.method != "none":
            assert values.get("workload") == word
            assert "memoryPerPodGib: 8" in found.fragment and "8.0" not in found.fragment


@pytest.mark.parametrize(
    ("gpu", "memory", "profile", "pods"),
    [
        ("H200", 4, "1g.18gb", 7),
        ("H200", 20, "1g.35gb", 4),
        ("H200", 60, "3g.71gb", 2),
        ("H200", 100, "7g.141gb", 1),
        ("A100-SXM4-40GB", 6, "1g.10gb", 4),
        ("A100-SXM4-80GB", 6, "1g.10gb", 7),
        ("A30", 5, "1g.6gb", 4),
    ],
)
def test_the_smallest_mig_profile_that_holds_a_pod(gpu: str, memory: float, profile: str, pods: int) -> None:
    found = mig_fit(request(gpu=gpu, memory_gib=memory))
    assert found is not None
    assert (found.profile, found.pods) == (profile, pods)


def test_no_mig_profile_where_none_holds_a_pod() -> None:
    assert mig_fit(request(gpu="A30", memory_gib=23)) is None
    assert mig_fit(request(gpu="T4")) is None


def test_all_problems_of_a_request_are_reported_together() -> None:
    found = problems(request(memory_gib=500, users=0, latency_ms=-1, price=0))
    assert len(found) == 4
    assert any("500 GiB" in text for text in found)


def test_every_leaf_can_be_reached_and_is_a_strategy() -> None:
    leaves = [node for node in nodes() if isinstance(node, Leaf)]
    assert {leaf.method for leaf in leaves} == set(METHODS)
    reached = set()
    bounds: tuple[dict[str, float], ...] = (
        {},
        {"latency_ms": 6},
        {"latency_ms": 0.5},
        {"slowdown": 2.05},
        {"slowdown": 2.5},
    )
    for workload, gpu, isolation, environment in product(CLASSES, ("H200", "T4"), ISOLATIONS, ENVIRONMENTS):
        for users, alike, bound in product((1, 2, 8, 12), (True, False), bounds):
            more: dict[str, Any] = {"isolation": isolation, "environment": environment, "users": users, **bound}
            reached.add(ask(workload, gpu, alike=alike, **more).because)
    assert reached - {f"the fewest pods that share; {UNKNOWN}"} == {leaf.because for leaf in leaves}


def test_questions_have_their_own_names() -> None:
    ids = [node.id for node in nodes() if isinstance(node, Question)]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("page", docs.BLOCKS)
def test_the_docs_hold_what_the_data_says(page: str) -> None:
    text = (Path(__file__).parents[3] / "docs" / page).read_text(encoding="utf-8")
    assert docs.fill(text, docs.BLOCKS[page]) == text, "run make docs"


def test_the_drawn_tree_has_every_question_and_leaf() -> None:
    text = docs.BLOCKS["decision-tree.md"]["tree"]()
    for node in nodes():
        assert (node.text if isinstance(node, Question) else f"**{node.method}**: {node.because}") in text
    questions = sum(1 for node in nodes() if isinstance(node, Question))
    assert text.count("-->|yes|") == text.count("-->|no|") == questions


def test_a_page_without_the_block_is_an_error() -> None:
    with pytest.raises(ValueError, match="block tree: 0 places"):
        docs.fill("# nothing", {"tree": lambda: ""})


def codes(*args: Any, **more: Any) -> list[str]:
    return [o.code for o in objections(*args, measurements(), **more)]


def test_what_speaks_against_a_stack() -> None:
    h200 = gpu_model("H200")
    assert codes("timeSlicing", 4, h200, workload="training") == ["GF900"]
    assert codes("timeSlicing", 2, h200, workload="training") == []
    assert codes("timeSlicing", 4, h200, workload="inference", environment="dev") == []
    assert codes("timeSlicing", 2, h200, environment="production") == ["GF901"]
    assert codes("mps", 2, h200, environment="production") == []
    assert codes("mig", 7, h200, workload="training", environment="production") == []


def test_an_objection_fills_the_texts_of_its_code() -> None:
    found = objections(
        "timeSlicing", 8, gpu_model("H200"), measurements(), workload="training", environment="production"
    )
    assert [o.code for o in found] == ["GF900", "GF901"]
    for one in found:
        said = finding(one.code, "pools[0].sharing", **one.details)
        assert "{" not in said.message + said.reason + said.remedy
    assert found[0].details["measured"].startswith("Measured: 12% of a GPU of its own for each of 8 such pods (H200, ")


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["advise", *words])
    out = capsys.readouterr()
    return code, out.out, out.err


def test_the_command_prints_advice_and_json(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--gpu", "h200", "--workload", "notebook", "--memory", "12", "--users", "8", "--price", "10")
    code, text, _ = run(capsys, *words)
    assert code == 0
    assert text.startswith("timeSlicing, replicas 4")
    assert "cost per pod and hour: 2.5" in text and "why not:" in text
    code, text, _ = run(capsys, *words, "--json")
    document = json.loads(text)
    assert (document["method"], document["replicas"], document["costPerPodHour"]) == ("timeSlicing", 4, 2.5)
    assert document["expected"]["measured"] is True


def test_the_command_names_what_is_wrong(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, errors = run(capsys, "--gpu", "H2000", "--workload", "notebook", "--memory", "1", "--users", "2")
    assert code == 2 and "'H2000' is not in the catalogue" in errors
    code, _, errors = run(capsys, "--gpu", "T4", "--workload", "notebook", "--memory", "99", "--users", "0")
    assert code == 2 and errors.count("gpufleet advise:") == 2
    code, _, errors = run(capsys, "--gpu", "T4", "--workload", "notebook", "--memory", "99", "--users", "2")
    assert code == 1 and "T4 has 14.9 GiB to give" in errors  # a question without an answer, and no wrong use
    code, _, errors = run(capsys, "--gpu", "A100", "--workload", "notebook", "--memory", "9", "--users", "2")
    assert code == 2 and "(A100-SXM4-40GB, " in errors
    code, _, errors = run(capsys, "--gpu", "T4", "--memory", "1", "--users", "2")
    assert code == 2 and "--workload" in errors
    code, _, errors = run(capsys, "--profile", "/nowhere", "--memory", "1", "--users", "2")
    assert code == 2 and "/nowhere" in errors and "Traceback" not in errors


@pytest.mark.parametrize(
    ("option", "value", "why"),
    [
        ("--memory", "0", "memory per pod: 0 is not a number above 0"),
        ("--memory", "-1", "memory per pod"),
        ("--memory", "nan", "memory per pod: nan"),
        ("--memory", "inf", "memory per pod: inf"),
        ("--users", "0", "number of users: 0"),
        ("--users", "-3", "number of users: -3"),
        ("--latency", "0", "latency bound: 0"),
        ("--latency", "nan", "latency bound: nan"),
        ("--slowdown", "0.5", "slowdown bound: 0.5"),
        ("--slowdown", "inf", "slowdown bound: inf"),
        ("--price", "-1", "price: -1"),
        ("--price", "nan", "price: nan"),
    ],
)
def test_a_bad_value_is_wrong_use(option: str, value: str, why: str, capsys: pytest.CaptureFixture[str]) -> None:
    words = {"--gpu": "H200", "--workload": "notebook", "--memory": "8", "--users": "2", option: value}
    code, out, errors = run(capsys, *(f"{key}={word}" for key, word in words.items()))
    assert (code, out, errors.count("\n")) == (2, "", 1)
    assert f"gpufleet advise: {why}" in errors


def test_a_bound_that_not_even_one_pod_keeps() -> None:
    chosen = select(measurements(), "H200", "inference", "timeSlicing")
    assert chosen is not None
    alone = next(p.p99_ms for p in chosen.series.points if p.n == 1)
    assert alone is not None
    assert (
        f"not even a pod alone keeps a p99 of at most 0.01 ms: its p99 is {alone:.4g} ms" in ask(latency_ms=0.01).basis
    )
    assert "no number of pods above one" in ask(latency_ms=alone * 1.01, slowdown=1.01).basis


def test_the_users_profile_is_what_the_advice_rests_on(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    base = {"workload": "command", "backend": "command", "method": "timeSlicing", "unit": "steps/s"}
    lines: list[dict[str, Any]] = [
        {
            "kind": "conditions",
            "date": "2026-12-01",
            "cpus": 8,
            "gpu_state": {"name": "Tesla T4", "driver_version": "580.1"},
        }
    ]
    lines += [
        {"kind": "point", **base, "n": n, "total": total, "per_process": [total / n] * n, "p50_ms": 9.0 * n,
         "p99_ms": 10.0 * n, "samples": 50}
        for n, total in ((1, 100.0), (2, 180.0), (4, 220.0))
    ]  # fmt: skip
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    code, text, errors = run(
        capsys, "--profile", str(path), "--memory", "3", "--users", "4", "--latency", "40", "--json"
    )
    assert code == 0, errors
    document = json.loads(text)
    assert (document["request"]["gpu"], document["replicas"]) == ("T4", 4)
    assert document["expected"]["total"] == 220.0
    assert "driver 580.1, 2026-12-01" in document["basis"]
    for more, why in (
        (("--gpu", "H200"), "was measured on Tesla T4, not on H200"),
        (("--workload", "copy"), "no measurement of copy"),
    ):
        code, _, errors = run(capsys, "--profile", str(path), "--memory", "3", "--users", "4", *more)
        assert code == 2 and why in errors


@pytest.mark.parametrize("bound", [{}, {"slowdown": 1.5}, {"latency_ms": 5.0}])
def test_one_user_less_needs_no_further_gpu(bound: dict[str, float]) -> None:
    needed = [ask("inference", users=n, memory_gib=4.0, **bound).gpus for n in range(1, 41)]
    assert needed == sorted(needed) and needed[6:8] == [1, 1]
    seven = ask("inference", users=7, memory_gib=4.0, **bound)
    assert seven.replicas == 8 and "measured with 8, and 7 get no less" in seven.basis
    assert ask("training", users=7, memory_gib=19.0, **bound).pods_per_gpu <= 6  # eight do not fit into the memory


def test_hami_splits_as_far_as_a_stack_file_takes() -> None:
    found = ask("inference", users=500, memory_gib=0.1, isolation="memory", alike=False)
    assert (found.method, found.pods_per_gpu, found.gpus) == ("hami", 100, 5)
    ((_, values),) = yaml.safe_load(found.fragment)["gpufleet:sharing"].items()
    assert _strategy(values) == "hami"


def test_advice_that_the_plan_warns_of_says_so() -> None:
    found = ask("training", users=8, slowdown=4.5)
    assert found.pods_per_gpu > 2 and any("'gpufleet plan' warns" in note for note in found.notes)
    assert not any("warns" in note for note in ask("training", users=8, slowdown=2.2).notes)


@pytest.mark.parametrize(("workload", "says"), [("training", "gained nothing"), ("notebook", "gained up to ")])
def test_a_gain_of_nothing_is_called_so(workload: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    main(["advise", "--workload", workload, "--gpu", "A100-SXM4-80GB", "--memory", "3", "--users", "4"])
    out = capsys.readouterr().out
    assert says in out and "1.00 times" not in out
