"""What labels of nodes wait for that name keys of the software's ConfigMaps: until its pods read these."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pulumi

from gpufleet.parts.names import LAST_LABELS
from gpufleet.parts.seen import Seen
from gpufleet.places.look import wait_until_read

if TYPE_CHECKING:
    from gpufleet.plan.model import Plan


def labels_may_move(
    plan: Plan,
    seen: Seen | None,
    wanted: Mapping[str, Mapping[str, str]],
    kubeconfig: pulumi.Input[str],
    context: str | None,
    read: pulumi.Input[Any],
) -> list[pulumi.Resource]:
    """What labels wait for: nothing where none of them moves, else until the pods of the release read its ConfigMaps.

    `wanted` maps nodes to the labels that they will have, `read` is there once the release is. It goes into
    `depends_on`: no resource comes from it.
    """
    operator = plan.operator
    if operator is None or seen is None or not seen.move(wanted, LAST_LABELS) or pulumi.runtime.is_dry_run():
        return []
    names = [one.name for one, _ in operator.config_maps]

    async def wait(values: list[Any]) -> None:
        text = values[0]
        limit = operator.timeout_seconds
        late = await asyncio.to_thread(wait_until_read, text, context, operator.namespace, names, limit)
        if late:
            raise pulumi.RunError(
                f"After {limit} s, pods of {', '.join(late)} in {operator.namespace} still read the configuration from"
                f" before. The labels of nodes that choose from it were not changed. Look at these pods (kubectl -n"
                f" {operator.namespace} rollout status daemonset/{late[0]}), then run `pulumi up` again."
            )

    waited: Any = pulumi.Output.all(kubeconfig, read).apply(wait)
    return [waited]
