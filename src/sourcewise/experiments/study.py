"""What every study has in common: settings, the part that is wanted, rows of results, a run."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np

from sourcewise.experiments.bench import TOL, Bench
from sourcewise.experiments.facts import Facts
from sourcewise.experiments.grid import Key, Only, Task
from sourcewise.experiments.names import METHODS
from sourcewise.experiments.results import ResultsFile, Row
from sourcewise.experiments.splits import repeat_seed
from sourcewise.runs import Progress, run_left

Costs = Mapping[str, float]


class PlannedRun(NamedTuple):
    """One run that is ready to be computed."""

    keys: Sequence[Key]  # what the run answers
    bench: Bench
    facts: Facts  # of the sources that take part
    # What finding this out cost, and how many runs share it.
    shared: Sequence[tuple[Costs, int]]


@dataclass
class Study(ABC):
    """A study to be run."""

    name: ClassVar[str]
    data: Any
    data_name: str  # of the data, in results
    _: KW_ONLY
    repeats: int
    seed: int = 0
    methods: tuple[str, ...] = tuple(METHODS)  # which of `METHODS` to run

    def settings(self) -> dict[str, str]:
        """Say what determines the numbers; results of other settings are not mixed with them."""
        from sourcewise import __version__

        return {
            "sourcewise": __version__,
            "study": self.name,
            "data": self.data_name,
            "protocol": "paper",
            "precision": "float32",
            "tolerance": f"{TOL:g}",
            "seed": str(self.seed),
        }

    @abstractmethod
    def grid(self) -> dict[str, Sequence[Any]]:
        """Return all values of each field of a key."""

    @abstractmethod
    def tasks(self, only: Only) -> list[Task]:
        """Return all that is wanted, in the order to be run."""

    @abstractmethod
    def pools(self, task: Task) -> Iterator[PlannedRun]:
        """Prepare the runs of a task, one after the other."""

    def run(self, task: Task) -> Iterator[list[Row]]:
        """Compute the runs of a task; yields the rows of one run after the other."""
        for run in self.pools(task):
            outcomes, own = run.bench.run(run.facts)
            bills = [(own, 1), *run.shared]
            spent = {m: sum(costs.get(m, 0.0) / n for costs, n in bills) for m in outcomes}
            yield [
                Row(
                    self.name,
                    *key,
                    method,
                    *outcome,
                    cpu_seconds=spent[method] / len(run.keys),
                    seed=repeat_seed(self.seed, key.repeat),
                )
                for key in run.keys
                for method, outcome in outcomes.items()
            ]

    def bench(
        self, X: np.ndarray, y: np.ndarray, own: np.ndarray, test: np.ndarray, repeat: int
    ) -> Bench:
        """Set up the methods: ``own`` are the reference's rows, ``test`` those to test on."""
        seed = repeat_seed(self.seed, repeat)
        return Bench(X[own], y[own], X[test], y[test], seed=seed, methods=self.methods)


def fingerprint(*arrays: np.ndarray) -> str:
    """Short name of arrays: other numbers, types or shapes have another one."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.shape}{array.dtype.str}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()[:16]


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
