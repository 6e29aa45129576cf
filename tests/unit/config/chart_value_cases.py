"""Rules about keys and types of the chart's values, and about what they switch off."""

from __future__ import annotations

from typing import Any

from tests.unit.config.case import Case

FINE = {"driver": {"rdma": {"enabled": True}}}


def case(code: str, path: str, values: dict[str, Any], right: dict[str, Any] = FINE, **expected: Any) -> Case:
    """Values on the operator route; the operator installs the driver."""
    where = f"stack.values.{path}"
    return Case(code, where, "aks-operator", {"stack.values": values}, {"stack.values": right}, **expected)


PCI = "node-feature-discovery.worker.config.sources.pci"


def pci(**values: list[str]) -> dict[str, Any]:
    return {"node-feature-discovery": {"worker": {"config": {"sources": {"pci": values}}}}}


CHART_VALUES = [
    # ---- RP-14: keys at every depth
    Case("GF250", "stack.values.driver.rdma.enable", value="enable", closest="enabled"),
    case("GF250", "driver.usePrecompield", {"driver": {"usePrecompield": True}}, closest="usePrecompiled"),
    case("GF250", "migmanager", {"migmanager": {"enabled": True}}, closest="migManager"),
    case("GF250", "driver.upgradePolicy.drain.enabled", {"driver": {"upgradePolicy": {"drain": {"enabled": True}}}},
         closest="enable"),
    case("GF250", "runtimeClass", {"runtimeClass": "nvidia"}, closest="operator.runtimeClass"),
    case("GF250", "somethingElse", {"somethingElse": 1}, says="Remove the key."),
    case("GF250", "n9", {"n9": {"a": 1}}),
    case("GF250", "node-feature-discovery.wroker", {"node-feature-discovery": {"wroker": {}}}, closest="worker"),
    case("GF250", "node-feature-discovery.worker.toleration",
         {"node-feature-discovery": {"worker": {"toleration": []}}}, closest="tolerations"),
    case("GF250", "driver.env[0].valueFrom", {"driver": {"env": [{"name": "A", "valueFrom": {"a": "b"}}]}},
         {"driver": {"env": [{"name": "A", "value": "b"}]}}, allowed=("name", "value")),
    case("GF250", "operator.initContainer", {"operator": {"initContainer": {"image": "cuda"}}}, says="v26.7.0"),
    # ---- RP-78: shapes and types
    Case("GF251", "stack.values.driver", value="true", says="A map is expected here."),
    case("GF251", "devicePlugin", {"devicePlugin": [1]}, says="devicePlugin: {enabled: true}"),
    case("GF251", "driver.manager", {"driver": {"manager": "x"}}, says="manager: {"),
    case("GF251", "node-feature-discovery", {"node-feature-discovery": []}, says="A map is expected"),
    case("GF251", "node-feature-discovery.worker", {"node-feature-discovery": {"worker": "on"}}),
    case("GF251", "dcgmExporter.enabled", {"dcgmExporter": {"enabled": "false"}},
         {"dcgmExporter": {"enabled": False}}, value="false", says="True or false is expected"),
    case("GF251", "driver.startupProbe.periodSeconds", {"driver": {"startupProbe": {"periodSeconds": "10"}}},
         {"driver": {"startupProbe": {"periodSeconds": 10}}}),
    case("GF251", "toolkit.imagePullSecrets[0]", {"toolkit": {"imagePullSecrets": [{"name": "regcred"}]}},
         {"toolkit": {"imagePullSecrets": ["regcred"]}}, says="- regcred"),
    case("GF251", "node-feature-discovery.imagePullSecrets[0]",
         {"node-feature-discovery": {"imagePullSecrets": ["regcred"]}},
         {"node-feature-discovery": {"imagePullSecrets": [{"name": "regcred"}]}}),
    case("GF251", "driver.env", {"driver": {"env": {"A": "b"}}}, says='[{name: NAME, value: "x"}]'),
    case("GF251", "driver.env[0].value", {"driver": {"env": [{"name": "A", "value": True}]}},
         {"driver": {"env": [{"name": "A", "value": "true"}]}}, says='value: "true"'),
    case("GF251", "driver.env[0]", {"driver": {"env": [{"value": "b"}]}}),
    case("GF251", "driver.repository", {"driver": {"repository": ["a"]}}, {"driver": {"repository": "a/b"}}),
    case("GF251", "daemonsets.updateStrategy", {"daemonsets": {"updateStrategy": "Rolling"}},
         {"daemonsets": {"updateStrategy": "RollingUpdate"}}, allowed=("RollingUpdate", "OnDelete"),
         closest="RollingUpdate"),
    case("GF251", "ccManager.defaultMode", {"ccManager": {"defaultMode": True}},
         {"ccManager": {"defaultMode": "on"}}, allowed=("on", "off", "devtools")),
    # ---- RP-13: parts that the plan rests on
    Case("GF252", "stack.values.gpuCluster.deployCR", value="true", says="gpuCluster excludes the ClusterPolicy"),
    case("GF252", "clusterPolicy.deployCR", {"clusterPolicy": {"deployCR": False}},
         {"clusterPolicy": {"deployCR": True}}, says="write true"),
    case("GF252", "sandboxWorkloads.defaultWorkload",
         {"sandboxWorkloads": {"enabled": True, "defaultWorkload": "vm-passthrough"}},
         {"sandboxWorkloads": {"enabled": False, "defaultWorkload": "vm-passthrough"}}, says="write container"),
    case("GF252", "driver.nvidiaDriverCRD.deployDefaultCR",
         {"driver": {"nvidiaDriverCRD": {"enabled": True, "deployDefaultCR": False}}},
         {"driver": {"nvidiaDriverCRD": {"deployDefaultCR": False}}}),
    case("GF252", "node-feature-discovery.worker.enable", {"node-feature-discovery": {"worker": {"enable": False}}}),
    case("GF252", "node-feature-discovery.master.enable", {"node-feature-discovery": {"master": {"enable": False}}}),
    case("GF252", f"{PCI}.deviceClassWhitelist", pci(deviceClassWhitelist=["02", "12"]),
         pci(deviceClassWhitelist=["02", "03"]), says="0302"),
    case("GF252", f"{PCI}.deviceLabelFields", pci(deviceLabelFields=["class", "vendor", "device"]),
         pci(deviceLabelFields=["class", "vendor"]), says="write [vendor]"),
    case("GF252", "extraObjects[0]", {"extraObjects": [{"kind": "ClusterPolicy"}]},
         {"extraObjects": [{"kind": "ConfigMap"}]}),
    Case("GF253", "stack.version", value="v25.10.1", also=(("GF221", "stack.version"),)),
    Case("GF254", "stack.values.vgpuManager.enabled", value="true", says="sandboxWorkloads.enabled"),
    case("GF254", "draDriver", {"draDriver": {"computeDomains": {"enabled": False}}}, says="GPUCluster"),
    case("GF254", "kataManager", {"kataManager": {"enabled": True}}),
    Case("GF254", "stack.values.gds.enabled", "existing-operator", {"stack.values": {"gds": {"enabled": True}}},
         {"stack.values": {"gds": {"enabled": False}}}),
    Case("GF254", "stack.values.gdrcopy.enabled", "existing-operator",
         {"stack.values": {"gdrcopy": {"enabled": True}}}, {"stack.values": {"gdrcopy": {"enabled": False}}}),
    Case("GF255", "stack.values.devicePlugin.env[0]", value="MIG_STRATEGY"),
    case("GF255", "devicePlugin.args[0]", {"devicePlugin": {"args": ["--mig-strategy=mixed"]}},
         {"devicePlugin": {"args": ["--pass-device-specs=true"]}}, value="--mig-strategy"),
]  # fmt: skip
