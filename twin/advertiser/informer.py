"""A watched copy of one kind of object: list, then watch, then list again when the watch breaks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from .kube import Kube, KubeError

WATCH_S = 240
PAUSE_S = 0.5


class Informer(threading.Thread):
    """Keeps `objects` ((namespace, name) -> object); calls `changed(old, new)` in its own thread."""

    def __init__(self, kube: Kube, path: str, changed: Callable[[dict[str, Any] | None, dict[str, Any] | None], None],
                 stop: threading.Event, lock: threading.RLock) -> None:
        super().__init__(name=path, daemon=True)
        self.objects: dict[tuple[str, str], dict[str, Any]] = {}
        self.synced = threading.Event()
        self._kube, self._path, self._changed, self._stop_event, self._lock = kube, path, changed, stop, lock

    def run(self) -> None:
        while not self._stop_event.is_set():
            try:
                version = self._list()
                self.synced.set()
                while not self._stop_event.is_set():
                    version = self._watch(version)
            except KubeError:  # the API server restarts, or the version is too old: start over
                self._stop_event.wait(PAUSE_S)

    def _list(self) -> str:
        answer = self._kube.call("GET", self._path)
        fresh = {_key(one): one for one in answer.get("items", [])}
        for key in list(self.objects):
            if key not in fresh:
                self._set(key, None)
        for key, one in fresh.items():
            self._set(key, one)
        version: str = answer["metadata"]["resourceVersion"]
        return version

    def _watch(self, version: str) -> str:
        for event in self._kube.watch(self._path, version, WATCH_S):
            one = event["object"]
            if event["type"] == "ERROR":
                raise KubeError(int(one.get("code", 0)), one.get("message", "watch ended"))
            version = one["metadata"]["resourceVersion"]
            if event["type"] != "BOOKMARK":
                self._set(_key(one), None if event["type"] == "DELETED" else one)
            if self._stop_event.is_set():
                break
        return version

    def _set(self, key: tuple[str, str], new: dict[str, Any] | None) -> None:
        with self._lock:
            old = self.objects.get(key)
            if new is None:
                self.objects.pop(key, None)
            else:
                self.objects[key] = new
        if old != new:
            self._changed(old, new)


def _key(one: dict[str, Any]) -> tuple[str, str]:
    return one["metadata"].get("namespace", ""), one["metadata"]["name"]
