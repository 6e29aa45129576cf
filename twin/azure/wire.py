"""Protocol values to Python and back.

Signatures and sentinels are those of the Pulumi protocol (sdk/go/common/resource/plugin/rpc.go): an unknown
is a sentinel string, a secret is an object with a signature key. Secrets are taken off for the service's
logic; the paths where they were are kept, so that they can be put back on what is answered.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import json_format, struct_pb2

SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET = "1b47061264138c4ac30d75fd1eb44270"
OUTPUT_VALUE = "d0e6a833031e9bbcd3f4e8bde6ca49a4"
UNKNOWN_TEXT = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
UNKNOWN_SENTINELS = frozenset({
    UNKNOWN_TEXT,
    "1c4a061d-8072-4f0a-a4cb-0ff528b18fe7",  # bool
    "3eeb2bf0-c639-47a8-9e75-3b44932eb421",  # number
    "6a19a0b0-7e62-4c92-b797-7f8e31da9cc2",  # array
    "dd056dcd-154b-4c76-9bd3-c8f88648b5ff",  # object
})

Path = tuple[str | int, ...]


class Unknown:
    """A value that is known only after the operation."""

    def __repr__(self) -> str:
        return "unknown"

    def __eq__(self, other: object) -> bool:
        return False  # an unknown equals nothing, not even another unknown

    __hash__ = None  # type: ignore[assignment]


UNKNOWN = Unknown()


def decode(struct: struct_pb2.Struct) -> tuple[dict[str, Any], set[Path]]:
    """Plain values, and the paths that were secret."""
    secrets: set[Path] = set()
    raw = json_format.MessageToDict(struct)
    return {key: _plain(value, (key,), secrets) for key, value in raw.items()}, secrets


def _plain(value: Any, path: Path, secrets: set[Path]) -> Any:
    if isinstance(value, dict):
        kind = value.get(SIGNATURE)
        if kind == SECRET:
            secrets.add(path)
            return _plain(value.get("value"), path, secrets)
        if kind == OUTPUT_VALUE:
            if value.get("secret"):
                secrets.add(path)
            return _plain(value["value"], path, secrets) if "value" in value else UNKNOWN
        return {key: _plain(child, (*path, key), secrets) for key, child in value.items()}
    if isinstance(value, list):
        return [_plain(child, (*path, index), secrets) for index, child in enumerate(value)]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str) and value in UNKNOWN_SENTINELS:
        return UNKNOWN
    return value


def encode(values: dict[str, Any], secrets: set[Path] = frozenset()) -> struct_pb2.Struct:  # type: ignore[assignment]
    """The protocol's form, secrets wrapped again where the path still exists."""
    struct = struct_pb2.Struct()
    struct.update({key: _wire(value, (key,), secrets) for key, value in values.items()})
    return struct


def _wire(value: Any, path: Path, secrets: set[Path]) -> Any:
    if isinstance(value, Unknown):
        out: Any = UNKNOWN_TEXT
    elif isinstance(value, dict):
        out = {key: _wire(child, (*path, key), secrets) for key, child in value.items()}
    elif isinstance(value, (list, tuple)):
        out = [_wire(child, (*path, index), secrets) for index, child in enumerate(value)]
    else:
        out = value
    return {SIGNATURE: SECRET, "value": out} if path in secrets else out


def has_unknown(value: Any) -> bool:
    if isinstance(value, Unknown):
        return True
    if isinstance(value, dict):
        return any(has_unknown(child) for child in value.values())
    return isinstance(value, list) and any(has_unknown(child) for child in value)


def redact(value: Any, secrets: set[Path], path: Path = ()) -> Any:
    """A copy for a log: secrets replaced, unknowns named."""
    if path in secrets:
        return "[secret]"
    if isinstance(value, Unknown):
        return "[unknown]"
    if isinstance(value, dict):
        return {key: redact(child, secrets, (*path, key)) for key, child in value.items()}
    if isinstance(value, list):
        return [redact(child, secrets, (*path, index)) for index, child in enumerate(value)]
    return value
