"""Serves the local repositories on the bridge: `python -m twin.hosts.server --root DIR --address A --state DIR`.

Answers can be spoiled while it runs: rules in STATE/server-rules.json, a list of
{"match": REGEX, "status": 503} or {"match": REGEX, "truncate": true}. Every request is one line of STATE/requests.log.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


class Handler(SimpleHTTPRequestHandler):
    """Files below the root, with rules and a request log."""

    protocol_version = "HTTP/1.1"
    state: Path

    def log_message(self, format: str, *args: object) -> None:
        """Keep standard error quiet; requests go to the log."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Write one line per request."""
        with (self.state / "requests.log").open("a") as log:
            log.write(json.dumps({"host": self.client_address[0], "path": self.path, "status": int(code)}) + "\n")

    def _rule(self) -> dict[str, Any]:
        try:
            rules: list[dict[str, Any]] = json.loads((self.state / "server-rules.json").read_text())
        except (FileNotFoundError, ValueError):
            return {}
        return next((rule for rule in rules if re.search(rule["match"], self.path)), {})

    def do_GET(self) -> None:
        """Answer GET, spoiled where a rule says so."""
        rule = self._rule()
        if rule.get("status"):
            self.send_error(int(rule["status"]))
        elif rule.get("truncate"):
            self._truncated()
        else:
            super().do_GET()

    def do_HEAD(self) -> None:
        """Answer HEAD, spoiled where a rule says so."""
        rule = self._rule()
        if rule.get("status"):
            self.send_error(int(rule["status"]))
        else:
            super().do_HEAD()

    def _truncated(self) -> None:
        file = Path(self.translate_path(self.path))
        if not file.is_file():
            self.send_error(404)
            return
        content = file.read_bytes()[:-16]
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def main() -> int:
    """Serve until killed; the chosen port is written to STATE/server-port once connections are taken."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", required=True)
    parser.add_argument("--address", required=True)
    parser.add_argument("--state", required=True, type=Path)
    options = parser.parse_args()
    handler = type("BoundHandler", (Handler,), {"state": options.state})

    def make(*args: Any) -> Handler:
        return handler(*args, directory=options.root)  # type: ignore[no-any-return]

    ThreadingHTTPServer.daemon_threads = True
    try:
        server = ThreadingHTTPServer((options.address, 80), make)
    except OSError:  # port 80 of all addresses belongs to somebody else
        server = ThreadingHTTPServer((options.address, 0), make)
    port = options.state / "server-port"
    port.with_suffix(".new").write_text(str(server.server_address[1]))
    port.with_suffix(".new").replace(port)
    server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
