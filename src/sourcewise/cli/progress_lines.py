"""Progress for logs: a line of JSON on standard error now and then."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from sourcewise.progress import listening
from sourcewise.progress_bars import progress_bars

EVERY = 5.0  # seconds between lines of one stage


def progress_of_cluster(quiet: bool, as_json: bool) -> AbstractContextManager[None]:
    """Bars for a person, lines for a log."""
    return progress_lines() if as_json and not quiet else progress_bars(quiet)


@contextmanager
def progress_lines(every: float = EVERY) -> Iterator[None]:
    """Write a line when a stage begins and ends, and every few seconds in between."""
    with listening(Lines(every)):
        yield


class Lines:
    """Turns reports of progress into lines: stage, done, total, seconds, seconds left."""

    def __init__(self, every: float):
        self.every = every
        self.stage = ""
        self.began = self.written = 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Listen to one message."""
        now = time.monotonic()
        if stage != self.stage:
            self.stage, self.began, self.written = stage, now, -self.every
        if now - self.written < self.every and done != total:
            return
        self.written, seconds = now, now - self.began
        left = round(seconds * (total - done) / done, 1) if done and total else None
        facts = {"stage": stage, "done": done, "total": total or None}
        line = {**facts, "seconds": round(seconds, 1), "seconds_left": left}
        print(json.dumps(line), file=sys.stderr, flush=True)
