"""`gpufleet predict`: rows in, the same rows with answers out; bad rows are named, not fatal."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from gpufleet.cli.main import main

from tests.unit.device_plugin.cases import HERE, rows

INPUT = ("name", "config", "gpus", "mig", "env")


def test_the_recorded_rows_come_back_as_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded = rows("vectors.jsonl")
    questions = tmp_path / "questions.jsonl"
    questions.write_text("\n".join(json.dumps({k: r[k] for k in INPUT}) for r in recorded))
    assert main(["predict", str(questions)]) == 0
    answers = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert answers == recorded
    assert main(["predict", str(HERE / "vectors.jsonl")]) == 0


@pytest.mark.parametrize(
    ("row", "error"),
    [
        (b"{", "not JSON"),
        (b"[1]", "not a JSON object"),
        (b'{"gpus": 1}', "config must be"),
        (b'{"config": 5, "gpus": 1}', "config must be"),
        (b'{"config": ""}', "gpus must be"),
        (b'{"config": "", "gpus": true}', "gpus must be"),
        (b'{"config": "", "gpus": -1}', "gpus must be"),
        (b'{"config": "", "gpus": 1, "mig": "9=1g.5gb"}', "names GPU 9"),
        (b'{"config": "", "gpus": 1, "mig": "0=half"}', "not a MIG profile"),
        (b'{"config": "", "gpus": 1, "mig": 5}', "mig must be"),
        (b'{"config": "", "gpus": 1, "env": []}', "env must be"),
        (b'{"config": "", "gpus": 1, "env": {"A": null}}', "env must be"),
        (b'{"config": "", "gpus": 1, "memory": "much"}', "memory must be"),
        (b'{"config": "", "gpus": 1, "product": 5}', "product must be"),
        (b"\xff\xfe", "not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_bad_rows_are_named_with_their_line(
    row: bytes, error: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rows"
    file.write_bytes(b'{"config": "", "gpus": 2}\n\n' + row + b'\n{"config": "", "gpus": 3}\n')
    assert main(["predict", str(file)]) == 1
    captured = capsys.readouterr()
    first, bad, last = (json.loads(line) for line in captured.out.splitlines())
    assert (first["capacity"], last["capacity"]) == ({"nvidia.com/gpu": 2}, {"nvidia.com/gpu": 3})
    assert bad["line"] == 3 and error in bad["error"]
    assert captured.err.startswith(f"{file}:3: ") and "Traceback" not in captured.err


def test_product_and_memory_reach_the_labels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "rows"
    row = {"config": "", "gpus": 2, "product": "NVIDIA H200", "memory": 143771, "env": {"PASS_DEVICE_SPECS": True}}
    file.write_text(json.dumps(row))
    assert main(["predict", str(file)]) == 0
    labels = json.loads(capsys.readouterr().out)["labels"]
    assert (labels["gpu.product"], labels["gpu.memory"]) == ("NVIDIA-H200", "143771")


def test_a_missing_file_is_wrong_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", "no-such-file"]) == 2
    assert "no-such-file" in capsys.readouterr().err


def test_start_up_imports_no_provider() -> None:
    code = (
        "import sys; from gpufleet.cli.main import main; main(['predict', '/dev/null']); "
        "print([m for m in sys.modules if m.split('.')[0] in ('pulumi', 'pulumi_kubernetes', 'pulumi_azure_native', "
        "'kubernetes', 'pydantic')])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
