"""How a hand-written DaemonSet gets, or does not get, its configuration."""

import textwrap

import pytest

from tests.unit.lint.told import GPU4, codes, config_map, d, one, told

IMAGE = "nvcr.io/nvidia/k8s-device-plugin:v0.20.0"


def daemon_set(
    container: str = "", volumes: str = "", image: str = IMAGE, name: str = "plugin", extra: str = ""
) -> str:
    return d(f"""
        apiVersion: apps/v1
        kind: DaemonSet
        metadata: {{name: {name}, namespace: gpu}}
        spec:
          selector: {{matchLabels: {{name: {name}}}}}
          template:
            metadata: {{labels: {{name: {name}}}, annotations: {{checksum/config: abc}}}}
            spec:
              priorityClassName: system-node-critical
              nodeSelector: {{nvidia.com/gpu.present: "true"}}
    """) + textwrap.indent(
        d(extra) + f"containers:\n- name: ctr\n  image: {image}\n" + textwrap.indent(d(container), "  ") + d(volumes),
        " " * 6,
    )


VOLUME = "volumes:\n- name: config\n  configMap: {name: ts}\n"
MOUNT = "volumeMounts:\n- {name: config, mountPath: /config}\n"


def env(value: str) -> str:
    return f"env:\n- {{name: CONFIG_FILE, value: {value}}}\n"


GOOD = daemon_set(env("/config/any") + MOUNT, VOLUME)


def test_a_directory_mount_with_config_file_is_quiet() -> None:
    assert told(GOOD, config_map(GPU4)) == []
    by_flag = daemon_set("args: [--config-file=/config/any]\n" + MOUNT, VOLUME)
    assert told(by_flag, config_map(GPU4)) == []
    in_two_words = daemon_set("args: [--config-file, /config/any]\n" + MOUNT, VOLUME)
    assert told(in_two_words, config_map(GPU4)) == []


def test_config_map_as_environment() -> None:
    text = daemon_set("envFrom: [{configMapRef: {name: ts}}]\n")
    assert one("GF540", text, config_map(GPU4)).value == "ts"
    assert one("GF540", text).line == 14
    other = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ts}\ndata: {MIG_STRATEGY: single}\n"
    assert "GF540" not in codes(text, other)
    by_key = daemon_set("env: [{name: X, valueFrom: {configMapKeyRef: {name: ts, key: any}}}]\n")
    assert "GF540" in codes(by_key, config_map(GPU4))


def test_mounted_and_never_read() -> None:
    found = one("GF541", daemon_set(MOUNT, VOLUME), config_map(GPU4))
    assert "/config/any" in found.remedy


@pytest.mark.parametrize(
    ("file", "code"),
    [("/etc/nvidia/config.yaml", "GF542"), ("/config", "GF542"), ("/config/nope", "GF532"), ("/configs/any", "GF542")],
)
def test_config_file_that_is_not_there(file: str, code: str) -> None:
    assert codes(daemon_set(env(file) + MOUNT, VOLUME), config_map(GPU4)) == [code]


def test_sub_path_is_never_updated_and_must_be_a_key() -> None:
    mount = "volumeMounts:\n- {name: config, mountPath: /etc/c.yaml, subPath: any}\n"
    assert codes(daemon_set(env("/etc/c.yaml") + mount, VOLUME), config_map(GPU4)) == ["GF543"]
    wrong = mount.replace("subPath: any", "subPath: config.yaml")
    assert codes(daemon_set(env("/etc/c.yaml") + wrong, VOLUME), config_map(GPU4)) == ["GF532", "GF543"]


def test_items_of_a_volume_name_keys() -> None:
    volume = "volumes:\n- name: config\n  configMap: {name: ts, items: [{key: KEY, path: c.yaml}]}\n"
    good = daemon_set(env("/config/c.yaml") + MOUNT, volume.replace("KEY", "any"))
    assert told(good, config_map(GPU4)) == []
    assert codes(daemon_set(env("/config/c.yaml") + MOUNT, volume), config_map(GPU4)) == ["GF532"]


def test_name_and_namespace_must_agree() -> None:
    found = one("GF531", GOOD, config_map(GPU4, namespace="other"))
    assert ("gpu" in found.message, "other" in found.message) == (True, True)
    assert one("GF530", GOOD, config_map(GPU4, name="tss")).closest == "tss"


def test_environment_and_arguments_of_the_daemon_set_count() -> None:
    text = GPU4.replace("version: v1\n", "version: v1\nflags: {migStrategy: mixed}\n")
    by_env = daemon_set(env("/config/any") + "- {name: MIG_STRATEGY, value: none}\n" + MOUNT, VOLUME)
    assert codes(by_env, config_map(text)) == ["GF520"]
    by_flag = daemon_set("args: [--mig-strategy=none, --config-file=/config/any]\n" + MOUNT, VOLUME)
    assert codes(by_flag, config_map(text)) == ["GF520"]


def test_without_a_hash_a_change_reaches_nobody() -> None:
    plain = GOOD.replace(", annotations: {checksum/config: abc}", "")
    assert codes(plain, config_map(GPU4)) == ["GF547"]
    hashed = plain.replace("name: ts}", "name: ts-5f6d7c}")
    assert codes(hashed, config_map(GPU4, name="ts-5f6d7c")) == []


def test_mps_needs_a_daemon() -> None:
    mps = "version: v1\nflags: {mpsRoot: /m}\nsharing: {mps: {resources: [{name: gpu, replicas: 2}]}}\n"
    assert codes(GOOD, config_map(mps)) == ["GF544"]
    daemon = daemon_set("command: [mps-control-daemon]\n", name="mps")
    assert codes(GOOD, config_map(mps), daemon) == []


def test_feature_discovery_reads_the_same_configuration() -> None:
    gfd = daemon_set("command: [gpu-feature-discovery]\n", name="gfd")
    assert codes(GOOD, config_map(GPU4), gfd) == ["GF546"]
    reads = daemon_set("command: [gpu-feature-discovery]\n" + env("/config/any") + MOUNT, VOLUME, name="gfd")
    assert codes(GOOD, config_map(GPU4), reads) == []
    assert codes(gfd) == []


def test_exporter_beside_sharing() -> None:
    exporter = daemon_set(image="nvcr.io/nvidia/k8s/dcgm-exporter:4.5.3", name="exporter")
    assert codes(GOOD, config_map(GPU4), exporter) == ["GF556"]
    told_by_flag = daemon_set("args: [--kubernetes-virtual-gpus]\n", image="x/dcgm-exporter:1", name="exporter")
    assert codes(GOOD, config_map(GPU4), told_by_flag) == []


def test_old_samples() -> None:
    old = d("""
        apiVersion: apps/v1
        kind: DaemonSet
        metadata: {name: plugin, namespace: kube-system}
        spec:
          selector: {matchLabels: {name: x}}
          template:
            metadata:
              annotations: {scheduler.alpha.kubernetes.io/critical-pod: ""}
              labels: {name: x}
            spec:
              containers:
              - name: ctr
                image: nvcr.io/nvidia/k8s-device-plugin:v0.14.5
    """)
    assert codes(old) == ["GF560", "GF561", "GF562", "GF563"]


def test_two_installations() -> None:
    operator = "devicePlugin: {enabled: true}\ntoolkit: {enabled: false}\n"
    assert "GF545" in codes(GOOD, config_map(GPU4), operator)
    assert "GF545" not in codes(GOOD, config_map(GPU4), operator.replace("true", "false"))
    chart = "gfd: {enabled: true}\nmigStrategy: none\n"
    assert "GF545" in codes(chart, operator)
    same = daemon_set(name="second")
    assert "GF545" in codes(daemon_set(), same)
    elsewhere = same.replace("nvidia.com/gpu.present", "other")
    assert "GF545" not in codes(daemon_set(), elsewhere)


def test_hami_beside_nvidia() -> None:
    hami = daemon_set(image="projecthami/hami:v2.10.0", name="hami")
    assert codes(hami) == []
    assert codes(hami, daemon_set()) == ["GF555"]
    assert "GF555" in codes(hami, "devicePlugin: {enabled: true}\ntoolkit: {enabled: false}\n")


def test_mig_manager_does_not_know_a_plugin_of_ones_own() -> None:
    operator = "devicePlugin: {enabled: false}\nmigManager: {enabled: true}\n"
    assert "GF558" in codes(operator, daemon_set())
    follows = daemon_set().replace("nvidia.com/gpu.present", "nvidia.com/gpu.deploy.device-plugin")
    assert "GF558" not in codes(operator, follows)
    assert "GF558" in codes(operator, "gfd: {enabled: true}\nmigStrategy: none\n")


def test_selectors_that_overlap() -> None:
    twin = daemon_set(name="other").replace("matchLabels: {name: other}", "matchLabels: {name: plugin}")
    assert one("GF564", daemon_set("command: [mps-control-daemon]\n"), twin).value == "other"
    budget = d("""
        apiVersion: policy/v1
        kind: PodDisruptionBudget
        metadata: {name: b}
        spec: {selector: {matchLabels: {app.kubernetes.io/name: nvidia-device-plugin}}}
    """)
    assert codes(budget) == ["GF565"]
    service = "apiVersion: v1\nkind: Service\nmetadata: {name: s}\nspec: {selector: {app.kubernetes.io/name: web}}\n"
    assert codes(service) == []


def test_taints_of_the_nodes() -> None:
    from gpufleet.parts.taints import parse_taint

    taints = (parse_taint("sku=gpu:NoSchedule"), parse_taint("x:PreferNoSchedule"))
    assert one("GF620", daemon_set(), taints=taints).value == "sku=gpu:NoSchedule"
    tolerant = daemon_set(extra="tolerations: [{key: sku, operator: Equal, value: gpu, effect: NoSchedule}]\n")
    assert codes(tolerant, taints=taints) == []
    assert codes(daemon_set(extra="tolerations: [{operator: Exists}]\n"), taints=taints) == []
    wrong = daemon_set(extra="tolerations: [{key: sku, value: cpu}]\n")
    assert codes(wrong, taints=taints) == ["GF620"]


def test_a_shell_command_line_counts_as_its_words() -> None:
    for command in (
        "[sh, -c, 'exec nvidia-device-plugin --config-file /config/any']",
        '[/bin/bash, -c, "CONFIG_FILE=/config/any nvidia-device-plugin"]',
    ):
        assert told(daemon_set(f"command: {command}\n" + MOUNT, VOLUME), config_map(GPU4)) == []
    wrong = daemon_set("command: [sh, -c, 'nvidia-device-plugin --config-file /config/other']\n" + MOUNT, VOLUME)
    assert one("GF532", wrong, config_map(GPU4)).value == "other"
    assert one("GF541", daemon_set('command: [sh, -c, "echo \'x"]\n' + MOUNT, VOLUME), config_map(GPU4)).line == 12


@pytest.mark.parametrize("part", ["args", "command"])
def test_options_that_the_plugin_does_not_have(part: str) -> None:
    found = one("GF567", daemon_set(f"{part}: [--mig-stratgy=single]\n"))
    assert (found.value, found.closest) == ("--mig-stratgy=single", "--mig-strategy")
    assert found.path == f"spec.template.spec.containers[0].{part}[0]"
    assert one("GF567", daemon_set(f"{part}: [--config-map=ts]\n")).value == "--config-map=ts"
    good = "[--nvidia-driver-root=/, -mig-strategy, none, --device-list-strategy=envvar,cdi-cri, --version]"
    assert "GF567" not in codes(daemon_set(f"{part}: {good}\n"))
    assert "GF567" not in codes(daemon_set("command: [/bin/sh, -c, 'sleep --x 5']\n"))


OWNED = "metadata: {name: plugin, namespace: gpu, ownerReferences: [{kind: ClusterPolicy, name: c}]}"
POLICY = "apiVersion: nvidia.com/v1\nkind: ClusterPolicy\nmetadata: {name: c}\nspec: {devicePlugin: {enabled: true}}\n"


def test_the_operators_own_daemon_set_is_no_second_installation() -> None:
    by_hand = daemon_set(env("/config/any") + MOUNT, VOLUME)
    owned = by_hand.replace("metadata: {name: plugin, namespace: gpu}", OWNED)
    assert OWNED in owned
    assert "GF545" not in codes(POLICY, owned, config_map(GPU4))
    assert one("GF545", POLICY, by_hand, config_map(GPU4)).value == "DaemonSet plugin (f1.yaml)"
    assert "GF545" in codes(owned, by_hand.replace("name: plugin,", "name: other,"), config_map(GPU4))


@pytest.mark.parametrize(
    "selector",
    [
        "apiVersion: monitoring.coreos.com/v1\nkind: PodMonitor\n"
        "spec: {selector: {matchLabels: {app.kubernetes.io/name: nvidia-device-plugin}}}\n",
        "apiVersion: networking.k8s.io/v1\nkind: NetworkPolicy\n"
        "spec: {podSelector: {matchLabels: {app.kubernetes.io/name: nvidia-device-plugin}}}\n",
        "apiVersion: policy/v1\nkind: PodDisruptionBudget\n"
        "spec: {selector: {matchExpressions: [{key: app.kubernetes.io/name, operator: In,"
        " values: [nvidia-device-plugin]}]}}\n",
    ],
)
def test_every_kind_of_selector_on_the_charts_labels(selector: str) -> None:
    assert "GF565" in codes("metadata: {name: s}\n" + selector)
    assert "GF565" not in codes("metadata: {name: s}\n" + selector.replace("-plugin", "-other"))
    narrow = selector.replace("{app.kubernetes.io/name:", "{app.kubernetes.io/component: gfd, app.kubernetes.io/name:")
    assert narrow == selector or "GF565" not in codes("metadata: {name: s}\n" + narrow)


@pytest.mark.parametrize(
    ("container", "told_of_shares"),
    [
        ("env: [{name: KUBERNETES_VIRTUAL_GPUS, value: 'true'}]\n", True),
        ("env: [{name: KUBERNETES_VIRTUAL_GPUS, value: 'false'}]\n", False),
        ("args: [--kubernetes-virtual-gpus]\n", True),
        ("args: [--kubernetes-virtual-gpus=false]\n", False),
        ("command: [sh, -c, 'dcgm-exporter --kubernetes-virtual-gpus']\n", True),
    ],
)
def test_the_exporter_is_told_of_shares_by_a_true_value(container: str, told_of_shares: bool) -> None:
    exporter = daemon_set(container, image="nvcr.io/nvidia/k8s/dcgm-exporter:4", name="exporter")
    assert ("GF556" not in codes(exporter, config_map(GPU4))) is told_of_shares
