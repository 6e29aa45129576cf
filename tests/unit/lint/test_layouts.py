"""MIG layouts: files of mig-parted, and the ConfigMaps that the operator's MIG manager reads."""

import textwrap

import pytest
from gpufleet.lint import Options, lint
from gpufleet.lint.node import parse_node
from gpufleet.lint.whole_cluster import on_all

from tests.unit.lint.told import codes, config_map, d, one, told

HALF = d("""
    version: v1
    mig-configs:
      half:
      - devices: all
        mig-enabled: true
        mig-devices: {3g.40gb: 2}
""")
VALUES = "migManager: {config: {name: parts}}\ntoolkit: {enabled: false}\n"


def layouts(text: str = HALF, key: str = "config.yaml") -> str:
    return config_map(text, key, "parts")


def node(layout: str) -> str:
    return f"apiVersion: v1\nkind: Node\nmetadata: {{name: n, labels: {{nvidia.com/mig.config: {layout}}}}}\n"


def test_the_key_is_config_yaml_rp_21() -> None:
    a30 = d("""
        version: v1
        mig-configs:
          node1:
          - {devices: [1], mig-enabled: true, mig-devices: {"1g.6gb": 4}}
    """)
    values = "mig: {strategy: mixed}\nmigManager:\n  config: {name: custom-mig, default: node1}\n"
    found = {x.code: x for x in told(config_map(a30, "mig.yaml", "custom-mig", "gpu-operator"), values, gpus="2xA30")}
    # GF574: the ClusterPolicy takes no other default than all-disabled.
    assert {code: x.value for code, x in found.items()} == {"GF650": "mig.yaml", "GF652": "node1", "GF574": "node1"}
    assert found["GF650"].message == "There is no key config.yaml in the ConfigMap custom-mig."
    good = config_map(a30, "config.yaml", "custom-mig", "gpu-operator")
    assert codes(good, values.replace(", default: node1", ""), gpus="2xA30") == []


def test_a_layout_that_no_card_takes_rp_22() -> None:
    found = one("GF312", layouts(HALF.replace("3g.40gb: 2", "3g.40gb: 3")), gpus="8xA100-SXM4-80GB")
    assert found.path == 'data["config.yaml"].mig-configs.half[0].mig-devices["3g.40gb"]'
    assert (found.line, found.value) == (13, "3 x 3g.40gb")
    assert "possible here: 2" in found.reason
    assert codes(layouts(), gpus="8xA100-SXM4-80GB") == []
    assert codes(layouts(), gpus="8xA30") == ["GF311"]
    assert codes(HALF.replace("3g.40gb: 2", "3g.40gb: 1, 4g.40gb: 2"), gpus="1xA100-SXM4-80GB") == ["GF312"]
    together = HALF.replace("3g.40gb: 2", "3g.40gb: 2, 1g.10gb: 2")
    assert codes(together, gpus="1xA100-SXM4-80GB") == ["GF312"]
    assert codes(HALF, gpus="2xT4") == []  # `all` passes over GPUs without MIG
    assert codes(HALF.replace("all", "[0]"), gpus="2xT4") == ["GF310"]
    assert codes(HALF, gpus="2") == []  # nobody says which GPU
    filtered = HALF.replace("devices: all", "devices: all\n    device-filter: ['0x20B010DE']")
    assert codes(filtered, gpus="2xA30") == []


def test_layouts_of_other_gpus_side_by_side() -> None:
    many = HALF + "  small: [{devices: all, mig-enabled: true, mig-devices: {1g.5gb: 7}}]\n"
    found = one("GF655", layouts(many), gpus="1xA100-SXM4-80GB")
    assert found.value == "small"
    assert codes(layouts(many), node("small"), gpus="1xA100-SXM4-80GB") == ["GF311"]  # selected
    wrong = many.replace("1g.5gb: 7", "3g.40gb: 3")  # on no GPU
    assert codes(layouts(wrong), gpus="1xA100-SXM4-80GB") == ["GF312"]
    other = many.replace("1g.5gb: 7", "1g.35gb+me: 1")  # the catalogue knows no GPU with it
    assert codes(layouts(other), gpus="1xA100-SXM4-80GB") == ["GF655"]


def test_numbers_of_gpus() -> None:
    text = HALF.replace("all", "[0, 7]")
    assert one("GF656", text, gpus="4xA100-SXM4-80GB").value == "7"
    assert codes(text, gpus="8xA100-SXM4-80GB") == []
    assert codes(text, gpus="7xA100-SXM4-80GB") == ["GF656"]


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("version: v1\n", "", "version is missing"),
        ("version: v1", "version: v2", "version is v1, not v2"),
        ("mig-enabled: true", "mig-enabled: 'true'", "true or false"),
        ("    mig-enabled: true\n", "", "mig-enabled is missing"),
        ("mig-enabled: true", "mig-enable: true", "did you mean mig-enabled?"),
        ("devices: all", "devices: 0", "[0, 1]"),
        ("devices: all", "devices: all\n    device-filter: 0x20B010DE", "quotes"),
        ("mig-devices: {3g.40gb: 2}", "mig-devices: {3g-40gb: 2}", "form of a profile"),
        ("mig-devices: {3g.40gb: 2}", "mig-devices: {3g.40gb: '2'}", "whole number"),
        ("mig-devices: {3g.40gb: 2}", "mig-devices: {3g.40gb: 0}", "all numbers are 0"),
        ("mig-devices: {3g.40gb: 2}", "mig-devices: {3g.40gb: -2}", "whole number"),
        ("mig-devices: {3g.40gb: 2}", "mig-devices:", "mig-devices is missing"),
        ("mig-enabled: true", "mig-enabled: false", "mig-enabled is false"),
        ("mig-configs:", "other: 1\nmig-configs:", "no key other"),
    ],
)
def test_what_mig_parted_refuses_rp_21(old: str, new: str, says: str) -> None:
    assert says in one("GF653", layouts(HALF.replace(old, new))).message


@pytest.mark.parametrize(
    "row",
    [
        "{devices: all, mig-enabled: false}",
        "{devices: all, mig-enabled: true, mig-devices: {}}",
        "{devices: [0, 1], mig-enabled: true, mig-devices: {1c.2g.20gb: 2}}",
        "{device-filter: '0x20B010DE', devices: all, mig-enabled: true, mig-devices: {1g.10gb+me: 1}}",
        "{devices: all, mig-enabled: true, mig-devices: {1g.24gb+me.all: 1, 1g.24gb-me: 2}}",
    ],
)
def test_what_mig_parted_takes(row: str) -> None:
    assert codes(layouts(f"version: v1\nmig-configs: {{x: [{row}]}}\n")) == []


def test_names_of_layouts() -> None:
    assert one("GF654", layouts(HALF.replace("half:", "1g.10gb+me:"))).value == "1g.10gb+me"
    assert codes(HALF.replace("half:", "1g.10gb+me:")) == []  # a file that no label selects from
    assert one("GF651", layouts(), VALUES, node("halves")).closest == "half"
    assert codes(layouts(), VALUES, node("half")) == []
    assert codes(layouts(), node("halves")) == []  # the operator makes layouts of its own


def test_the_config_map_is_there() -> None:
    assert one("GF530", layouts(), VALUES.replace("parts", "part")).closest == "parts"
    assert codes(layouts(), VALUES.replace("parts", "default-mig-parted-config")) == []
    policy = "apiVersion: nvidia.com/v1\nkind: ClusterPolicy\nmetadata: {name: c}\n"
    policy += "spec: {migManager: {config: {name: parts}}, daemonsets: {tolerations: [{operator: Exists}]}}\n"
    assert "GF650" in codes(layouts(key="mig.yaml"), policy)


def test_layouts_in_values() -> None:
    data = "migManager:\n  config:\n    create: true\n    name: parts\n    data:\n      KEY: |\n"
    text = data + textwrap.indent(HALF.replace("mig-enabled", "mig-enable"), " " * 8)
    found = one("GF653", text.replace("KEY", "config.yaml"))
    assert found.path == 'migManager.config.data["config.yaml"].mig-configs.half[0].mig-enable'
    assert "mig-enable" in text.splitlines()[(found.line or 0) - 1]
    assert "GF650" in codes(text.replace("KEY", "mig.yaml"))
    assert codes("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: 'mig-configs: ['\n") == ["GF501"]


def test_a_layout_is_for_the_pools_that_take_it() -> None:
    def on(*pools: str, text: str = HALF) -> list[str]:
        reports = [lint([("f.yaml", text)], Options(node=parse_node(gpus))) for gpus in pools]
        return [x.code for x in on_all(reports)]

    assert on("8xA100-SXM4-80GB", "4xA30") == []  # the first takes it
    assert on("4xA30", "4xA30") == ["GF311"]
    assert on("4xA30", "2xT4") == ["GF311"]  # GPUs without MIG do not count
    many = HALF.replace("3g.40gb: 2", "3g.40gb: 3")
    assert on("8xA100-SXM4-80GB", "4xA30", text=many) == ["GF312"]  # one has too few, the other none
    assert on("8xA100-SXM4-80GB", "2xA100-SXM4-80GB", text=HALF.replace("all", "[7]")) == []
