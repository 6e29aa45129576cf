"""Which file the kubeconfig of an existing cluster is: one answer for the engine, the inventory and the status."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

from gpufleet.stackfile.cluster import KubeconfigRef

#: Overrides what the stack file says, for runners that keep the file elsewhere.
KUBECONFIG_ENV = "GPUFLEET_KUBECONFIG"


#: Folders and a name; a kubeconfig itself has line breaks, braces or blanks behind colons.
_PATH = re.compile(r"(~|\.{1,2}|\$\{?\w+\}?|[A-Za-z]:)?([/\\]?[\w .@~-]{1,64})([/\\][\w .@~-]{1,64})*")
_NAME = re.compile(r"(?i)(kube)?config|.*\.(conf|ya?ml|json|kubeconfig|config|cfg)")


def is_path(text: str) -> bool:
    """Whether a text says where a kubeconfig is; any other text may be the kubeconfig itself or a credential."""
    if len(text) > 255 or _PATH.fullmatch(text) is None:
        return False
    last = re.split(r"[/\\]", text)[-1]
    return text[0] in "~./$" or text[1:3] in (":\\", ":/") or _NAME.fullmatch(last) is not None


def kubeconfig_file(ref: KubeconfigRef | None, root: Path, environment: Mapping[str, str]) -> Path | None:
    """The file; a relative one of the stack file starts at the project's `root`, one of the environment here.

    A context alone is looked for where kubectl looks: in the first file that KUBECONFIG names, else in ~/.kube/config.
    None: the kubeconfig is a secret or an output of the Pulumi stack.
    """
    if environment.get(KUBECONFIG_ENV):
        return Path(environment[KUBECONFIG_ENV]).absolute()
    if ref is None or ref.secret:
        return None
    if ref.path is not None:
        return root / Path(ref.path).expanduser()
    named = [part for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part]
    return Path(named[0]).absolute() if named else Path("~/.kube/config").expanduser()
