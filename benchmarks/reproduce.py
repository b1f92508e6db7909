"""What a run of the animals study costs, in units U.

U is one scikit-learn ``LogisticRegressionCV`` (ten values of C, five folds that hold out reference
rows only) on the arrays of a run, timed in the same process: processor time of one thread.

``OMP_NUM_THREADS=1 python -m benchmarks.reproduce [--data awa1] [--json PATH]`` measures one
attribute under three of the eighteen pairs of corruption and share, and prints the cost of the
average run of the whole grid (127 runs an attribute and repeat, what they share included): the
paper's method with its seven baselines, and our default beside them.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

from benchmarks.shapes import unit
from sourcewise.experiments.animal_study import AnimalStudy, corrupt_groups
from sourcewise.experiments.catalog import make_study
from sourcewise.experiments.grid import Only, Task
from sourcewise.experiments.names import METHODS
from sourcewise.experiments.splits import repeat_seed, split_groups

CONDITIONS = (("label-bias", 1.0), ("shuffled-labels", 0.5), ("shuffled-features", 0.2))
ALL_CONDITIONS = 18  # six corruptions, three shares of rows
TARGET = "flippers"
N_FOR_UNIT = 30


def unit_of(study: AnimalStudy) -> float:
    """Mean of U over the conditions, with half of the sources corrupted."""
    data, seed = study.data, repeat_seed(study.seed, 0)
    split = split_groups(len(data.X), study.n_groups, study.group_size, seed)
    labels = data.labels[:, data.attributes.index(TARGET)].astype(np.intp)
    bad = split.groups[split.order[:N_FOR_UNIT]]
    good = split.groups[np.setdiff1d(np.arange(study.n_groups), split.order[:N_FOR_UNIT])]
    sources = np.repeat(np.arange(study.n_groups), study.group_size)  # the reference comes first
    units = []
    for kind, p in CONDITIONS:
        X, y, _ = corrupt_groups(data, labels, bad, kind, p, seed)
        rows = np.concatenate([data.X[good], X]).reshape(len(sources), -1)
        marks = np.concatenate([labels[good], y]).ravel()
        units.append(unit(rows.astype(np.float64), marks, sources))
    return float(np.mean(units))


def cost_of_a_run(study: AnimalStudy) -> float:
    """Processor seconds of the average run of the whole grid."""
    (task,) = study.tasks(Only([f"target={TARGET}", "repeat=0"]))

    def spent(conditions: tuple[tuple[str, float], ...], n_least: int) -> float:
        keys = tuple(
            key
            for key in task.keys
            if (key.corruption, key.p) in conditions and (key.n == 0 or n_least == 0)
        )
        start = time.process_time()
        for _ in study.run(Task(task.repeat, task.target, keys)):
            pass
        return time.process_time() - start

    spent(CONDITIONS[:1], 1)  # warm up
    once = spent(CONDITIONS[:1], 1)  # what an attribute costs once, and the run without corruption
    each = (spent(CONDITIONS, 0) - once) / len(CONDITIONS)
    n_runs = 1 + ALL_CONDITIONS * (len(study.corrupted_sources) - 1)
    return (once + ALL_CONDITIONS * each) / n_runs


def measure(data: str, folder: Path | None) -> dict[str, float]:
    """Cost of a run in units U."""
    ours = tuple(method for method in METHODS if method != "default")
    study = make_study("animals", data, folder=folder)
    assert isinstance(study, AnimalStudy)
    U = unit_of(study)
    figures = {"U in seconds": U}
    for name, methods in (("paper's method and seven baselines", ours), ("default", ("default",))):
        study.methods = methods
        figures[name] = cost_of_a_run(study) / U
    return figures


def main(arguments: list[str] | None = None) -> None:
    """Print the figures and, if asked, write them as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", default="synthetic", help="synthetic (60 x 500 x 101) or awa1")
    parser.add_argument("--folder", type=Path, help="where awa1 is")
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the figures here")
    options = parser.parse_args(arguments)
    figures = measure(options.data, options.folder)
    for name, value in figures.items():
        print(f"{name:<36}{value:>8.3f}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
