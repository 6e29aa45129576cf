"""Names, namespaces, keys, defaults, labels: which configuration is used where."""

import textwrap

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


POLICY = d("""
    apiVersion: nvidia.com/v1
    kind: ClusterPolicy
    metadata: {name: c}
    spec: {devicePlugin: {config: {name: ts, default: any}}}
""")
OPERAND = d("""
    apiVersion: apps/v1
    kind: DaemonSet
    metadata: {name: x, namespace: gpu-operator, ownerReferences: [{kind: ClusterPolicy, name: c}]}
    spec: {template: {spec: {containers: []}}}
""")
OPERATOR_POD = d("""
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: gpu-operator, namespace: gpu-operator}
    spec: {template: {spec: {containers: [{name: c, image: "nvcr.io/nvidia/gpu-operator:v26.7.0"}]}}}
""")


def test_the_operator_reads_config_maps_of_its_own_namespace() -> None:
    here, there = (config_map(GPU4, namespace=n) for n in ("gpu-operator", "default"))
    for sign in (OPERAND, OPERATOR_POD):
        found = one("GF531", POLICY, there, sign)
        assert (found.path, found.value) == ("spec.devicePlugin.config.name", "ts")
        assert "default, this needs it in gpu-operator" in found.message
        assert not {"GF531", "GF553"} & set(codes(POLICY, here, sign))
        assert not {"GF531", "GF553"} & set(codes(POLICY, here, there, sign))
    named = POLICY.replace("{name: c}", "{name: c, namespace: gpu-operator}")
    assert one("GF531", named, there).line == 4


def test_an_unlikely_namespace_of_the_operators_config_map() -> None:
    assert "is in the namespace default" in one("GF553", POLICY, config_map(GPU4, namespace="default")).message
    assert one("GF553", OPERATOR.format(name="ts", default="any"), config_map(GPU4, namespace="kube-system"))
    assert "GF553" not in codes(POLICY, config_map(GPU4, namespace="gpu"))
    unsaid = config_map(GPU4).replace("  namespace: gpu\n", "")
    assert not {"GF531", "GF553"} & set(codes(POLICY, unsaid, OPERAND))


def test_what_the_operator_reads_is_a_configuration_whatever_it_says() -> None:
    odd = config_map("replica: 4\n")
    assert codes(odd) == []  # nobody is known to read it
    assert one("GF513", POLICY, odd, OPERAND).path == "data.any.replica"
    other = config_map("replica: 4\n", name="other")
    assert "GF513" not in codes(POLICY, other, OPERAND)
    assert one("GF510", "config: {map: {a: hello}}\ngfd: {enabled: true}\n").path == "config.map.a"
    values = "devicePlugin: {config: {create: true, name: x, default: a, data: {a: 'foo: 1'}}}\n"
    assert one("GF513", values).path == "devicePlugin.config.data.a.foo"


def test_a_configuration_that_is_a_map_and_no_text() -> None:
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ts}\ndata:\n  any:\n"
    found = one("GF539", text + textwrap.indent(GPU4, "    "))
    assert (found.path, found.line) == ("data.any", 5)
    assert codes(text + "    color: blue\n") == []  # of no concern here
