"""Several device plugins on one node. Pure.

The kubelet keeps, per resource name, the plugin that registered last. One that lost its name does not learn of it and
registers again only when its pod is replaced: when the winner goes, nobody offers the name.
Source: Kubernetes, pkg/kubelet/cm/devicemanager (a registration replaces the endpoint of the same resource name); cases
NV-20 and NV-21.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from .pods import Pod

Offer = tuple[Pod, dict[str, int]]


def settle(offers: Sequence[Offer], before: str | None) -> tuple[dict[str, int], str | None]:
    """What the node offers, and a note on plugins beside each other; None where there is nothing to note.

    `offers` in the order of registration. `before`: the note as it was; JSON with `plugins` (namespace/pod, in that
    order) and `lost` (resource name -> plugins that had registered it before another did).
    """
    latest: dict[str, Offer] = {}
    for one in offers:  # a pod of the same DaemonSet takes over from its predecessor
        latest.pop(_owner(one[0]), None)
        latest[_owner(one[0])] = one
    plugins = {f"{pod['metadata']['namespace']}/{pod['metadata']['name']}": found for pod, found in latest.values()}
    lost = {name: [one for one in losers if one in plugins]
            for name, losers in (json.loads(before)["lost"] if before else {}).items()}
    has: dict[str, str] = {}
    for plugin, found in plugins.items():
        for name in found:
            if plugin in lost.get(name, []):
                continue
            if name in has:
                lost.setdefault(name, []).append(has[name])
            has[name] = plugin
    lost = {name: losers for name, losers in lost.items() if losers}
    resources = {name: plugins[plugin][name] for name, plugin in has.items()}
    if len(plugins) < 2 and not lost:
        return resources, None
    return resources, json.dumps({"plugins": list(plugins), "lost": lost}, sort_keys=True)


def _owner(pod: Pod) -> str:
    owners = pod["metadata"].get("ownerReferences") or []
    return str(next((one["uid"] for one in owners if one.get("controller")), pod["metadata"]["uid"]))
