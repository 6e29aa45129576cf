"""Corrected text: only what is certain, everything else as it was."""

import json
import textwrap
from pathlib import Path

import pytest
from gpufleet.cli.main import main
from gpufleet.device_plugin import NodeLayout, predict
from gpufleet.lint.fix import Reading, fix_config

from tests.unit.lint.told import GPU4, config_map, d

NODE = NodeLayout(2)


def fixed(text: str) -> str:
    return fix_config(text, [Reading(NODE)]).text


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
    assert fix_config(two, [Reading(node)]).text == GPU4 + "flags: {migStrategy: mixed}\n"


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
        GPU4.replace("nvidia.com/gpu", "nvidia.com/mig-1g.5gb"),  # the name is right, the strategy is not set
        GPU4.replace("nvidia.com/gpu", "nvidia.com/a100"),
        GPU4.replace("nvidia.com/gpu", "nvidia.com/gpu.shared"),
        GPU4 + "      devices: {names: [Tesla T4]}\n",  # refused; without it other GPUs are shared as well
    ],
)
def test_what_is_not_certain_stays(text: str) -> None:
    assert fixed(text) == text


def test_names_of_instances_follow_the_strategy() -> None:
    single = GPU4.replace("nvidia.com/gpu", "nvidia.com/mig-1g.5gb") + "flags: {migStrategy: single}\n"
    node = NodeLayout(1, mig={0: ("1g.5gb",)})
    assert fix_config(single, [Reading(node)]).text == GPU4 + "flags: {migStrategy: single}\n"
    other = single.replace("1g.5gb", "2g.10gb").replace("single", "mixed")
    assert fix_config(other, [Reading(node)]).text == other  # another node's profile


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


@pytest.mark.parametrize(
    ("written", "plain"),
    [("0x10", "16"), ("0b100", "4"), ("1_0", "10"), ("0o17", "15"), ("+4", "+4"), ("007", "7"), ("09", "9")],
)
def test_numbers_get_plain_digits_where_nobody_can_read_them_otherwise(written: str, plain: str) -> None:
    before, after = (GPU4.replace("replicas: 4", f"replicas: {n}  # why") for n in (written, plain))
    assert fixed(before) == after
    assert predict(after, NODE).capacity == predict(before, NODE).capacity
    assert fixed(after) == after


def test_a_whole_object_in_place_of_a_configuration_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "values.yaml"
    inner = config_map(GPU4.replace("timeSlicing", "time_slicing"))
    file.write_text("config:\n  map:\n    default: |\n" + textwrap.indent(inner, "      ") + "gfd: {enabled: true}\n")
    before = file.read_text()
    assert main(["lint", "--fix", str(file)]) == 1  # it stays an error
    assert file.read_text() == before


FLOW = "{version: v1, sharing: {KEY: {failRequestsGreaterThanOne: true, resources: [{name: gpu, replicas: 4}]}}}"


@pytest.mark.parametrize(
    ("written", "becomes"),
    [
        (json.dumps(GPU4.replace("timeSlicing", "time_slicing")), GPU4),
        ("'" + FLOW.replace("KEY", "time_slicing") + "'", FLOW.replace("KEY", "timeSlicing")),
    ],
)
def test_texts_in_quotes(written: str, becomes: str, tmp_path: Path) -> None:
    head = "# first\n---\nkind: Pod\napiVersion: v1\n---\napiVersion: v1\nkind: List\nitems:\n- # mine\n"
    one = "  apiVersion: v1\n  kind: ConfigMap\n  data:\n    any: {}  # text\n    other: {}\n  metadata: {{name: ts}}\n"
    file = tmp_path / "list.yaml"
    file.write_text(head + one.format(written, written))
    assert main(["lint", "--fix", str(file)]) == 0
    assert file.read_text() == head + one.format(json.dumps(becomes), json.dumps(becomes))


def test_json_as_kubectl_prints_it(tmp_path: Path) -> None:
    data = {
        "a": GPU4.replace("timeSlicing", "time_slicing"),
        "b": GPU4,
        "c": GPU4.replace("replicas: 4", "replicas: '4'"),
    }
    file = tmp_path / "cm.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "ts"}, "data": data}))
    assert main(["lint", "--fix", str(file)]) == 0
    assert json.loads(file.read_text())["data"] == dict.fromkeys("abc", GPU4)


def test_on_several_pools_only_what_is_wrong_on_all_of_them() -> None:
    mixed = "flags: {migStrategy: mixed}\n"
    text = GPU4.replace("sharing:", "sharring:").replace("nvidia.com/gpu", "nvidia.com/mig-1g.5gb") + mixed
    whole, cut = Reading(NodeLayout(1)), Reading(NodeLayout(1, mig={0: ("1g.5gb",)}))
    right = text.replace("sharring:", "sharing:")
    assert fix_config(text, [whole]).text == right.replace("mig-1g.5gb", "gpu")  # all that such a node has
    for order in ([whole, cut], [cut, whole]):
        assert fix_config(text, order).text == right


def test_a_comment_stays_where_a_flow_map_has_no_room_for_it() -> None:
    rows = "resources: [{name: gpu, replicas: 4}]}}"
    before = f"version: v1\nflags:\n  renameByDefault: true  # why\nsharing: {{timeSlicing: {{{rows}\n"
    assert fixed(before) == f"version: v1\n# why\nsharing: {{timeSlicing: {{renameByDefault: true, {rows}\n"
    windows = before.replace("flags:\n  ", "").replace("\n", "\r\n")
    want = f"version: v1\n# why\nsharing: {{timeSlicing: {{renameByDefault: true, {rows}\n".replace("\n", "\r\n")
    assert fixed(windows) == want
