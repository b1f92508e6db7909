"""What a study would cost, from a few of its runs, and in units of one fit of scikit-learn."""

from __future__ import annotations

import time
import warnings
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegressionCV

from sourcewise.core.threads import one_blas_thread
from sourcewise.estimators.splitter import ReferenceKFold
from sourcewise.experiments.grid import Key, Only, Task
from sourcewise.experiments.names import ALL_DATA, DEFAULT
from sourcewise.experiments.study import Study
from sourcewise.progress import report_progress


@dataclass(frozen=True)
class Estimate:
    """What was measured, and what it comes to for all that is wanted."""

    # Runs that are wanted, and how many were measured.
    runs: int
    sampled: int
    seconds: float  # processor seconds of all runs
    # Processor seconds of U, one `LogisticRegressionCV` on the rows of a run: mean over the
    # corruptions that were measured.
    unit: float
    # Processor seconds of the average run by method, its share of what runs have in common
    # included.
    per_run: dict[str, float]

    @property
    def others(self) -> list[str]:
        """All methods but our default: the paper's and its baselines."""
        return [method for method in self.per_run if method != DEFAULT]


def estimate(study: Study, only: Only) -> Estimate:
    """Measure a few runs and project the processor time of all that is wanted.

    The first task is run under one and then under two of its corruptions: the difference is what
    each further one costs, the rest what a task costs once.
    """
    tasks = study.tasks(only)
    if not tasks:
        return Estimate(0, 0, 0.0, float("nan"), {})
    first = tasks[0]
    kinds = list(dict.fromkeys((key.corruption, key.p) for key in first.keys))
    parts = [
        replace(first, keys=tuple(k for k in first.keys if (k.corruption, k.p) in kinds[:count]))
        for count in range(1, min(2, len(kinds)) + 1)
    ]
    with one_blas_thread():
        spent, shares, sampled = [], [], 0
        for part in parts:
            total, by_method = _measure(study, part, sampled)
            sampled += part.n_runs
            spent.append(total)
            shares.append(by_method)
        unit = unit_of(study, parts[-1])
    per_run = {
        method: _of_task([share[method] for share in shares], len(kinds)) / first.n_runs
        for method in study.methods
    }
    runs = sum(task.n_runs for task in tasks)
    return Estimate(runs, sampled, _of_task(spent, len(kinds)) * len(tasks), unit, per_run)


def _measure(study: Study, task: Task, before: int) -> tuple[float, dict[str, float]]:
    """Processor seconds of a task, in all and by method; ``before`` runs were measured already."""
    by_method: dict[str, float] = defaultdict(float)
    start = time.process_time()
    for done, rows in enumerate(study.run(task), start=1):
        for row in rows:
            by_method[row.method] += row.cpu_seconds
        report_progress("sample", before + done, 0)
    return time.process_time() - start, by_method


def _of_task(spent: list[float], n_kinds: int) -> float:
    """Project what a task costs from what it costs under one and under two of its corruptions."""
    return spent[0] + (n_kinds - 1) * (spent[-1] - spent[0])


def unit_of(study: Study, task: Task) -> float:
    """Processor seconds of U on the rows of a task's median runs, mean over its corruptions."""
    by_kind: dict[tuple[str, float], list[Key]] = {}
    for key in sorted(task.keys, key=lambda key: key.n):
        by_kind.setdefault((key.corruption, key.p), []).append(key)
    return float(np.mean([_unit_of_run(study, task, k[len(k) // 2]) for k in by_kind.values()]))


def _unit_of_run(study: Study, task: Task, key: Key) -> float:
    # A method that wants to know nothing of the sources but their rows.
    plain = replace(study, methods=(ALL_DATA,))
    (run,) = plain.pools(replace(task, keys=(key,)))
    X, y, sources = run.bench.rows(run.facts)
    return unit_seconds(X.astype(np.float64), y, sources)


def unit_seconds(X: Any, y: np.ndarray, sources: np.ndarray, weights: Any = None) -> float:
    """Processor seconds of U: one `LogisticRegressionCV` without an intercept of its own.

    Ten values of C, five folds that hold out rows of the reference only (source 0), default solver
    and tolerance.
    """
    folds = list(ReferenceKFold(5, reference=0).split(np.empty((len(y), 0)), y, sources=sources))
    model = LogisticRegressionCV(Cs=np.logspace(-4, 4, 10), cv=folds, fit_intercept=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", FutureWarning)
        start = time.process_time()
        model.fit(X, y, sample_weight=weights)
        return time.process_time() - start
