"""Progress on standard error: what is happening, and how long is left."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from sourcewise.progress import FITS, listening

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
# Of the fits in one round of the comparison: the whole one, and two at other trade-offs.
ROUND_STAGES = 9


@contextmanager
def progress_bars(quiet: bool, window: float = 30.0) -> Iterator[None]:
    """Show bars for all that happens inside, if standard error is a terminal.

    The time left is judged by the pace of the last ``window`` seconds.
    """
    if quiet or not sys.stderr.isatty():
        yield
        return
    with verbose_bars(window):
        yield


@contextmanager
def verbose_bars(window: float = 30.0) -> Iterator[None]:
    """Show bars for all that happens inside, wherever standard error goes (a notebook, a log)."""
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

    def __init__(self, bars: Progress):
        self.bars = bars
        self.tasks: dict[str, TaskID] = {}
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
