"""Pulumi components, and the program that puts them together. Needs the extra `deploy`."""

import importlib.util
import sys

from gpufleet.extras import missing

_LACKING = missing("deploy", "The Pulumi program")
if _LACKING and importlib.util.find_spec("pulumi"):
    from pulumi import RunError

    raise RunError(_LACKING)  # the engine shows it without a traceback
if _LACKING:
    print(_LACKING, file=sys.stderr)
    raise SystemExit(2)
