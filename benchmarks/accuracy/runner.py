"""Run the design, resumably: one tidy Parquet file of every method's result in every run."""

from __future__ import annotations

import ast
import hashlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pandas as pd
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

import sourcewise
from benchmarks.accuracy.data import Absent, DataSet, Draw, TooFewRows, in_development
from benchmarks.accuracy.design import Cell, cells_of, corrupt, data_set, is_development
from benchmarks.accuracy.methods import run_methods
from sourcewise.files import staged

SAVE_EVERY = 60  # seconds; what is computed in between is lost when the run is killed
TIMED_SHARE = 0.4
KEY = ["data", "corruption", "bad", "corrupted", "reference", "uneven", "seed"]

# What a result depends on; pages may change under a run that is resumed.
CODE = ("core", "estimators", "baselines", "corruption")
DESIGN = ("data.py", "design.py", "methods.py", "variants.py")

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
    cell: Cell, seed: int, folder: Path, fit_and_judge: FitAndJudge | None
) -> list[dict[str, Any]]:
    """Results in one run: of all methods, or of those that ``fit_and_judge`` knows."""
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
        "code": code_fingerprint(),
    }
    return [{**about, **result} for result in results]


def execute(
    runs: Sequence[Run],
    path: Path,
    folder: Path,
    *,
    jobs: int,
    fit_and_judge: FitAndJudge | None = None,
    say: Any = print,
) -> pd.DataFrame:
    """Run what the file does not hold yet, saving every minute; returns all results."""
    # Before hours are spent.
    path.parent.mkdir(parents=True, exist_ok=True)
    known = read(path) if path.exists() else pd.DataFrame(columns=[*KEY, "code"])
    if set(known["code"]) - {code_fingerprint()}:
        raise SystemExit(
            f"{path} was computed by other code; move it away, or use --report to read it."
        )
    done = set(known[KEY].itertuples(index=False, name=None))
    todo = [(cell, seed) for cell, seed in runs if (*cell.key(), seed) not in done]
    if len(known):
        say(f"{path}: {len(done)} runs are there already, {len(todo)} are to do.")
    # Workers inherit it: several threads in each would only wait for one another.
    os.environ["OMP_NUM_THREADS"] = "1"
    results = Parallel(n_jobs=jobs, return_as="generator")(
        delayed(one_run)(cell, seed, folder, fit_and_judge) for cell, seed in todo
    )
    for block in _portions(results, len(todo), say):
        known = pd.concat([known, pd.DataFrame(block)]) if len(known) else pd.DataFrame(block)
        save(known, path)
    return known.reset_index(drop=True)


def read(path: Path) -> pd.DataFrame:
    """Read results, or say in a sentence that they are not results."""
    try:
        results = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise SystemExit(f"{path} cannot be read as Parquet; move it away.") from error
    if missing := {*KEY, "method", "error", "code"} - {*results.columns}:
        raise SystemExit(f"{path} holds no results: columns {sorted(missing)} are not there.")
    return results


def _portions(
    results: Iterator[list[dict[str, Any]]], n_runs: int, say: Any
) -> Iterator[list[dict[str, Any]]]:
    begin = saved = time.monotonic()
    block: list[dict[str, Any]] = []
    for count, rows in enumerate(results, start=1):
        block += rows
        now = time.monotonic()
        if now - saved >= SAVE_EVERY or count == n_runs:
            left = (now - begin) / count * (n_runs - count)
            say(f"{count} of {n_runs} runs, {(now - begin) / 60:.0f} min; {left / 60:.0f} to go")
            if block:
                yield block
            block, saved = [], now


def save(results: pd.DataFrame, path: Path) -> None:
    """Write all results at once: the file is whole at any moment."""
    with staged(path) as (temporary,):
        results.to_parquet(temporary, index=False)
