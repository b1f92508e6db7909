"""What has been asked of a site, what became of it, and what may not be asked again."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

CANNOT_WRITE = "The ledger {path} cannot be written, so that nothing is answered any more: {why}."
CANNOT_READ = (
    "The ledger {path} cannot be read: {why}. Mend it, or move it away to begin a new one, "
    "in which all counts begin at zero."
)
BAD_LINE = "line {line} is not one of ours"

ANSWERED, KEPT, REFUSED = "answered", "kept", "refused"
MOST_KEPT = 256_000_000  # bytes of answers that are kept; the oldest go first


@dataclass
class Entry:
    """A line of the ledger."""

    run: int
    question: str
    outcome: str = ""
    hash: str = ""  # of the question with the rules that it comes with
    rules: str = ""  # of these alone
    looked: bool = False  # whether rows were: then a refusal says something about them, too
    rows: int = 0
    bytes: int = 0
    why: str = ""  # of a refusal


class Ledger:
    """A line of JSON for each question, on the disk before the answer leaves; never a row.

    Without a path, everything is forgotten with this object.
    """

    def __init__(self, path: Path | None):
        self.path = path
        self.looks = 0
        self.times: Counter[str] = Counter()
        self.rules: set[str] = set()
        self._kept: dict[tuple[int, str], tuple[dict[str, Any], int, int]] = {}
        self._bytes = 0
        if path is not None and path.is_file():
            self._read(path)

    def _read(self, path: Path) -> None:
        try:
            content = path.read_bytes()
            whole = content[: content.rfind(b"\n") + 1]
            if len(whole) < len(content):  # a line that a power cut has torn; it was never answered
                os.truncate(path, len(whole))
            for number, line in enumerate(whole.splitlines(), 1):
                self._count(_entry(line, number))
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
            raise ValueError(CANNOT_READ.format(path=path, why=why)) from error

    def _count(self, entry: Mapping[str, Any]) -> None:
        if entry["looked"]:
            self.looks += 1
            self.times[entry["hash"]] += 1
            self.rules.add(entry["rules"])

    def write(self, entry: Entry) -> None:
        """Append a line, and see it on the disk."""
        self._count(asdict(entry))
        now = datetime.now(UTC).isoformat(timespec="seconds")
        self._append(json.dumps({"when": now, **asdict(entry)}) + "\n")

    def check(self) -> None:
        """Find out before any question whether lines can be written."""
        if self.path is not None and self.path.exists() and not self.path.is_file():
            raise CannotWrite(CANNOT_WRITE.format(path=self.path, why="it is no file"))
        self._append("")

    def _append(self, line: str) -> None:
        if self.path is None:
            return
        try:
            with open(self.path, "ab", opener=_for_the_owner) as file:
                file.write(line.encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise CannotWrite(CANNOT_WRITE.format(path=self.path, why=error.strerror)) from error

    def keep(self, run: int, digest: str, answer: dict[str, Any], rows: int, size: int) -> None:
        """Keep an answer, so that the same question of the same run gets the same one."""
        self._kept[run, digest] = answer, rows, size
        self._bytes += size
        while self._bytes > MOST_KEPT:
            self._bytes -= self._kept.pop(next(iter(self._kept)))[2]

    def kept(self, run: int, digest: str) -> tuple[dict[str, Any], int, int] | None:
        """Return an answer that was kept, of how many rows it is, and its bytes."""
        return self._kept.get((run, digest))


class CannotWrite(ValueError):
    """A ledger that cannot be written: the site has to stop."""


def _entry(line: bytes, number: int) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        entry = None
    known = {"looked": bool, "hash": str, "rules": str}
    if not isinstance(entry, dict) or not all(
        isinstance(entry.get(name), kind) for name, kind in known.items()
    ):
        raise ValueError(BAD_LINE.format(line=number))
    return entry


def _for_the_owner(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
