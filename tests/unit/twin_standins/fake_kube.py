"""An API server as a dictionary, for what the stand-ins ask of one."""

from __future__ import annotations

import copy
from typing import Any

from twin.advertiser.kube import KubeError


def merge(into: dict[str, Any], patch: dict[str, Any]) -> None:
    """RFC 7386."""
    for key, value in patch.items():
        if value is None:
            into.pop(key, None)
        elif isinstance(value, dict):
            merge(into.setdefault(key, {}), value)
        else:
            into[key] = copy.deepcopy(value)


class FakeKube:
    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.broken = False

    def call(self, method: str, path: str, body: Any = None, *_: Any) -> dict[str, Any]:
        if self.broken:
            raise KubeError(0, "no answer")
        if method == "POST":
            path = f"{path}/{body['metadata']['name']}"
            if path in self.objects:
                raise KubeError(409, "already exists")
            self.objects[path] = copy.deepcopy(body)
            self.objects[path]["metadata"]["resourceVersion"] = "1"
        if path not in self.objects:
            raise KubeError(404, "not found")
        return copy.deepcopy(self.objects[path])

    def get(self, path: str) -> dict[str, Any] | None:
        return copy.deepcopy(self.objects.get(path))

    def patch(self, path: str, body: Any, *_: Any) -> dict[str, Any]:
        merge(self.objects[path], body)
        return self.get(path) or {}

    def delete(self, path: str, grace_s: int | None = None) -> None:
        self.objects.pop(path, None)

    def items(self, path: str, query: str = "") -> list[dict[str, Any]]:
        node = query.rpartition("=")[2]
        return [one for key, one in self.objects.items() if "/pods/" in key and one["spec"].get("nodeName") == node]

    @property
    def nodes(self) -> dict[str, dict[str, Any]]:
        return {key.rpartition("/")[2]: one for key, one in self.objects.items() if key.startswith("/api/v1/nodes/")}
