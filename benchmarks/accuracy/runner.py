"""Run the design, resumably: one tidy Parquet file of every method's result in every run."""

from __future__ import annotations

import ast
import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import cache, partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

import sourcewise
from benchmarks.accuracy.data import Absent, DataSet, Draw, TooFewRows, in_development
from benchmarks.accuracy.design import Cell, cells_of, corrupt, data_set, is_development
from benchmarks.accuracy.methods import run_methods
from sourcewise.files import staged
from sourcewise.progress import listening
from sourcewise.runs import Lines, run_left

SAVE_EVERY = 60  # seconds; what is computed in between is lost when the run is killed
TIMED_SHARE = 0.4
KEY = ["data", "corruption", "bad", "corrupted", "reference", "uneven", "seed"]

# What a result depends on; pages may change under a run that is resumed.
CODE = ("core", "estimators", "baselines", "corruption")
DESIGN = ("data.py", "design.py", "methods.py", "text.py", "text_corruption.py", "variants.py")

Run = tuple[Cell, int]
# Fits and judges some methods on the draw of one run.
FitAndJudge = Callable[[DataSet, Draw, list[str], int], Iterator[dict[str, Any]]]


@cache
def code_fingerprint() -> str:
    """Say which code computes the results: those of different code must not be mixed."""
    digest = hashlib.sha256()
    package = Path(sourcewise.__file__).parent
    library = sorted(p for part in CODE for p in (package / part).rglob("*.py"))
    for path in [*library, *(Path(__file__).with_name(name) for name in DESIGN)]:
        digest.update(without_prose(path.read_text(encoding="utf-8")).encode())
    return digest.hexdigest()[:12]


def without_prose(source: str) -> str:
    """Drop comments and docstrings, which compute nothing."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            node.value.value = ""
    return ast.unparse(tree)


def available(data_sets: Sequence[DataSet], folder: Path) -> tuple[list[DataSet], list[str]]:
    """Return data sets that can be read here, and a sentence on each that cannot."""
    there, missing = [], []
    for data in data_sets:
        try:
            data.draw(folder, 0, 30, False)
            there.append(data)
        except Absent as reason:
            missing.append(f"{data.name} is left out: {reason}.")
    return there, missing


def without_too_small(runs: Sequence[Run], folder: Path) -> tuple[list[Run], list[str]]:
    """Drop cells that a data set is too small for; also returns a sentence on each kind."""
    reasons: dict[tuple[str, int, bool], str | None] = {}

    def reason(cell: Cell) -> str | None:
        key = (cell.data, cell.reference, cell.uneven)
        if key not in reasons:
            try:
                data_set(cell.data).draw(folder, 0, cell.reference, cell.uneven)
                reasons[key] = None
            except TooFewRows as too_few:
                reasons[key] = f"{cell.data} is too small for '{cell.variation}': {too_few}."
        return reasons[key]

    kept = [run for run in runs if reason(run[0]) is None]
    return kept, [words for words in reasons.values() if words]


def plan(data_sets: Sequence[DataSet], seeds: Sequence[int]) -> list[Run]:
    """All runs, the grid before the variations.

    They go seed by seed, so that an interrupted run has whole seeds to show, and from one half to
    the other and back, so that it has both.
    """
    late = [seed for seed in seeds if not in_development(seed)]
    early = [seed for seed in seeds if in_development(seed)]
    alternating = [seed for pair in zip_longest(early, late) for seed in pair if seed is not None]
    runs = [(cell, seed) for seed in alternating for data in data_sets for cell in cells_of(data)]
    return sorted(runs, key=lambda run: run[0].variation != "grid")


def quick_plan(data_sets: Sequence[DataSet], seeds: Sequence[int]) -> list[Run]:
    """Return every 14th run, of those that take long every 61st: ten minutes' worth.

    Neither stride shares a factor with the number of cells, so that the runs are spread over them.
    """
    fast = plan([data for data in data_sets if data.varied], seeds)
    slow = plan([data for data in data_sets if not data.varied], seeds)
    return slow[::61] + fast[::14]


def variants_plan(data_sets: Sequence[DataSet], seeds: Sequence[int]) -> list[Run]:
    """Return the runs of the grid on which choices may be made."""
    return [
        (cell, seed)
        for cell, seed in plan(data_sets, seeds)
        if cell.variation == "grid" and is_development(data_set(cell.data), seed)
    ]


def extremes_plan(data_sets: Sequence[DataSet], seeds: Sequence[int]) -> list[Run]:
    """Return the runs in which no source or every source is bad, of all data sets that are fast."""
    fast = [data for data in data_sets if data.varied]
    return [(cell, seed) for cell, seed in plan(fast, seeds) if cell.bad in (0.0, 1.0)]


def one_run(
    run: Run, folder: Path, fit_and_judge: FitAndJudge | None
) -> Iterator[list[dict[str, Any]]]:
    """Results in one run: of all methods, or of those that ``fit_and_judge`` knows."""
    cell, seed = run
    data = data_set(cell.data)
    draw = data.draw(folder, seed, cell.reference, cell.uneven)
    with threadpool_limits(1):
        draw, bad = corrupt(draw, cell, data, seed)
        if fit_and_judge is not None:
            results = list(fit_and_judge(data, draw, bad, seed))
        else:
            # At times each method is fitted by itself, for the sake of its processor time.
            timed = seed == 0 and cell.variation == "grid" and cell.bad == TIMED_SHARE
            results = list(run_methods(data, draw, bad, seed, one_by_one=timed))
    about = {
        **asdict(cell),
        "seed": seed,
        "variation": cell.variation,
        "development": is_development(data, seed),
        "natural": data.natural,
        "regression": data.regression,
    }
    yield [{**about, **result} for result in results]


class ResultsTable:
    """The Parquet file that results are kept in: whole at any moment, written every minute.

    Rows stand in the order of the runs that are asked for, however many processes compute them.
    """

    def __init__(self, path: Path, runs: Sequence[Run]):
        path.parent.mkdir(parents=True, exist_ok=True)  # before hours are spent
        self.path, self.saved, self.new = path, time.monotonic(), []
        self.known = read(path) if path.exists() else pd.DataFrame(columns=[*KEY, "code"])
        if set(self.known["code"]) - {code_fingerprint()}:
            raise SystemExit(
                f"{path} was computed by other code; move it away, or use --report to read it."
            )
        self.there = set(self.known[KEY].itertuples(index=False, name=None))
        self.place = {key_of(run): place for place, run in enumerate(runs)}

    def left(self, run: Run) -> Run | None:
        """Return a run that is not there."""
        return None if key_of(run) in self.there else run

    def add(self, rows: list[dict[str, Any]]) -> None:
        """Take the results of a run; what was not written yet is lost when this is killed."""
        self.new += [{**row, "code": code_fingerprint()} for row in rows]
        if time.monotonic() - self.saved >= SAVE_EVERY:
            self.save()

    def save(self) -> None:
        """Write all results."""
        if self.new:
            new = pd.DataFrame(self.new)
            self.known = pd.concat([self.known, new]) if len(self.known) else new
            keys = self.known[KEY].itertuples(index=False, name=None)
            order = np.argsort([self.place.get(key, -1) for key in keys], kind="stable")
            self.known = self.known.iloc[order].reset_index(drop=True)
            with staged(self.path) as (temporary,):
                self.known.to_parquet(temporary, index=False)
        self.new, self.saved = [], time.monotonic()


def key_of(run: Run) -> tuple[Any, ...]:
    """Values of `KEY`."""
    cell, seed = run
    return (*cell.key(), seed)


def execute(
    runs: Sequence[Run],
    path: Path,
    folder: Path,
    *,
    jobs: int,
    fit_and_judge: FitAndJudge | None = None,
    say: Callable[[str], Any] = print,
) -> pd.DataFrame:
    """Run what the file does not hold yet; returns all results."""
    table = ResultsTable(path, runs)
    if table.there:
        there, left = len(table.there), sum(table.left(run) is not None for run in runs)
        say(f"{path}: {there} runs are there already, {left} are to do.")
    compute = partial(one_run, folder=folder, fit_and_judge=fit_and_judge)
    try:
        with listening(Lines(say)):
            run_left(compute, runs, table, jobs=jobs)
    finally:
        table.save()
    return table.known


def read(path: Path) -> pd.DataFrame:
    """Read results, or say in a sentence that they are not results."""
    try:
        results = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise SystemExit(f"{path} cannot be read as Parquet; move it away.") from error
    if missing := {*KEY, "method", "error", "code"} - {*results.columns}:
        raise SystemExit(f"{path} holds no results: columns {sorted(missing)} are not there.")
    return results
