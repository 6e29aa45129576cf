"""Names, namespaces, keys, defaults, labels: which configuration is used where."""

from tests.unit.lint.told import GPU4, codes, config_map, d, one, told

OPERATOR = "devicePlugin:\n  config:\n    name: {name}\n    default: {default}\n"
NODE = "apiVersion: v1\nkind: Node\nmetadata:\n  name: n\n  labels:\n    nvidia.com/device-plugin.config: {label}\n"


def test_operator_values_and_config_map_that_agree() -> None:
    assert codes(OPERATOR.format(name="ts", default="any"), config_map(GPU4)) == ["GF556"]


def test_the_name_must_exist_among_what_is_given() -> None:
    found = one("GF530", OPERATOR.format(name="tss", default="any"), config_map(GPU4))
    assert (found.closest, found.line) == ("ts", 3)
    assert codes(OPERATOR.format(name="tss", default="any")) == []  # no ConfigMap was given: nothing to compare


def test_the_default_must_be_a_key() -> None:
    found = one("GF532", OPERATOR.format(name="ts", default="anny"), config_map(GPU4))
    assert (found.closest, found.allowed) == ("any", ("any",))


def test_the_text_of_a_configuration_is_no_default() -> None:
    values = d("""
        devicePlugin:
          config:
            name: ts
            default: |
              version: v1
              sharing: {}
            data:
              any: |
                version: v1
    """)
    assert "not the text of a configuration" in one("GF532", values).reason


def test_label_of_a_node_names_a_key() -> None:
    texts = (config_map(GPU4, key="t4"), NODE.format(label="a100"))
    found = one("GF532", *texts)
    assert (found.value, found.allowed) == ("a100", ("t4",))
    assert "GF532" not in codes(config_map(GPU4, key="t4"), NODE.format(label="t4"))


def test_selector_of_a_pod_on_the_label_names_a_key() -> None:
    pod = d("""
        apiVersion: v1
        kind: Pod
        metadata: {name: p}
        spec:
          nodeSelector: {nvidia.com/device-plugin.config: a100}
          containers: []
    """)
    assert one("GF532", config_map(GPU4, key="t4"), pod).value == "a100"


def test_keys_named_after_a_model_select_nothing() -> None:
    assert one("GF538", config_map(GPU4, key="tesla-t4")).value == "tesla-t4"
    assert "GF538" not in codes(config_map(GPU4, key="t4"), NODE.format(label="t4"))
    assert "GF538" not in codes(OPERATOR.format(name="ts", default="t4"), config_map(GPU4, key="t4"))
    for key in ("rtx-4090", "Tesla-V100-PCIE-16GB", "a100-40gb", "NVIDIA-H200"):
        assert "GF538" in codes(config_map(GPU4, key=key)), key
    for key in ("notebooks", "any", "v1", "inference-a", "mps-4", "config.yaml"):
        assert "GF538" not in codes(config_map(GPU4, key=key)), key


def test_values_of_a_config_map_are_text() -> None:
    text = d("""
        apiVersion: v1
        kind: ConfigMap
        metadata: {name: ts}
        data:
          good: |
            version: v1
            sharing: {}
          bad: {version: v1}
    """)
    assert one("GF539", text).line == 8


def test_a_key_given_twice_loses_the_first() -> None:
    text = config_map(GPU4) + "  any: |\n    version: v1\n    flags: {}\n"
    assert one("GF504", text).line == 7


def test_configuration_of_a_reader_gets_its_environment() -> None:
    """The operator sets MIG_STRATEGY from its own value, whatever the file says."""
    text = GPU4.replace("version: v1\n", "version: v1\nflags: {migStrategy: mixed}\n")
    found = one("GF520", OPERATOR.format(name="ts", default="any"), config_map(text))
    assert "MIG_STRATEGY=single" in found.message
    values = "mig: {strategy: mixed}\n" + OPERATOR.format(name="ts", default="any")
    assert "GF520" not in codes(values, config_map(text))


def test_a_reader_with_a_mistyped_name_still_lends_its_environment() -> None:
    text = GPU4.replace("version: v1\n", "version: v1\nflags: {migStrategy: mixed}\n")
    assert {"GF520", "GF530"} <= set(codes(OPERATOR.format(name="tss", default="any"), config_map(text)))


def test_nothing_else_is_made_of_other_config_maps() -> None:
    other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: app}\ndata:\n  key: value\n  n: '1'\n"
    assert told(other) == []
