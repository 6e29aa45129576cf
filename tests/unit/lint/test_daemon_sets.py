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
    from infra.plan.taints import parse_taint

    taints = (parse_taint("sku=gpu:NoSchedule"), parse_taint("x:PreferNoSchedule"))
    assert one("GF620", daemon_set(), taints=taints).value == "sku=gpu:NoSchedule"
    tolerant = daemon_set(extra="tolerations: [{key: sku, operator: Equal, value: gpu, effect: NoSchedule}]\n")
    assert codes(tolerant, taints=taints) == []
    assert codes(daemon_set(extra="tolerations: [{operator: Exists}]\n"), taints=taints) == []
    wrong = daemon_set(extra="tolerations: [{key: sku, value: cpu}]\n")
    assert codes(wrong, taints=taints) == ["GF620"]
