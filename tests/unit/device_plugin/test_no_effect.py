"""Every part of a text that does nothing is named, with its place and what was probably meant."""

import pytest
from gpufleet.device_plugin import NodeLayout, predict
from gpufleet.device_plugin.options import by_path, keys_of

from tests.unit.device_plugin.cases import GPU4, sharing

NODE = NodeLayout(2)
GOOD = "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - name: nvidia.com/gpu\n      replicas: 4\n"


def found(text: str, **kwargs: object) -> list[tuple[str, str, int | None, str | None]]:
    return [(n.kind.value, n.path, n.line, n.closest) for n in predict(text, NODE, **kwargs).no_effect]  # type: ignore[arg-type]


def test_a_correct_text_has_no_finding() -> None:
    assert found(GOOD) == []


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("sharing:", "sharring:", ("unknown-key", "sharring", 2, "sharing")),
        ("timeSlicing:", "time_slicing:", ("unknown-key", "sharing.time_slicing", 3, "timeSlicing")),
        (
            "version: v1\n",
            "version: v1\nflags:\n  renameByDefault: true\n",
            ("misplaced-key", "flags.renameByDefault", 3, "sharing.timeSlicing.renameByDefault"),
        ),
        (
            "    resources:",
            "    renamebydefault: true\n    resources:",
            ("wrong-case", "sharing.timeSlicing.renamebydefault", 4, "renameByDefault"),
        ),
        (
            "      replicas: 4",
            "      replicas: 2\n      replicas: 4",
            ("duplicate-key", "sharing.timeSlicing.resources[0].replicas", 6, None),
        ),
        (
            "      replicas: 4",
            "      replicas: 4\n      rename: nvidia.com/half",
            ("ignored-field", "sharing.timeSlicing.resources[0].rename", 7, None),
        ),
        (
            "      replicas: 4",
            "      replicas: 4\n      devices: [0]",
            ("ignored-field", "sharing.timeSlicing.resources[0].devices", 7, None),
        ),
        (
            "nvidia.com/gpu",
            "nvidia.com/gpus",
            ("no-such-resource", "sharing.timeSlicing.resources[0].name", 5, "nvidia.com/gpu"),
        ),
        (
            "version: v1\n",
            "version: v1\nresources: {gpus: [{pattern: '*', name: big}]}\n",
            ("ignored-field", "resources.gpus", 2, None),
        ),
        ("      replicas: 4\n", "      replicas: 4\n---\nsharing: {}\n", ("second-document", "", 7, None)),
        (
            "      replicas: 4\n",
            "      replicas: 4\n    - {name: gpu, replicas: 2}\n",
            ("duplicate-row", "sharing.timeSlicing.resources[1]", 7, None),
        ),
    ],
)
def test_one_mistake_one_finding(old: str, new: str, expected: tuple[str, str, int | None, str | None]) -> None:
    assert found(GOOD.replace(old, new, 1)) == [expected]


def test_environment_beats_the_file_and_says_so() -> None:
    text = sharing(GPU4, flags="migStrategy: mixed, plugin: {deviceIDStrategy: index}")
    env = {"MIG_STRATEGY": "single", "DEVICE_ID_STRATEGY": "index"}
    prediction = predict(text, NODE, env=env)
    assert [(n.kind.value, n.path, n.line) for n in prediction.no_effect] == [("overridden", "flags.migStrategy", 2)]
    assert prediction.settings["flags.migStrategy"] == "single"
    assert "MIG_STRATEGY=single" in prediction.no_effect[0].reason


def test_flags_beat_the_environment() -> None:
    prediction = predict(GOOD, NODE, env={"MIG_STRATEGY": "single"}, flags={"--mig-strategy": "mixed"})
    assert prediction.settings["flags.migStrategy"] == "mixed"


def test_unknown_flag_and_bad_boolean_are_refused() -> None:
    assert predict(GOOD, NODE, flags={"config-map": "x"}).outcome == "reject-flags"
    assert predict(GOOD, NODE, flags={"--pass-device-specs": ""}).settings["flags.plugin.passDeviceSpecs"] is True
    refused = predict(GOOD, NODE, env={"FAIL_ON_INIT_ERROR": "yes"})
    assert (refused.outcome, refused.faults[0].path) == ("reject-flags", "FAIL_ON_INIT_ERROR")


def test_a_config_map_pasted_in_as_the_value_shares_nothing() -> None:
    text = "apiVersion: v1\nkind: ConfigMap\ndata:\n  any: |\n" + "".join(f"    {line}\n" for line in GOOD.splitlines())
    prediction = predict(text, NODE)
    assert prediction.capacity == {"nvidia.com/gpu": 2}
    assert {n.path for n in prediction.no_effect} == {"apiVersion", "kind", "data"}


def test_a_flag_in_the_wrong_map_loses_even_its_default() -> None:
    """sigs.k8s.io/yaml allocates the field it mistakes for the target; its default does not apply any more."""
    prediction = predict("flags: {plugin: {migStrategy: none}}", NODE)
    assert (prediction.outcome, prediction.faults[0].path) == ("reject-flags", "flags.migStrategy")
    assert "its default is lost" in prediction.no_effect[0].reason
    repaired = predict("flags: {migStrategy: none, plugin: {migStrategy: none}}", NODE)
    assert repaired.outcome == "accept"
    quiet = predict("flags: {gfd: {failOnInitError: true}}", NODE)
    assert quiet.settings["flags.failOnInitError"] is False


def test_all_faults_are_reported_together() -> None:
    text = sharing("{name: GPU, replicas: 1}, {replicas: '4'}, {name: gpu}")
    paths = [f.path for f in predict(text, NODE).faults]
    assert paths == [
        "sharing.timeSlicing.resources[0].name",
        "sharing.timeSlicing.resources[0].replicas",
        "sharing.timeSlicing.resources[1]",
        "sharing.timeSlicing.resources[1].replicas",
        "sharing.timeSlicing.resources[2]",
    ]


@pytest.mark.parametrize("level", ["", "flags", "flags.plugin", "flags.gfd", "sharing", "imex", "resources"])
@pytest.mark.parametrize("key", ["nonsense", "replicas", "x.y/z", "resource", "5", "élan"])
def test_a_foreign_key_is_found_at_every_struct_level(level: str, key: str) -> None:
    text = f"{key}: 1\n"
    for name in reversed(level.split(".") if level else []):
        text = f"{name}:\n" + "".join(f"  {line}\n" for line in text.splitlines())
    prediction = predict(text, NODE)
    assert len(prediction.no_effect) == 1
    assert prediction.no_effect[0].line == (len(level.split(".")) + 1 if level else 1)


def test_every_known_option_is_no_finding() -> None:
    values = {"bool": "true", "string": "x", "duration": "5s", "strings": "[envvar]", "ints": "[0]"}
    for path, option in by_path().items():
        value = option.allowed[0] if option.type == "string" and option.allowed else values[option.type]
        text = value
        for name in reversed(path.split(".")):
            text = f"{{{name}: {text}}}"
        prediction = predict(text, NODE)
        assert (prediction.outcome, prediction.no_effect) == ("accept", ()), path
    assert keys_of("flags.gfd") == ("oneshot", "noTimestamp", "sleepInterval", "outputFile", "machineTypeFile")


def test_the_warning_comes_before_flags_and_devices_are_checked() -> None:
    text = sharing("{name: gpu, replicas: 2, devices: [0]}", flags="plugin: {deviceIDStrategy: name}")
    prediction = predict(text, NODE)
    assert (prediction.outcome, prediction.ignored_fields_warned) == ("reject-flags", True)
    text = sharing("{name: gpu, replicas: 2, devices: [0]}", flags="migStrategy: single")
    prediction = predict(text, NodeLayout(2, mig={0: ("1g.5gb",)}))
    assert (prediction.outcome, prediction.ignored_fields_warned) == ("reject-devices", True)
