"""How far a long computation is: told to a listener, as bars for a person or lines for a log."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

from sourcewise.extras import how_to_install

BARS_NEED = "verbose=True shows progress bars, which need rich: {how}."
FITS = "fits"  # stage that runs beside the others: fits of an estimator of the user's own
TITLES = {
    "results": "Reading the results",
    "files": "Looking at the files",
    "reading": "Reading the table",
    "discrepancies": "Comparing sources",
    "selection": "Choosing the trade-off",
    "training": "Training",
    "comparison": "Errors on held-out rows",
    "predicting": "Predicting",
    "runs": "Runs",
    "sample": "Measuring a sample",
    "pictures": "Features of pictures",
}
# Of an estimator of the user's own: fits under way, or done.
FIT, SOME_FIT, ALL_FITS = "Fit {number} of at most {total}", "Fit {number}", "{number} fits"
EVERY = 5.0  # seconds between lines of one stage
Listener = Callable[[str, int, int], None]

_listener: ContextVar[Listener | None] = ContextVar("sourcewise_progress", default=None)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call ``listener(stage, done, total)`` for all that happens inside; total 0 means unknown."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


def report_progress(stage: str, done: int = 0, total: int = 0) -> None:
    """Tell the listener, if there is one."""
    listener = _listener.get()
    if listener is not None:
        listener(stage, done, total)


def counter(stage: str, total: int) -> Callable[[int], None]:
    """Return a function to call with how many more of ``total`` steps are done."""
    done = 0

    def more(n: int) -> None:
        nonlocal done
        done += n
        report_progress(stage, done, total)

    return more


# -- bars, which need rich --------------------------------------------------------------------


def bars(wanted: bool) -> AbstractContextManager[None]:
    """Show progress bars for all that happens inside, if they are wanted and nobody listens yet."""
    return verbose_bars() if wanted and _listener.get() is None else nullcontext()


def progress_bars(quiet: bool, window: float = 30.0) -> AbstractContextManager[None]:
    """Show bars for all that happens inside, if standard error is a terminal.

    The time left is judged by the pace of the last ``window`` seconds.
    """
    return nullcontext() if quiet or not sys.stderr.isatty() else verbose_bars(window)


@contextmanager
def verbose_bars(window: float = 30.0) -> Iterator[None]:
    """Show bars for all that happens inside, wherever standard error goes (a notebook, a log)."""
    try:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            Progress,
            TextColumn,
            TimeElapsedColumn,
            TimeRemainingColumn,
        )
    except ModuleNotFoundError as error:
        raise ImportError(BARS_NEED.format(how=how_to_install("cli"))) from error
    console = Console(stderr=True)
    with (
        Progress(
            TextColumn("{task.description:<30}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[share]:>4}"),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            console=console,
            refresh_per_second=4,
            speed_estimate_period=window,
        ) as bars,
        listening(Stages(bars)),
    ):
        yield


class Stages:
    """Turns reports of progress into bars, one for each stage."""

    def __init__(self, bars: Any):
        self.bars = bars
        self.tasks: dict[str, Any] = {}
        self.current: str | None = None
        self.began = 0.0
        self.seconds: dict[str, float] = {}
        self.round = 0
        self.rounds = 0
        self.within = 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Listen to one message."""
        if stage == "comparison":
            self.round, self.rounds, self.within = done, total, 0.0
        elif self.rounds:
            self._inside_a_round(stage, done, total)
            return
        if stage == FITS:
            self._show_fits(done, total)
            return
        self._show(stage, float(done), float(total))

    def _show(self, stage: str, done: float, total: float) -> None:
        if stage != self.current:
            self._finish()
            self.current, self.began = stage, time.monotonic()
        if stage not in self.tasks:
            self.tasks[stage] = self.bars.add_task(TITLES[stage], total=None, share="")
        share = f"{done / total:.0%}" if total else ""
        self.bars.update(
            self.tasks[stage], total=total or None, completed=done, share=share, refresh=False
        )

    def _show_fits(self, done: int, total: int) -> None:
        """Name the fit under way, on a bar that lasts for all stages."""
        if done == total > 0:
            title = ALL_FITS.format(number=total)
        else:
            title = (FIT if total else SOME_FIT).format(number=done + 1, total=total)
        if FITS not in self.tasks:
            self.tasks[FITS] = self.bars.add_task(title, total=None, share="")
        share = f"{done / total:.0%}" if total else ""
        self.bars.update(
            self.tasks[FITS], description=title, total=total or None, completed=done, share=share
        )

    def _finish(self) -> None:
        if self.current is None:
            return
        self.seconds[self.current] = time.monotonic() - self.began
        self.bars.update(self.tasks[self.current], total=1, completed=1, share="100%")

    def _inside_a_round(self, stage: str, done: int, total: int) -> None:
        """Move on within a round by how long its stages took in the first fit."""
        first = {s: self.seconds.get(s, 1.0) for s in ("discrepancies", "selection", "training")}
        if stage not in first:
            return
        before = sum(list(first.values())[: list(first).index(stage)])
        part = before + first[stage] * (done / total if total else 0.0)
        # The whole fit is the larger part of a round; the two others measure nothing again.
        self.within = max(self.within, 0.75 * part / max(sum(first.values()), 1e-9))
        self._show("comparison", self.round + self.within, float(self.rounds))


# -- lines ------------------------------------------------------------------------------------


class JsonLines:
    """Turns reports of progress into lines on standard error: stage, done, total, seconds left.

    There is one when a stage begins and ends, and every few seconds in between.
    """

    def __init__(self) -> None:
        self.stage = ""
        self.began = self.written = 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Listen to one message."""
        now = time.monotonic()
        if stage != self.stage:
            self.stage, self.began, self.written = stage, now, -EVERY
        if now - self.written < EVERY and done != total:
            return
        self.written, seconds = now, now - self.began
        left = round(seconds * (total - done) / done, 1) if done and total else None
        facts = {"stage": stage, "done": done, "total": total or None}
        line = {**facts, "seconds": round(seconds, 1), "seconds_left": left}
        print(json.dumps(line), file=sys.stderr, flush=True)
