"""``sourcewise reproduce``."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from sourcewise.cli import options as o
from sourcewise.cli.entry import complain
from sourcewise.cli.output import RESULTS, check_output, say
from sourcewise.experiments.catalog import make_study
from sourcewise.experiments.estimate import Estimate
from sourcewise.experiments.estimate import estimate as estimate_cost
from sourcewise.experiments.grid import Only
from sourcewise.experiments.names import DEFAULT, METHODS
from sourcewise.experiments.study import run_study
from sourcewise.progress import listening, progress_bars
from sourcewise.runs import Lines, WorkerGone, in_words

WINDOW = 900.0  # seconds; runs of one grid differ a lot

NO_OUTPUT = "Say where the results go with -o FILE (or ask for the cost alone with --estimate)."
NOT_WRITTEN = (
    "{path} cannot be written: {error}. What is finished is kept, and the same command continues."
)
KEPT = "Interrupted; finished runs are kept in {path}, and the same command continues."


class StudyInterrupted(Exception):
    """A study was interrupted, and what was finished is kept."""


class StudyName(StrEnum):
    """The paper's studies."""

    products = "products"
    all_products = "all-products"
    animals = "animals"


def reproduce(
    study: Annotated[
        StudyName,
        typer.Argument(
            help="products: 20 books and 20 non-books; all-products: each product against all "
            "others; animals: attributes under six corruptions.",
            show_default=False,
        ),
    ],
    data: Annotated[
        str,
        o.told(
            "DATA",
            "Folder with the published files, or data in their place: awa1 (animals), "
            "fdu-mtl (products), synthetic (made on the fly).",
        ),
    ],
    output: Annotated[
        Path | None,
        o.output("FILE", "File of results (SQLite); continued if it exists.", o.OUTPUT),
    ] = None,
    folder: Annotated[
        Path | None,
        o.told(
            "FOLDER",
            "Where awa1 or fdu-mtl are. Default: SOURCEWISE_DATA, ../shared/data, data.",
        ),
    ] = None,
    runs: Annotated[
        int | None,
        o.told(
            "N",
            "Repeats. Default: the paper's, 1000 (products), 1 (all-products), 100 (animals).",
            min=1,
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        o.told(
            "FIELD=VALUES",
            "Run a part: target, corruption, n, p or repeat, values separated by commas. "
            "May be given several times.",
        ),
    ] = None,
    groups: Annotated[
        int | None,
        o.told("N", "animals: groups of pictures, one of them the reference. Default: 60.", min=2),
    ] = None,
    rows: Annotated[
        int | None,
        o.told("N", "animals: pictures in a group. Default: 500 (awa1: 400).", min=10),
    ] = None,
    methods: Annotated[
        str | None,
        o.told(
            "NAMES",
            f"Methods to run, separated by commas. Default: all ({', '.join(METHODS)}).",
        ),
    ] = None,
    seed: o.Seed = 0,
    jobs: Annotated[
        int,
        typer.Option(metavar="N", min=1, help="Worker processes (results do not depend on it)."),
    ] = 1,
    estimate: Annotated[
        bool,
        o.flag(
            "--estimate",
            "Measure a few runs, print what one run and the whole grid would take, stop.",
        ),
    ] = False,
    quiet: o.Quiet = False,
) -> None:
    """Run the paper's studies: its method, seven baselines, and our default beside them.

    Killed at any moment it loses what was in progress (with --jobs 1 a single run); the same
    command continues.

    Example: sourcewise reproduce animals --data synthetic --runs 1 --only target=flippers
    --only corruption=label-bias --only p=1 -o results.sqlite
    """
    if output is None and not estimate:
        raise ValueError(NO_OUTPUT)
    check_output(output, RESULTS)
    wanted = Only(only or [])
    listed = METHODS if methods is None else map(str.strip, methods.split(","))
    chosen = make_study(
        study.value,
        data,
        folder=folder,
        repeats=runs,
        seed=seed,
        methods=tuple(dict.fromkeys(listed)),
        only=wanted,
        groups=groups,
        group_size=rows,
    )
    if estimate:
        with progress_bars(quiet):
            cost = estimate_cost(chosen, wanted)
        _print_cost(cost, jobs)
        return
    assert output is not None
    try:
        with _progress(quiet):
            progress = run_study(chosen, output, wanted, jobs=jobs)
    except KeyboardInterrupt:
        raise StudyInterrupted(KEPT.format(path=output)) from None
    except WorkerGone as gone:
        raise typer.Exit(complain(str(gone))) from None
    except sqlite3.Error as error:
        raise typer.Exit(complain(NOT_WRITTEN.format(path=output, error=error))) from None
    if not quiet:
        runs_are = "run is" if progress.done == 1 else "runs are"
        say(f"{progress.done:,} {runs_are} in {output}.")


def _print_cost(cost: Estimate, jobs: int) -> None:
    """Say what all runs cost, and what one does."""
    print(f"{cost.runs:,} runs; {cost.sampled} were measured.")
    print(f"All of them: {in_words(cost.seconds)} of processor time", end="")
    print(f", {in_words(cost.seconds / jobs)} with {jobs} processes." if jobs > 1 else ".")
    for methods in (cost.others, [m for m in cost.per_run if m == DEFAULT]):
        if methods:
            spent = sum(cost.per_run[method] for method in methods)
            print(f"One run of {', '.join(methods)}: {spent:.3f} CPU s, {spent / cost.unit:.3f} U.")
    if cost.per_run:
        print(f"U, one LogisticRegressionCV on the rows of such a run: {cost.unit:.3f} CPU s.")


@contextmanager
def _progress(quiet: bool) -> Iterator[None]:
    """Show a bar, or a line now and then where standard error is a file."""
    if quiet or sys.stderr.isatty():
        with progress_bars(quiet, WINDOW):
            yield
    else:
        with listening(Lines(partial(print, file=sys.stderr))):
            yield
