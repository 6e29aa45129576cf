"""Reading a cluster: nodes, pods of the GPU software, pods that hold devices. The only place here with I/O."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from gpufleet.parts.names import ROUTE_LABEL
from gpufleet.places import PLACES
from gpufleet.places.cluster_api import ApiError, ClusterApi
from gpufleet.places.credentials import LoginError, Say
from gpufleet.stackfile.kubeconfig import kubeconfig_file
from gpufleet.stackfile.model import Stack
from gpufleet.status.observed import Observed
from gpufleet.status.reading import read_keys, read_node, read_pod, read_policy
from gpufleet.status.tables import RETRY_SECONDS, Table, Watches


class ObservationError(Exception):
    """The cluster cannot be read; the text says why and what to do, without secrets."""


def load_kubeconfig(name: str, stack: Stack, option: Path | None, root: Path) -> tuple[dict[str, Any], str | None]:
    """The kubeconfig as data, and the context to use.

    Order: the option, the environment, the stack file; else the secret or output of the Pulumi stack.

    Raises:
        ObservationError: none of them gives one.
    """
    ref = PLACES[stack.cluster.kind].kubeconfig(stack)
    context = ref.context if ref else None
    path = option or kubeconfig_file(ref, root, os.environ)
    if path is not None:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not text"
            raise ObservationError(f"the kubeconfig {path} cannot be read: {reason}") from None
    else:
        text = _from_pulumi(name, stack, root)
    try:
        data = yaml.safe_load(text)
    except yaml.YAMLError:
        data = None
    if not isinstance(data, dict) or "clusters" not in data:
        raise ObservationError("the kubeconfig is not one: it has no `clusters`")
    return data, context


def _from_pulumi(name: str, stack: Stack, root: Path) -> str:
    if PLACES[stack.cluster.kind].kubeconfig(stack) is not None:
        words = ["config", "get", "gpufleet:kubeconfig"]
    else:
        words = ["stack", "output", "kubeconfig", "--show-secrets"]
    command = shutil.which("pulumi")
    if command is None:
        raise ObservationError(
            "the kubeconfig is in the Pulumi stack, and `pulumi` is not on PATH; or give --kubeconfig FILE"
        )
    done = subprocess.run(
        [command, *words, "--stack", name, "--non-interactive"], cwd=root, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise ObservationError(f"pulumi gives no kubeconfig of stack {name}: {last}; or use --kubeconfig FILE")
    return done.stdout


class Cluster:
    """A connection to a cluster, and what was read of it last."""

    def __init__(self, kubeconfig: dict[str, Any], context: str | None, say: Say) -> None:
        """`say` is told what is waited for.

        Raises:
            ObservationError: the kubeconfig cannot be used, or its login program gives no credentials.
        """
        try:
            self._api = ClusterApi(kubeconfig, context, say)
        except (ApiError, LoginError) as error:
            raise ObservationError(str(error)) from None
        self._nodes = Table("/api/v1/nodes", read_node)
        self._pods = Table("/api/v1/pods", read_pod)
        self._maps = Table("/api/v1/configmaps", read_keys, optional=True, labelSelector=ROUTE_LABEL)
        self._policies = Table("/apis/nvidia.com/v1/clusterpolicies", read_policy, optional=True)

    @property
    def _tables(self) -> list[Table[Any]]:
        return [self._nodes, self._pods, self._maps, self._policies]

    def readings(self, seconds: float) -> Iterator[Observed | ObservationError]:
        """One reading at once, and one after each change for so many seconds; an error where there is no answer."""
        until = time.monotonic() + seconds
        while True:
            try:
                yield self.observe()
                break
            except ObservationError as error:
                yield error
            if (left := until - time.monotonic()) <= 0:
                return
            time.sleep(min(RETRY_SECONDS, left))
        if until <= time.monotonic():
            return
        watches = Watches(self._api, self._tables, until)
        for trouble in watches.changes():
            if trouble is not None:
                yield ObservationError(str(trouble))
                continue
            with watches.lock:
                seen = self._seen()
            yield seen

    def observe(self) -> Observed:
        """One reading.

        Raises:
            ObservationError: the API server does not answer, or refuses.
        """
        try:
            for table in self._tables:
                table.list(self._api)
        except ApiError as error:
            raise ObservationError(str(error)) from None
        return self._seen()

    def _seen(self) -> Observed:
        pods = (self._pods.rows or {}).values()
        maps, policies = self._maps.rows, self._policies.rows
        return Observed(
            nodes={name: node for (_, name), node in (self._nodes.rows or {}).items()},
            pods=tuple(sorted((p.operand for p in pods if p.operand), key=lambda p: (p.node, p.name))),
            config_maps=None if maps is None else dict(maps),
            holders=tuple(p.holder for p in pods if p.holder),
            policies=None if policies is None else tuple(policies.values()),
        )
