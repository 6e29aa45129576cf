#!/usr/bin/python
"""Install a repository's signing key after checking its fingerprint."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: keyring
short_description: Install a signing key after checking its fingerprint
description:
  - The key is taken from its text or from an address. Nothing is written when a key in it has another fingerprint.
options:
  path: {description: File to write., type: path, required: true}
  text: {description: The key itself, armoured., type: str, default: "", no_log: false}
  url: {description: Where the key is when no text is given., type: str, default: ""}
  fingerprints:
    description: Fingerprints, or their last digits, that are allowed. Required with an address.
    type: list
    elements: str
    default: []
author: gpufleet maintainers
"""
EXAMPLES = r"""
- name: Trust the key of the repository
  gpufleet.hosts.keyring:
    path: /usr/share/keyrings/example.asc
    url: https://mirror.example.com/key.asc
    fingerprints: [EB693B3035CD5710E231E123A4B469963BF863CC]
"""
RETURN = r"""
fingerprints:
  description: Fingerprints of the keys in the file.
  returned: always
  type: list
  elements: str
"""

import base64
import os
import tempfile

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.urls import open_url
from ansible_collections.gpufleet.hosts.plugins.module_utils import openpgp


def crc24(data: bytes) -> int:
    """Checksum of an armoured block (RFC 4880, section 6.1)."""
    value = 0xB704CE
    for byte in data:
        value ^= byte << 16
        for _bit in range(8):
            value = (value << 1) ^ (0x1864CFB if value & 0x800000 else 0)
    return value & 0xFFFFFF


def armoured(data: bytes) -> bytes:
    """The key as text: apt takes a file called .asc in this form only."""
    if b"-----BEGIN PGP" in data:
        return data
    body = base64.b64encode(data).decode()
    lines = [body[at : at + 64] for at in range(0, len(body), 64)]
    check = base64.b64encode(crc24(data).to_bytes(3, "big")).decode()
    text = ["-----BEGIN PGP PUBLIC KEY BLOCK-----", "", *lines, "=" + check, "-----END PGP PUBLIC KEY BLOCK-----", ""]
    return "\n".join(text).encode()


def main() -> None:
    """Run as a module."""
    module = AnsibleModule(
        argument_spec=dict(
            path=dict(type="path", required=True),
            text=dict(type="str", default="", no_log=False),
            url=dict(type="str", default=""),
            fingerprints=dict(type="list", elements="str", default=[], no_log=False),
        ),
        supports_check_mode=True,
    )
    params = module.params
    if params["text"]:
        data = params["text"].encode()
    else:
        if not params["fingerprints"]:
            module.fail_json(msg="an address needs the fingerprint of its key", url=params["url"])
        try:
            data = open_url(params["url"], timeout=20).read()
        except Exception as error:
            module.fail_json(msg=f"the key cannot be fetched: {error}", url=params["url"])
    found = [key["fingerprint"] for key in openpgp.keys(data)]
    wrong = [f for f in found if params["fingerprints"] and not any(f.endswith(w) for w in params["fingerprints"])]
    if not found or wrong:
        module.fail_json(
            msg="not the expected key: found {}, allowed {}".format(
                ", ".join(found) or "none", ", ".join(params["fingerprints"]) or "any"
            ),
            url=params["url"],
        )
    data = armoured(data)
    try:
        with open(params["path"], "rb") as handle:
            before = handle.read()
    except FileNotFoundError:
        before = None
    changed = before != data or (os.stat(params["path"]).st_mode & 0o7777) != 0o644
    if changed and not module.check_mode:
        os.makedirs(os.path.dirname(params["path"]), mode=0o755, exist_ok=True)
        number, temporary = tempfile.mkstemp(dir=os.path.dirname(params["path"]), prefix=".gpufleet-")
        with os.fdopen(number, "wb") as stream:
            stream.write(data)
        os.chmod(temporary, 0o644)
        os.replace(temporary, params["path"])
    module.exit_json(changed=changed, fingerprints=found)


if __name__ == "__main__":
    main()
