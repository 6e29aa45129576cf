"""NVIDIADriver objects."""

import pytest
from gpufleet.catalog import operator_drivers

from tests.unit.lint.told import codes, d, one

DRIVER = d("""
    apiVersion: nvidia.com/v1alpha1
    kind: NVIDIADriver
    metadata: {name: default}
    spec:
      driverType: gpu
      version: VERSION
      repository: nvcr.io/nvidia
      image: driver
      kernelModuleType: open
      nodeSelector: {pool: gpu}
""").replace("VERSION", operator_drivers()[0])


def test_a_version_that_the_release_does_not_list_rp_28() -> None:
    found = one("GF217", DRIVER.replace(operator_drivers()[0], "535.54.03"))
    assert (found.path, found.line, found.value) == ("spec.version", 6, "535.54.03")
    assert found.closest in operator_drivers() and str(found.closest).startswith("535.")
    assert codes(DRIVER) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("repository: nvcr.io/nvidia", "repository: registry.example.com/nvidia"),  # its own list
        ("driverType: gpu", "driverType: vgpu"),
        ("version: ", "version: sha256:"),
    ],
)
def test_other_lists_of_versions(old: str, new: str) -> None:
    assert codes(DRIVER.replace(operator_drivers()[0], "535.54.03").replace(old, new)) == []


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("driverType: gpu", "driverType: cuda", "driverType is one of gpu"),
        ("kernelModuleType: open", "kernelModuleType: opened", "kernelModuleType is one of auto"),
        ("kernelModuleType: open", "default: true", "no nodeSelector"),
        (f"version: {operator_drivers()[0]}", "version: '580'\n  usePrecompiled: true\n  gds: {enabled: true}", "gds"),
    ],
)
def test_what_the_operator_refuses(old: str, new: str, says: str) -> None:
    assert says in one("GF677", DRIVER.replace(old, new)).message


def test_precompiled_drivers() -> None:
    text = DRIVER.replace("image: driver", "image: driver\n  usePrecompiled: true")
    found = one("GF678", text)
    assert found.closest == operator_drivers()[0].partition(".")[0]
    assert codes(text.replace(operator_drivers()[0], "'580'")) == []


def test_the_operator_must_look_at_them() -> None:
    values = "driver: {nvidiaDriverCRD: {enabled: true}}\nmigManager: {enabled: false}\n"
    assert codes(DRIVER, values) == []
    assert (
        one("GF676", DRIVER, values.replace("enabled: true", "enabled: false")).value
        == "driver.nvidiaDriverCRD.enabled"
    )
    assert "GF676" in codes(DRIVER, "migManager: {enabled: false}\ntoolkit: {enabled: false}\n")
    dra = "clusterPolicy: {deployCR: false}\ngpuCluster: {deployCR: true}\nmigManager: {enabled: false}\n"
    assert "GF676" not in codes(DRIVER, dra)
    policy = "apiVersion: nvidia.com/v1\nkind: ClusterPolicy\nmetadata: {name: c}\n"
    policy += "spec: {driver: {useNvidiaDriverCRD: ON}}\n"
    assert "GF676" in codes(DRIVER, policy.replace("ON", "false"))
    assert "GF676" not in codes(DRIVER, policy.replace("ON", "true"))


def test_two_drivers_for_the_same_nodes() -> None:
    other = DRIVER.replace("name: default", "name: other")
    assert one("GF679", DRIVER, other).value == "pool=gpu"
    assert codes(DRIVER, other.replace("pool: gpu", "pool: big")) == []
    assert codes(DRIVER, DRIVER) == []  # the same object, for instance in two overlays
