"""Values of both charts, and ClusterPolicies."""

import pytest

from tests.unit.lint.told import GPU4, codes, config_map, d, one, told


def operator(text: str, config: str = GPU4) -> str:
    body = "".join(f"        {line}\n" for line in config.splitlines())
    return text + (f"    data:\n      any: |\n{body}" if config else "")


HEAD = "devicePlugin:\n  config:\n    create: true\n    name: ts\n    default: any\n"


def test_embedded_data_is_linted_under_the_operators_environment() -> None:
    assert codes(operator(HEAD)) == ["GF556"]
    found = one("GF513", operator(HEAD, GPU4.replace("sharing:", "sharring:")))
    assert (found.path, found.line) == ("devicePlugin.config.data.any.sharring", 9)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("devicePlugin: {config: {create: true, name: ts, data: {}}}\n", "data"),
        ("devicePlugin: {config: {create: true, name: ts}}\n", "data"),
        ("devicePlugin: {config: {create: true}}\n", "name and data"),
        ("devicePlugin: {config: {create: true, data: {a: 'version: v1'}}}\n", "name"),
    ],
)
def test_create_needs_name_and_data(text: str, what: str) -> None:
    assert f"needs {what}." in one("GF535", text).message


def test_default_without_name_is_ignored() -> None:
    assert "GF534" in codes("devicePlugin: {config: {default: any}}\n")


def test_name_without_default_leaves_unlabelled_nodes_alone() -> None:
    assert codes("devicePlugin: {config: {name: ts}}\n") == ["GF533"]
    assert codes('devicePlugin: {config: {name: ts, default: ""}}\n') == ["GF533", "GF552"]


def test_empty_fields_are_rendered() -> None:
    text = 'devicePlugin: {config: {name: "", default: null}}\nvalidator: {plugin: null}\n'
    assert codes(text) == ["GF552"]
    assert [x.path for x in told(text)] == ["devicePlugin.config.default", "validator.plugin"]
    assert codes('devicePlugin: {config: {name: "", default: ""}}\n') == []  # without a name nothing is rendered
    empty = one("GF552", 'devicePlugin: {config: {name: ts, default: ""}}\n')
    assert empty.remedy == "Name a key of the ConfigMap; one without sharing will do."
    assert one("GF552", "toolkit: {}\nvalidator: {plugin: {env: []}}\n").path == "validator.plugin"
    assert codes("toolkit: {}\nvalidator: {plugin: {env: [{name: WITH_WORKLOAD, value: 'false'}]}}\n") == []
    policy = "apiVersion: nvidia.com/v1\nkind: ClusterPolicy\nmetadata: {name: c}\n"
    assert codes(policy + 'spec: {devicePlugin: {config: {name: "", default: ""}}}\n') == []  # OpenShift's own sample
    assert codes(policy + 'spec: {devicePlugin: {config: {name: ts, default: ""}}}\n') == ["GF533"]


def test_the_same_rules_for_a_cluster_policy() -> None:
    text = d("""
        apiVersion: nvidia.com/v1
        kind: ClusterPolicy
        metadata: {name: cluster-policy}
        spec:
          mig: {strategy: mixed}
          devicePlugin: {config: {name: nope, default: any}}
    """)
    assert one("GF530", text, config_map(GPU4)).path == "spec.devicePlugin.config.name"
    assert "GF534" in codes(text.replace("name: nope, ", ""))


def test_unknown_and_retired_values() -> None:
    found = one("GF550", HEAD.replace("    name: ts\n", "    nam: ts\n"))
    assert (found.closest, found.path) == ("name", "devicePlugin.config.nam")
    assert one("GF550", "devicePlugin: {enabled: true}\nmigmanager: {enabled: true}\n").closest == "migManager"
    assert one("GF551", "driver: {useOpenKernelModules: true}\ntoolkit: {enabled: true}\n").line == 1


def test_a_configuration_for_a_plugin_that_is_off() -> None:
    assert "GF548" in codes(operator(HEAD.replace("devicePlugin:\n", "devicePlugin:\n  enabled: false\n")))


def test_the_exporter_follows_sharing() -> None:
    told = 'dcgmExporter: {env: [{name: KUBERNETES_VIRTUAL_GPUS, value: "true"}]}\n'
    assert codes(operator(told + HEAD)) == []
    assert codes(operator("dcgmExporter: {enabled: false}\n" + HEAD)) == []
    assert codes(operator(told.replace("{env", "{serviceMonitor: {honorLabels: false}, env") + HEAD)) == ["GF557"]


def chart(text: str, **maps: str) -> str:
    body = ""
    for key, config in maps.items():
        body += f"    {key}: |\n" + "".join(f"      {line}\n" for line in config.splitlines())
    return text + ("  map:\n" + body if maps else "")


def test_chart_values() -> None:
    assert codes(chart("gfd: {enabled: true}\nconfig:\n", any=GPU4)) == []
    assert codes(chart("config:\n", any=GPU4)) == ["GF554"]
    assert codes(chart("nodeSelector: {a: b}\nconfig:\n", any=GPU4)) == []


def test_chart_refuses_name_and_map_together() -> None:
    assert "GF536" in codes(chart("gfd: {enabled: true}\nconfig:\n  name: ts\n", any=GPU4))


def test_chart_needs_a_default_among_several() -> None:
    head = "gfd: {enabled: true}\nconfig:\n"
    assert codes(chart(head, a=GPU4, b=GPU4)) == ["GF537"]
    assert codes(chart(head + "  default: a\n", a=GPU4, b=GPU4)) == []
    assert codes(chart(head, default=GPU4, b=GPU4)) == []
    assert codes(chart(head + "  fallbackStrategies: [empty]\n", a=GPU4, b=GPU4)) == []
    assert codes(chart(head + "  fallbackStrategies: []\n", default=GPU4, b=GPU4)) == ["GF537"]
    assert codes(chart(head + "  default: c\n", a=GPU4, b=GPU4)) == ["GF532"]


MPS = "version: v1\nsharing:\n  mps:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 4}\n"


def test_mps_through_the_chart_needs_feature_discovery() -> None:
    assert codes(chart("config:\n", any=MPS)) == ["GF549", "GF554"]
    assert codes(chart("gfd: {enabled: true}\nconfig:\n", any=MPS)) == []  # the chart brings mpsRoot


def test_chart_values_beat_the_file() -> None:
    text = GPU4.replace("version: v1\n", "version: v1\nflags: {migStrategy: mixed}\n")
    assert codes(chart("gfd: {enabled: true}\nmigStrategy: none\nconfig:\n", any=text)) == ["GF520"]
    assert codes(chart("gfd: {enabled: true}\nmigStrategy: null\nconfig:\n", any=text)) == []


POLICY = """\
apiVersion: nvidia.com/v1
kind: ClusterPolicy
metadata: {name: cluster-policy, labels: {app.kubernetes.io/version: VERSION}}
spec: {sandboxWorkloads: {enabled: true}, daemonsets: {tolerations: TOLERATIONS}}
"""


def policy(version: str = "v26.3.3", tolerations: str = "[]") -> str:
    return POLICY.replace("VERSION", version).replace("TOLERATIONS", tolerations)


def test_operands_that_tolerate_only_what_the_policy_passes_on() -> None:
    found = one("GF566", policy())
    assert (found.value, found.path) == ("vgpu-device-manager", "spec.daemonsets.tolerations")
    assert "GF566" in codes(policy().replace(", daemonsets: {tolerations: []}", ""))
    assert codes(policy("v26.7.0")) == codes(policy("gpu-operator-v27.1.0")) == []  # it has a toleration of its own
    assert codes(policy(tolerations="[{key: nvidia.com/gpu, operator: Exists}]")) == []
    assert codes(policy().replace("enabled: true", "enabled: false")) == []
    values = "sandboxWorkloads: {enabled: true}\ndaemonsets: {tolerations: []}\n"
    assert codes(values) == ["GF566"]
    assert codes(values.replace("daemonsets: {tolerations: []}\n", "mig: {strategy: single}\n")) == []  # the default


def test_any_text_of_create_is_true_for_a_template() -> None:
    for word in ('"true"', '"false"', "yes"):
        found = one("GF535", f"devicePlugin: {{config: {{create: {word}, name: ts, data: {{}}}}}}\n")
        assert "needs data" in found.message
    assert "GF535" not in codes("devicePlugin: {config: {create: false, name: ts, default: a}}\n")


def test_data_without_create_makes_no_config_map() -> None:
    without = operator(HEAD.replace("    create: true\n", ""))
    assert one("GF559", without).path == "devicePlugin.config.data"
    assert "GF559" in codes(operator(HEAD.replace("true", "false")))
    assert "GF559" not in codes(operator(HEAD))


@pytest.mark.parametrize(
    ("exporter", "quiet"),
    [
        ("{env: [{name: KUBERNETES_VIRTUAL_GPUS, value: 'true'}]}", True),
        ("{env: [{name: KUBERNETES_VIRTUAL_GPUS, value: 'false'}]}", False),
        ("{args: [--kubernetes-virtual-gpus]}", True),
    ],
)
def test_the_exporter_of_the_operator(exporter: str, quiet: bool) -> None:
    assert ("GF556" not in codes(f"dcgmExporter: {exporter}\n" + operator(HEAD))) is quiet


@pytest.mark.parametrize(
    ("text", "path", "closest"),
    [
        ("mig: {strategy: Mixed}\ntoolkit: {enabled: false}\n", "mig.strategy", "mixed"),
        (
            "apiVersion: nvidia.com/v1\nkind: ClusterPolicy\nspec: {mig: {strategy: Single}}\n",
            "spec.mig.strategy",
            "single",
        ),
        ("migStrategy: Mixed\ngfd: {enabled: true}\n", "migStrategy", "mixed"),
        ("deviceIDStrategy: uid\ngfd: {enabled: true}\n", "deviceIDStrategy", "uuid"),
    ],
)
def test_options_that_the_plugin_refuses(text: str, path: str, closest: str) -> None:
    found = one("GF511", text)
    assert (found.path, found.closest) == (path, closest)
    assert closest in found.allowed
    assert "GF511" not in codes(text.replace(found.value or "", closest))
    if "ClusterPolicy" not in text:
        assert "GF511" not in codes(text + "devicePlugin: {enabled: false}\n")


def test_a_patch_of_a_cluster_policy() -> None:
    patch = "spec:\n  devicePlugin:\n    config:\n      name: ts\n      default: anny\n"
    found = one("GF532", patch, config_map(GPU4))
    assert (found.path, found.closest, found.line) == ("spec.devicePlugin.config.default", "any", 5)
    assert codes("spec: {replicas: 3}\n") == ["GF502"]


@pytest.mark.parametrize(
    ("values", "strategy", "dead"),
    [
        ("", "[envvar]", True),  # CDI is on by default, so the operator says cdi-annotations,cdi-cri
        ("", "[cdi-annotations, cdi-cri]", False),
        ("cdi: {enabled: true}\n", "[envvar]", True),
        ("cdi: {enabled: false}\n", "[envvar]", False),
        ("cdi: {enabled: false}\n", "[cdi-cri]", True),
    ],
)
def test_the_operators_device_list_strategy_follows_cdi(values: str, strategy: str, dead: bool) -> None:
    config = GPU4 + f"flags: {{plugin: {{deviceListStrategy: {strategy}}}}}\n"
    assert ("GF520" in codes(values + operator(HEAD, config))) is dead
