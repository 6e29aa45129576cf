"""Rules about NVIDIADriver objects."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

_DRIVER = """
        apiVersion: nvidia.com/v1alpha1
        kind: NVIDIADriver
        metadata: {name: gpu}
        spec: {driverType: gpu, kernelModuleType: open, usePrecompiled: true, version: "580", nodeSelector: {pool: gpu}}
"""
_VALUES = """
        ---
        driver: {nvidiaDriverCRD: {enabled: true, deployDefaultCR: false}}
        migManager: {enabled: false}
"""

GF676 = rule(
    "GF676", Severity.ERROR,
    title="The operator passes over this object.",
    reason="It looks at NVIDIADriver objects only where its chart's value driver.nvidiaDriverCRD.enabled is true (in a "
    "ClusterPolicy: driver.useNvidiaDriverCRD).",
    because="{value} is not true, so the operator does not look at NVIDIADriver objects.",
    remedy="Set driver.nvidiaDriverCRD.enabled: true, or remove the object.",
    source="NVIDIA/gpu-operator (controllers/nvidiadriver_controller.go)",
    wrong=_DRIVER + _VALUES.replace("enabled: true", "enabled: false"),
    right=_DRIVER + _VALUES,
)

GF677 = rule(
    "GF677", Severity.ERROR,
    title="The operator refuses this driver: {fault}.",
    reason="Its CRD does not take the object, or its controller does not act on it.",
    remedy="Correct it.",
    source="NVIDIA/gpu-operator (api/nvidia/v1alpha1/nvidiadriver_types.go, controllers/nvidiadriver_controller.go)",
    wrong=_DRIVER.replace("kernelModuleType: open", "kernelModuleType: opened"),
    fix=("kernelModuleType: opened", "kernelModuleType: open"),
)

GF678 = rule(
    "GF678", Severity.ERROR,
    title="A precompiled driver is named by its branch, not {value}.",
    reason="Its image is called after branch, kernel and operating system. No image has the full version, so the "
    "driver's pods cannot pull it.",
    remedy="Write the branch.",
    source="GPUO (precompiled drivers)",
    wrong=_DRIVER.replace('"580"', "580.173.02"),
    fix=("version: 580.173.02", 'version: "580"'),
)

GF679 = rule(
    "GF679", Severity.ERROR,
    title="This driver and {other} both select {value}.",
    reason="Only one NVIDIADriver may select a node. Where two do, the operator acts on neither.",
    remedy="Give each its own nodeSelector.",
    source="NVIDIA/gpu-operator (internal/nvidiadriver, internal/validator)",
    wrong=_DRIVER + "        ---" + _DRIVER.replace("name: gpu", "name: other"),
    right=_DRIVER + "        ---" + _DRIVER.replace("name: gpu", "name: other").replace("pool: gpu", "pool: other"),
)
