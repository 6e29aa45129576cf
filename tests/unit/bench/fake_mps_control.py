#!/usr/bin/env python3
"""Acts like nvidia-cuda-mps-control: ``-f`` serves until 'quit', otherwise sends one command from standard input."""

import os
import sys
import time
from pathlib import Path

pipe = Path(os.environ["CUDA_MPS_PIPE_DIRECTORY"])
log = Path(os.environ["FAKE_MPS_LOG"])


def note(text: str) -> None:
    with log.open("a") as stream:
        stream.write(text + "\n")


if sys.argv[1:] == ["-f"]:
    if os.environ.get("FAKE_MPS_FAILS"):
        Path(os.environ["CUDA_MPS_LOG_DIRECTORY"], "control.log").write_text("Failed to start: no permission\n")
        sys.exit(1)
    note(f"start {os.getpid()} {pipe}")
    (pipe / "up").touch()
    while (pipe / "up").exists():
        time.sleep(0.02)
    note("end")
else:
    if not (pipe / "up").exists():
        sys.exit("Cannot find MPS control daemon process")
    command = sys.stdin.read().strip()
    note(command)
    if command == "quit":
        (pipe / "up").unlink()
    elif command.startswith("set_default_device_pinned_mem_limit 0 "):
        (pipe / "limit").write_text(command.split()[-1].removesuffix("M"))
    elif command == "get_default_active_thread_percentage":
        print("100.0")
