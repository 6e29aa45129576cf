"""Where the twin's programs come from, and what a user reads when they cannot be had."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from twin import toolchain
from twin.errors import TwinError

TABLE = """\
as_of: 2026-11-30
go: "1.26"
tools:
  etcd: {version: 3.6.16, accept: "3.5", binary: etcd, package: ., minutes: 1, source: https://example.invalid/etcd}
  kubernetes: {version: 1.36.3, accept: "1.33", binary: kube, package: ., minutes: 9, source: https://example.invalid/k8s}
  kwok: {version: 0.8.0, accept: "0.7", binary: kwok, package: ., minutes: 3, source: https://example.invalid/kwok}
  pulumi: {version: 3.274.1, accept: "3.200", binary: pulumi, package: ., minutes: 9, source: https://example.invalid/p}
  pulumi-resource-kubernetes:
    {version: 4.25.0, accept: "4.20", binary: pulumi-resource-kubernetes, package: ., minutes: 16, source: https://e.invalid}
"""
# A `go` that answers `go version` and, for `go build`, notes the call and writes the file after -o.
GO = """\
#!/bin/sh
if [ "$1" = version ]; then echo "go version go{version} linux/amd64"; exit 0; fi
echo "$@" >> "{calls}"
while [ $# -gt 1 ]; do [ "$1" = -o ] && out="$2"; shift; done
{work}
echo built > "$out"; chmod +x "$out"
"""


def program(folder: Path, name: str, text: str) -> Path:
    folder.mkdir(exist_ok=True, parents=True)
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return path


def says(folder: Path, name: str, version: str) -> Path:
    return program(folder, name, f"#!/bin/sh\necho {name} version v{version}\n")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "tools.yaml"
    path.write_text(TABLE)
    return path


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    """A machine with a shell and nothing else: no programs, no Go, an empty cache, an empty Pulumi home."""
    coreutils = tmp_path / "coreutils"
    coreutils.mkdir()
    for name in ("sh", "echo", "chmod", "sleep", "cat"):
        (coreutils / name).symlink_to(f"/bin/{name}")
    return {"PATH": str(coreutils), "HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "cache")}


def with_path(env: dict[str, str], folder: Path) -> dict[str, str]:
    return {**env, "PATH": f"{folder}{os.pathsep}{env['PATH']}"}


def with_go(env: dict[str, str], tmp_path: Path, version: str = "1.26.8", work: str = "") -> dict[str, str]:
    program(tmp_path / "go", "go", GO.format(version=version, calls=tmp_path / "calls", work=work))
    return with_path(env, tmp_path / "go")


def quiet(_: str) -> None:
    pass


def test_without_go_the_message_names_what_is_missing_and_what_to_install(env: dict[str, str], table: Path) -> None:
    with pytest.raises(TwinError) as caught:
        toolchain.ensure(quiet, env, table)
    text = str(caught.value)
    for tool in (
        "etcd 3.6.16",
        "kubernetes 1.36.3",
        "kwok 0.8.0",
        "pulumi 3.274.1",
        "pulumi-resource-kubernetes 4.25.0",
    ):
        assert tool in text
    assert "Go 1.26 or newer" in text
    assert "https://go.dev/dl/" in text
    assert "compiler" not in text  # none of these needs one


def test_a_go_that_is_too_old_is_named_with_its_version(env: dict[str, str], table: Path, tmp_path: Path) -> None:
    with pytest.raises(TwinError, match=r"Go 1\.26 or newer \(found 1\.22\.2 at "):
        toolchain.ensure(quiet, with_go(env, tmp_path, "1.22.2"), table)
    assert not (tmp_path / "calls").exists()


def test_a_tool_with_c_parts_asks_for_a_compiler(env: dict[str, str], tmp_path: Path) -> None:
    recipe = toolchain.Recipe("ctk", "1.0.0", "1.0", "ctk", ".", 1, "https://example.invalid", cgo=True)
    with pytest.raises(TwinError, match="apt-get install gcc"):
        toolchain.check_builders([recipe], "1.26", with_go(env, tmp_path))
    program(tmp_path / "go", "cc", "#!/bin/sh\n")
    toolchain.check_builders([recipe], "1.26", with_go(env, tmp_path))


def test_what_is_missing_is_built_once_into_the_cache(env: dict[str, str], table: Path, tmp_path: Path) -> None:
    said: list[str] = []
    env = with_go(env, tmp_path)
    tools = toolchain.ensure(said.append, env, table)
    cache = tmp_path / "cache" / "gpufleet" / "tools"
    assert tools.etcd == cache / "etcd" / "3.6.16" / "etcd"
    assert tools.kube["scheduler"] == (str(cache / "kubernetes" / "1.36.3" / "kube"), "scheduler")
    assert tools.provider == cache / "pulumi-resource-kubernetes" / "4.25.0" / "pulumi-resource-kubernetes"
    assert len((tmp_path / "calls").read_text().splitlines()) == 5
    assert any("about 38 minutes" in line for line in said)
    left = {path.name for path in cache.rglob("*") if path.is_file()}
    assert not [name for name in left if name.endswith(".part")]

    said.clear()
    assert toolchain.ensure(said.append, env, table) == tools
    assert said == []
    assert len((tmp_path / "calls").read_text().splitlines()) == 5


def test_a_failed_build_shows_its_last_lines_and_leaves_no_program(
    env: dict[str, str], table: Path, tmp_path: Path
) -> None:
    env = with_go(env, tmp_path, work='echo half > "$out"; echo "no space left on device" >&2; exit 1')
    with pytest.raises(TwinError, match="no space left on device"):
        toolchain.ensure(quiet, env, table)
    folder = tmp_path / "cache" / "gpufleet" / "tools" / "etcd" / "3.6.16"
    assert {path.name for path in folder.iterdir()} == {"build.log", ".lock"}


def test_two_checkouts_do_not_build_the_same_tool_twice(env: dict[str, str], table: Path, tmp_path: Path) -> None:
    env = with_go(env, tmp_path, work="sleep 1")
    code = (
        "import os, sys; from pathlib import Path; from twin import toolchain as t;"
        f"r, go = t.load(Path({str(table)!r})); print(t.build([r['etcd']], go, print)['etcd'].read_text())"
    )
    root = str(Path(toolchain.__file__).parent.parent)
    both = [
        subprocess.Popen([sys.executable, "-c", code], cwd=root, env=env, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    outputs = [process.communicate(timeout=60)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0]
    assert all("built" in output for output in outputs)
    assert len((tmp_path / "calls").read_text().splitlines()) == 1
    assert sum("another build of it runs" in output for output in outputs) == 1


def test_programs_on_path_come_first(env: dict[str, str], table: Path, tmp_path: Path) -> None:
    folder = tmp_path / "there"
    for name, version in (("etcd", "3.5.12"), ("kwok", "0.7.0"), ("pulumi", "3.210.0")):
        says(folder, name, version)
    for part in toolchain.KUBE_PARTS:
        says(folder, f"kube-{part}", "1.35.2")
    says(folder, "pulumi-resource-kubernetes", "4.34.2")
    tools = toolchain.ensure(quiet, with_path(env, folder), table)
    assert (tools.etcd, tools.kwok, tools.pulumi) == (folder / "etcd", folder / "kwok", folder / "pulumi")
    assert tools.kube["controller-manager"] == (str(folder / "kube-controller-manager"),)
    assert tools.kubernetes_version == "1.35.2"
    assert tools.provider is None  # Pulumi's own way of finding it stays


def test_an_etcd_that_this_kubernetes_does_not_take_is_passed_over(
    env: dict[str, str], table: Path, tmp_path: Path
) -> None:
    says(tmp_path / "there", "etcd", "3.4.30")
    tools = toolchain.ensure(quiet, with_go(with_path(env, tmp_path / "there"), tmp_path), table)
    assert tools.etcd.is_relative_to(tmp_path / "cache")


@pytest.mark.parametrize("versions", [("1.36.0", "1.35.0", "1.36.0"), ("1.36.0", "1.36.0", None)])
def test_kubernetes_commands_are_taken_only_as_a_matching_set(
    env: dict[str, str], table: Path, tmp_path: Path, versions: tuple[str | None, ...]
) -> None:
    for part, version in zip(toolchain.KUBE_PARTS, versions, strict=True):
        if version:
            says(tmp_path / "there", f"kube-{part}", version)
    tools = toolchain.ensure(quiet, with_go({**env, "KUBEBUILDER_ASSETS": str(tmp_path / "there")}, tmp_path), table)
    assert tools.kube["apiserver"][0].startswith(str(tmp_path / "cache"))


def test_assets_of_the_test_environment_are_used(env: dict[str, str], table: Path, tmp_path: Path) -> None:
    says(tmp_path / "assets", "etcd", "3.6.4")
    env = with_go({**env, "KUBEBUILDER_ASSETS": str(tmp_path / "assets")}, tmp_path)
    assert toolchain.ensure(quiet, env, table).etcd == tmp_path / "assets" / "etcd"


def test_a_provider_in_pulumis_cache_is_used(env: dict[str, str], table: Path, tmp_path: Path) -> None:
    folder = tmp_path / ".pulumi" / "plugins" / f"resource-kubernetes-v{toolchain.sdk_version()}"
    there = says(folder, "pulumi-resource-kubernetes", "4.34.2")
    assert toolchain.ensure(quiet, with_go(env, tmp_path), table).provider == there


def test_a_shell_that_uses_a_twin_finds_the_programs_behind_its_links(
    env: dict[str, str], table: Path, tmp_path: Path
) -> None:
    """Its links are laid out anew by the next `make up`: taken for the programs, they would point at themselves."""
    home = tmp_path / "checkout" / ".twin"
    says(home / "bin", "pulumi", "3.274.1")
    real = says(tmp_path / "real", "pulumi-resource-kubernetes", "4.34.2")
    folder = home / "pulumi" / "plugins" / f"resource-kubernetes-v{toolchain.sdk_version()}"
    folder.mkdir(parents=True)
    (folder / real.name).symlink_to(real)
    sourced = {**with_go(with_path(env, home / "bin"), tmp_path), "PULUMI_HOME": str(home / "pulumi")}
    tools = toolchain.ensure(quiet, sourced, table)
    assert tools.provider == real
    assert tools.pulumi.is_relative_to(tmp_path / "cache")


def test_every_recipe_of_the_table_has_its_pinned_module() -> None:
    recipes, go = toolchain.load()
    assert toolchain.number(go) >= (1, 20)
    for recipe in recipes.values():
        assert (recipe.module / "go.mod").exists(), recipe.tool
        assert (recipe.module / "go.sum").exists(), recipe.tool
        pinned = (recipe.module / "go.mod").read_text()
        if recipe.tool != "pulumi-resource-kubernetes":  # its module has no release tags
            assert f"v{recipe.version}" in pinned, recipe.tool
        if f"={recipe.version}" not in recipe.ldflags and "=v" in recipe.ldflags:
            assert f"=v{recipe.version}" in recipe.ldflags, recipe.tool
