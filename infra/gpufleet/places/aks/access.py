"""Who gets into an AKS cluster, and how the runner of `pulumi` does: Entra, local accounts, kubeconfig."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Annotated, Literal

import yaml
from pydantic import Field

from gpufleet.catalog import aks_login
from gpufleet.stackfile.base import AsTuple, Model, matches

_OBJECT_ID = r"[0-9a-fA-F]{8}-([0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}"

ObjectId = Annotated[
    str,
    matches(
        _OBJECT_ID,
        "Entra knows groups and tenants by their object ids; names can change and are never sent.",
        "Copy the id that `az ad group show --group NAME --query id` prints.",
    ),
]

#: Which kubeconfig the service is asked for. `admin` is a local account.
Credentials = Literal["user", "admin"]
#: How kubelogin signs in where the cluster has Entra; `devicecode` waits for a person.
Login = Literal["azurecli", "workloadidentity", "msi", "spn", "devicecode"]


def is_object_id(text: str) -> bool:
    """Whether a text looks like an object id of Entra."""
    return re.fullmatch(_OBJECT_ID, text) is not None


class Entra(Model):
    """Sign-in with Microsoft Entra, managed by AKS. `adminGroups` are object ids of groups."""

    admin_groups: Annotated[tuple[ObjectId, ...], AsTuple] = Field(
        default=(),
        description="Object ids of the Entra groups whose members administer the cluster.",
        examples=[["6d0c1e2f-0a3b-4c5d-8e9f-112233445566"]],
    )
    azure_rbac: bool = Field(
        default=False,
        description="Azure roles decide who may do what in the cluster, beside Kubernetes' own role bindings.",
        examples=[True],
    )
    tenant_id: ObjectId | None = Field(
        default=None,
        description="The Entra tenant; without it, that of the subscription.",
        examples=["72f988bf-86f1-41af-91ab-2d7cd011db47"],
    )


def with_login(kubeconfig: str, login: Login) -> str:
    """A kubeconfig in which kubelogin signs in as told; one without kubelogin stays as it is.

    AKS hands out `devicecode`, which waits for a person. Which options a mode keeps is what
    `kubelogin convert-kubeconfig` does (catalogue table aks_logins).
    """
    data = yaml.safe_load(kubeconfig)
    users = data.get("users") if isinstance(data, dict) else None
    changed = False
    for user in users if isinstance(users, list) else ():
        command = (user.get("user") or {}).get("exec")
        if not isinstance(command, dict) or "kubelogin" not in str(command.get("command", "")).lower():
            continue
        given = _options([str(word) for word in command.get("args") or ()])
        kept = [word for name in aks_login(login) if name in given for word in (name, given[name])]
        command["args"] = ["get-token", "--login", login, *kept]
        changed = True
    return yaml.safe_dump(data, sort_keys=False) if changed else kubeconfig


def _options(words: list[str]) -> dict[str, str]:
    """`--name value` pairs of a command line."""
    return {name: value for name, value in pairwise(words) if name.startswith("--")}
