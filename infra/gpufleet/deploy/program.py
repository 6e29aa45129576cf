"""The Pulumi program in words: configuration -> plan -> resources. Nothing is decided here."""

from __future__ import annotations

from pathlib import Path

import pulumi
import pulumi_kubernetes as k8s

from gpufleet.compiled import Compiled, compile_engine
from gpufleet.deploy.options import InCluster
from gpufleet.extras import missing
from gpufleet.findings.finding import Finding, Severity, errors, summary, text
from gpufleet.internal_error import internal_error
from gpufleet.plan.compile import Plan
from gpufleet.plan.render import pool_table
from gpufleet.stackfile.model import AksStack, ExistingStack
from gpufleet.stackfile.pools import AksPool, NodePool
from gpufleet.stackfile.project import project


def run() -> None:
    """Entry of `__main__.py`.

    Raises:
        pulumi.RunError: there are errors; all of them have been printed, and no resource was registered.
    """
    try:
        _run()
    except pulumi.RunError:
        raise
    except Exception as error:
        raise pulumi.RunError(internal_error(error)) from None


def _run() -> None:
    stack = pulumi.get_stack()
    home = project(Path(pulumi.runtime.get_root_directory() or "."))
    file = home.stack_file(stack)
    config = dict(pulumi.runtime.config.CONFIG.get())
    secrets = frozenset(key for key in config if pulumi.runtime.config.is_config_secret(key))
    compiled = compile_engine(stack, config, secrets, file, home.shown(file))
    tell(compiled.found)
    if compiled.failed or compiled.plan is None:
        raise pulumi.RunError(f"{stack}: {summary(errors(compiled.found))}. Nothing was changed.")
    pulumi.log.info("\n".join(pool_table(compiled.plan)))
    if isinstance(compiled.stack, AksStack) and (lacking := missing("azure", "A stack on AKS")):
        raise pulumi.RunError(lacking)
    deploy(compiled, home.root)


def tell(found: tuple[Finding, ...]) -> None:
    """Prints each diagnostic once, as Pulumi diagnostics of its severity."""
    say = {Severity.ERROR: pulumi.log.error, Severity.WARNING: pulumi.log.warn, Severity.NOTE: pulumi.log.info}
    for d in found:
        if d.acknowledged is None:
            say[d.severity](text(d))


def deploy(compiled: Compiled, root: Path) -> None:
    """Registers the resources of a plan without errors."""
    stack, plan = compiled.stack, compiled.plan
    if stack is None or plan is None:
        raise ValueError("only a plan without errors is deployed")
    before: list[pulumi.Resource] = []
    cluster: pulumi.Resource | None = None
    if isinstance(stack, AksStack):
        from gpufleet.deploy.agent_pools import AgentPools
        from gpufleet.deploy.aks import Aks

        made = Aks(stack.cluster.name, stack.cluster)
        cluster = made.cluster
        pairs = tuple((s, p) for s, p in zip(stack.pools, plan.pools, strict=True) if isinstance(s, AksPool))
        pools = AgentPools(f"{stack.cluster.name}-pools", made, pairs)
        before += list(pools.pools.values())
        provider = k8s.Provider(
            "cluster",
            kubeconfig=made.kubeconfig,
            cluster_identifier=made.cluster_id,
            enable_server_side_apply=True,
            opts=pulumi.ResourceOptions(parent=made),
        )
        inside = InCluster(provider, cluster, stack.cluster.protect)
        pulumi.export("kubeconfig", made.kubeconfig)
        pulumi.export("clusterId", made.cluster_id)
    else:
        inside = _existing(stack, plan, root, before)
    _software(plan, inside, before)
    for team in plan.teams:
        from gpufleet.deploy.teams import Team

        Team(f"team-{team.name}", team, inside)
    _outputs(plan)


def _existing(stack: ExistingStack, plan: Plan, root: Path, before: list[pulumi.Resource]) -> InCluster:
    from gpufleet.deploy.existing import Nodes, kubeconfig
    from gpufleet.deploy.in_use import check_in_use

    spec = stack.cluster

    def inspect(text: str) -> None:
        found = check_in_use(plan, text, spec.kubeconfig.context)
        if found:
            tell(tuple(found))
            raise pulumi.RunError(f"{plan.stack}: {summary(found)}. Nothing was changed.")

    provider = k8s.Provider(
        "cluster",
        kubeconfig=kubeconfig(spec.kubeconfig, root, inspect),
        context=spec.kubeconfig.context,
        cluster_identifier=plan.cluster["identifier"],
        enable_server_side_apply=True,
    )
    inside = InCluster(provider, None, spec.protect)
    pairs = tuple((s, p) for s, p in zip(stack.pools, plan.pools, strict=True) if isinstance(s, NodePool) and s.hosts)
    if pairs:
        before.append(Nodes("nodes", pairs, inside))
    return inside


def _software(plan: Plan, inside: InCluster, before: list[pulumi.Resource]) -> None:
    ready = list(before)
    if plan.plugin:
        from gpufleet.deploy.plugin import DevicePlugin

        ready.append(DevicePlugin("device-plugin", plan.plugin, inside, before))
    if plan.operator:
        from gpufleet.deploy.operator import GpuOperator

        ready.append(GpuOperator("gpu-operator", plan.operator, inside, before))
    if plan.hami:
        from gpufleet.deploy.hami import HamiScheduler

        # After the others: they bring the runtime class, and under the operator the driver.
        HamiScheduler("hami-scheduler", plan.hami, inside, ready)


def _outputs(plan: Plan) -> None:
    pulumi.export(
        "pools",
        {
            p.name: {
                "eachNodeOffers": p.node.resources,
                "sharing": p.profile,
                "driver": p.driver_owner,
                "taints": list(p.taints),
                **({"azureName": p.azure_name} if p.azure_name else {"nodes": list(p.nodes)}),
            }
            for p in plan.pools
        },
    )
    pulumi.export("teams", {t.name: {"namespace": t.namespace, "quota": t.quota} for t in plan.teams})
