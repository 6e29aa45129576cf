"""Versions that are known to fail: ranges, conditions, and that none of our own advice leads into one."""

from __future__ import annotations

import itertools
import re

import pytest
from gpufleet.catalog import (
    Place,
    architectures,
    component,
    components,
    default_flavour,
    distributions,
    driver_branches,
    gpu_models,
    known_bad,
    known_to_fail,
    operator_drivers,
)
from gpufleet.catalog.known_bad import CONDITIONS, own_version
from gpufleet.findings.registry import find, rules
from gpufleet.hosts.target import recommended_branch

ROWS = {row.id: row for row in known_bad()}
USES = frozenset(use for row in known_bad() for use in row.applies.get("uses", ()))
BUILDS = frozenset({"builds-module"})


@pytest.mark.parametrize(
    ("row", "version", "bad"),
    [("mixed-mig-pending", "570.124.05", False), ("mixed-mig-pending", "570.124.06", True),
     ("mixed-mig-pending", "570.148.08", True), ("mixed-mig-pending", "570.158.01", True),
     ("mixed-mig-pending", "570.158.02", False), ("mixed-mig-pending", "570.26", False),
     ("mixed-mig-pending-575", "575.57.08", True), ("mixed-mig-pending-575", "575.64", False),
     ("mixed-mig-pending-575", "574.1", False),
     ("hgx-h100-535-open", "535.309.01", True), ("hgx-h100-535-open", "535", True),
     ("hgx-h100-535-open", "534.1", False), ("hgx-h100-535-open", "536.1", False),
     ("legacy-gpu-590", "580.178.04", False), ("legacy-gpu-590", "590.44.01", True), ("legacy-gpu-590", "620", True),
     ("hmm-kaslr", "590.48.01", True), ("hmm-kaslr", "latest", False),
     ("enroot-1.17.7", "1.17.7", True), ("enroot-1.17.7", "1.17.8", False), ("enroot-1.17.7", "1.17.6", False),
     ("containerd-drop-in-1.18.0", "1.18.0", True), ("containerd-drop-in-1.18.0", "1.18.1", False),
     ("crio-drop-in", "1.19.0", True), ("crio-drop-in", "1.19.1", False), ("crio-drop-in", "1.17.9", False),
     ("missing-runtime-type", "1.19.1", True), ("missing-runtime-type", "1.20.0", False),
     ("operator-25.3.3-socket", "v25.3.2", False), ("operator-25.3.3-socket", "v25.3.3", True),
     ("operator-25.3.3-socket", "25.3.3", True), ("operator-25.3.3-socket", "v25.3.4", False),
     ("operator-25.3.3-socket", "v25.10.0", False), ("operator-24.9-k0s", "v24.9.2", True),
     ("operator-24.9-k0s", "v24.6.2", False), ("operator-24.9-k0s", "v25.3.0", False),
     ("plugin-0.19-mps-by-label", "v0.18.2", False), ("plugin-0.19-mps-by-label", "v0.19.0", True),
     ("plugin-0.19-mps-by-label", "v0.19.3-ubi9", True), ("plugin-0.19-mps-by-label", "v0.20.0", False),
     ("exporter-virtual-gpus", "4.2.3-4.1.3-ubuntu22.04", True), ("exporter-virtual-gpus", "4.4.2-4.7.0", True),
     ("exporter-virtual-gpus", "4.5.3-4.8.2", False), ("exporter-virtual-gpus", "3.3.5-3.4.0", False),
     ("exporter-4.8.2-xid", "4.5.3-4.8.2-distroless", True), ("exporter-4.8.2-xid", "4.6.0-4.8.3-distroless", False),
     ("b200-570.133.20-hang", "570.133.20", True), ("b200-570.133.20-hang", "570.133.21", False),
     ("590-build-6.19", "590.48.01", True), ("compute-domains", "550.144.6", True),
     ("compute-domains", "570.158.01", False)],
)  # fmt: skip
def test_ranges(row: str, version: str, bad: bool) -> None:
    assert ROWS[row].concerns(version) is bad


@pytest.mark.parametrize(
    ("row", "version", "place", "met"),
    [("b200-570.133.20-hang", "570.133.20", Place(gpus=frozenset({"B200"}), modules="open"), True),
     ("b200-570.133.20-hang", "570.133.20", Place(gpus=frozenset({"B200"})), False),
     ("b200-570.133.20-hang", "570.133.20", Place(gpus=frozenset({"H100-SXM5-80GB"}), modules="open"), False),
     ("b300-595.71.05-xid-145", "595.71.05", Place(frozenset({"B300"}), "open", kernel="7.0.0-27-generic"), True),
     ("b300-595.71.05-xid-145", "595.71.05", Place(frozenset({"B300"}), "open", kernel="6.8.0-45-generic"), False),
     ("b300-595.71.05-xid-145", "595.71.05", Place(frozenset({"B300"}), "open"), False),
     ("580.119.02-build", "580.119.02", Place(kernel="6.17.9-76061709-generic", uses=BUILDS), True),
     ("580.119.02-build", "580.119.02", Place(kernel="6.17.9-76061709-generic"), False),
     ("580.119.02-build", "580.119.02", Place(kernel="6.17.4-76061704", uses=BUILDS), False),
     ("operator-24.9-k0s", "24.9.2", Place(distributions=frozenset({"k0s"}), uses=USES), True),
     ("operator-24.9-k0s", "24.9.2", Place(uses=frozenset({"operator-toolkit"})), False)],
)  # fmt: skip
def test_conditions(row: str, version: str, place: Place, met: bool) -> None:
    """A condition of which nothing is known is not met: no finding is better than a false one."""
    assert (ROWS[row] in known_to_fail(ROWS[row].component, version, place)) is met
    assert known_to_fail(ROWS[row].component, version, Place()) == ()


def test_rows_have_a_form_that_rules_can_read() -> None:
    for row in known_bad():
        assert set(row.applies) <= CONDITIONS
        assert set(row.applies.get("gpus", ())) <= set(gpu_models())
        assert set(row.applies.get("architectures", ())) <= set(architectures())
        assert row.applies.get("modules") in (None, "open", "proprietary")
        assert row.applies.get("mig") in (None, "partial")
        assert set(row.applies.get("distributions", ())) <= {*distributions(), "k0s"}
        # A row that a rule reads says what to do; one that none reads says why.
        assert row.severity in (None, "error", "warning")
        assert (row.remedy is None) is (row.severity is None) is (row.said_by is not None), row.id
        if row.said_by:
            assert all(find(code) for code in re.findall(r"GF\d{3}", row.said_by))
        assert row.applies or row.severity is None, f"{row.id} would be told everywhere"


def worst(component_name: str) -> list[Place]:
    """Places on which every condition that rows of the component have is met, one value of each."""
    rows = [row for row in known_bad() if row.component == component_name]
    runtimes = {row.applies.get("runtime") for row in rows} | {None}
    kernels = {kernel for row in rows for kernel in row.applies.get("kernels", ())} | {None}
    return [
        Place(
            gpus=frozenset(g for row in rows for g in row.applies.get("gpus", ())), modules=modules, mig="partial",
            kernel=kernel, distributions=frozenset({*distributions(), "k0s"}), runtime=runtime,
            packages=frozenset({"enroot"}), uses=USES,
        )
        for modules, kernel, runtime in itertools.product(("open", "proprietary"), kernels, runtimes)
    ]  # fmt: skip


def faults(component_name: str, version: str) -> set[str]:
    return {row.id for place in worst(component_name) for row in known_to_fail(component_name, version, place)}


DEFAULTS = {
    "gpu-operator": "gpu-operator", "k8s-device-plugin": "k8s-device-plugin",
    "k8s-device-plugin-chart": "k8s-device-plugin", "operator-device-plugin": "k8s-device-plugin",
    "operator-gfd": "k8s-device-plugin", "dcgm-exporter": "dcgm-exporter", "operator-driver": "driver",
    "operator-toolkit": "container-toolkit", "container-toolkit": "container-toolkit",
}  # fmt: skip


@pytest.mark.parametrize("name", DEFAULTS)
def test_defaults_of_the_catalogue_are_free_of_known_to_fail(name: str) -> None:
    assert faults(DEFAULTS[name], component(name).version) == set()


def test_every_default_of_a_component_with_rows_is_tried() -> None:
    named = {row.component for row in known_bad()} - {"driver", "container-toolkit"}
    ours = {name for name in components() if any(part in name for part in named)}
    assert ours - set(DEFAULTS) == {"aks-managed-dcgm-exporter"}  # a fact about AKS, not a version that we choose


def test_no_driver_that_we_choose_is_known_to_fail() -> None:
    """The branch that is recommended for each GPU, and each version that the operator lists and that drives it."""
    for model in gpu_models().values():
        branch = recommended_branch([model], "2026-12")
        chosen = {branch.newest_seen} if branch else set[str | None]()
        last = model.newest_driver_branch
        chosen |= {v for v in operator_drivers() if last is None or int(v[:3]) <= last}
        for version in chosen - {None}:
            number = int(str(version)[:3])
            for mig in (None, "partial"):
                place = Place(gpus=frozenset({model.id}), modules=default_flavour([model], number), mig=mig, uses=USES)
                found = {row.id for row in known_to_fail("driver", str(version), place)}
                # 535 lacks what ComputeDomains need; GF272 says that the branch has ended.
                assert found <= ({"compute-domains"} if number == 535 else set()), (model.id, version)


def test_a_faulty_version_is_not_recommended(monkeypatch: pytest.MonkeyPatch) -> None:
    model = gpu_models()["B200"]
    usual = recommended_branch([model], "2026-12")
    assert usual is not None
    bad = usual._replace(branch=999, newest_seen="570.133.20", eol="2099-01")
    monkeypatch.setattr("gpufleet.hosts.target.driver_branches", lambda _t: {**driver_branches(), 999: bad})
    assert recommended_branch([model], "2026-12") == usual
    assert recommended_branch([gpu_models()["T4"]], "2026-12") == bad


# A version of the driver, and one of operator or plugin.
_VERSIONS = {
    "driver": re.compile(r"(?<![\d.])\d{3}\.\d+(?:\.\d+)?(?![\d.])"),
    "gpu-operator": re.compile(r"\bv?2\d\.\d+\.\d+\b"),
    "k8s-device-plugin": re.compile(r"\bv?0\.\d+\.\d+\b"),
    "dcgm-exporter": re.compile(r"\b\d\.\d\.\d-\d\.\d\.\d\b"),
    "container-toolkit": re.compile(r"\b1\.(?:1[5-9]|2\d)\.\d+\b"),
}


def test_no_remedy_leads_into_a_known_fault() -> None:
    texts = {code: f"{rule.remedy} {rule.do}" for code, rule in rules().items()}
    texts |= {row.id: row.remedy or "" for row in known_bad()}
    named = [(origin, name, found) for origin, text in texts.items() for name, pattern in _VERSIONS.items()
             for found in pattern.findall(text)]  # fmt: skip
    assert len(named) > 12
    wrong = {(o, version): left for o, name, version in named if (left := faults(name, version) - elsewhere(o))}
    assert wrong == {}
    ended = {number for number, row in driver_branches().items() if row.eol and row.eol < "2026-11"}
    assert not [(o, v) for o, name, v in named if name == "driver" and int(v[:3]) in ended and o not in ("GF212",)]


def elsewhere(origin: str) -> set[str]:
    """Faults that what a text speaks of cannot meet: drivers of pools without DRA, the toolkit of hosts."""
    return {"compute-domains"} | ({"missing-runtime-type"} if origin.startswith("GF7") else set())


def test_the_exporters_own_version_is_the_second_half_of_its_tag() -> None:
    assert own_version("dcgm-exporter", "4.5.3-4.8.2-distroless") == "4.8.2"
    assert own_version("dcgm-exporter", "4.8.2") == "4.8.2"
    assert own_version("k8s-device-plugin", "v0.19.0-1") == "v0.19.0-1"
