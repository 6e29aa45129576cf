"""The shipped stacks and some more, each run once; tests look at what was recorded."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from gpufleet.plan.model import Plan

from tests.component.recording import Recorded, run
from tests.unit.config.samples import compile_text, told

_SHIPPED = {
    p.stem.removeprefix("Pulumi."): p.read_text()
    for p in sorted(Path(__file__).parents[2].joinpath("stacks").glob("Pulumi.*.yaml"))
}

_SUBNET = "/subscriptions/s/resourceGroups/r/providers/Microsoft.Network/virtualNetworks/v/subnets/n"
_MORE = {
    "aks-protected": f"""\
config:
  gpufleet:cluster:
    kind: aks
    name: kept
    location: eastus
    protect: true
    resourceGroup: {{name: shared-rg, existing: true}}
    network: {{subnetId: {_SUBNET}}}
  gpufleet:pools:
    - {{name: t4, vmSize: Standard_NC4as_T4_v3, count: 0, taints: ["sku=gpu:NoSchedule"], labels: {{team: vision}}}}
  gpufleet:stack: {{kind: plugin, images: {{registry: mirror/x, pullSecrets: [regcred], makePullSecret: true}}}}
  gpufleet:pullSecret: {{secure: v1:def}}
  gpufleet:teams: [{{name: vision, namespace: vision, pools: [t4], group: g-1, role: admin}}]
""",
    "aks-mixed": """\
config:
  gpufleet:cluster: {kind: aks, name: mixed, location: eastus, protect: true, version: "1.36"}
  gpufleet:pools:
    - name: a
      vmSize: Standard_NC4as_T4_v3
      driver: operator
      spot: true
      spotMaxPrice: 1.5
      autoscale: {min: 0, max: 3}
    - name: b
      vmSize: Standard_NC24ads_A100_v4
      driver: operator
      zones: ["1", "2"]
      osDiskType: Ephemeral
      osDiskSizeGb: 200
      maxPods: 60
      tags: {cost: research}
      sharing: half
    - {name: c, vmSize: Standard_NC4as_T4_v3, driver: none}
  gpufleet:stack: {kind: operator, timeoutSeconds: 1200, chart: {repository: "oci://mirror/charts"}}
  gpufleet:sharing: {half: {strategy: timeSlicing, replicas: 2}}
  gpufleet:acknowledge: {GF205: somebody else looks after the pool}
""",
    "secret": """\
config:
  gpufleet:cluster:
    kind: existing
    name: k3s
    site: barn
    protect: true
    distribution: k3s
    kubeconfig: {secret: true, context: ctx}
  gpufleet:kubeconfig: {secure: v1:abc}
  gpufleet:pools:
    - {name: t4, hosts: {n1: {}}, gpu: T4, gpusPerNode: 1, nvidiaDefaultRuntime: true, labels: {team: vision}}
    - {name: l4, nodeSelector: {site: barn}, gpu: L4, gpusPerNode: 2, nvidiaDefaultRuntime: true}
  gpufleet:stack: {kind: plugin}
""",
    "operator-login": """\
config:
  gpufleet:cluster: {kind: existing, name: idc, kubeconfig: {path: idc.conf}}
  gpufleet:pools: [{name: t4, hosts: {n1: {}}, gpu: T4, gpusPerNode: 1, driver: operator}]
  gpufleet:stack: {kind: operator, images: {registry: mirror/x, pullSecrets: [login, other], makePullSecret: true}}
  gpufleet:pullSecret: {secure: v1:def}
""",
    "local-chart": """\
config:
  gpufleet:cluster: {kind: existing, name: idc, kubeconfig: {path: idc.conf}}
  gpufleet:pools: [{name: t4, hosts: {n1: {}}, gpu: T4, gpusPerNode: 1}]
  gpufleet:stack: {kind: operator, namespace: gpu, chart: {path: /charts/gpu-operator.tgz}}
""",
    "mps": """\
config:
  gpufleet:cluster: {kind: existing, name: idc, kubeconfig: {path: idc.conf}}
  gpufleet:pools:
    - {name: t4, hosts: {n1: {}}, gpu: T4, gpusPerNode: 1, sharing: small, taints: ["sku=gpu:NoSchedule"]}
  gpufleet:stack: {kind: plugin}
  gpufleet:sharing: {small: {strategy: mps, replicas: 4}}
""",
}
TEXTS = {**_SHIPPED, **_MORE}
AKS = [name for name, text in TEXTS.items() if "kind: aks" in text]
EXISTING = [name for name in TEXTS if name not in AKS]
PLUGIN = [name for name, text in TEXTS.items() if "kind: plugin" in text]
OPERATOR = [name for name in TEXTS if name not in PLUGIN]


@cache
def recorded(name: str) -> Recorded:
    """What the program registers for a stack."""
    result = run(TEXTS[name], name)
    assert result.error is None, result.error
    return result


@cache
def plan_of(name: str) -> Plan:
    """The plan of the same stack."""
    compiled = compile_text(TEXTS[name], name)
    assert compiled.plan is not None, told(compiled)
    return compiled.plan
