"""Rules about NVIDIA's standalone device plugin."""

from gpufleet.findings.finding import Severity
from gpufleet.findings.registry import rule

GF305 = rule(
    "GF305", Severity.WARNING,
    title="Device plugin {value} is not the version that the prediction describes ({known}).",
    reason="Parsing and labels differ between releases.",
    remedy="Leave `version` out, or check the release notes and acknowledge this.",
    source="PLUGIN",
    wrong="gpufleet:stack: {version: v0.17.0}",
    right="gpufleet:stack: {version: v0.20.0}",
)

GF306 = rule(
    "GF306", Severity.ERROR,
    title="Pools of the profile {value} differ in their default runtime.",
    reason="One DaemonSet per profile has one runtime class.",
    remedy="Give them profiles of their own, or the same nvidiaDefaultRuntime.",
    source="PLUGIN; K8S-DOC (runtime-class)",
    needs=("value", "offers"),
    wrong="""
        gpufleet:pools:
          - {name: t4}
          - {name: b, hosts: {n2: {}}, gpu: T4, nvidiaDefaultRuntime: true}
    """,
    fix=("name: t4", "name: t4, nvidiaDefaultRuntime: true"),
)
