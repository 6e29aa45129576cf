"""Run as a script: writes who it is, then becomes the command.

``python launch.py RECORD DEATH NAME COMMAND...``: the record (pid, start time, command) is on disk before the command
runs, so no process of a twin can exist unrecorded, whatever happens to the process that started it.
DEATH is ``with-parent`` (the command is ended when its starter ends; for tests) or ``keep``.
"""

import json
import os
import sys
from pathlib import Path

if __name__ == "__main__":
    record, death, name, *command = sys.argv[1:]
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from twin.processes import start_time

    if death == "with-parent" and sys.platform == "linux":
        import ctypes
        import signal

        parent = os.getppid()
        ctypes.CDLL(None, use_errno=True).prctl(1, signal.SIGTERM)  # 1 = PR_SET_PDEATHSIG, kept across exec
        if os.getppid() != parent:  # the starter ended before the line above
            sys.exit(1)
    temporary = Path(record + ".new")
    temporary.write_text(
        json.dumps({"name": name, "pid": os.getpid(), "started": start_time(os.getpid()), "command": command})
    )
    temporary.replace(record)
    os.execvp(command[0], command)
