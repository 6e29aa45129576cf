"""Artifacts in a cluster in which something is there already."""

from __future__ import annotations

import pytest
import yaml
from gpufleet.catalog import distribution
from gpufleet.parts.artifact import KeepingConfigMap
from gpufleet.parts.seen import Seen, SeenClass, SeenConfigMap
from gpufleet.places.existing.in_use import other_software, runtime_classes, strangers
from gpufleet.plan.model import Plan

from tests.unit.config.samples import compile_base, told

OURS = {"app.kubernetes.io/managed-by": "gpufleet"}
ROUTE = {**OURS, "gpufleet.dev/route": "operator"}
LABEL = "nvidia.com/device-plugin.config"
RENAMED = {"sharing.t4-x8": {"strategy": "timeSlicing", "replicas": 8}, "pools[0].sharing": "t4-x8"}


def plan(base: str, changes: dict[str, object] | None = None) -> Plan:
    compiled = compile_base(base, changes)
    assert compiled.plan is not None, told(compiled)
    return compiled.plan


def classes(labels: dict[str, str] | None = None, handler: str = "nvidia") -> Seen:
    return Seen(runtime_classes={"nvidia": SeenClass(handler, labels or {})})


def given(changes: dict[str, object], seen: Seen) -> tuple[str | None, str | None, bool]:
    plugin = plan("existing-plugin", changes).plugin
    assert plugin is not None
    found = plugin.given(seen)
    return found.runtime_class, found.existing_runtime_class, found.keep_runtime_class


K3S = {"cluster.distribution": "k3s"}
NOT_THERE = {"cluster.runtimeClass": {"existing": False}}
SAID = {"cluster.runtimeClass": {"existing": True}}


@pytest.mark.parametrize(
    ("changes", "seen", "expected"),
    [
        pytest.param({}, classes(), (None, "nvidia", False), id="RP-08 somebody else's is used"),
        pytest.param({}, classes(OURS), ("nvidia", None, False), id="RP-08 our own stays registered"),
        pytest.param({}, Seen(runtime_classes={}), ("nvidia", None, False), id="RP-08 absent, so it is made"),
        pytest.param({}, Seen(), ("nvidia", None, False), id="classes may not be listed"),
        pytest.param(K3S, Seen(), (None, "nvidia", False), id="RP-08 k3s has it, without a look"),
        pytest.param(K3S, classes(), (None, "nvidia", False), id="RP-08 k3s has it"),
        pytest.param({"cluster.distribution": "rke2"}, Seen(), (None, "nvidia", False), id="RKE2 has it"),
        pytest.param(K3S, classes(OURS), ("nvidia", None, True), id="taken over by an older provider: never deleted"),
        pytest.param(SAID, Seen(), (None, "nvidia", False), id="the stack file says that it is there"),
        pytest.param({**K3S, **NOT_THERE}, Seen(), ("nvidia", None, False), id="k3s without its manifest"),
    ],
)
def test_runtime_class(changes: dict[str, object], seen: Seen, expected: tuple[str | None, str | None, bool]) -> None:
    assert given(changes, seen) == expected


def test_distributions_that_bring_classes() -> None:
    """k3s: manifests/runtimes.yaml; RKE2: chart rke2-runtimeclasses."""
    for name in ("k3s", "rke2", "kubeadm", "microk8s", "aks"):
        row = distribution(name)
        assert row is not None
        assert row.runtime_classes == (("nvidia", "nvidia-experimental") if name in ("k3s", "rke2") else ())


@pytest.mark.parametrize(
    ("base", "changes", "seen", "codes"),
    [
        ("existing-plugin", {}, classes(handler="runc"), ["GF460"]),
        ("existing-plugin", SAID, classes(handler="nvidia-container-runtime"), []),
        ("existing-operator", {}, classes(handler="runc"), ["GF460"]),
        ("existing-operator", SAID, classes(handler="runc"), ["GF460"]),  # the operator updates it, which fails
        ("existing-operator", {}, Seen(runtime_classes={}), []),  # the operator makes it
        ("existing-plugin", K3S, Seen(runtime_classes={}), ["GF461"]),
        ("existing-plugin", SAID, Seen(runtime_classes={}), ["GF461"]),
        ("existing-plugin", {}, Seen(runtime_classes={}), []),
        ("existing-plugin", {"pools[0].nvidiaDefaultRuntime": True}, classes(handler="runc"), []),
        ("existing-plugin", K3S, Seen(), []),
    ],
)
def test_classes_that_cannot_be_used(base: str, changes: dict[str, object], seen: Seen, codes: list[str]) -> None:
    """RP-08: refused with what was found."""
    found = runtime_classes(plan(base, changes), seen)
    assert [d.code for d in found] == codes
    if codes == ["GF460"]:
        assert "runc" in found[0].message


TEAM = {"teams": [{"name": "a", "namespace": "prod", "pools": ["t4"], "quota": {"gpu": 1}, "group": "g"}]}
BOTH: dict[str, dict[str, str]] = {"prod": {}, "gpu-plugin": {}}
LISTED = {"cluster.existingNamespaces": ["prod", "gpu-plugin"], **TEAM}


@pytest.mark.parametrize(
    ("changes", "seen", "codes"),
    [
        (TEAM, Seen(namespaces={"prod": {}}), ["GF451"]),
        (TEAM, Seen(namespaces={"prod": OURS, "gpu-plugin": OURS}), []),
        (LISTED, Seen(namespaces={"prod": {}, "gpu-plugin": {"a": "b"}}), []),
        (LISTED, Seen(namespaces={"prod": {}}), ["GF462"]),
        (LISTED, Seen(namespaces={"prod": OURS, "gpu-plugin": {}}), ["GF463"]),
        (LISTED, Seen(namespaces=BOTH, inside=(("RoleBinding", "prod", "members"),)), ["GF466"]),
        (LISTED, Seen(namespaces=BOTH, inside=(("RoleBinding", "other", "members"),)), []),
    ],
)
def test_namespaces(changes: dict[str, object], seen: Seen, codes: list[str]) -> None:
    assert [d.code for d in strangers(plan("existing-plugin", changes), seen)] == codes


def test_an_operator_and_a_feature_discovery_that_are_there() -> None:
    own, other = "gpu-operator/gpu-operator", "nvidia/gpu"
    wanted = plan("existing-operator")
    assert other_software(wanted, Seen(operators=(("cluster-policy", own),), nfd=(("gpu-operator/nfd", own),))) == []
    (error,) = other_software(wanted, Seen(operators=(("cluster-policy", other),)))
    assert (error.code, error.severity.value) == ("GF464", "error") and other in error.message
    (warning,) = other_software(wanted, Seen(nfd=(("nfd/worker", ""), ("nfd/other", ""))))
    assert (warning.code, warning.severity.value) == ("GF465", "warning")
    assert other_software(plan("existing-plugin"), Seen(operators=(("cluster-policy", other),))) == []


def sharing(name: str, data: dict[str, str], immutable: bool = False) -> SeenConfigMap:
    return SeenConfigMap("gpu-operator", name, ROUTE, data, immutable)


def test_keys_that_labels_still_name_are_kept() -> None:
    """RP-46: the old key stays in the new ConfigMap for as long as a node names it, and not longer."""
    operator = plan("existing-operator", RENAMED).operator
    assert operator is not None
    before = sharing("gpufleet-sharing-1", {"t4-x4": "old", "unused": "x", "unshared": "whole"})
    moving = operator.given(Seen(nodes={"n1": {LABEL: "t4-x4"}, "n2": {LABEL: "t4-x8"}}, config_maps=(before,)))
    kept = moving.config_map
    assert isinstance(kept, KeepingConfigMap)
    assert (kept.name, kept.kept, kept.frozen) == (operator.config_map.name, ("t4-x4",), False)
    assert kept.data == {**operator.config_map.data, "t4-x4": "old"}
    assert moving.values == operator.values, "the release does not change when the old keys go"
    now = sharing(kept.name, kept.data)
    moved = operator.given(Seen(nodes={"n1": {LABEL: "t4-x8"}}, config_maps=(before, now)))
    assert moved.config_map == operator.config_map
    elsewhere = SeenConfigMap("other", "gpufleet-sharing-1", ROUTE, before.data)
    assert operator.given(Seen(nodes={"n1": {LABEL: "t4-x4"}}, config_maps=(elsewhere,))) == operator


def test_an_immutable_config_map_stays_so() -> None:
    """One that an earlier gpufleet made: the API refuses to make it mutable."""
    operator = plan("existing-operator").operator
    assert operator is not None
    name, data = operator.config_map.name, operator.config_map.data
    found = operator.given(Seen(config_maps=(sharing(name, data, immutable=True),))).config_map
    assert isinstance(found, KeepingConfigMap)
    assert (found.data, found.kept, found.frozen) == (data, (), True)


def test_layouts_that_labels_still_name_are_kept() -> None:
    """RP-46 for the MIG manager: a name that its file does not hold leaves the node in the state failed."""
    changes = {
        "pools[0].gpu": "A100-80GB-PCIe",
        "pools[0].driver": "operator",
        "sharing.cut": {"strategy": "mig", "profile": "1g.10gb"},
        "pools[0].sharing": "cut",
    }
    operator = plan("existing-operator", changes).operator
    assert operator is not None and operator.mig_config is not None
    old = {"version": "v1", "mig-configs": {"2x3g.40gb": [{"devices": "all"}], "all-disabled": []}}
    before = SeenConfigMap("gpu-operator", "gpufleet-mig-1", OURS, {"config.yaml": yaml.safe_dump(old)})
    seen = Seen(nodes={"n1": {"nvidia.com/mig.config": "2x3g.40gb"}}, config_maps=(before,))
    kept = operator.given(seen).mig_config
    assert isinstance(kept, KeepingConfigMap)
    configs = yaml.safe_load(kept.data["config.yaml"])["mig-configs"]
    own = yaml.safe_load(operator.mig_config.data["config.yaml"])["mig-configs"]
    assert configs == {**own, "2x3g.40gb": [{"devices": "all"}]}
    assert (kept.name, kept.kept) == (operator.mig_config.name, ("2x3g.40gb",))


def test_whether_labels_move() -> None:
    seen = Seen(nodes={"n1": {LABEL: "a"}, "n2": {}})
    assert not seen.move({"n1": {LABEL: "a"}, "gone": {LABEL: "b"}}, [LABEL])
    assert seen.move({"n1": {LABEL: "b"}}, [LABEL])
    assert seen.move({"n2": {LABEL: "b"}}, [LABEL])
