"""dmesg and journalctl: the kernel's part comes from the host's simulated log, the rest from the real journal."""

from __future__ import annotations

import json
import os
import re
import time

from . import base

LINE = re.compile(r"<(?P<level>\d+)>(?P<stamp>\[ *(?P<seconds>[\d.]+)\] )(?P<message>.*)")
REAL_JOURNALCTL = "/usr/bin/journalctl.real"


def lines() -> list[re.Match[str]]:
    """Return the lines of the kernel log since boot."""
    file = base.TWIN / "kmsg"
    return [match for text in (file.read_text().splitlines() if file.exists() else []) if (match := LINE.match(text))]


def main_dmesg(arguments: list[str]) -> int:
    """Print the kernel log: -r with level, -t without time, -c and then clear, -C only clear; others are ignored."""
    raw = any(word in ("-r", "--raw") for word in arguments)
    bare = any(word in ("-t", "--notime") for word in arguments)
    if not any(word in ("-C", "--clear") for word in arguments):
        for line in lines():
            print(line.group(0) if raw else line["message"] if bare else line["stamp"] + line["message"])
    if any(word in ("-c", "--read-clear", "-C", "--clear") for word in arguments):
        (base.TWIN / "kmsg").write_text("")
    return 0


def main_journalctl(arguments: list[str]) -> int:
    """Run the real journalctl, except for -k and --dmesg: these print the simulated kernel log of this boot.

    Understood with -k: -o cat, short and json; -g PATTERN; -n LINES. A pattern without capital letters ignores case.
    """
    if not any(word in ("-k", "--dmesg") or re.fullmatch(r"-[a-z]*k[a-z]*", word) for word in arguments):
        os.execv(REAL_JOURNALCTL, ["journalctl", *arguments])
    form, pattern, last = "short", "", None
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        name, sign, value = word.partition("=")
        if word in ("-o", "-g", "-n") and rest:
            name, value = word, rest.pop(0)
        elif word[:2] in ("-o", "-g", "-n") and len(word) > 2 and not word.startswith("--"):
            name, value = word[:2], word[2:]
        elif not sign:
            continue
        if name in ("-o", "--output"):
            form = value
        elif name in ("-g", "--grep"):
            pattern = value
        elif name in ("-n", "--lines"):
            last = int(value)
    flags = re.IGNORECASE if pattern == pattern.lower() else 0
    found = [line for line in lines() if re.search(pattern, line["message"], flags)]
    for line in found[-last:] if last else found:
        print(_formatted(line, form))
    return 0 if found or not pattern else 1


def _formatted(line: re.Match[str], form: str) -> str:
    if form == "cat":
        return line["message"]
    if form.startswith("json"):
        return json.dumps({"MESSAGE": line["message"], "PRIORITY": line["level"], "_TRANSPORT": "kernel"})
    age = time.clock_gettime(time.CLOCK_BOOTTIME) - float(line["seconds"])
    stamp = time.strftime("%b %d %H:%M:%S", time.localtime(time.time() - age))
    return f"{stamp} {os.uname().nodename} kernel: {line['message']}"
