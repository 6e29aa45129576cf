"""The installed wheel in a Pulumi project of somebody else's: usual layout, a package `infra` of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.package.environments import ROOT, build_wheel, make_environment
from twin.engine import Twin

PROGRAM = "import infra\nassert infra.OWN\nfrom gpufleet.deploy.program import run\nrun()\n"
STACK = (ROOT / "stacks" / "Pulumi.aks-dev.yaml").read_text()


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    make_environment(folder / "venv", build_wheel(tmp_path_factory.mktemp("wheel")), "azure")
    (folder / "infra").mkdir()
    (folder / "infra" / "__init__.py").write_text("OWN = True\n")
    (folder / "__main__.py").write_text(PROGRAM)
    (folder / "Pulumi.yaml").write_text("name: own\nruntime: {name: python, options: {virtualenv: venv}}\n")
    return folder


def test_a_preview_of_the_whole_stack(twin: Twin, own: Path) -> None:
    (own / "Pulumi.dev.yaml").write_text(STACK)
    said = twin.pulumi(own, "dev", "preview").require().stdout
    assert "azure-native:containerservice:ManagedCluster" in said and "error" not in said


def test_errors_name_file_and_line(twin: Twin, own: Path) -> None:
    wrong = STACK.replace("vmSize: Standard_NC", "vmSize: Standard_XX", 1)
    line = next(i for i, text in enumerate(wrong.splitlines(), 1) if "Standard_XX" in text)
    (own / "Pulumi.dev.yaml").write_text(wrong)
    preview = twin.pulumi(own, "dev", "preview")
    plan = twin.run([own / "venv" / "bin" / "gpufleet", "plan", "-s", "dev"], own)
    for done in (preview, plan):
        said = done.stdout + done.stderr
        assert done.rc != 0 and "Traceback" not in said
        assert f"pools[0].vmSize  Pulumi.dev.yaml:{line}" in said
