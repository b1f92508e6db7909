"""Studies small enough for tests, and a script that runs one until it is killed."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import numpy as np

from sourcewise.experiments.animal_study import AnimalStudy
from sourcewise.experiments.catalog import make_animals, make_products
from sourcewise.experiments.grid import Only
from sourcewise.experiments.names import METHODS
from sourcewise.experiments.product_studies import BookStudy, EveryProductStudy
from sourcewise.experiments.study import run_study

FEW = ("paper", "all data", "probability median", "default")


class Killed(AnimalStudy):
    """A study whose process is killed in a late repeat."""

    def run(self, task):
        if task.repeat == self.killed_in_repeat:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().run(task)


def animals(repeats=2, methods=FEW, seed=0, killed_in_repeat=None):
    data = make_animals(n_images=700, n_features=8)
    study = (AnimalStudy if killed_in_repeat is None else Killed)(
        data,
        "synthetic",
        group_size=60,
        repeats=repeats,
        seed=seed,
        methods=methods,
        n_groups=8,
        corrupted_sources=(0, 3, 7),
        corrupted_shares=(1.0, 0.5),
    )
    study.killed_in_repeat = killed_in_repeat
    return study


def books(repeats=2, methods=tuple(METHODS)):
    return BookStudy(make_products(n_features=6), "synthetic", repeats=repeats, methods=methods)


def every_product(methods=FEW):
    products = make_products(n_features=6)[:6]
    return EveryProductStudy(products, "synthetic", methods=methods)


def part():
    """Two repeats of two attributes under two corruptions: 4 tasks of 9 runs."""
    return Only(["target=black,flippers", "corruption=label-bias,blur"])


def same_numbers(first, second):
    """Compare all columns but the time spent."""
    assert first.columns.keys() == second.columns.keys()
    for name in first.columns.keys() - {"cpu_seconds"}:
        np.testing.assert_array_equal(first.columns[name], second.columns[name], err_msg=name)


if __name__ == "__main__":
    run_study(animals(), Path(sys.argv[1]), part(), jobs=int(sys.argv[2]))
