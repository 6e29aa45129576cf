"""Runs one Pulumi program for the language host: ``executor.py SETTINGS-AS-JSON PROGRAM ARGUMENTS...``.

Exit code 0: done; 32: failed, and the engine has been told why; any other: the program's own.
"""

import asyncio
import json
import logging
import runpy
import sys
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pulumi
from pulumi import runtime
from pulumi.runtime import config, settings

ALREADY_REPORTED = 32


def own_frames(error: BaseException, program: str) -> str:
    """Return the error's traceback without the frames of this file and of the machinery between it and the program."""
    frames = traceback.extract_tb(error.__traceback__)
    root = str(Path(program) if Path(program).is_dir() else Path(program).parent)
    first = next((i for i, frame in enumerate(frames) if frame.filename.startswith(root)), 0)
    lines = traceback.format_list(frames[first:]) + traceback.format_exception_only(error)
    return "".join(lines)


def main(given: str, program: str, arguments: list[str]) -> int:
    """Run the program inside a stack; return the exit code."""
    values = json.loads(given)
    config.set_all_config(config.get_config_env(), config.get_config_secret_keys_env())
    runtime.configure(settings.Settings(**values))
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)  # it complains about futures that the SDK leaves open
    sys.argv = [program, *arguments]
    sys.path[0] = program if Path(program).is_dir() else str(Path(program).parent)
    loop = asyncio.new_event_loop()
    # One thread per resource that the engine may work on at a time: each of the SDK's calls blocks one.
    loop.set_default_executor(ThreadPoolExecutor(max(16, values["parallel"])))
    asyncio.set_event_loop(loop)

    def run() -> None:
        runpy.run_path(program, run_name="__main__")

    try:
        loop.run_until_complete(runtime.run_in_stack(run))
    except pulumi.RunError as error:
        pulumi.log.error(str(error))
        return ALREADY_REPORTED
    except Exception as error:
        pulumi.log.error(f"The program failed:\n{own_frames(error, program)}")
        return ALREADY_REPORTED
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))
