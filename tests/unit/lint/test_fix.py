"""Corrected text: only what is certain, everything else as it was."""

from pathlib import Path

import pytest

from infra.cli.main import main
from infra.lint.fix import fix_config
from infra.plan.device_plugin import NodeLayout, predict
from tests.unit.lint.told import GPU4, config_map, d

NODE = NodeLayout(2)


def fixed(text: str) -> str:
    return fix_config(text, NODE, {}, {}).text


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (GPU4.replace("sharing:", "sharring:  # mine"), GPU4.replace("sharing:", "sharing:  # mine")),
        (GPU4.replace("timeSlicing", "time_slicing"), GPU4),
        (GPU4.replace("timeSlicing", '"time-slicing"'), GPU4.replace("timeSlicing", '"timeSlicing"')),
        (GPU4.replace("    resources", "    Resources"), GPU4),
        (GPU4.replace("replicas", "replica"), GPU4),
        (GPU4.replace("replicas: 4", "replicas: '4'  # four"), GPU4.replace("replicas: 4", "replicas: 4  # four")),
        (GPU4.replace("One: true", 'One: "true"'), GPU4),
        (GPU4.replace("nvidia.com/gpu", '"nvidia.com/gpus"'), GPU4.replace("nvidia.com/gpu", '"nvidia.com/gpu"')),
        (GPU4.replace("replicas: 4", "replicas: 4\n      devices:\n      - 0\n      - 1"), GPU4),
        (GPU4.replace("- name: nvidia.com/gpu", "- rename: nvidia.com/x\n      name: nvidia.com/gpu"), GPU4),
        (GPU4 + "    - name: gpu\n      replicas: 2\n# end\n", GPU4 + "# end\n"),
        ("version: v1\nresources: {gpus: [{pattern: a, name: b}]}  # x\n", "version: v1\nresources: {}  # x\n"),
    ],
)
def test_one_correction(before: str, after: str) -> None:
    assert fixed(before) == after


def test_a_misplaced_key_moves_with_its_comment() -> None:
    before = d("""
        version: v1  # first
        flags:
          failRequestsGreaterThanOne: true  # refuse two
          mpsRoot: /m
        sharing:
          timeSlicing:
            # the list
            resources:
            - name: nvidia.com/gpu
              replicas: 4
    """)
    after = d("""
        version: v1  # first
        flags:
          mpsRoot: /m
        sharing:
          timeSlicing:
            # the list
            failRequestsGreaterThanOne: true  # refuse two
            resources:
            - name: nvidia.com/gpu
              replicas: 4
    """)
    assert fixed(before) == after


def test_an_emptied_map_goes() -> None:
    before = "version: v1\nflags:\n  renameByDefault: true\n" + GPU4.removeprefix("version: v1\n")
    assert fixed(before) == GPU4.replace("    failR", "    renameByDefault: true\n    failR")


def test_flow_style() -> None:
    before = "{version: v1, sharring: {timeSlicing: {resources: [{name: gpu, replicas: '4', devices: [0]}]}}}"
    assert fixed(before) == "{version: v1, sharing: {timeSlicing: {resources: [{name: gpu, replicas: 4}]}}}"


def test_sharing_by_one_is_no_sharing() -> None:
    assert fixed(GPU4.replace("replicas: 4", "replicas: 1")) == "version: v1\n"
    two = GPU4 + "    - name: nvidia.com/mig-1g.5gb\n      replicas: 1\nflags: {migStrategy: mixed}\n"
    node = NodeLayout(2, mig={1: ("1g.5gb",)})
    assert fix_config(two, node, {}, {}).text == GPU4 + "flags: {migStrategy: mixed}\n"


def test_many_mistakes_at_once_end_in_what_was_meant() -> None:
    before = d("""
        # shares for notebooks
        version: v1
        flags:
          renameByDefault: true   # wrong place
        sharring:   # typo
          time_slicing:
            Resources:
            - name: nvidia.com/gpus
              replica: "4"
              devices: [0]
    """)
    after = fixed(before)
    answer = predict(after, NODE)
    assert (answer.capacity, answer.no_effect) == ({"nvidia.com/gpu.shared": 8}, ())
    assert after.startswith("# shares for notebooks\nversion: v1\n") and "# typo" in after


@pytest.mark.parametrize(
    "text",
    [
        GPU4,
        "",
        "a: [",
        "version: v3\n",
        GPU4.replace("replicas: 4", "replicas: 010"),  # eight or ten: only a person knows
        GPU4.replace("sharing", "something"),
        GPU4.replace("replicas: 4", "replicas: 4.5"),
        GPU4 + "---\nversion: v1\n",
    ],
)
def test_what_is_not_certain_stays(text: str) -> None:
    assert fixed(text) == text


def test_inside_a_config_map_only_the_block_changes(tmp_path: Path) -> None:
    bad = GPU4.replace("timeSlicing", "time_slicing").replace("4\n", '"4"   # quoted\n')
    head = "# header\n"
    tail = "  other: |\n    untouched: 010\n"
    file = tmp_path / "cm.yaml"
    file.write_bytes((head + config_map(bad) + tail).encode())
    assert main(["lint", "--fix", str(file)]) == 0
    want = head + config_map(GPU4.replace("replicas: 4", "replicas: 4   # quoted")) + tail
    assert file.read_bytes().decode() == want


def test_line_ends_of_windows_stay(tmp_path: Path) -> None:
    file = tmp_path / "cm.yaml"
    bad = config_map(GPU4.replace("timeSlicing", "time_slicing"))
    file.write_bytes(bad.replace("\n", "\r\n").encode())
    assert main(["lint", "--fix", str(file)]) == 0
    assert file.read_bytes().decode() == config_map(GPU4).replace("\n", "\r\n")


def test_standard_input_goes_to_standard_output(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import io
    import sys

    bad = GPU4.replace("timeSlicing", "time_slicing")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(bad.encode())))
    assert main(["lint", "--fix", "-"]) == 0
    captured = capsys.readouterr()
    assert captured.out == GPU4
    assert "key renamed to timeSlicing" in captured.err


def test_a_correct_file_is_not_written(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(GPU4)
    file.chmod(0o400)
    before = file.stat().st_mtime_ns
    assert main(["lint", "--fix", str(file)]) == 0
    assert file.stat().st_mtime_ns == before
