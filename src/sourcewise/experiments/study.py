"""What every study has in common: the contract with the runner, settings, rows of results."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from sourcewise.experiments.bench import TOL, Outcome
from sourcewise.experiments.facts import Costs
from sourcewise.experiments.grid import Key, Only, Task
from sourcewise.experiments.results import Row


class Study(Protocol):
    """What the runner needs to know of a study."""

    name: str
    seed: int
    methods: tuple[str, ...]

    def settings(self) -> dict[str, str]:
        """Say what determines the numbers; results of other settings are not mixed with them."""

    def tasks(self, only: Only) -> list[Task]:
        """Return all that is wanted, in the order to be run."""

    def run(self, task: Task) -> Iterator[list[Row]]:
        """Compute the runs of a task; yields the rows of one run after the other."""


def fingerprint(*arrays: np.ndarray) -> str:
    """Short name of arrays: other numbers, types or shapes have another one."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.shape}{array.dtype.str}".encode())
        digest.update(np.ascontiguousarray(array))
    return digest.hexdigest()[:16]


def common_settings(study: Any) -> dict[str, str]:
    """Return the settings that no study is without."""
    from sourcewise import __version__

    return {
        "sourcewise": __version__,
        "study": study.name,
        "data": study.data_name,
        "protocol": "paper",
        "precision": "float32",
        "tolerance": f"{TOL:g}",
        "seed": str(study.seed),
    }


def share(costs: Costs, n_runs: int) -> Costs:
    """Share costs out among runs."""
    return Costs({method: seconds / max(n_runs, 1) for method, seconds in costs.items()})


def add(first: Costs, second: Costs) -> Costs:
    """Add costs up."""
    return Costs({m: first.get(m, 0.0) + second.get(m, 0.0) for m in {*first, *second}})


def run_rows(
    study: Study,
    keys: Sequence[Key],
    seed: int,
    outcomes: dict[str, Outcome],
    costs: Costs,
    shared: Costs,
) -> list[Row]:
    """Return one run's rows, under each of its keys."""
    spent = add(costs, shared)
    return [
        Row(
            study.name,
            *key,
            method,
            outcome.error,
            outcome.trade_off,
            outcome.C,
            spent[method] / len(keys),
            seed,
        )
        for key in keys
        for method, outcome in outcomes.items()
    ]
