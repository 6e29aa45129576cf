"""Enterprise Linux and its kin: streams, names without a branch, version locks, headers of the running kernel."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from ansible.parsing.dataloader import DataLoader  # noqa: F401  (the action plugins need an initialised ansible)
from ansible_collections.gpufleet.hosts.plugins.action.packages import ActionModule
from ansible_collections.gpufleet.hosts.plugins.module_utils import index, order
from ansible_collections.gpufleet.hosts.plugins.modules import resolve
from gpufleet.hosts import driver, preflight
from gpufleet.hosts.context import Answer, Context

from . import plans
from .converged import KIT, VERSION, on, resolved_driver
from .hosts import answered, codes, gpus, host, package, packages, probe

EL9 = {"id": "rocky", "version_id": "9.4", "manager": "dnf", "python": "3.9.18"}
KERNEL = "5.14.0-427.13.1.el9_4"
OLD = ("nvidia-open", "nvidia-driver", "nvidia-driver-libs", "kmod-nvidia-open-dkms", "libnvidia-ml")
TOOLS = {"dkms": package("3.0-1"), "python3-dnf-plugin-versionlock": package("4.3-1")}


def locked(version: str, *names: str) -> dict[str, Any]:
    return {n: {**row, "lock": True} for n, row in packages(version, *names, revision="-1.el9").items()}


def with_repository(context: Context, have: dict[str, str]) -> dict[str, Any]:
    """The plan when the repository has these packages, resolved as on a host."""
    known = {name: {version: []} for name, version in have.items()}
    want = plans.driver_want(context)
    found = {**index.closure(known, want, order.comparison("dnf")), "request": want, "unknown": [], "errors": []}
    return plans.driver(Context(context.probe, context.settings, context.tables, Answer.model_validate(found)))


def test_an_upgrade_moves_every_package_under_its_name_and_removes_none_that_stays() -> None:
    old = {**locked("3:570.158.01", *OLD), "libnvidia-nscq-570": package("3:570.158.01-1.el9", hold=True)}
    context = on(probe(system=EL9, packages={**old, **TOOLS}))
    plan = with_repository(context, dict.fromkeys(OLD, f"3:{VERSION}-1.el9"))
    assert {p["name"]: p["version"] for p in plan["packages"]["install"]} == dict.fromkeys(OLD, f"3:{VERSION}-1.el9")
    assert plan["packages"]["remove"] == ["libnvidia-nscq-570"], "its name has no successor at the new version"
    # dnf hides every version but the locked one, so the locks go first and come back at the new version.
    assert plan["release"] == sorted([*OLD, "libnvidia-nscq-570"])
    assert plan["hold"] == sorted(OLD)


def test_what_came_along_is_held_too() -> None:
    after = packages(f"3:{VERSION}", *OLD, hold=False, revision="-1.el9")
    plan = plans.driver(on(probe(system=EL9, packages={**after, **TOOLS}, library=VERSION)))
    assert plan["hold"] == sorted(OLD) and plan["resolve"] == {}


def test_the_other_flavour_is_not_moved_along() -> None:
    both = locked("3:570.158.01", "cuda-drivers", "kmod-nvidia-latest-dkms", "nvidia-driver")
    wanted = [w["name"] for w in plans.driver_want(on(probe(system=EL9, packages={**both, **TOOLS})))]
    assert "nvidia-driver" in wanted and not {"cuda-drivers", "kmod-nvidia-latest-dkms"} & set(wanted)


def test_toolkit_and_mig_manager_are_unlocked_before_they_move() -> None:
    context = on(probe(system=EL9, packages=locked("1.19.0", *KIT)))
    resolved = answered(plans.toolkit_want(context))
    plan = plans.toolkit(Context(context.probe, context.settings, context.tables, resolved))
    assert plan["release"] == list(KIT) and plan["hold"] == sorted(KIT, key=plan["hold"].index)
    a100 = probe(system=EL9, hardware={"gpus": gpus("20b2", 2)}, packages=locked("0.14.2", "nvidia-mig-manager"))
    context = on(a100, gpu_mig_layout="all-1g.10gb", gpu_mig_manager_version="0.15.0")
    want = plans.mig(context)["resolve"]["want"]
    plan = plans.mig(Context(context.probe, context.settings, context.tables, answered(want)))
    assert plan["release"] == plan["hold"] == ["nvidia-mig-manager"]


def test_headers_of_another_kernel_are_no_headers() -> None:
    newer = {"kernel-devel-matched": package("5.14.0-503.el9"), "kernel-headers": package("5.14.0-503.el9")}
    reading = probe(system=EL9, kernel={"release": f"{KERNEL}.x86_64", "headers": False}, packages={**newer, **TOOLS})
    context = on(reading)
    assert [(w.name, w.version) for w in driver.headers_want(context)] == [("kernel-devel-matched", KERNEL)]
    context.resolved = answered(plans.request(preflight.resolve_request(context))["want"], ("kernel-devel-matched",))
    assert "GF722" in codes(preflight.findings(context))


def test_tools_that_the_vendor_does_not_have_are_asked_for_first() -> None:
    context = on(probe(system=EL9))
    assert [w.name for w in driver.build_want(context)] == list(TOOLS)
    assert driver.build_want(on(probe(system=EL9), gpu_driver_hold=False, gpu_driver_kmod="precompiled")) == []
    assert driver.build_want(on()) == [] and driver.build_want(on(probe(system=EL9, packages=TOOLS))) == []
    context.resolved = answered(plans.request(preflight.resolve_request(context))["want"], ("dkms",))
    assert "GF762" in codes(preflight.findings(context))
    plan = resolved_driver(on(probe(system=EL9)))
    assert set(TOOLS) <= {p["name"] for p in plan["packages"]["install"]} and not set(TOOLS) & set(plan["hold"])


@pytest.mark.parametrize(
    ("identity", "version", "stream"),
    [("rocky", "9.4", True), ("kylin", "V11", True), ("rhel", "10.1", False), ("openEuler", "22.03", False)],
)
def test_module_streams_by_platform(identity: str, version: str, stream: bool) -> None:
    reading = probe(system={"id": identity, "version_id": version, "manager": "dnf"})
    context = on(reading, gpu_driver_repo_url="https://m/", gpu_driver_repo_key="k")
    assert resolved_driver(context)["streams"] == (["nvidia-driver:580-open"] if stream else [])


def test_a_stream_is_enabled_and_nothing_installed_by_it() -> None:
    calls = ActionModule._calls({"manager": "dnf", "streams": ["nvidia-driver:580-open"]}, ["nvidia-open-3:580"], [])
    assert [options["_raw_params"] for module, options in calls if module == "ansible.builtin.command"] == [
        "dnf -y module reset nvidia-driver",
        "dnf -y module enable nvidia-driver:580-open",
    ]
    assert [options["name"] for module, options in calls if module == "ansible.builtin.dnf"] == [["nvidia-open-3:580"]]


PRIMARY = (
    b'<metadata xmlns="http://linux.duke.edu/metadata/common"><package type="rpm"><name>nvidia-open</name>'
    b'<version epoch="3" ver="580.126.09" rel="1.el10"/></package></metadata>'
)


@pytest.mark.parametrize("program", ["/usr/bin/zstd", None])
def test_an_index_that_newer_createrepo_made_is_read(monkeypatch: pytest.MonkeyPatch, program: str | None) -> None:
    class Module:
        params: ClassVar[dict[str, Any]] = {"timeout": 1, "want": [], "names": ["nvidia-*"]}

        def get_bin_path(self, _name: str) -> str | None:
            return program

        def run_command(self, command: list[str], **options: Any) -> tuple[int, bytes, bytes]:
            assert command == ["/usr/bin/zstd", "-dc"] and options["encoding"] is None
            return 0, options["data"].removeprefix(b"zst:"), b""

    listing = b'<data type="primary"><location href="repodata/primary.xml.zst"/></data>'
    resolver = resolve.Resolver(Module())
    monkeypatch.setattr(resolver, "fetch", lambda url: listing if url.endswith("repomd.xml") else b"zst:" + PRIMARY)
    found = resolver.rpm_index({"url": "https://m/rhel10/"})
    if program:
        assert found == {"nvidia-open": {"3:580.126.09-1.el10": []}} and resolver.errors == []
    else:
        assert found == {} and "install zstd" in resolver.errors[0]["answer"]


def test_compute_without_such_packages_is_the_whole_driver() -> None:
    volta = probe(hardware={"gpus": [{**gpus("1db4", 1)[0]}]})
    wanted = plans.driver_want(host(volta, gpu_driver_version=VERSION, gpu_driver_components="compute"))
    assert wanted[0]["name"] == "cuda-drivers-580"
