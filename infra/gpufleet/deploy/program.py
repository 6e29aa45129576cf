"""The Pulumi program in words: configuration -> plan -> resources. Nothing is decided here."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from pathlib import Path

import pulumi

from gpufleet.compiled import Compiled, compile_engine
from gpufleet.deploy.teams import Team
from gpufleet.extras import missing
from gpufleet.findings.finding import Finding, Severity, errors, told
from gpufleet.findings.render import summary, text
from gpufleet.internal_error import internal_error
from gpufleet.places.base import Made
from gpufleet.plan.model import Plan
from gpufleet.plan.render import pool_table
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
    tell(told(compiled.found))
    if compiled.failed or compiled.plan is None:
        raise pulumi.RunError(f"{stack}: {summary(errors(compiled.found))}. Nothing was changed.")
    pulumi.log.info("\n".join(pool_table(compiled.plan)))
    deploy(compiled, home.root)


def tell(found: Iterable[Finding]) -> None:
    """Prints each diagnostic once, as Pulumi diagnostics of its severity."""
    say = {Severity.ERROR: pulumi.log.error, Severity.WARNING: pulumi.log.warn, Severity.NOTE: pulumi.log.info}
    for d in found:
        if d.acknowledged is None:
            say[d.severity](text(d))


def deploy(compiled: Compiled, root: Path) -> None:
    """Registers the resources of a plan without errors."""
    fleet, plan = compiled.fleet, compiled.plan
    if fleet is None or plan is None:
        raise ValueError("only a plan without errors is deployed")
    extra = fleet.place.extra
    if extra and (lacking := missing(extra, f"A stack on {fleet.place.owner_of_nodes}")):
        raise pulumi.RunError(lacking)
    made = fleet.place.deploy(plan, root, tell)
    for name, value in made.outputs.items():
        pulumi.export(name, value)
    _software(plan, made)
    for team in plan.teams:
        Team(f"team-{team.name}", team, made.inside)
    _outputs(plan)


def _software(plan: Plan, made: Made) -> None:
    """Each artifact by its own component, after those before it; labels of nodes after the software that they name."""
    ready = list(made.before)
    for planned in plan.software:
        artifact = planned.given(made.seen) if made.seen is not None else planned
        module, _, name = artifact.component().partition(":")
        component = getattr(importlib.import_module(module), name)
        installed = component(artifact, made.inside, ready)
        ready = [*ready, installed]
        if artifact.before_labels:
            ready = [*ready, *made.label(ready, installed.release.status)]


def _outputs(plan: Plan) -> None:
    pulumi.export(
        "pools",
        {
            p.name: {
                "eachNodeOffers": p.node.resources,
                "sharing": p.profile,
                "driver": p.driver_owner,
                "taints": list(p.taints),
                **({"nodes": list(p.nodes)} if p.resource is None else p.resource.output()),
            }
            for p in plan.pools
        },
    )
    pulumi.export("teams", {t.name: {"namespace": t.namespace, "quota": t.quota} for t in plan.teams})
