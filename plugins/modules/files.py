#!/usr/bin/python
"""Write and remove several files in one call."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: files
short_description: Write and remove a list of files in one call
description:
  - Each file is replaced as a whole and at once; folders above it are made. Used where the decision what to write was
    made before, so that a run without changes needs no call at all.
options:
  write:
    description: Files with path, content and mode.
    type: list
    elements: dict
    default: []
  remove:
    description: Files to remove.
    type: list
    elements: str
    default: []
author: gpufleet maintainers
"""
EXAMPLES = r"""
- name: Write one file and remove another
  gpufleet.hosts.files:
    write: [{path: /etc/modules-load.d/gpufleet.conf, content: "nvidia-uvm\n", mode: "0644"}]
    remove: [/etc/modprobe.d/old.conf]
"""
RETURN = r"""
paths:
  description: Files that were written or removed.
  returned: always
  type: list
  elements: str
"""

import os
import tempfile

from ansible.module_utils.basic import AnsibleModule


def current(path: str) -> tuple[str, str | None]:
    """Content and mode of a file, or ("", None)."""
    try:
        with open(path, encoding="utf-8", errors="replace") as handle:
            return handle.read(), "%04o" % (os.stat(path).st_mode & 0o7777)
    except FileNotFoundError:
        return "", None


def write(path: str, content: str, mode: str) -> None:
    """Replace a file at once."""
    folder = os.path.dirname(path)
    os.makedirs(folder, mode=0o755, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=folder, prefix=".gpufleet-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, int(mode, 8))
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def main() -> None:
    """Run as a module."""
    module = AnsibleModule(
        argument_spec=dict(
            write=dict(type="list", elements="dict", default=[]),
            remove=dict(type="list", elements="str", default=[]),
        ),
        supports_check_mode=True,
    )
    paths, diff = [], []
    for item in module.params["write"]:
        path, content, mode = item["path"], item["content"], item.get("mode", "0644")
        before, before_mode = current(path)
        if before == content and before_mode == mode:
            continue
        paths.append(path)
        diff.append({"before_header": path, "after_header": path, "before": before, "after": content})
        if not module.check_mode:
            write(path, content, mode)
    for path in module.params["remove"]:
        if not os.path.lexists(path):
            continue
        paths.append(path)
        diff.append({"before_header": path, "after_header": path, "before": current(path)[0], "after": ""})
        if not module.check_mode:
            os.unlink(path)
    module.exit_json(changed=bool(paths), paths=paths, diff=diff)


if __name__ == "__main__":
    main()
