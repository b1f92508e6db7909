"""Running a study, and what that would cost."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from sourcewise.estimators.threads import one_blas_thread
from sourcewise.experiments.grid import Only, Task
from sourcewise.experiments.results import ResultsFile
from sourcewise.experiments.study import Study
from sourcewise.progress import report_progress
from sourcewise.runs import Progress, run_left


def run_study(study: Study, path: Path, only: Only, *, jobs: int = 1) -> Progress:
    """Run what is wanted and not there yet.

    The file of results is created, or continued if it has the same settings.
    """
    tasks = study.tasks(only)
    with ResultsFile(path, study.settings()) as file:
        sink = StudySink(study, file)
        return run_left(study.run, tasks, sink, jobs=jobs, n_runs=lambda task: task.n_runs)


class StudySink:
    """A file of results, asked for the runs of one study."""

    def __init__(self, study: Study, file: ResultsFile):
        self.study, self.add = study, file.add
        self.there = file.keys()

    def left(self, task: Task) -> Task | None:
        """Return a task with the runs that are not there for every method."""
        name, methods = self.study.name, self.study.methods
        keys = [k for k in task.keys if any((name, *k, m) not in self.there for m in methods)]
        return replace(task, keys=tuple(keys)) if keys else None


class Estimate(NamedTuple):
    """Runs that are wanted, how many of them were measured, and processor seconds of all."""

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
            keys = tuple(k for k in first.keys if (k.corruption, k.p) in kinds[:count])
            part = replace(first, keys=keys)
            start = time.process_time()
            for done, _ in enumerate(study.run(part), start=1):
                report_progress("sample", sampled + done, 0)
            sampled += part.n_runs
            spent.append(time.process_time() - start)
    per_task = spent[0]
    if len(spent) == 2:
        per_task += (len(kinds) - 1) * (spent[1] - spent[0])
    return Estimate(sum(task.n_runs for task in tasks), sampled, per_task * len(tasks))
