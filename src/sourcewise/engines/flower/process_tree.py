"""Which processes come from which: programs may start others in sessions of their own."""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

PROC = Path("/proc")


class Process(NamedTuple):
    """A process that runs now."""

    pid: int
    parent: int
    group: int


def descendants(roots: Iterable[int]) -> dict[int, int]:
    """Return these processes, what they have started, what that has started, and so on.

    By number, with the number of its group, which tells it from a later one of the same number.
    """
    table = list(running())
    found = dict.fromkeys(roots)
    while new := [p.pid for p in table if p.parent in found and p.pid not in found]:
        found |= dict.fromkeys(new)
    return {process.pid: process.group for process in table if process.pid in found}


def running() -> Iterator[Process]:
    """Look at all processes; those that have ended and wait to be noticed do not run."""
    if (PROC / "self" / "stat").exists():
        yield from _from_proc()
        return
    try:
        told = subprocess.run(
            ["ps", "-axo", "pid=,ppid=,pgid=,stat="], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):  # on Windows, say
        return
    for line in told.stdout.splitlines():
        pid, parent, group, state = line.split()
        if not state.startswith("Z"):
            yield Process(int(pid), int(parent), int(group))


def _from_proc() -> Iterator[Process]:
    for folder in PROC.glob("[0-9]*"):
        try:
            text = (folder / "stat").read_text(encoding="utf-8", errors="replace")
        except OSError:  # ended meanwhile
            continue
        state, parent, group = text.rpartition(")")[2].split()[:3]  # a name may hold anything
        if state not in "ZX":
            yield Process(int(folder.name), int(parent), int(group))
