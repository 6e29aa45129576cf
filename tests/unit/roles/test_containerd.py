"""containerd's configuration: the smallest change, on every form of file."""

from __future__ import annotations

import tomllib
from typing import Any

import pytest
from gpufleet.hosts import containerd, paths, tomltext

V2 = """version = 2
# local
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.example/pause:3.9"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = true
"""
V3 = """version = 3
imports = ["/etc/containerd/conf.d/*.toml"]
[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc]
  runtime_type = 'io.containerd.runc.v2'
  [plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]
    SystemdCgroup = true
"""
DEFAULTS = """version = 2
[plugins."io.containerd.grpc.v1.cri".containerd]
default_runtime_name = "runc"
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
privileged_without_host_devices = false
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
SystemdCgroup = false
"""


def edit(text: str, dump: str = "", version: str = "1.6.20", drop_in: str | None = None, **more: Any) -> Any:
    options = {"name": "nvidia", "default": False, **more}
    return containerd.edit(text, drop_in, dump or text, version, **options)


def test_a_block_in_a_version_2_file_keeps_everything_else() -> None:
    changes, why = edit(V2)
    new = changes[paths.CONTAINERD_CONFIG]
    assert not why and new.startswith(V2.rstrip()) and changes[paths.CONTAINERD_DROP_IN] is None
    document = tomllib.loads(new)
    entry = containerd.runtimes(document)["nvidia"]
    assert entry["options"] == {"BinaryName": "/usr/bin/nvidia-container-runtime", "SystemdCgroup": True}
    assert containerd.default_runtime(document) == "runc" and "runc" in containerd.runtimes(document)


def test_the_block_is_stable_and_follows_the_cgroup_driver() -> None:
    first = edit(V2)[0][paths.CONTAINERD_CONFIG]
    assert edit(first, dump=first)[0][paths.CONTAINERD_CONFIG] == first
    changed = first.replace("SystemdCgroup = true", "SystemdCgroup = false", 1)
    again = edit(changed, dump=changed)[0][paths.CONTAINERD_CONFIG]
    assert "SystemdCgroup" not in tomltext.block_of(again)


def test_removing_gives_the_file_back() -> None:
    assert containerd.remove(edit(V2)[0][paths.CONTAINERD_CONFIG]).strip() == V2.strip()
    assert containerd.remove(edit(V2, default=True)[0][paths.CONTAINERD_CONFIG]).strip() == V2.strip()


def test_default_runtime_is_one_line_in_place() -> None:
    new = edit(V2, default=True)[0][paths.CONTAINERD_CONFIG]
    assert containerd.default_runtime(tomllib.loads(new)) == "nvidia"
    lines = [line for line in new.splitlines() if line not in V2.splitlines()]
    assert lines[0].strip() == 'default_runtime_name = "nvidia"'
    assert edit(new, dump=new, default=True)[0][paths.CONTAINERD_CONFIG] == new
    back = edit(new, dump=new, default=False)[0][paths.CONTAINERD_CONFIG]
    assert containerd.default_runtime(tomllib.loads(back)) == "runc"


def test_a_file_that_names_no_runtime_gets_the_others_written_out() -> None:
    # containerd 1.x drops its own defaults as soon as a file names any runtime
    new = edit('version = 2\n[plugins."io.containerd.grpc.v1.cri".cni]\nbin_dir = "/usr/lib/cni"\n', dump=DEFAULTS)[0]
    document = tomllib.loads(new[paths.CONTAINERD_CONFIG])
    assert set(containerd.runtimes(document)) == {"runc", "nvidia"}
    assert containerd.runtimes(document)["runc"]["privileged_without_host_devices"] is False


def test_version_1_file_uses_its_own_key() -> None:
    new = edit("[plugins.cri.containerd.runtimes.runc]\nruntime_type = 'io.containerd.runc.v2'\n", dump=DEFAULTS)[0]
    assert tomllib.loads(new[paths.CONTAINERD_CONFIG])["plugins"]["cri"]["containerd"]["runtimes"]["nvidia"]


def test_version_3_with_imports_gets_a_minimal_drop_in_of_the_same_version() -> None:
    changes, why = edit(V3, version="2.1.4", default=True)
    assert not why and changes[paths.CONTAINERD_CONFIG] == V3
    document = tomllib.loads(changes[paths.CONTAINERD_DROP_IN])
    section = document["plugins"]["io.containerd.cri.v1.runtime"]
    assert (
        document["version"] == 3
        and set(section) == {"containerd"}
        and set(section["containerd"]["runtimes"]) == {"nvidia"}
    )
    assert section["containerd"]["default_runtime_name"] == "nvidia"


@pytest.mark.parametrize(
    ("text", "version"),
    [(V3, "2.0.5"), (V3.replace('imports = ["/etc/containerd/conf.d/*.toml"]\n', ""), "2.2.1"), (V2, "2.1.4")],
)
def test_no_drop_in_where_it_would_not_be_read_or_not_be_merged(text: str, version: str) -> None:
    changes, _why = edit(text, version=version)
    assert changes[paths.CONTAINERD_DROP_IN] is None
    assert "nvidia" in containerd.runtimes(tomllib.loads(changes[paths.CONTAINERD_CONFIG]))


def test_somebody_elses_runtime_is_left_alone() -> None:
    other = (
        V2
        + '[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.nvidia.options]\n'
        + ('BinaryName = "/usr/local/nvidia/toolkit/nvidia-container-runtime"\n')
    )
    assert edit(other) == ({}, "")


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("version = 2\nversion = 2\n", "Cannot overwrite"),
        ('version = 2\ndisabled_plugins = ["cri"]\n', "CRI plugin is disabled"),
        ("version = \n", "Invalid value"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(text: str, part: str) -> None:
    changes, why = containerd.edit(text, None, V2, "1.7.1", name="nvidia", default=False)
    assert changes == {} and part in why


def test_only_runtime_entries_may_differ() -> None:
    after = edit(V2)[0][paths.CONTAINERD_CONFIG]
    assert containerd.unexpected(V2, after, "nvidia") == []
    lost = after.replace('sandbox_image = "registry.example/pause:3.9"', "")
    assert containerd.unexpected(V2, lost, "nvidia") == ["plugins.io.containerd.grpc.v1.cri.sandbox_image"]


def test_imports_patterns() -> None:
    path = paths.CONTAINERD_DROP_IN
    assert containerd.imports_cover({"imports": ["/etc/containerd/conf.d/*.toml"]}, path)
    assert containerd.imports_cover({"imports": ["conf.d/*.toml"]}, path)
    assert not containerd.imports_cover({"imports": []}, path)
    assert not containerd.imports_cover({"imports": ["/etc/containerd/config.d/*.toml"]}, path)


TOOLKIT = """#accept-nvidia-visible-devices-envvar-when-unprivileged = true
disable-require = false

[nvidia-container-cli]
#no-cgroups = false
load-kmods = true

[nvidia-container-runtime]
mode = "auto"
"""


def test_single_keys_are_set_where_they_stand() -> None:
    text = tomltext.set_key(TOOLKIT, [], "accept-nvidia-visible-devices-envvar-when-unprivileged", False)
    text = tomltext.set_key(text, ["nvidia-container-cli"], "no-cgroups", True)
    text = tomltext.set_key(text, ["nvidia-container-runtime"], "mode", "cdi")
    assert text.splitlines() == [
        "accept-nvidia-visible-devices-envvar-when-unprivileged = false",
        "disable-require = false",
        "",
        "[nvidia-container-cli]",
        "no-cgroups = true",
        "load-kmods = true",
        "",
        "[nvidia-container-runtime]",
        'mode = "cdi"',
    ]
    assert tomllib.loads(tomltext.set_key("", ["a", "b.c"], "d", 1)) == {"a": {"b.c": {"d": 1}}}
    assert tomllib.loads(tomltext.set_key("[x]\ny = 1\n", [], "top", "v")) == {"top": "v", "x": {"y": 1}}
