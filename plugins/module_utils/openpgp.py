"""Fingerprints and signature digests of OpenPGP keys, without gpg (a host may not have it).

Reads public-key packets of version 4 and their signatures (RFC 4880, sections 4, 5.2, 5.5, 12.2).
"""

from __future__ import annotations

import base64
import hashlib
import re
from typing import Any, Iterator

_PUBLIC_KEY = 6
_SIGNATURE = 2
_SHA1 = 2
_SELF_SIGNATURES = (0x10, 0x11, 0x12, 0x13, 0x1F)


def keys(data: bytes) -> list[dict[str, Any]]:
    """Primary keys of a keyring, armoured or binary: [{"fingerprint", "sha1_only"}].

    sha1_only is True when every self-signature of the key uses SHA-1: such a key is refused by policies that have
    retired SHA-1. Data that is no keyring gives an empty list.
    """
    found: list[dict[str, Any]] = []
    try:
        for tag, body in _packets(_binary(data)):
            if tag == _PUBLIC_KEY and body[:1] == b"\x04":
                digest = hashlib.sha1(b"\x99" + len(body).to_bytes(2, "big") + body).hexdigest().upper()
                found.append({"fingerprint": digest, "hashes": []})
            elif tag == _SIGNATURE and found and body[:1] == b"\x04" and body[1] in _SELF_SIGNATURES:
                own = _issuer(body) in (None, found[-1]["fingerprint"][-16:])
                found[-1]["hashes"] += [body[3]] if own else []
    except (IndexError, ValueError):
        pass
    return [
        {"fingerprint": k["fingerprint"], "sha1_only": bool(k["hashes"]) and all(h == _SHA1 for h in k["hashes"])}
        for k in found
    ]


def _binary(data: bytes) -> bytes:
    """The packets of all armoured blocks in the data, or the data itself."""
    if b"-----BEGIN PGP" not in data:
        return data
    result = b""
    for block in re.findall(b"-----BEGIN PGP PUBLIC KEY BLOCK-----(.*?)-----END", data, re.S):
        lines = block.replace(b"\r", b"").split(b"\n\n", 1)[-1].split(b"\n")
        result += base64.b64decode(b"".join(line for line in lines if line and not line.startswith(b"=")))
    return result


def _packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    """(tag, body) of each packet. Partial lengths do not occur in keyrings and end the reading."""
    at = 0
    while at < len(data):
        head = data[at]
        if not head & 0x80:
            return
        if head & 0x40:
            tag, at = head & 0x3F, at + 1
            first = data[at]
            if first < 192:
                size, at = first, at + 1
            elif first < 224:
                size, at = ((first - 192) << 8) + data[at + 1] + 192, at + 2
            elif first == 255:
                size, at = int.from_bytes(data[at + 1 : at + 5], "big"), at + 5
            else:
                return
        else:
            tag, width = (head >> 2) & 0x0F, (1, 2, 4, 0)[head & 3]
            if not width:
                return
            size, at = int.from_bytes(data[at + 1 : at + 1 + width], "big"), at + 1 + width
        yield tag, data[at : at + size]
        at += size


def _issuer(body: bytes) -> str | None:
    """Long key id of who signed (subpacket 16), upper case, or None."""
    at = 4
    for _ in range(2):  # hashed, then unhashed subpackets
        size = int.from_bytes(body[at : at + 2], "big")
        at, end = at + 2, at + 2 + size
        while at < end:
            length = body[at]
            if length < 192:
                at += 1
            elif length < 255:
                length, at = ((length - 192) << 8) + body[at + 1] + 192, at + 2
            else:
                length, at = int.from_bytes(body[at + 1 : at + 5], "big"), at + 5
            if body[at] & 0x7F == 16:
                return body[at + 1 : at + length].hex().upper()
            at += length
        at = end
    return None
