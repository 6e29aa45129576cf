"""A thin client for the Kubernetes API: plain JSON in and out, on the connection of the `kubernetes` library.

The stand-ins read and patch whole objects as dictionaries. The library's model classes would cost a full
parse per object and hide the fields that matter here, so only its kubeconfig and TLS handling is used.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
TIMEOUT_S = 10.0


class KubeError(Exception):
    """An answer of the API server other than 2xx, or none at all (code 0)."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message


class Kube:
    """Requests against one API server, taken from a kubeconfig file."""

    def __init__(self, kubeconfig: str) -> None:
        from kubernetes import config

        try:
            self._client = config.new_client_from_config(config_file=kubeconfig)
        except config.ConfigException as error:
            raise KubeError(0, f"unusable kubeconfig {kubeconfig}") from error
        self._pool = self._client.rest_client.pool_manager
        self._host = self._client.configuration.host.rstrip("/")

    def _send(self, method: str, path: str, body: Any = None, content_type: str = "application/json",
              query: str = "", stream: bool = False, timeout: float | None = TIMEOUT_S) -> Any:
        import urllib3

        headers = {"Accept": "application/json", "Content-Type": content_type}
        self._client.update_params_for_auth(headers, [], ["BearerToken"], path, method, None)
        try:
            answer = self._pool.request(
                method, f"{self._host}{path}{'?' + query if query else ''}", headers=headers,
                body=None if body is None else json.dumps(body).encode(), preload_content=not stream,
                timeout=urllib3.Timeout(connect=TIMEOUT_S, read=timeout), retries=False)
        except urllib3.exceptions.HTTPError as error:
            raise KubeError(0, f"no answer from {self._host}: {type(error).__name__}") from error
        if answer.status >= 300:
            text = answer.data.decode(errors="replace") if not stream else answer.read().decode(errors="replace")
            with contextlib.suppress(ValueError):
                text = json.loads(text).get("message", text)
            raise KubeError(answer.status, text)
        return answer

    def call(self, method: str, path: str, body: Any = None, content_type: str = "application/json",
             query: str = "") -> dict[str, Any]:
        """One request; raises KubeError. Answers the parsed object."""
        answer = self._send(method, path, body, content_type, query)
        parsed: dict[str, Any] = json.loads(answer.data or b"{}")
        return parsed

    def get(self, path: str) -> dict[str, Any] | None:
        """The object at path, or None where there is none."""
        try:
            return self.call("GET", path)
        except KubeError as error:
            if error.code == 404:
                return None
            raise

    def items(self, path: str, query: str = "") -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.call("GET", path, query=query).get("items", [])
        return found

    def patch(self, path: str, body: Any, content_type: str = MERGE) -> dict[str, Any]:
        return self.call("PATCH", path, body, content_type)

    def delete(self, path: str, grace_s: int | None = None) -> None:
        """Delete; an object that is already gone is no error."""
        body = {} if grace_s is None else {"gracePeriodSeconds": grace_s}
        try:
            self.call("DELETE", path, {"kind": "DeleteOptions", "apiVersion": "v1", **body})
        except KubeError as error:
            if error.code != 404:
                raise

    def watch(self, path: str, resource_version: str, seconds: int) -> Iterator[dict[str, Any]]:
        """Events of one watch request, until the server ends it after `seconds`."""
        query = f"watch=true&allowWatchBookmarks=true&resourceVersion={resource_version}&timeoutSeconds={seconds}"
        import urllib3

        answer = self._send("GET", path, query=query, stream=True, timeout=seconds + TIMEOUT_S)
        rest = b""
        try:
            for chunk in answer.stream(65536, decode_content=True):
                *lines, rest = (rest + chunk).split(b"\n")
                yield from (json.loads(line) for line in lines if line)
        except urllib3.exceptions.HTTPError as error:
            raise KubeError(0, f"watch of {path} broke: {type(error).__name__}") from error
        finally:
            answer.close()
