"""Running a study."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from sourcewise.experiments.grid import Only, Task
from sourcewise.experiments.results import ResultsFile
from sourcewise.experiments.study import Study
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
