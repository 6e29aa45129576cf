"""The provider protocol in front of the service: what the engine calls."""

from __future__ import annotations

import base64
import json
import os
import re
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import grpc
from google.protobuf import any_pb2, empty_pb2
from google.rpc import status_pb2
from pulumi.runtime.proto import errors_pb2, plugin_pb2
from pulumi.runtime.proto import provider_pb2 as proto
from pulumi.runtime.proto import provider_pb2_grpc as rpc

from twin.advertiser.kube import Kube

from . import constraints, diff, schema, service, wire
from .errors import ArmError, FailedStateError
from .faults import raise_planned
from .store import Store

Context = grpc.ServicerContext
RANDOM_NAMES = ("ResourceGroup", "ManagedCluster", "VirtualNetwork")  # child resources copy the logical name
Kind = proto.PropertyDiff
ACTIONS = {  # plain and replacing
    "add": (Kind.ADD, Kind.ADD_REPLACE), "delete": (Kind.DELETE, Kind.DELETE_REPLACE),
    "update": (Kind.UPDATE, Kind.UPDATE_REPLACE),
}  # fmt: skip


def kind_and_name(urn: str) -> tuple[str, str]:
    parts = urn.split("::")
    return parts[2].split("$")[-1].split(":")[-1], parts[-1]


class Provider(rpc.ResourceProviderServicer):
    def __init__(self) -> None:
        self.location: str | None = os.environ.get("ARM_LOCATION_NAME")
        state = os.environ.get("TWIN_AZURE_STATE") or ".twin/azure.json"
        self.service = service.Service(Store(state), self._kube)
        self._client: Kube | None = None

    def _kube(self) -> Kube | None:
        path = os.environ.get("TWIN_KUBECONFIG")
        if self._client is None and path:
            self._client = Kube(path)
        return self._client

    # --- about the provider

    def Handshake(  # noqa: N802
        self, request: proto.ProviderHandshakeRequest, context: Context
    ) -> proto.ProviderHandshakeResponse:
        return proto.ProviderHandshakeResponse(accept_secrets=True, accept_resources=True)

    def GetPluginInfo(self, request: empty_pb2.Empty, context: Context) -> plugin_pb2.PluginInfo:  # noqa: N802
        return plugin_pb2.PluginInfo(version=metadata.version("pulumi-azure-native"))

    def Attach(self, request: plugin_pb2.PluginAttach, context: Context) -> empty_pb2.Empty:  # noqa: N802
        return empty_pb2.Empty()

    def Cancel(self, request: empty_pb2.Empty, context: Context) -> empty_pb2.Empty:  # noqa: N802
        return empty_pb2.Empty()

    def GetSchema(self, request: proto.GetSchemaRequest, context: Context) -> proto.GetSchemaResponse:  # noqa: N802
        return proto.GetSchemaResponse(schema=json.dumps({"name": "azure-native",
                                                          "version": metadata.version("pulumi-azure-native")}))

    def GetMapping(self, request: proto.GetMappingRequest, context: Context) -> proto.GetMappingResponse:  # noqa: N802
        return proto.GetMappingResponse()

    def CheckConfig(self, request: proto.CheckRequest, context: Context) -> proto.CheckResponse:  # noqa: N802
        return proto.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: proto.DiffRequest, context: Context) -> proto.DiffResponse:  # noqa: N802
        return proto.DiffResponse(changes=proto.DiffResponse.DIFF_NONE)

    def Configure(self, request: proto.ConfigureRequest, context: Context) -> proto.ConfigureResponse:  # noqa: N802
        args, _ = wire.decode(request.args)
        self.location = args.get("location") or request.variables.get("azure-native:config:location") or self.location
        return proto.ConfigureResponse(acceptSecrets=True, acceptResources=True, supportsPreview=True)

    # --- resources

    def Check(self, request: proto.CheckRequest, context: Context) -> proto.CheckResponse:  # noqa: N802
        kind, name = kind_and_name(request.urn)
        news, secrets = wire.decode(request.news)
        olds, _ = wire.decode(request.olds)
        if kind not in service.TYPES:
            return proto.CheckResponse(inputs=request.news, failures=[proto.CheckFailure(
                property="", reason=f"the Azure stand-in does not know resource type {kind}")])
        own = service.PATH_PARAMETERS[kind][-1]
        if own not in news:
            suffix = request.randomSeed[:4].hex() if kind in RANDOM_NAMES else ""
            news[own] = olds.get(own) or name + suffix
        if "location" not in news and self.location and kind not in service.CHILDREN:
            news["location"] = self.location
        failures = [proto.CheckFailure(property=path, reason=reason) for path, reason in constraints.check(kind, news)]
        if failures:
            _log("check", kind, name, news, secrets, "refused: " + "; ".join(f.reason for f in failures))
        return proto.CheckResponse(inputs=wire.encode(news, secrets), failures=failures)

    def Diff(self, request: proto.DiffRequest, context: Context) -> proto.DiffResponse:  # noqa: N802
        kind, name = kind_and_name(request.urn)
        old, _ = wire.decode(request.old_inputs if request.old_inputs.fields else request.olds)
        new, _ = wire.decode(request.news)
        ignored = set(request.ignoreChanges)
        found = {path: action for path, action in diff.changes(old, new).items()
                 if not any(path == one or path.startswith((one + ".", one + "[")) for one in ignored)}
        replacing = sorted(path for path in found if diff.replaces(kind, path))
        own = str(new.get(service.PATH_PARAMETERS[kind][-1]))
        random_name = kind in RANDOM_NAMES and re.fullmatch(re.escape(name) + "[0-9a-f]{8}", own) is not None
        return proto.DiffResponse(
            changes=proto.DiffResponse.DIFF_SOME if found else proto.DiffResponse.DIFF_NONE,
            diffs=sorted({re.split(r"[.\[]", path)[0] for path in found}),
            replaces=sorted({re.split(r"[.\[]", path)[0] for path in replacing}),
            deleteBeforeReplace=bool(replacing) and not random_name, hasDetailedDiff=True,
            detailedDiff={path: proto.PropertyDiff(kind=ACTIONS[action][path in replacing], inputDiff=True)
                          for path, action in found.items()})

    def Create(self, request: proto.CreateRequest, context: Context) -> proto.CreateResponse:  # noqa: N802
        kind, name = kind_and_name(request.urn)
        props, secrets = wire.decode(request.properties)
        if request.preview:
            return proto.CreateResponse(properties=wire.encode(_preview(kind, props), secrets))
        ident, answer = self._put("create", kind, name, props, secrets, context)
        return proto.CreateResponse(id=ident, properties=answer)

    def Update(self, request: proto.UpdateRequest, context: Context) -> proto.UpdateResponse:  # noqa: N802
        kind, name = kind_and_name(request.urn)
        props, secrets = wire.decode(request.news)
        if request.preview:
            return proto.UpdateResponse(properties=wire.encode(_preview(kind, props), secrets))
        _, answer = self._put("update", kind, name, props, secrets, context)
        return proto.UpdateResponse(properties=answer)

    def _put(self, op: str, kind: str, name: str, props: dict[str, Any], secrets: set[wire.Path],
             context: Context) -> tuple[str, Any]:
        """The id and the answer's properties, encoded; an error ends the call."""
        ident = service.arm_id(kind, props)
        try:
            answer = self.service.put(kind, props, create=op == "create")
        except FailedStateError as error:
            _log(op, kind, name, props, secrets, error.code)
            state = wire.encode(self.service.get(ident) or {}, secrets)
            _abort_failed_state(context, ident, state, wire.encode(props, secrets), error)
        except ArmError as error:
            _log(op, kind, name, props, secrets, error.code)
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        _log(op, kind, name, props, secrets, "ok")
        return ident, wire.encode(answer, secrets)

    def Read(self, request: proto.ReadRequest, context: Context) -> proto.ReadResponse:  # noqa: N802
        kind, name = kind_and_name(request.urn)
        old, secrets = wire.decode(request.properties)
        inputs, input_secrets = wire.decode(request.inputs)
        try:
            raise_planned("read", kind, name)
        except ArmError as error:
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        answer = self.service.get(request.id)
        _log("read", kind, name, {}, set(), "ok" if answer else "ResourceNotFound")
        if answer is None:
            return proto.ReadResponse(id="")
        if inputs:
            inputs = diff.carry_over(inputs, old, answer)
        else:  # an import, or a get: the inputs are what the service shows and a program may state
            known = schema.resource_fields(kind).shapes
            address = dict(zip(service.PATH_PARAMETERS[kind], _names(request.id), strict=True))
            inputs = {key: value for key, value in {**answer, **address}.items() if key in known and key != "type"}
        return proto.ReadResponse(id=request.id, properties=wire.encode(answer, secrets),
                                  inputs=wire.encode(inputs, input_secrets))

    def Delete(self, request: proto.DeleteRequest, context: Context) -> empty_pb2.Empty:  # noqa: N802
        kind, name = kind_and_name(request.urn)
        try:
            self.service.delete(request.id)
        except ArmError as error:
            _log("delete", kind, name, {}, set(), error.code)
            context.abort(grpc.StatusCode.UNKNOWN, str(error))
        _log("delete", kind, name, {}, set(), "ok")
        return empty_pb2.Empty()

    def Invoke(self, request: proto.InvokeRequest, context: Context) -> proto.InvokeResponse:  # noqa: N802
        args, secrets = wire.decode(request.args)
        call = request.tok.split(":")[-1]
        try:
            answer = self._invoke(call, args)
        except ArmError as error:
            _log("invoke", call, str(args.get("resourceName", "")), args, secrets, error.code)
            context.abort(grpc.StatusCode.UNKNOWN, f"{request.tok}: {error}")
        _log("invoke", call, str(args.get("resourceName", "")), args, secrets, "ok")
        return proto.InvokeResponse(**{"return": wire.encode(answer)})  # type: ignore[arg-type]

    def _invoke(self, call: str, args: dict[str, Any]) -> dict[str, Any]:
        if call in ("listManagedClusterUserCredentials", "listManagedClusterAdminCredentials"):
            path = os.environ.get("TWIN_KUBECONFIG")
            if not path or not Path(path).exists():
                raise ArmError("InternalOperationError", "The stand-in has no kubeconfig: TWIN_KUBECONFIG.", status=500)
            text = base64.b64encode(Path(path).read_bytes()).decode()
            return self.service.credentials(args["resourceGroupName"], args["resourceName"], "Admin" in call, text)
        if call == "getClientConfig":
            return {"clientId": "", "objectId": "", "subscriptionId": service.SUBSCRIPTION, "tenantId": service.TENANT}
        kind = call.removeprefix("get")
        if not call.startswith("get") or kind not in service.TYPES:
            raise ArmError("NotImplemented", f"the Azure stand-in does not know {call}", status=501)
        ident = service.arm_id(kind, args)
        answer = self.service.get(ident)
        if answer is None:
            what = "ResourceGroupNotFound" if kind == "ResourceGroup" else "ResourceNotFound"
            raise ArmError(what, f"The resource '{ident}' could not be found.", status=404)
        return {"id": ident, **answer}


def _preview(kind: str, props: dict[str, Any]) -> dict[str, Any]:
    """Inputs as they are; what only the service knows is unknown."""
    computed = {"name": wire.UNKNOWN, "type": wire.UNKNOWN, "provisioningState": wire.UNKNOWN,
                "azureApiVersion": wire.UNKNOWN}
    body = {key: value for key, value in props.items() if key not in service.PATH_PARAMETERS[kind]}
    if kind == "AgentPool":
        body["typePropertiesType"] = body.pop("type", wire.UNKNOWN)
    return {**body, **computed}


def _names(ident: str) -> list[str]:
    """The path parameters' values in an ARM id, in order."""
    parts = ident.strip("/").split("/")
    return [parts[3], *parts[7::2]]


def _abort_failed_state(context: Context, ident: str, properties: Any, inputs: Any,
                        error: FailedStateError) -> None:
    """The engine keeps the resource with its error and repairs it on the next update."""
    detail = any_pb2.Any()
    detail.Pack(proto.ErrorResourceInitFailed(id=ident, properties=properties, reasons=[str(error)], inputs=inputs))
    cause = any_pb2.Any()
    cause.Pack(errors_pb2.ErrorCause(message=str(error)))
    status = status_pb2.Status(code=grpc.StatusCode.UNKNOWN.value[0], message=str(error), details=[detail, cause])
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(grpc.StatusCode.UNKNOWN, str(error))


def _log(op: str, kind: str, name: str, body: dict[str, Any], secrets: set[wire.Path], result: str) -> None:
    path = os.environ.get("TWIN_AZURE_LOG")
    if not path:
        return
    entry = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), "op": op, "type": kind, "name": name,
             "result": result, "body": wire.redact(body, secrets)}
    with Path(path).open("a") as log:
        log.write(json.dumps(entry) + "\n")


def serve() -> None:
    """Serve on a free loopback port and say which on stdout, as the engine expects of a plugin."""
    from concurrent import futures

    server = grpc.server(futures.ThreadPoolExecutor(16), options=[("grpc.max_receive_message_length", 1 << 30)])
    rpc.add_ResourceProviderServicer_to_server(Provider(), server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    print(port, flush=True)
    sys.stdout.flush()
    server.wait_for_termination()
