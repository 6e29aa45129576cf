"""A small API server for tests: lists in pages, watches, refusals. What it answers follows the Kubernetes API concepts.

Source: kubernetes.io/docs/reference/using-api/api-concepts (limit and continue, watch, bookmarks, 410 Gone).
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

PATHS = {
    "nodes": "/api/v1/nodes",
    "pods": "/api/v1/pods",
    "configmaps": "/api/v1/configmaps",
    "namespaces": "/api/v1/namespaces",
    "clusterpolicies": "/apis/nvidia.com/v1/clusterpolicies",
}


class ApiStandIn(ThreadingHTTPServer):
    """Serves objects by kind. `asked` are the requests; `refuse` maps kinds to codes; `tokens`: those let in."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, **kinds: list[dict[str, Any]]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.version = 1
        self.objects = {kind: [json.dumps(one).encode() for one in kinds.get(kind, [])] for kind in PATHS}
        self.events: list[tuple[int, str, bytes]] = []
        self.forgotten = 0  # watches from before this version get 410
        self.changed = threading.Condition()
        self.asked: list[str] = []
        self.refuse: dict[str, int] = {}
        self.refuse_watches = 0  # the code, where nobody may watch
        self.tokens: set[str] = set()

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.server_address[1]}"

    def kubeconfig(self, **user: Any) -> dict[str, Any]:
        """A kubeconfig for it; `user` is the user's entry."""
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "c", "cluster": {"server": self.url}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "users": [{"name": "u", "user": user}],
            "current-context": "c",
        }

    def put(self, kind: str, one: dict[str, Any], event: str = "MODIFIED") -> None:
        """Changes, adds or (event DELETED) removes an object, and tells whoever watches."""
        with self.changed:
            self.version += 1
            one = {**one, "metadata": {**one["metadata"], "resourceVersion": str(self.version)}}
            there = [json.loads(o) for o in self.objects[kind]]
            same = [o for o in there if _name(o) != _name(one)]
            self.objects[kind] = [json.dumps(o).encode() for o in (*same, *([one] if event != "DELETED" else ()))]
            self.events.append((self.version, kind, json.dumps({"type": event, "object": one}).encode()))
            self.changed.notify_all()

    def forget(self) -> None:
        """Ends all watches with 410 Gone: their version is too old."""
        with self.changed:
            self.version += 1
            self.forgotten = self.version
            self.changed.notify_all()


def _labelled(one: dict[str, Any], wanted: list[tuple[str, str, str]]) -> bool:
    """Whether an object carries the labels of a selector: `key`, or `key=value`."""
    labels = one["metadata"].get("labels", {})
    return all(key in labels and (not equals or labels[key] == value) for key, equals, value in wanted)


def _name(one: dict[str, Any]) -> tuple[str, str]:
    return one["metadata"].get("namespace", ""), one["metadata"]["name"]


class _Handler(BaseHTTPRequestHandler):
    server: ApiStandIn
    protocol_version = "HTTP/1.1"

    def log_message(self, *_: object) -> None:
        """Says nothing."""

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = {k: v[0] for k, v in parse_qs(parts.query).items()}
        kind = next((k for k, path in PATHS.items() if path == parts.path), None)
        self.server.asked.append(self.path)
        if self.server.tokens and self.headers.get("Authorization", "")[7:] not in self.server.tokens:
            self._end(401)
        elif kind is None or self.server.refuse.get(kind):
            self._end(self.server.refuse.get(kind or "", 404))
        elif query.get("watch") == "true" and self.server.refuse_watches:
            self._end(self.server.refuse_watches)
        elif query.get("watch") == "true":
            self._watch(kind, int(query["resourceVersion"]), float(query["timeoutSeconds"]))
        else:
            self._list(kind, query)

    def _list(self, kind: str, query: dict[str, str]) -> None:
        first, size = int(query.get("continue", "0")), int(query.get("limit", "1000000"))
        with self.server.changed:
            objects, version = self.server.objects[kind], self.server.version
        if selector := query.get("labelSelector"):
            wanted = [term.partition("=") for term in selector.split(",")]
            objects = [one for one in objects if _labelled(json.loads(one), wanted)]
        left = str(first + size) if first + size < len(objects) else ""
        head = json.dumps({"resourceVersion": str(version), "continue": left}).encode()
        page = b'{"kind":"List","metadata":' + head + b',"items":[' + b",".join(objects[first : first + size]) + b"]}"
        self._send(page)

    def _send(self, body: bytes, code: int = 200) -> None:
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _end(self, code: int) -> None:
        self._send(json.dumps({"kind": "Status", "code": code}).encode(), code)

    def _watch(self, kind: str, version: int, seconds: float) -> None:
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        until = time.monotonic() + seconds
        try:
            while (left := until - time.monotonic()) > 0:
                with self.server.changed:
                    if version < self.server.forgotten:
                        gone = {"kind": "Status", "code": 410, "reason": "Expired"}
                        self._line(json.dumps({"type": "ERROR", "object": gone}).encode())
                        break
                    new = [e for e in self.server.events if e[0] > version and e[1] == kind]
                    if not new:
                        self.server.changed.wait(left)
                for number, _, line in new:
                    version = number
                    self._line(line)
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True

    def _line(self, text: bytes) -> None:
        self.wfile.write(f"{len(text) + 1:x}\r\n".encode() + text + b"\n\r\n")
        self.wfile.flush()


@contextmanager
def serving(**kinds: list[dict[str, Any]]) -> Iterator[ApiStandIn]:
    """A stand-in that serves until the block ends."""
    server = ApiStandIn(**kinds)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
