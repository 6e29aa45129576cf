"""The lists of a cluster that `status` keeps: read page by page, then kept up to date by watches."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, TypeVar

from gpufleet.places.cluster_api import ApiError, ClusterApi

T = TypeVar("T")
Key = tuple[str, str]

#: Between two tries where the server does not answer, and for changes that come together.
RETRY_SECONDS, SETTLE_SECONDS = 0.5, 0.2
#: Between two lists, for users who may not watch.
POLL_SECONDS = 2


class Table(Generic[T]):
    """One list: (namespace, name) -> what is kept of each object; objects of which nothing is kept are not in it.

    `rows` is None where the user may not read the list, or the server has no such kind; only `optional` ones.
    """

    def __init__(
        self, path: str, keep: Callable[[Mapping[str, Any]], T | None], *, optional: bool = False, **query: str
    ) -> None:
        self.path, self.keep, self.optional, self.query = path, keep, optional, query
        self.rows: dict[Key, T] | None = {}
        self.version = ""

    def list(self, api: ClusterApi) -> None:
        """Reads the list anew.

        Raises:
            ApiError: the server does not answer, or refuses.
        """
        try:
            self.rows, self.version = self._read(api)
        except ApiError as error:
            if error.status == 410:  # the list had grown too old between two pages
                self.rows, self.version = self._read(api)
            elif self.optional and error.status in (403, 404):
                self.rows = None
            else:
                raise

    def _read(self, api: ClusterApi) -> tuple[dict[Key, T], str]:
        rows: dict[Key, T] = {}
        version = self.version
        for items, version in api.list(self.path, **self.query):  # noqa: B007 - the last page's
            for item in items:
                self._put(rows, item)
        return rows, version

    def apply(self, event: Mapping[str, Any]) -> bool:
        """Takes over one event of a watch; says whether it changed what is kept."""
        item = event.get("object") or {}
        self.version = str((item.get("metadata") or {}).get("resourceVersion", self.version))
        if event.get("type") == "BOOKMARK" or self.rows is None:
            return False
        before = self.rows.get(key := _key(item))
        if event.get("type") == "DELETED":
            return self.rows.pop(key, None) is not None
        self._put(self.rows, item)
        return self.rows.get(key) != before

    def _put(self, rows: dict[Key, T], item: Mapping[str, Any]) -> None:
        kept = self.keep(item)
        if kept is None:
            rows.pop(_key(item), None)
        else:
            rows[_key(item)] = kept


def _key(item: Mapping[str, Any]) -> Key:
    meta = item.get("metadata") or {}
    return str(meta.get("namespace", "")), str(meta.get("name", ""))


class Watches:
    """Keeps tables up to date, each by a thread, until a time."""

    def __init__(self, api: ClusterApi, tables: list[Table[Any]], until: float) -> None:
        self._api, self._until = api, until
        self._changed, self._stop, self.lock = threading.Event(), threading.Event(), threading.Lock()
        self._errors: dict[str, ApiError] = {}
        for table in tables:
            if table.rows is not None:
                threading.Thread(target=self._follow, args=(table,), daemon=True).start()

    def changes(self) -> Iterator[ApiError | None]:
        """One for each change, or several that came together, until the time is over; the error while there is one."""
        try:
            while (left := self._until - time.monotonic()) > 0:
                if not self._changed.wait(left):
                    return
                time.sleep(min(SETTLE_SECONDS, max(0.0, self._until - time.monotonic())))
                self._changed.clear()
                yield next(iter(self._errors.copy().values()), None)
        finally:
            self._stop.set()

    def _follow(self, table: Table[Any]) -> None:
        known = True
        while not self._stop.is_set() and (left := self._until - time.monotonic()) > 0:
            pause = RETRY_SECONDS
            try:
                if not known:
                    self._list_again(table)
                    known = True
                for event in self._api.watch(table.path, table.version, left, **table.query):
                    with self.lock:
                        changed = table.apply(event)
                    if changed:
                        self._changed.set()
                    if self._stop.is_set():
                        return
            except ApiError as error:
                if known and error.status == 410:  # the version is too old: nothing is wrong
                    pause = 0
                elif known and error.status == 403:  # the user may list, and not watch
                    pause = POLL_SECONDS
                else:
                    self._errors[table.path] = error
                    self._changed.set()
                known = False
            self._stop.wait(min(pause, max(0.0, self._until - time.monotonic())))

    def _list_again(self, table: Table[Any]) -> None:
        fresh: Table[Any] = Table(table.path, table.keep, optional=table.optional, **table.query)
        fresh.list(self._api)
        with self.lock:
            table.rows, table.version = fresh.rows, fresh.version
        self._errors.pop(table.path, None)
        self._changed.set()
