"""Rules about labels of nodes: who sets them, and which ones the GPU software looks for."""

from __future__ import annotations

from collections.abc import Iterator

from gpufleet.catalog import gpu_model
from gpufleet.findings.finding import Finding, Severity
from gpufleet.findings.path import join_path, split_path
from gpufleet.findings.registry import check, rule
from gpufleet.fleet.model import Fleet, FleetPool
from gpufleet.fleet.owner import operand_labels
from gpufleet.parts.names import METHOD_LABEL, MIG_CONFIG_LABEL, OPERATOR_CONFIG_LABEL, PRODUCT_LABEL, UNSHARED
from gpufleet.routes.operator import MIG_DISABLED

COUNT_LABEL = "nvidia.com/gpu.count"
#: Labels of feature discovery that the plan knows for certain. MiB of memory differ with the driver.
DISCOVERED_LABELS = (PRODUCT_LABEL, COUNT_LABEL, "nvidia.com/gpu.replicas", "nvidia.com/gpu.sharing-strategy")

GF222 = rule(
    "GF222", Severity.ERROR,
    title="Nodes of this pool do not carry the label that selects the profile {profile}.",
    reason="The operator finds a node's profile by the label nvidia.com/device-plugin.config; nodes that are found "
    "by a selector are labelled by somebody else.",
    remedy="Add `nvidia.com/device-plugin.config: {profile}` to nodeSelector (and to the nodes), or list the nodes "
    "under `hosts`.",
    source="PLUGIN (config-manager); GPUO",
    needs=("value", "offers"),
    wrong="""
        gpufleet:stack: {kind: operator}
        gpufleet:sharing: {half: {strategy: timeSlicing, replicas: 2}}
        gpufleet:pools: [{name: t4, sharing: half, nodeSelector: {a: b}}]
    """,
    right="""
        gpufleet:stack: {kind: operator}
        gpufleet:sharing: {half: {strategy: timeSlicing, replicas: 2}}
        gpufleet:pools:
          - {name: t4, sharing: half, nodeSelector: {nvidia.com/device-plugin.config: half}}
    """,
)

GF223 = rule(
    "GF223", Severity.ERROR,
    title="Nodes of this pool do not carry the labels that keep the operator's work off them: {missing}.",
    reason="The driver here has another owner, and without these labels the operator installs a second one; nodes "
    "that are found by a selector are labelled by somebody else.",
    remedy="Add the labels to nodeSelector (and to the nodes), or list the nodes under `hosts`.",
    source="GPUO; NVIDIA/gpu-operator#525",
    needs=("value", "owner"),
    wrong="""
        gpufleet:stack: {kind: operator, values: {cdi: {enabled: false}}}
        gpufleet:pools:
          - {name: t4, nodeSelector: {a: b}}
          - {name: b, hosts: {n2: {}}, gpu: T4, driver: operator}
    """,
    right="""
        gpufleet:stack: {kind: operator, values: {cdi: {enabled: false}}}
        gpufleet:pools:
          - name: t4
            nodeSelector:
              nvidia.com/gpu.deploy.driver: "false"
              nvidia.com/gpu.deploy.container-toolkit: "false"
          - {name: b, hosts: {n2: {}}, gpu: T4, driver: operator}
    """,
)

GF225 = rule(
    "GF225", Severity.ERROR,
    title="Nodes of this pool do not carry the labels by which the GPU software finds them: {missing}.",
    reason="HAMi's plugin and the MIG manager select nodes by these labels; nodes that are found by a selector are "
    "labelled by somebody else.",
    remedy="Add the labels to nodeSelector (and to the nodes), or list the nodes under `hosts`.",
    source="Project-HAMi/HAMi#2280; GPUO; MIGP",
    needs=("value", "offers"),
    wrong="""
        gpufleet:sharing: {own: {strategy: hami}}
        gpufleet:pools: [{name: t4, nodeSelector: {a: b}, sharing: own}]
    """,
    fix=("a: b", 'a: b, gpu: "on"'),
)

GF317 = rule(
    "GF317", Severity.ERROR,
    title="The label {value} makes the MIG manager cut these nodes, and the pool's method is {strategy}.",
    reason="The MIG manager applies the label again and again, and restarts every GPU pod of the node "
    "(NVIDIA/gpu-operator#1310).",
    remedy="Use `strategy: mig` on this pool, or nodes without the label.",
    source="NVIDIA/gpu-operator#1310",
    needs=("value", "offers"),
    wrong="""
        gpufleet:stack: {kind: operator}
        gpufleet:sharing: {own: {strategy: timeSlicing, replicas: 2}}
        gpufleet:pools:
          - name: t4
            nodeSelector:
              a: b
              nvidia.com/mig.config: all-balanced
              nvidia.com/device-plugin.config: own
            sharing: own
    """,
    fix=("nvidia.com/mig.config: all-balanced", "nvidia.com/mig.config: all-disabled"),
)

GF403 = rule(
    "GF403", Severity.ERROR,
    title="The label {value} cannot be set here.",
    reason="The label belongs to AKS, to Kubernetes or to NVIDIA's software, which writes it or refuses it.",
    remedy="Remove it.",
    source="AKS-DOC (use-labels); K8S-DOC (labels-annotations-taints); PLUGIN",
    wrong="gpufleet:pools: [{name: t4, labels: {kubernetes.io/x: z}}]",
    right="gpufleet:pools: [{name: t4, labels: {x.kubernetes.io/x: z}}]",
)

GF434 = rule(
    "GF434", Severity.ERROR,
    title="The selector wants {value}; nodes of this pool have {key}={right}.",
    reason="Feature discovery writes this label from the hardware and from how it is shared. Nodes that carry another "
    "value are none of this pool, so pods and plugin would find no node.",
    because="{why} Pods and plugin would find no node.",
    remedy="Choose the nodes by a label of your own that sharing does not change, such as gpu-pool: {pool}; or correct "
    "the pool.",
    source="NVIDIA/k8s-device-plugin (v0.20.0, internal/lm/resource.go)",
    needs=("value", "offers"),
    wrong="""
        gpufleet:stack: {kind: operator}
        gpufleet:sharing: {half: {strategy: timeSlicing, replicas: 2}}
        gpufleet:pools:
          - name: t4
            nodeSelector: {nvidia.com/gpu.product: Tesla-T4, nvidia.com/device-plugin.config: half}
            sharing: half
    """,
    fix=("nvidia.com/gpu.product: Tesla-T4", "gpu-pool: t4"),
)

GF424 = rule(
    "GF424", Severity.ERROR,
    title="The pools {value} and {other} pick the same nodes.",
    reason="A node that both selectors match would get two device plugins, and the last one to register wins.",
    remedy="Give the selectors a key with different values.",
    source="NVIDIA/k8s-device-plugin#990",
    wrong="""
        gpufleet:pools:
          - {name: t4, nodeSelector: {rack: a}}
          - {name: b, nodeSelector: {rack: a, gpu: t4}, gpu: T4}
    """,
    fix=("a, gpu: t4", "b"),
)


#: Written by kubelet, cloud provider and node feature discovery (Kubernetes documentation: well-known labels). Taking
#: such a label over, and giving it back later, would take it away from its owner.
WELL_KNOWN = (
    "kubernetes.io/",
    "beta.kubernetes.io/",
    "node.kubernetes.io/",
    "topology.kubernetes.io/",
    "failure-domain.beta.kubernetes.io/",
    "feature.node.kubernetes.io/",
)
#: Derived by the plan, or written by feature discovery and the operator.
DERIVED = ("gpufleet.dev/", OPERATOR_CONFIG_LABEL, "nvidia.com/gpu.", "nvidia.com/mig.", "nvidia.com/mps.")


@check("pool", GF403)
def owned(pool: FleetPool) -> Iterator[Finding]:
    """Reserved and derived keys; a label of a taint that the place adds may be restated with its value."""
    added = {(taint.key, taint.value) for taint in pool.place.added_taints(pool.spec)}
    for key, value in pool.spec.labels.items():
        if (key, value) in added:
            continue
        if pool.place.reserved_labels and key.startswith(pool.place.reserved_labels):
            because = f"{pool.place.owner_of_nodes} keeps this prefix for itself and refuses the pool."
        elif key.startswith(WELL_KNOWN):
            because = "Kubernetes itself writes it on every node."
        elif key.startswith(DERIVED):
            because = "gpufleet or NVIDIA's software writes it from what is declared."
        else:
            continue
        yield GF403.at(join_path((*split_path(pool.path), "labels", key)), value=key, because=because)


@check("stack", GF222, GF223, GF225, GF317)
def selectors(fleet: Fleet) -> Iterator[Finding]:
    """Labels that are missing (NV-22), or that cut what is to be shared (NV-40)."""
    for pool in fleet.pools:
        if pool.nodes.labelled:
            continue
        if fleet.release is not None:
            yield from _operator(pool, fleet)
        path, has = f"{pool.path}.nodeSelector", pool.selector
        apart = operand_labels(pool.spec, fleet.release) if fleet.release else {}
        needs = {k: v for k, v in pool.derived.items() if k not in (OPERATOR_CONFIG_LABEL, METHOD_LABEL, *apart)}
        missing = {k: v for k, v in needs.items() if has.get(k) != v}
        if missing:
            yield GF225.at(path, value=dict(has), missing=missing)
        label = has.get(MIG_CONFIG_LABEL, MIG_DISABLED)
        if pool.served and pool.method.mig_strategy == "none" and label != MIG_DISABLED:
            yield GF317.at(path, value=f"{MIG_CONFIG_LABEL}={label}", strategy=pool.method.strategy)


def _operator(pool: FleetPool, fleet: Fleet) -> Iterator[Finding]:
    """The operator's own labels: those that keep its operands off, and the one that names the sharing text."""
    path, has = f"{pool.path}.nodeSelector", pool.selector
    apart = operand_labels(pool.spec, fleet.release) if fleet.release else {}
    missing = {k: v for k, v in apart.items() if has.get(k) != v}
    if missing:
        yield GF223.at(path, value=dict(has), missing=missing)
    wanted = pool.derived.get(OPERATOR_CONFIG_LABEL)
    if wanted is not None and has.get(OPERATOR_CONFIG_LABEL, UNSHARED) != wanted:
        yield GF222.at(path, value=dict(has), profile=wanted)


@check("pool", GF434)
def discovered(pool: FleetPool) -> Iterator[Finding]:
    """Labels of feature discovery in a selector, against the pool's hardware and sharing."""
    if pool.nodes.labelled or not pool.served:
        return
    product, model = pool.selector.get(PRODUCT_LABEL), pool.hardware.model
    wanted = gpu_model(product.removesuffix("-SHARED")) if product else None
    gpus = pool.hardware.gpus
    for key, value in pool.selector.items():
        right, why = pool.offer.labels.get(key, value), "Feature discovery writes what sharing makes of it."
        if key == PRODUCT_LABEL and wanted and model and model.product and model.id != wanted.id:
            right, why = right if right != value else model.product, "The pool's GPU is another one."
        elif key == COUNT_LABEL and gpus is not None:
            right, why = str(gpus), "The label counts the GPUs of a node, whether they are shared or not."
        if value != right and key in DISCOVERED_LABELS:
            path = join_path((*split_path(pool.path), "nodeSelector", key))
            yield GF434.at(path, value=f"{key}={value}", key=key, right=right, why=why, pool=pool.name)


@check("stack", GF424)
def overlaps(fleet: Fleet) -> Iterator[Finding]:
    """A selector that another one contains picks all of its nodes; others cannot be told apart without the cluster."""
    pools = [pool for pool in fleet.pools if not pool.nodes.labelled]
    for n, pool in enumerate(pools):
        for other in pools[:n]:
            wide, narrow = sorted((pool.selector.items(), other.selector.items()), key=len)
            if set(wide) <= set(narrow):
                yield GF424.at(f"{pool.path}.nodeSelector", value=pool.name, other=other.name)
