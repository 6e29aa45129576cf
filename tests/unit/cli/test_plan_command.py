"""`gpufleet plan` and the command line as a whole: exit codes, one JSON document, words instead of tracebacks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from gpufleet.cli.main import COMMANDS, main
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.config.samples import sections, stack_text
from tests.unit.config.test_together import TEN_AKS
from tests.unit.plan.strategies import CALM

ROOT = Path(__file__).parents[3]
SHIPPED = sorted(p.stem.removeprefix("Pulumi.") for p in ROOT.joinpath("stacks").glob("Pulumi.*.yaml"))
GOOD = stack_text(sections("aks-plugin"))
WARNED = stack_text(sections("aks-plugin", {"pools[0].driver": "none"}))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with one good stack, and the working directory in it."""
    (tmp_path / "Pulumi.yaml").write_text("name: gpufleet\nstackConfigDir: stacks\n")
    (tmp_path / "stacks").mkdir()
    (tmp_path / "stacks" / "Pulumi.good.yaml").write_text(GOOD)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def gpufleet(*words: str) -> int:
    """Exit code of the command, whether it returns or exits."""
    try:
        return main(list(words))
    except SystemExit as stop:
        assert isinstance(stop.code, int)
        return stop.code


@pytest.mark.parametrize("stack", SHIPPED)
def test_shipped_stacks_are_clean(
    stack: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    assert gpufleet("plan", "-s", stack) == 0
    out = capsys.readouterr()
    assert out.err == ""
    assert f"stack {stack}:" in out.out
    assert out.out.splitlines()[-1].startswith(f"{stack}: no errors or warnings")


@pytest.mark.parametrize(("text", "code"), [(GOOD, 0), (WARNED, 0), (TEN_AKS, 1), ("", 1), ("{", 1), ("\x00", 1)])
def test_exit_codes(project: Path, text: str, code: int) -> None:
    (project / "mine.yaml").write_text(text)
    assert gpufleet("plan", "-f", "mine.yaml") == code
    assert gpufleet("plan", "-f", "mine.yaml", "--json") == code


def test_json_is_one_document_with_plan_and_diagnostics(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert gpufleet("plan", "-s", "good", "--json") == 0
    document = json.loads(capsys.readouterr().out)
    assert list(document) == ["stack", "ok", "diagnostics", "plan"]
    assert (document["stack"], document["ok"], document["diagnostics"]) == ("good", True, [])
    assert document["plan"]["pools"][0]["node"]["resources"] == {"nvidia.com/gpu": 1}


def test_json_with_errors_has_no_plan(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "stacks" / "Pulumi.bad.yaml").write_text(TEN_AKS)
    assert gpufleet("plan", "-s", "bad", "--json") == 1
    document = json.loads(capsys.readouterr().out)
    assert (document["ok"], document["plan"]) == (False, None)
    assert len(document["diagnostics"]) == 20
    first = document["diagnostics"][0]
    assert first == {
        "code": "GF106",
        "severity": "error",
        "path": "cluster.name",
        "message": "The value vision dev does not have the form that is required here.",
        "reason": "AKS cluster names are letters, digits, '-' and '_', at most 63,"
        " with a letter or digit at both ends.",
        "remedy": "Write a name such as `vision-dev`.",
        "value": "vision dev",
        "file": "stacks/Pulumi.bad.yaml",
        "line": 4,
    }


def test_the_file_is_named_as_the_user_wrote_it(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "x.yaml").write_text("{")
    gpufleet("plan", "-f", "x.yaml")
    assert "error GF001 (stack file)  x.yaml:1" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("plan", "-s", "goood"), "no stack goood in stacks/ (there are: good); did you mean good?"),
        (("plan", "-s", "zzz"), "no stack zzz in stacks/ (there are: good)\n"),
        (("plan", "-s", "../../etc/passwd"), "no stack ../../etc/passwd"),
        (("plan", "-s", ""), "no stack "),
        (("plan", "-f", "none.yaml"), "cannot read none.yaml: No such file or directory"),
        (("plan", "-f", "stacks"), "cannot read stacks: Is a directory"),
        (("plan", "-f", "-"), "cannot read -: No such file or directory"),
        (("plan", "-f", ""), "cannot read"),
        (("plan",), "one of the arguments -s/--stack -f/--file is required"),
        (("plan", "-s", "good", "-f", "x"), "not allowed with argument"),
        (("plan", "-s", "good", "--jsn"), "unrecognized arguments"),
        (("plan", "-s"), "expected one argument"),
        (("paln",), "invalid choice: 'paln'"),
        ((), "required: COMMAND"),
    ],
)
def test_wrong_usage_is_said_in_words(
    project: Path, words: tuple[str, ...], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert gpufleet(*words) == 2
    out = capsys.readouterr()
    assert out.out == ""
    assert says in out.err
    assert "Traceback" not in out.err


def test_a_project_without_stacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert gpufleet("plan", "-s", "local") == 2
    assert f"no Pulumi.yaml in {tmp_path} or above it" in capsys.readouterr().err
    (tmp_path / "Pulumi.yaml").write_text("name: x\nruntime: python\n")
    assert gpufleet("plan", "-s", "local") == 2
    assert "(there are: none)" in capsys.readouterr().err


def test_from_a_folder_inside_the_project(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(project / "a" / "b")
    assert gpufleet("plan", "-s", "good") == 0


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_without_permission(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "x.yaml").write_text(GOOD)
    (project / "x.yaml").chmod(0)
    assert gpufleet("plan", "-f", "x.yaml") == 2
    assert "Permission denied" in capsys.readouterr().err


def test_a_special_file_without_content(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpufleet("plan", "-f", os.devnull) == 1
    assert "GF002" in capsys.readouterr().out


def test_names_and_values_with_odd_characters(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "ö {x} %s.yaml").write_text(
        stack_text(sections("aks-plugin", {"pools[0].vmSize": "ö {0} %s \U0001f600"}))
    )
    assert gpufleet("plan", "-f", "ö {x} %s.yaml") == 1
    assert "ö {0} %s \U0001f600" in capsys.readouterr().out


def test_a_fault_of_gpufleet_is_one_message(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("secret text of an exception")

    monkeypatch.setattr("gpufleet.cli.plan.compile_option", broken)
    monkeypatch.delenv("GPUFLEET_DEBUG", raising=False)
    assert gpufleet("plan", "-s", "good") == 1
    said = capsys.readouterr().err
    assert said.startswith("gpufleet: internal error in broken: RuntimeError.")
    assert "secret text" not in said
    assert said.count("\n") == 1
    monkeypatch.setenv("GPUFLEET_DEBUG", "1")
    assert gpufleet("plan", "-s", "good") == 1
    assert "Traceback" in capsys.readouterr().err


_WORDS = st.sampled_from(
    [
        "plan",
        "status",
        "-s",
        "-f",
        "good",
        "stacks/Pulumi.good.yaml",
        "--json",
        "--wait",
        "0",
        "--",
        "-",
        "",
        "--help",
        "x",
    ]
)


@CALM
@given(st.lists(st.one_of(_WORDS, st.text(max_size=6)), max_size=5))
def test_any_words_end_in_an_exit_code(words: list[str]) -> None:
    assert gpufleet(*words) in (0, 1, 2)


def _process(*words: str, **env: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "gpufleet.cli.main", *words]
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **env}, capture_output=True, text=True, check=False)


def test_as_a_process_without_pulumi_cluster_or_credentials() -> None:
    done = _process("plan", "-s", "aks-prod", "--json", PATH="", HOME="/nonexistent", KUBECONFIG="")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["ok"] is True


def test_plan_loads_no_provider() -> None:
    """Importing the SDKs costs half a second, and a plan needs none of them."""
    script = (
        "import sys; from gpufleet.cli.main import main; main(['plan', '-s', 'aks-prod', '--json']);"
        "print(sorted(m for m in sys.modules if m.split('.')[0] in"
        " ('pulumi', 'pulumi_azure_native', 'pulumi_kubernetes', 'kubernetes', 'grpc', 'twin')), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"


def test_a_reader_that_goes_away() -> None:
    """`gpufleet plan ... | head -1`: no traceback, and no complaint of the interpreter at its end."""
    process = subprocess.Popen(
        [sys.executable, "-m", "gpufleet.cli.main", "plan", "-s", "aks-prod", "--json"],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    said = process.stderr.read()
    process.stderr.close()
    assert process.wait() in (0, 1)
    assert said == ""


def test_help_names_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert gpufleet("--help") == 0
    shown = capsys.readouterr().out
    assert "plan" in shown
    assert "status" in shown
    assert all(line in shown for name, (_, line) in COMMANDS.items() if name in ("plan", "status"))
