"""Runs the program against a monitor that records every registration with its options."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pulumi
import pytest
from google.protobuf import json_format
from gpufleet.deploy import program
from gpufleet.parts.seen import Seen
from gpufleet.places import last_labels
from gpufleet.places.aks import resources as aks_resources
from gpufleet.places.existing import in_use
from gpufleet.stackfile.source import parse
from pulumi.runtime import mocks, rpc, rpc_manager, settings
from pulumi.runtime.stack import run_pulumi_func

#: The mark of a secret in a serialised value.
SIGNATURE, SECRET = "4dabf18193072939515e22adb298388d", "1b47061264138c4ac30d75fd1eb44270"
#: A word that stands in every kubeconfig here and must be seen nowhere.
TOKEN = "s3cr3t-t0ken"
KUBECONFIG = f"""\
apiVersion: v1
clusters: [{{name: c, cluster: {{server: "https://127.0.0.1:1"}}}}]
contexts: [{{name: ctx, context: {{cluster: c, user: u}}}}]
current-context: ctx
users: [{{name: u, user: {{token: {TOKEN}}}}}]
"""


#: Secrets of stack files, as the engine hands them over.
SECRETS = {"kubeconfig": KUBECONFIG, "pullSecret": f'{{"auths": {{"registry.example.com": {{"auth": "{TOKEN}"}}}}}}'}


@dataclass(frozen=True)
class Resource:
    """One registration. `inputs` is the serialised form, secrets marked; options in the engine's own names."""

    type: str
    name: str
    urn: str
    parent: str
    provider: str
    inputs: dict[str, Any]
    custom: bool
    protect: bool
    ignore_changes: tuple[str, ...]
    replace_on_changes: tuple[str, ...]
    deleted_with: str
    dependencies: frozenset[str]
    timeouts: dict[str, str]
    delete_before_replace: bool
    retain_on_delete: bool

    @property
    def labels(self) -> dict[str, str]:
        """Labels of an object in a cluster."""
        found: dict[str, str] = self.inputs["metadata"].get("labels", {})
        return found

    @property
    def kubernetes(self) -> bool:
        """An object inside a cluster (the provider itself is not)."""
        return self.type.startswith("kubernetes:")


@dataclass
class Recorded:
    """Registrations in order, outputs of components by URN, stack outputs, messages, calls of functions with their
    arguments, the error that ended it all."""

    resources: list[Resource] = field(default_factory=list)
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    exports: dict[str, Any] = field(default_factory=dict)
    messages: list[tuple[str, str]] = field(default_factory=list)
    calls: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    error: str | None = None

    def of(self, kind: str) -> list[Resource]:
        """The resources of a type, by the last part of its token (`AgentPool`)."""
        return [r for r in self.resources if r.type.rpartition(":")[2] == kind]

    def node_labels(self) -> dict[str, dict[str, str]]:
        """Node -> labels, of all patches together."""
        found: dict[str, dict[str, str]] = {}
        for patch in self.of("NodePatch"):
            own = found.setdefault(patch.inputs["metadata"]["name"], {})
            assert not own.keys() & patch.labels.keys(), "two owners of one label"
            own |= patch.labels
        return found

    def one(self, kind: str) -> Resource:
        """The only resource of a type."""
        found = self.of(kind)
        assert len(found) == 1, [r.name for r in found]
        return found[0]


def is_secret(value: Any) -> bool:
    """Whether a serialised value is marked as a secret."""
    return isinstance(value, dict) and value.get(SIGNATURE) == SECRET


def in_clear(value: Any) -> str:
    """All of a serialised value that is not secret, as text."""
    if is_secret(value):
        return "[secret]"
    if isinstance(value, dict):
        return " ".join(f"{k} {in_clear(v)}" for k, v in value.items())
    if isinstance(value, list):
        return " ".join(in_clear(v) for v in value)
    return str(value)


class _NotFound(grpc.RpcError):
    """What a provider answers to a read of something that is not there."""

    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNKNOWN

    def details(self) -> str:
        return 'Code="ResourceNotFound"'


class _Answers(mocks.Mocks):
    """`pools` are agent pools that Azure has already, by name, as it shows them; `kubeconfig` what it hands out."""

    def __init__(
        self, calls: list[tuple[str, dict[str, Any]]], pools: Mapping[str, dict[str, Any]], kubeconfig: str
    ) -> None:
        self.calls, self.pools, self.kubeconfig = calls, pools, kubeconfig

    def new_resource(self, args: mocks.MockResourceArgs) -> tuple[str | None, dict[str, Any]]:
        state = dict(args.inputs)
        for key in ("agentPoolName", "subnetName", "virtualNetworkName", "resourceName", "resourceGroupName"):
            if key in state and "name" not in state:
                state["name"] = state[key]
        return f"/id/{args.name}", state

    def call(self, args: mocks.MockCallArgs) -> dict[str, Any]:
        call = args.token.removeprefix("azure-native:containerservice:")
        self.calls.append((call, dict(args.args)))
        if call == "getAgentPool":
            if args.args["agentPoolName"] not in self.pools:
                raise _NotFound
            return self.pools[args.args["agentPoolName"]]
        if call == "getManagedCluster":
            return {"id": f"/id/{args.args['resourceName']}"}
        assert call in ("listManagedClusterUserCredentials", "listManagedClusterAdminCredentials")
        return {"kubeconfigs": [{"name": "u", "value": base64.b64encode(self.kubeconfig.encode()).decode()}]}


class _Monitor(mocks.MockMonitor):
    def __init__(self, into: Recorded, answers: _Answers) -> None:
        super().__init__(answers)
        self.into = into

    def RegisterResource(self, request: Any) -> Any:  # noqa: N802
        answer = super().RegisterResource(request)
        if request.type == "pulumi:pulumi:Stack":
            return answer
        timeouts = request.customTimeouts
        self.into.resources.append(
            Resource(
                type=request.type,
                name=request.name,
                urn=answer.urn,
                parent=request.parent,
                provider=request.provider,
                inputs=json_format.MessageToDict(request.object),
                custom=request.custom,
                protect=request.protect,
                ignore_changes=tuple(request.ignoreChanges),
                replace_on_changes=tuple(request.replaceOnChanges),
                deleted_with=request.deletedWith,
                dependencies=frozenset(request.dependencies),
                timeouts={k: v for k in ("create", "update", "delete") if (v := getattr(timeouts, k))},
                delete_before_replace=request.deleteBeforeReplace,
                retain_on_delete=request.retainOnDelete,
            )
        )
        return answer

    def RegisterResourceOutputs(self, request: Any) -> Any:  # noqa: N802
        self.into.outputs[request.urn] = json_format.MessageToDict(request.outputs)
        return super().RegisterResourceOutputs(request)


class _Log(logging.Handler):
    def __init__(self, into: Recorded) -> None:
        super().__init__()
        self.into = into

    def emit(self, record: logging.LogRecord) -> None:
        self.into.messages.append((record.levelname.lower(), record.getMessage()))


class _SeenCluster:
    """What `look` gives beside what it saw; no pod holds a GPU."""

    def pods_with_gpus(self, node: str) -> list[str]:
        return []

    def each(self, path: str) -> Iterator[dict[str, Any]]:
        return iter(())

    @property
    def api(self) -> _SeenCluster:
        return self

    def exists(self, path: str) -> bool | None:
        return None


def run(
    text: str,
    stack: str = "test",
    environment: dict[str, str] | None = None,
    pools: Mapping[str, dict[str, Any]] | None = None,
    kubeconfig: str = KUBECONFIG,
    seen: Seen | None = None,
    wait: Callable[..., list[str]] = lambda *_: [],
) -> Recorded:
    """`__main__.py` on a stack file, as the engine would run it; the kubeconfig lies where the file says.

    `seen` is in the cluster; without it, the cluster does not answer before it is used. `wait` stands in for the wait
    for pods to read their ConfigMaps.

    Secrets of the stack file (`secure`) arrive as the engine hands them over: in clear, and listed as secret.
    """
    into = Recorded()
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        root = Path(folder)
        data = parse(text)[0].data
        cluster = data.get("cluster")
        where = cluster.get("kubeconfig") if isinstance(cluster, dict) else None
        files = {f"stacks/Pulumi.{stack}.yaml": text, "Pulumi.yaml": "name: test\nstackConfigDir: stacks\n"}
        if isinstance(where, dict) and where.get("path"):
            files[where["path"]] = KUBECONFIG
        for name, content in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        for variable in ("GPUFLEET_KUBECONFIG", "GPUFLEET_OPERATOR_CHART", "GPUFLEET_HAMI_CHART"):
            patch.delenv(variable, raising=False)
        for variable, value in (environment or {}).items():
            patch.setenv(variable, value)
        found = (_SeenCluster(), seen) if seen is not None else None
        patch.setattr(in_use, "look", lambda *_: found)
        patch.setattr(aks_resources, "look", lambda *_: found)
        patch.setattr(last_labels, "wait_until_read", wait)
        patch.setattr(pulumi.runtime, "get_root_directory", lambda: folder)
        _run(data, stack, into, _Answers(into.calls, pools or {}, kubeconfig))
    return into


def _run(data: Mapping[str, Any], stack: str, into: Recorded, answers: _Answers) -> None:
    config = {f"gpufleet:{k}": json.dumps(v, default=str) for k, v in data.items() if k not in SECRETS}
    secrets = []
    for key, secret in SECRETS.items():
        if key in data:
            config[f"gpufleet:{key}"] = secret
            secrets.append(f"gpufleet:{key}")
    logger = logging.Logger("recording", logging.INFO)
    logger.addHandler(_Log(into))
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    settings.reset_options()
    mocks.set_mocks(answers, project="gpufleet", stack=stack, logger=logger, monitor=_Monitor(into, answers))
    pulumi.runtime.set_all_config(config, secrets)

    async def go() -> None:
        await run_pulumi_func(program.run)
        outputs = dict(getattr(settings.get_root_resource(), "outputs", {}))
        into.exports = json_format.MessageToDict(await rpc.serialize_properties(outputs, {}))

    try:
        loop.run_until_complete(go())
    except pulumi.RunError as error:
        into.error = str(error)
    finally:
        rpc_manager.RPC_MANAGER = rpc_manager.RPCManager()
        pulumi.runtime.set_all_config({}, [])
        settings.reset_options()
