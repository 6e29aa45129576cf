"""From lines to series, table, plot and catalogue."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from gpufleet.bench import plot, report, smi
from gpufleet.bench.options import parse_counts, read_lines
from gpufleet.bench.table import as_yaml, to_tables
from gpufleet.cli.main import main
from gpufleet.measure.series import Series, collect, from_row

BASE = {"workload": "training", "backend": "driver", "method": "timeSlicing", "unit": "steps/s"}
STATE = {
    "name": "NVIDIA H200", "driver_version": "580.159.04", "memory.total": "143771 MiB", "compute_mode": "Default",
    "mig.mode.current": "Disabled", "time_slice": "Default", "uuid": "GPU-secret",
}  # fmt: skip


def point(n: int, repetition: int, rates: list[float], p99: float) -> dict[str, Any]:
    return {
        "kind": "point", **BASE, "n": n, "repetition": repetition, "total": sum(rates), "per_process": rates,
        "p50_ms": p99 / 2, "p99_ms": p99, "samples": 10,
    }  # fmt: skip


def lines() -> list[dict[str, Any]]:
    conditions = {
        "kind": "conditions", "date": "2026-11-30", "gpu_state": STATE, "kernel": "6.18-local.7",
        "machine": "x86_64", "cpus": 16, "python": "3.12.3", "root": True,
    }  # fmt: skip
    group = {"kind": "group", **BASE, "processes": 2, "device": {}, "memory_mib_per_process": 526.0, "sizes": {}}
    return [
        conditions, group,
        point(1, 0, [50.0], 20), point(1, 1, [48.0], 22), point(1, 2, [49.0], 21),
        point(2, 0, [22.0, 23.0], 45), point(2, 1, [21.0, 24.0], 46), point(2, 2, [22.5, 22.5], 47),
        point(3, 0, [15.0, 15.0, 15.0], 70),
    ]  # fmt: skip


def test_medians_and_extremes_over_the_repetitions() -> None:
    (one,) = collect(lines())
    assert [p.n for p in one.points] == [1, 2, 3]
    two = one.points[1]
    assert (two.total, two.least, two.most, two.p99_ms, two.samples) == (45.0, 22.0, 23.0, 46, 30)
    assert one.points[0].spread == pytest.approx(2 / 49)
    assert one.memory_mib == 526.0
    assert one.model is not None and one.model.efficiency == pytest.approx(0.92, abs=0.02)


def test_the_table_shows_gain_share_latency_and_spread() -> None:
    text = report.table(collect(lines()), lines())
    assert "NVIDIA H200, driver 580.159.04, 2026-11-30" in text
    row = next(line.split() for line in text.splitlines() if line.startswith("  2 "))
    assert row == ["2", "45.00", "0.92", "0.45", "0.47", "23.00", "46.00", "0.0%", "3"]


def test_a_series_survives_the_catalogue() -> None:
    tables = yaml.safe_load(as_yaml(to_tables(lines(), "h200", "H200")))
    (run,), (row,) = tables["h200_runs"], tables["h200_series"]
    assert (run["gpu"], run["driver"], run["time_slice"], run["as_of"]) == (
        "H200",
        "580.159.04",
        "Default",
        "2026-11-30",
    )
    assert run["host"] == "16 CPUs (x86_64), Linux 6.18"
    assert "GPU-secret" not in as_yaml(tables)
    back = from_row(row)
    (one,) = collect(lines())
    assert [(p.n, p.totals, p.least, p.p99_ms) for p in back.points] == [
        (p.n, p.totals, p.least, p.p99_ms) for p in one.points
    ]
    assert back.model is not None and one.model is not None
    assert back.model.efficiency == pytest.approx(one.model.efficiency, abs=1e-3)
    assert row["points"][1]["spread"] == 0.0 and row["points"][0]["spread"] == pytest.approx(0.041)


def test_each_conditions_line_starts_a_run() -> None:
    tables = to_tables([*lines(), *lines()], "h200", "H200")
    assert [row["id"] for row in tables["h200_runs"]] == ["h200-1", "h200-2"]
    assert {row["run"] for row in tables["h200_series"]} == {"h200-1", "h200-2"}


def test_without_matplotlib_the_plot_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(plot.importlib, "import_module", missing)
    with pytest.raises(plot.PlotError, match=r"gpufleet\[bench\]"):
        plot.draw(collect(lines()), tmp_path / "p.png", "title")


def test_a_plot_needs_the_point_of_one_process(tmp_path: Path) -> None:
    without = [line for line in lines() if line.get("n") != 1]
    with pytest.raises(plot.PlotError, match="one process"):
        plot.draw(collect(without), tmp_path / "p.png", "title")


@pytest.mark.skipif(
    importlib.util.find_spec("matplotlib") is None, reason="matplotlib (extra 'bench') is not installed"
)
def test_the_plot_is_a_png(tmp_path: Path) -> None:
    plot.draw(collect(lines()), tmp_path / "p.png", "title")
    assert (tmp_path / "p.png").read_bytes().startswith(b"\x89PNG")


def test_the_time_slice_is_read_from_nvidia_smis_table() -> None:
    text = (
        "+-------------------------------------+\n| GPU compute policies:               |\n"
        "| GPU     Name           Value        |\n|=====================================|\n"
        "|   0   Timeslice       Default       |\n+-------------------------------------+\n"
    )
    assert smi.parse_time_slice(text) == "Default"
    assert smi.parse_time_slice(text.replace("Default", "Medium ")) == "Medium"
    assert smi.parse_time_slice("no such policy") is None


def test_counts_are_ranges_and_lists() -> None:
    assert parse_counts("1-3,8") == (1, 2, 3, 8)
    for text in ("0", "65", "x", "3-1"):
        with pytest.raises(ValueError):
            parse_counts(text)


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"\xff\n")
    with pytest.raises(ValueError, match="x: not UTF-8"):
        read_lines([tmp_path / "x"])


def test_lines_that_are_none_are_named(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text('{"kind": "point"}\nnot json\n')
    with pytest.raises(ValueError, match=r"x\.jsonl:2: not JSON"):
        read_lines([path])
    path.write_text("[1]\n")
    with pytest.raises(ValueError, match="not a line of a bench"):
        read_lines([path])


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("point", {"n": "2"}),
        ("point", {"n": 5}),  # three rates of five processes
        ("point", {"total": float("nan")}),
        ("point", {"per_process": []}),
        ("point", {"workload": "mine"}),
        ("point", {"workload": ["training"]}),
        ("point", {"p50_ms": "fast"}),
        ("point", {"samples": None}),
        ("group", {"processes": None}),
        ("group", {"sizes": {"layers": "eight"}}),
        ("group", {"device": None}),
        ("conditions", {"gpu_state": None}),
    ],
)
def test_lines_of_the_wrong_shape_are_named(
    kind: str, change: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = lines()
    at = max(i for i, row in enumerate(rows) if row["kind"] == kind)
    rows[at] = {**rows[at], **change}
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    assert main(["bench", "--from", str(path)]) == 2
    assert f"x.jsonl:{at + 1}: this line lacks what a bench writes into it" in capsys.readouterr().err


def test_conditions_that_were_cut_are_unknown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in [{"kind": "conditions"}, *lines()[1:]]))
    assert main(["bench", "--from", str(path)]) == 0
    assert "GPU, driver unknown, no date" in capsys.readouterr().out
    assert main(["bench", "--from", str(path), "--catalogue", "mine=T4"]) == 0
    assert "? CPUs (unknown), Linux unknown" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("mine=H2000", "no GPU 'H2000' in the catalogue; did you mean H200?"),
        ("a b=H200", "'a b' is no name of a table"),
        ("mine=T4", "no line of conditions"),
    ],
)
def test_tables_that_the_catalogue_would_not_take(
    words: str, why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in lines()[1:]))
    assert main(["bench", "--from", str(path), "--catalogue", words]) == 2
    assert why in capsys.readouterr().err


def test_the_command_reports_earlier_lines_and_prints_catalogue_tables(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines()))
    assert main(["bench", "--from", str(path)]) == 0
    assert "training driver timeSlicing" in capsys.readouterr().out
    assert main(["bench", "--from", str(path), "--catalogue", "h200=H200"]) == 0
    assert set(yaml.safe_load(capsys.readouterr().out)) == {"h200_runs", "h200_series"}
    assert main(["bench", "--catalogue", "h200=H200"]) == 2


def test_the_command_shows_the_committed_measurements(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", "--from-catalogue", "h200"]) == 0
    assert "training torch timeSlicing" in capsys.readouterr().out
    assert main(["bench", "--from-catalogue", "H2000"]) == 2
    assert "there are some of: H200" in capsys.readouterr().err


def test_a_name_says_workload_backend_method_and_setting() -> None:
    assert Series("copy", "driver", "mig", "1g.18gb", "copies/s", []).name == "copy driver mig 1g.18gb"


@pytest.mark.parametrize("text", ["0", "8-1", "x", "1,,2", "", "65", "1-65", "-1", "1-999999999", "1-2-3", "1 2"])
def test_numbers_of_processes_that_mean_nothing(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", f"--processes={text}"]) == 2
    assert capsys.readouterr().err == (
        f"gpufleet bench: --processes '{text}': give numbers from 1 to 64 such as 1-8 or 1,2,4,8\n"
    )


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--workload", "command", "--step-pattern", "(", "--", "x"], "is no regular expression: missing )"),
        (["--step-pattern", "x"], "--step-pattern is for the command"),
        (["--mig", "1g.5gb", "--allow-settings"], "--mig 1g.5gb needs method mig"),
        (["--method", "mig", "--allow-settings"], "method 'mig' needs --mig PROFILE"),
        (["--window", "nan"], "must be above 0"),
        (["--time-limit", "-1"], "--time-limit must be above 0"),
        (["--from", "/nowhere"], "/nowhere: No such file or directory"),
        (["--from", "/dev/null"], "/dev/null: no line in it"),
        (["--from", "/nowhere", "--catalogue", "a=B"], "/nowhere: No such file or directory"),
    ],
)
def test_wrong_use_is_said_before_anything_runs(words: list[str], why: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bench", *words]) == 2
    out, errors = capsys.readouterr()
    assert out == "" and why in errors and errors.count("\n") == 1
