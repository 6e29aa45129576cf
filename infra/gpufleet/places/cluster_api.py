"""Raw reads of an API server: pages of plain JSON, and watches. The client library gives address, TLS and token only.

Typed objects of 3,000 pods cost fifty times the time of their JSON, so nothing here makes them.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

from gpufleet.places.credentials import LoginError, Say, exec_entry, with_credentials

#: To connect, and to answer.
CONNECT_SECONDS, REQUEST_SECONDS = 5, 20
PAGE = 500
#: The API server's form of an object without its content.
_NAMES_ONLY = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"


class ApiError(Exception):
    """A read that failed. `status` is the answer's code, None where there was no answer. The text has no secrets."""

    def __init__(self, text: str, status: int | None = None) -> None:
        super().__init__(text)
        self.status = status


class ClusterApi:
    """One connection to an API server; threads may share it."""

    def __init__(self, kubeconfig: dict[str, Any], context: str | None, say: Say) -> None:
        """Runs the login program of the kubeconfig if it has one, and opens no connection yet.

        Raises:
            LoginError: the login program gives no credentials.
            ApiError: the kubeconfig cannot be used.
        """
        self._kubeconfig, self._context, self._say = kubeconfig, context, say
        self._login = threading.Lock()
        self._log_in()

    def _log_in(self) -> None:
        from kubernetes import client, config

        data = with_credentials(self._kubeconfig, self._context, self._say)
        settings = client.Configuration()
        try:
            config.load_kube_config_from_dict(data, context=self._context, client_configuration=settings)
            self._pool = client.ApiClient(settings).rest_client.pool_manager
        except Exception as error:  # the library raises many kinds; its text names the missing entry
            raise ApiError(f"the kubeconfig cannot be used: {error}") from None
        self._host = settings.host.rstrip("/")
        auth = settings.auth_settings().values()
        self._headers = {"Accept": "application/json"} | {a["key"]: a["value"] for a in auth if a["in"] == "header"}

    def list(self, path: str, **query: str) -> Iterator[tuple[list[dict[str, Any]], str]]:
        """All objects below a path, page by page, each with the version of the list.

        Raises:
            ApiError: the server does not answer, or refuses.
        """
        query = {**query, "limit": str(PAGE)}
        while True:
            page = self.get(path, **query)
            meta = page.get("metadata") or {}
            yield page.get("items") or [], str(meta.get("resourceVersion", ""))
            if not meta.get("continue"):
                return
            query["continue"] = meta["continue"]

    def get(self, path: str, **query: str) -> dict[str, Any]:
        """One JSON document; logs in once more where the credentials have run out.

        Raises:
            ApiError: the server does not answer, or refuses.
        """
        used = self._headers
        try:
            return self._get(path, query)
        except ApiError as error:
            if error.status != 401 or exec_entry(self._kubeconfig, self._context) is None:
                raise
        with self._login:
            if self._headers is used:  # else another thread has done it
                try:
                    self._log_in()
                except LoginError as error:
                    raise ApiError(str(error), 401) from None
        return self._get(path, query)

    def _get(self, path: str, query: dict[str, str]) -> dict[str, Any]:
        from urllib3.exceptions import HTTPError

        try:
            answer = self._request(path, query, REQUEST_SECONDS, preload=True)
            document = json.loads(answer.data)
        except (HTTPError, OSError) as error:
            raise ApiError(f"the API server does not answer: {_name(error)}") from None
        except ValueError:
            raise ApiError("the API server does not answer with JSON") from None
        if not isinstance(document, dict):
            raise ApiError("the API server does not answer with JSON")
        return document

    def exists(self, path: str) -> bool | None:
        """Whether there is an object at a path, without its content; None where the user may not read it.

        Raises:
            ApiError: the server does not answer.
        """
        try:
            self._request(path, {}, REQUEST_SECONDS, preload=True, accept=_NAMES_ONLY)
        except ApiError as error:
            if error.status == 404:
                return False
            if error.status in (401, 403, 406):
                return None
            raise
        return True

    def watch(self, path: str, version: str, seconds: float, **query: str) -> Iterator[dict[str, Any]]:
        """Events after a version of a list; ends after `seconds`, or when the server ends it.

        Raises:
            ApiError: the server does not answer, or refuses; 410: the version is too old, list anew.
        """
        from urllib3.exceptions import HTTPError

        bounded = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": str(max(1, round(seconds)))}
        try:
            answer = self._request(
                path, {**query, **bounded, "resourceVersion": version}, seconds + REQUEST_SECONDS, preload=False
            )
            try:
                for line in _lines(answer.stream(65536)):
                    event = json.loads(line)
                    if event.get("type") == "ERROR":
                        code = (event.get("object") or {}).get("code")
                        raise ApiError(f"the API server ends the watch: {code}", code)
                    yield event
            finally:
                answer.close()
        except (HTTPError, OSError) as error:
            raise ApiError(f"the API server does not answer: {_name(error)}") from None
        except ValueError:
            raise ApiError("the API server does not answer with JSON") from None

    def _request(self, path: str, query: dict[str, str], seconds: float, preload: bool, accept: str = "") -> Any:
        from urllib3 import Timeout
        from urllib3.exceptions import HTTPError

        headers = {**self._headers, "Accept": accept} if accept else self._headers
        try:
            answer = self._pool.request(
                "GET", self._host + path, fields=query, headers=headers, retries=False, preload_content=preload,
                timeout=Timeout(connect=CONNECT_SECONDS, read=seconds),
            )  # fmt: skip
        except (HTTPError, OSError) as error:
            raise ApiError(f"the API server does not answer: {_name(error)}") from None
        if not 200 <= answer.status <= 299:
            answer.close()
            raise ApiError(f"the API server refuses to answer: {answer.status} {answer.reason}", answer.status)
        return answer


def _lines(chunks: Iterator[bytes]) -> Iterator[bytes]:
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        yield from (line for line in whole if line.strip())


def _name(error: BaseException) -> str:
    """The kind of the innermost cause: addresses in its text may hold secrets."""
    inner = getattr(error, "reason", None)
    return type(inner if isinstance(inner, BaseException) else error).__name__
