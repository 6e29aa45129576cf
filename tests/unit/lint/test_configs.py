"""Plugin configurations, alone and inside ConfigMaps: what is refused, what does nothing, what reads otherwise."""

import pytest

from tests.unit.lint.told import GPU4, codes, config_map, one, told


def test_a_correct_configuration_is_quiet() -> None:
    assert told(GPU4) == []
    assert told(config_map(GPU4)) == []


@pytest.mark.parametrize(
    ("old", "new", "code", "line", "closest"),
    [
        ("sharing:", "sharring:", "GF513", 2, "sharing"),
        ("timeSlicing:", "time_slicing:", "GF513", 3, "timeSlicing"),
        ("failRequestsGreaterThanOne", "failrequestsgreaterthanone", "GF515", 4, "failRequestsGreaterThanOne"),
        ("version: v1\n", "version: v1\nflags: {failRequestsGreaterThanOne: true}\n", "GF514", 2, None),
        ("replicas: 4", "replicas: 2\n      replicas: 4", "GF516", 7, None),
        ("replicas: 4", "replicas: 4\n      devices: [0]", "GF517", 8, None),
        ("replicas: 4", "replicas: 4\n      rename: nvidia.com/half", "GF517", 8, None),
        ("nvidia.com/gpu", "nvidia.com/gpu.shared", "GF518", 6, "nvidia.com/gpu"),
        ("replicas: 4", "replicas: 1", "GF510", 7, None),
        ("replicas: 4", 'replicas: "4"', "GF510", 7, None),
        ("replicas: 4", "replica: 4", "GF510", 6, None),
        ("replicas: 4", "replicas: 010", "GF523", 7, "8"),
        ("replicas: 4", "replicas: 0x10", "GF523", 7, "16"),
        ("replicas: 4", "replicas: 1_0", "GF523", 7, "10"),
        ("replicas: 4", "replicas: 08", "GF523", 7, "8"),
        ("replicas: 4", "replicas: 64", "GF526", 7, None),
        ("version: v1", "version: v2", "GF510", 1, "v1"),
        ("version: v1\n", "version: v1\nflags: {migStrategy: Mixed}\n", "GF511", 2, "mixed"),
        ("version: v1\n", "version: v1\nflags: {plugin: {deviceListStrategy: 'envvar,cdi-cri'}}\n", "GF511", 2, None),
        ("replicas: 4\n", "replicas: 4\n---\nversion: v1\n", "GF521", 8, None),
        ("replicas: 4\n", "replicas: 4\n    - {name: gpu, replicas: 2}\n", "GF522", 8, None),
        ("    failRequestsGreaterThanOne: true\n", "", "GF527", 3, None),
    ],
)
def test_each_mistake_is_told_with_its_line(old: str, new: str, code: str, line: int, closest: str | None) -> None:
    text = GPU4.replace(old, new, 1)
    found = one(code, text)
    assert found.line == line
    assert closest is None or found.closest == closest
    inside = one(code, config_map(text)) if code != "GF521" else found
    assert inside.line == line + (7 if code != "GF521" else 0)


def test_mps_and_time_slicing_together() -> None:
    text = GPU4 + "  mps:\n    resources:\n    - {name: gpu, replicas: 2}\nflags: {mpsRoot: /m}\n"
    assert codes(text) == ["GF519"]


@pytest.mark.parametrize("replicas", [48, 49])
def test_mps_client_limit(replicas: int) -> None:
    text = f"flags: {{mpsRoot: /m}}\nsharing: {{mps: {{resources: [{{name: gpu, replicas: {replicas}}}]}}}}\n"
    assert codes(text, gpus="2xA100-80GB") == (["GF525"] if replicas > 48 else [])
    assert "16" in one("GF525", text, gpus="1xV100-32GB").remedy


def test_mps_without_root_and_with_mig() -> None:
    text = "sharing: {mps: {resources: [{name: gpu, replicas: 2}]}}\n"
    assert one("GF511", text).path == "flags.mpsRoot"
    assert codes(text, env={"MPS_ROOT": "/m"}) == []
    assert codes(text, env={"MPS_ROOT": "/m"}, gpus="2xA100-80GB", mig="0=1g.10gb") == ["GF524"]


def test_a_config_map_inside_a_config_map() -> None:
    found = one("GF528", config_map(config_map(GPU4)))
    assert (found.value, found.line) == ("ConfigMap", 8)


def test_strategy_of_the_environment_beats_the_file() -> None:
    text = GPU4.replace("version: v1\n", "version: v1\nflags:\n  migStrategy: mixed\n")
    found = one("GF520", text, env={"MIG_STRATEGY": "single"})
    assert (found.line, found.path) == (3, "flags.migStrategy")
    assert codes(text) == []


def test_layouts_that_the_strategy_does_not_take() -> None:
    assert codes(GPU4, gpus="2xA100-80GB", mig="0=1g.10gb", env={"MIG_STRATEGY": "single"}) == ["GF512"]
    assert codes(GPU4, gpus="2xA100-80GB", mig="7x1g.10gb", env={"MIG_STRATEGY": "single"}) == []


def test_mig_names_need_the_strategy_mixed() -> None:
    text = GPU4.replace("nvidia.com/gpu", "nvidia.com/mig-1g.10gb")
    mixed = text.replace("version: v1\n", "version: v1\nflags: {migStrategy: mixed}\n")
    assert codes(text) == ["GF518"]
    assert codes(mixed) == []  # no node is described: it may have such instances
    assert codes(mixed, gpus="1xA100-80GB") == ["GF518"]
    assert codes(mixed, gpus="1xA100-80GB", mig="7x1g.10gb") == []


def test_broken_texts() -> None:
    tabs = one("GF501", "version: v1\nsharing:\n\ttimeSlicing:\n")
    assert tabs.line == 3
    assert codes("{{- if .Values.x }}\nversion: v1\n{{- end }}\n") == ["GF503"]
    assert (
        one("GF510", config_map("version: v1\nsharing:\n\ttimeSlicing:\n").replace("    \ttime", "    \ttime")).line
        == 10
    )


def test_unknown_documents_are_only_noted() -> None:
    assert codes("a: 1\n") == ["GF502"]
    assert codes("apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n") == []
    assert codes("version: v1\nmig-configs: {all-disabled: [{devices: all, mig-enabled: false}]}\n") == []


def test_a_list_from_kubectl_get() -> None:
    text = config_map(GPU4.replace("sharing:", "sharring:"))
    body = "".join(f"  {line}\n" if line else "\n" for line in text.splitlines())
    listed = "apiVersion: v1\nkind: List\nitems:\n-" + body[1:]
    found = one("GF513", listed)
    assert (found.line, found.path) == (12, "items[0].data.any.sharring")


def test_a_configuration_beside_kubernetes_objects() -> None:
    bad = GPU4.replace("sharing:", "sharring:")
    secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n"
    assert (one("GF513", bad + "---\n" + secret).line, codes(bad + "---\n" + secret)) == (2, ["GF513"])
    assert (one("GF513", secret + "---\n" + bad).line, codes(secret + "---\n" + bad)) == (6, ["GF513"])


def test_two_documents_have_lines_of_the_file() -> None:
    text = config_map(GPU4) + "---\n" + config_map(GPU4.replace("nvidia.com/gpu", "nvidia.com/gpus"), name="other")
    assert text.splitlines()[one("GF518", text).line or 0].strip() == "replicas: 4"
    assert one("GF518", text).line == 28


def test_a_key_is_sent_only_where_its_value_fits() -> None:
    found = one("GF513", "version: v1\nsharing: {mig: {strategy: single}}\n")
    assert found.closest is None  # resources.mig is a list
    assert one("GF514", "version: v1\nsharing: {gpus: [{pattern: a, name: b}]}\n").closest == "resources.gpus"


def test_names_of_mig_profiles_belong_to_the_strategy_mixed() -> None:
    found = one("GF518", GPU4.replace("nvidia.com/gpu", "nvidia.com/mig-1g.5gb"))
    assert found.closest is None and "migStrategy mixed alone" in found.reason


def test_a_refused_device_list_is_one_finding() -> None:
    found = one("GF510", GPU4 + "      devices: {names: [Tesla T4]}\n")
    assert "all are shared alike" in found.message and codes(GPU4 + "      devices: none\n") == ["GF510"]
