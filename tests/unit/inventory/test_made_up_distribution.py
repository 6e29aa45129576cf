"""A distribution is rows of the tables: one that nobody has heard of goes through plan, mirror list and roles."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from gpufleet.catalog import reading
from gpufleet.catalog.packages import is_driver, reported_packages
from gpufleet.catalog.reading import Tables, tables_in
from gpufleet.compiled import compile_file
from gpufleet.fleet.resolve import resolve
from gpufleet.inventory.inventory import inventory
from gpufleet.mirror.mirror_list import mirror_list
from gpufleet.places.existing.hosts import kernel_modules, target_driver
from gpufleet.plan.compile import compile_plan

from tests.unit.inventory.stacks import FULL
from tests.unit.inventory.test_inventory import stack_of
from tests.unit.inventory.test_with_roles import DAY
from tests.unit.roles import plans
from tests.unit.roles.hosts import answered, gpus, host, package, probe

SOURCE = {"source": "made up", "as_of": "2026-11"}
VERSION = "580.126.09"
#: One row with the distribution's own package names.
NAMES = {
    "id": "madeup-archive", "repo": "madeup-archive", "method": "distro", "os_family": "redhat", "systems": ["madeup"],
    "min_branch": None, "max_branch": None, "driver_meta": {"open": "gpu-stack-<branch>-open", "proprietary": None},
    "utils": "gpu-stack-tools", "fabric_manager": "gpu-stack-fabric-<branch>",
    "nscq": None, "nvsdm": None, "imex": None, "version_bound": ["fabric_manager"], **SOURCE,
}  # fmt: skip
#: One row with what else is to know of it.
SYSTEM = {
    "platform": "madeup-7", "family": "redhat", "support": "documented", "routes": ["distro", "none"], "python": "3.12",
    "headers": ["gpu-kernel-devel-<kernel>"], "initramfs": "make-my-initramfs --all", **SOURCE,
}  # fmt: skip


@pytest.fixture
def tables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Tables:
    """The catalogue with both rows, for the plan as the package's own and for the roles as gpu_catalog_dir."""
    folder = tmp_path / "tables"
    shutil.copytree(reading.STANDARD.directory, folder)
    for file, table, row in (("packages", "package_names", NAMES), ("platforms", "platforms", SYSTEM)):
        content = yaml.safe_load((folder / f"{file}.yaml").read_text(encoding="utf-8"))
        content[table].append(row)
        (folder / f"{file}.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    monkeypatch.setattr(reading.STANDARD, "directory", folder)
    monkeypatch.setattr(reading.STANDARD, "kept", {})
    return tables_in(str(folder))


POOL = {
    "name": "p", "gpu": "A100-SXM4-80GB", "gpusPerNode": 2, "hosts": {"h": {"address": "h"}}, "os": "madeup-7",
    "driverVersion": VERSION, "hostDriver": {"method": "distro"},
}  # fmt: skip
STACK: dict[str, Any] = {"cluster": FULL["cluster"], "stack": {"kind": "plugin"}, "pools": [POOL]}
OWN = {"gpu-stack-580-open", "gpu-stack-tools", "gpu-stack-fabric-580"}


def codes(folder: Path) -> set[str]:
    """What `gpufleet plan` says about the stack."""
    file = folder / "Pulumi.s.yaml"
    file.write_text(yaml.safe_dump({"config": {f"gpufleet:{key}": value for key, value in STACK.items()}}))
    return {finding.code for finding in compile_file(file, None, file.name).found}


def test_the_distribution_is_unknown_without_its_rows(tmp_path: Path) -> None:
    assert "madeup" not in " ".join(reported_packages())
    assert "GF109" in codes(tmp_path)


def test_it_goes_through_plan_inventory_and_mirror_list(tables: Tables, tmp_path: Path) -> None:
    assert not {"GF109", "GF805", "GF806", "GF807"} & codes(tmp_path)
    fleet = resolve(stack_of(STACK))
    branch, version = target_driver(fleet.pools[0], DAY)
    assert branch is not None and (branch.branch, version) == (580, VERSION)
    assert kernel_modules(fleet.pools[0], branch) == "open"
    assert inventory(fleet).variables()["h"]["gpu_driver_method"] == "distro"
    listed = {r.name: r for r in mirror_list(fleet, compile_plan("x", fleet), DAY).repositories}
    assert listed["distro"].os == "madeup-7"
    assert {p.name for p in listed["distro"].packages} == {*OWN, "nvidia-persistenced", "*"}
    assert "gpu-kernel-devel-<kernel>" in {p.name for p in listed["operating system"].packages}


def test_it_goes_through_the_roles(tables: Tables) -> None:
    variables = inventory(resolve(stack_of(STACK))).variables()["h"]
    known = {key: value for key, value in variables.items() if key.startswith("gpu_")}
    reading_of_it = probe(
        system={"id": "madeup", "version_id": "7.3", "manager": "dnf"},
        kernel={"release": "6.1-1.x86_64", "headers": False},
        hardware={"gpus": gpus("20b2", 2), "nvswitches": [{"slot": "s", "device": "1af1"}]},
        packages={"gpu-stack-570-open": package("570.26-1")},
    )
    context = host(reading_of_it, tables=tables, **known)
    assert context.target.problems == [] and context.system.key == "madeup-7"
    want = plans.driver_want(context)
    assert {w["name"] for w in want if w["part"] in ("driver", "fabric") and not w["optional"]} == OWN
    assert {(w["name"], w["version"]) for w in want if w["part"] == "headers"} == {("gpu-kernel-devel", "6.1-1")}
    context.resolved = answered(want)
    plan = plans.driver(context)
    assert plan["problems"] == [] and set(plan["hold"]) >= OWN
    assert plan["packages"]["remove"] == ["gpu-stack-570-open"], "an installed one of its names is a driver's"
    assert plan["initramfs"] == ["make-my-initramfs", "--all"]
    assert is_driver("gpu-stack-tools", tables) and "gpu-stack-fabric-*" in reported_packages(tables)
