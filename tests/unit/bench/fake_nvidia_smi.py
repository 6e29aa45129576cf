#!/usr/bin/env python3
"""Acts like nvidia-smi as far as the bench uses it. Its settings are files in $FAKE_SMI_STATE."""

import os
import sys
from pathlib import Path

state = Path(os.environ["FAKE_SMI_STATE"])
arguments = sys.argv[1:]
with (state / "calls").open("a") as log:
    log.write(" ".join(arguments) + "\n")


def read(name: str) -> str:
    return (state / name).read_text()


def fail(text: str) -> None:
    print(text)
    sys.exit(4)


text = " ".join(arguments)
if "compute-policy" in arguments:
    if "--set-timeslice" in arguments:
        number = int(arguments[arguments.index("--set-timeslice") + 1])
        (state / "slice").write_text(["Default", "Short", "Medium", "Long"][number])
    else:
        print(f"+---------------------------+\n| Timeslice | {read('slice')} |")
elif "-mig" in arguments:
    if (state / "mig_pending").exists():
        print("Warning: MIG mode is in pending enable state")
    else:
        (state / "mig").write_text("Enabled" if arguments[-1] == "1" else "Disabled")
elif "-cgi" in arguments:
    profiles = arguments[arguments.index("-cgi") + 1].split(",")
    if len(profiles) > 7 or read("mig") != "Enabled":
        (state / "instances").write_text("\n".join(f"{p} {i}" for i, p in enumerate(profiles[:2])))
        fail("Failed to create GPU instances: Insufficient Resources")
    (state / "instances").write_text("\n".join(f"{p} {i}" for i, p in enumerate(profiles)))
elif "-dci" in arguments or "-dgi" in arguments:
    if not read("instances"):
        fail("No GPU instances found: Not Found")
    if "-dgi" in arguments and not (state / "stuck").exists():
        (state / "instances").write_text("")
elif "-L" in arguments:
    print("GPU 0: Fake GPU (UUID: GPU-1234)")
    for line in read("instances").splitlines():
        profile, number = line.split()
        print(f"  MIG {profile}     Device  {number}: (UUID: MIG-{number})")
elif "dmon" in arguments:
    print("# gpu     sm    mem    enc    dec    jpg    ofa      gract     smutil       dram")
    print("# Idx      %      %      %      %      %      %      GPM:%      GPM:%      GPM:%")
    for number in range(int(arguments[arguments.index("-c") + 1])):
        gpm = "54         41         42" if number > 1 else " -          -          -"
        print(f"    0     {'5' if number < 1 else '55'}     54      0      0      0      0         {gpm}")
elif "--query-compute-apps=pid,process_name" in text:
    print(read("apps"))
elif "--query-gpu=memory.used" in text:
    print(read("used"))
elif "--query-gpu=" in text:
    names = text.split("--query-gpu=")[1].split()[0].split(",")
    values = {
        "name": "Fake GPU",
        "mig.mode.current": read("mig"),
        "memory.total": f"{read('total')} MiB",
        "driver_version": "580.1",
    }
    print(", ".join(values.get(name, "x") for name in names))
else:
    fail(f"unknown call: {text}")
