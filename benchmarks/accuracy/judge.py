"""How well could anyone tell clean from bad sources? ``python -m benchmarks.accuracy.judge``.

A judge who has all test rows of a draw, up to a thousand, besides the trusted ones fits a model to
them and scores each source by it: by its mean loss, and by its agreement (the covariance of
predictions and labels). Both have nothing to do with the library's code. What such a judge cannot
tell apart, nobody can be asked to tell with a tenth of the rows.

With ``--sides``: what it costs to know all but which side is the clean one, in the cells in which
the default is furthest from the oracle.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from benchmarks.accuracy import summary
from benchmarks.accuracy.data import DATA_SETS, REFERENCE, Absent, Draw
from benchmarks.accuracy.design import Cell, cells_of, corrupt, data_set
from benchmarks.accuracy.informed import cost_of_not_knowing, sides_table
from benchmarks.accuracy.methods import DEFAULT
from benchmarks.accuracy.report import markdown
from benchmarks.accuracy.runner import read

LINE = 0.95
BY_LOSS, BY_AGREEMENT = "loss", "agreement"


def scores(model: Any, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Score some rows by a fitted model: what is larger is cleaner."""
    if hasattr(model, "predict_proba"):
        predicted = model.predict_proba(X)
        outcomes = (y[:, None] == model.classes_).astype(float)
    else:
        predicted, outcomes = model.predict(X)[:, None], y[:, None]
    covariances = (predicted - predicted.mean(axis=0)) * (outcomes - outcomes.mean(axis=0))
    return {
        BY_LOSS: -float(np.mean((predicted - outcomes) ** 2)),
        BY_AGREEMENT: float(covariances.sum() / max(len(y) - 1, 1)),
    }


def make_model(regression: bool) -> Any:
    """Return a plain linear model that chooses its regularisation itself."""
    learner: Any = (
        RidgeCV(np.logspace(-2, 3, 8))
        if regression
        else GridSearchCV(
            LogisticRegression(max_iter=300),
            {"C": np.logspace(-4, 1, 6)},
            cv=3,
            scoring="neg_log_loss",
        )
    )
    return make_pipeline(StandardScaler(), learner)


def judge(draw: Draw, bad: list[str], *, regression: bool) -> dict[str, float]:
    """AUC of both scores of a model of the trusted and the test rows."""
    trusted = draw.sources == REFERENCE
    model = make_model(regression)
    model.fit(
        np.concatenate([draw.X[trusted], draw.X_test]),
        np.concatenate([draw.y[trusted], draw.y_test]),
    )
    names = np.unique(draw.sources[~trusted])
    found = pd.DataFrame(
        scores(model, draw.X[draw.sources == name], draw.y[draw.sources == name]) for name in names
    )
    clean = ~np.isin(names, bad)
    return {kind: float(roc_auc_score(clean, found[kind])) for kind in found}


def sides(draw: Draw, bad: list[str], *, regression: bool) -> dict[str, float]:
    """Cost of not knowing which of two known sides is the clean one."""
    is_bad = np.isin(draw.sources, bad)
    is_clean = ~is_bad & (draw.sources != REFERENCE)
    models = []
    for rows in (is_clean, is_bad):
        one_label = not regression and len(np.unique(draw.y[rows])) == 1
        model = DummyClassifier() if one_label else make_model(regression)
        models.append(model.fit(draw.X[rows], draw.y[rows]))
    return cost_of_not_knowing(models, draw, regression=regression)


def _asked(question: Callable[..., dict[str, float]], cell: Cell, seed: int, folder: Path) -> Any:
    data = data_set(cell.data)
    draw = data.draw(folder, seed, cell.reference, cell.uneven)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of solvers that stop early: it is a rough yardstick
        found = question(*corrupt(draw, cell, data, seed), regression=data.regression)
    return dict(zip(summary.CELL, _place(cell), strict=True)) | found


def _place(cell: Cell) -> tuple[str, str, str, float]:
    return cell.data, cell.variation, cell.corruption, cell.bad


def _runs(wanted: pd.Index, n_seeds: int) -> Iterator[tuple[Cell, int]]:
    for data in DATA_SETS:
        for cell in cells_of(data):
            if _place(cell) in wanted:
                yield from ((cell, seed) for seed in range(n_seeds))


def table(default: pd.Series, judged: pd.DataFrame) -> str:
    """Count the cells below the line, for the default, the judge's scores, and the better one."""
    cells = judged.groupby(summary.CELL)[[BY_LOSS, BY_AGREEMENT]].mean()
    cells.insert(0, "default", default.reindex(cells.index))
    cells["the better of both"] = cells[[BY_LOSS, BY_AGREEMENT]].max(axis=1)
    rows = []
    for name in [*dict.fromkeys(cells.index.get_level_values("data")), "all"]:
        mine = cells if name == "all" else cells.loc[[name]]
        found = (f"{mine[kind].mean():.3f} ({(mine[kind] < LINE).sum()})" for kind in cells)
        rows.append((name, str(len(mine)), *found))
    return markdown(("data", "cells", *cells.columns), rows)


def main(arguments: list[str] | None = None) -> None:
    """Parse, judge, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.accuracy.judge")
    parser.add_argument("--sides", action="store_true", help="the cost of not knowing the sides")
    parser.add_argument("--seeds", type=int, default=20, help="draws of every cell (20)")
    parser.add_argument("--jobs", type=int, default=2, help="processes (2)")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), metavar="FOLDER")
    parser.add_argument(
        "--results", type=Path, default=Path("bench-results/accuracy"), metavar="FOLDER"
    )
    options = parser.parse_args(arguments)
    path = options.results / "runs.parquet"
    if not path.exists():
        parser.error(f"there are no results at {path}: run python -m benchmarks.accuracy first.")
    if options.seeds < 1 or options.jobs < 1:
        parser.error("--seeds and --jobs are at least 1.")
    results = read(path)
    if options.sides:
        default = furthest(summary.regrets(results)[DEFAULT])
        question, words = sides, f"Cells with a regret beyond {summary.WORST}:"
    else:
        default = summary.harmed_auc(results)
        question, words = judge, f"Mean AUC where bad sources do harm, and cells below {LINE}:"
    if not len(default):
        parser.error(f"there is no such cell in {path}.")
    try:
        found = Parallel(n_jobs=options.jobs)(
            delayed(_asked)(question, cell, seed, options.data)
            for cell, seed in _runs(default.index, options.seeds)
        )
    except Absent as error:
        parser.error(f"{error}.")
    print(f"{words}\n")
    print((sides_table if options.sides else table)(default, pd.DataFrame(found)))


def furthest(regret: pd.Series) -> pd.Series:
    """Cells beyond the line in which there are both clean and bad sources."""
    bad = regret.index.get_level_values("bad")
    return regret[(regret > summary.WORST) & (bad > 0.0) & (bad < 1.0)]


if __name__ == "__main__":
    main()
