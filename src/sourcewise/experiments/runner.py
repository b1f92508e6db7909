"""Running a study: nothing that is finished is run twice.

A run's numbers depend on its key alone, so a run that was lost when the process was killed is
computed again to the last digit.
"""

from __future__ import annotations

import time
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from sourcewise.estimators.threads import one_blas_thread
from sourcewise.experiments.grid import Only, Task, distinct_runs
from sourcewise.experiments.results import ResultsFile
from sourcewise.experiments.study import Study
from sourcewise.progress import report_progress
from sourcewise.runs import compute


@dataclass(frozen=True)
class Progress:
    """How far a study is.

    Attributes
    ----------
    done : int
        Runs in the file of results.
    total : int
        Runs that are wanted.
    """

    done: int
    total: int


def run_study(study: Study, path: Path, only: Only, *, jobs: int = 1) -> Progress:
    """Run what is wanted and not there yet.

    Parameters
    ----------
    study : Study
    path : Path
        File of results; created, or continued if it has the same settings.
    only : Only
    jobs : int
        Worker processes; with 1 everything happens in this process.
    """
    tasks = study.tasks(only)
    with ResultsFile(path, study.settings()) as file:
        total = sum(task.n_runs for task in tasks)
        left = _missing(study, tasks, file)
        done = total - sum(task.n_runs for task in left)
        report_progress("runs", done, total)
        with closing(compute(study.run, left, jobs=jobs)) as batches:
            for rows in batches:
                file.add(rows)
                done += 1
                report_progress("runs", done, total)
    return Progress(done, total)


def _missing(study: Study, tasks: list[Task], file: ResultsFile) -> list[Task]:
    """Return the tasks that are not finished, with the runs that they lack."""
    there = file.keys()
    left = []
    for task in tasks:
        keys = tuple(
            key
            for key in task.keys
            if any((study.name, *key, method) not in there for method in study.methods)
        )
        if keys:
            left.append(replace(task, keys=keys))
    return left


@dataclass(frozen=True)
class Estimate:
    """Projected cost of what is wanted, from a sample of runs.

    Attributes
    ----------
    runs : int
        In the whole grid.
    sampled : int
        Runs that were measured.
    seconds : float
        Processor time of the whole grid.
    """

    runs: int
    sampled: int
    seconds: float


def estimate(study: Study, only: Only) -> Estimate:
    """Measure a few runs and project the processor time of all that is wanted.

    The first task is run under one and then under two of its corruptions: the difference is what
    each further one costs, the rest what a task costs once.
    """
    tasks = study.tasks(only)
    if not tasks:
        return Estimate(0, 0, 0.0)
    first = tasks[0]
    kinds = list(dict.fromkeys((key.corruption, key.p) for key in first.keys))
    spent, sampled = [], 0
    with one_blas_thread():
        for count in range(1, min(2, len(kinds)) + 1):
            part = replace(
                first,
                keys=tuple(k for k in first.keys if (k.corruption, k.p) in kinds[:count]),
            )
            start = time.process_time()
            for done, _ in enumerate(study.run(part), start=1):
                report_progress("sample", sampled + done, 0)
            sampled += len(distinct_runs(part.keys))
            spent.append(time.process_time() - start)
    per_task = spent[0]
    if len(spent) == 2:
        per_task += (len(kinds) - 1) * (spent[1] - spent[0])
    return Estimate(sum(task.n_runs for task in tasks), sampled, per_task * len(tasks))
