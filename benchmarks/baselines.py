"""The eleven baselines on the shape of the animals study, in units U.

U is one scikit-learn ``LogisticRegressionCV`` (ten values of C, five folds that hold out reference
rows only) on the same arrays, timed in the same run: processor time of one thread.

``OMP_NUM_THREADS=1 python -m benchmarks.baselines [--json PATH]`` prints what each costs alone, and
what all cost with what they have in common computed once (``fit_together``).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks.shapes import SHAPES, cpu_seconds, make_pool, unit
from sourcewise import baselines
from sourcewise.baselines import fit_together
from sourcewise.baselines.base import Baseline
from sourcewise.baselines.comparison import DEFAULT, METHODS

SHAPE = "animals 60 x 500 x 101"
NAMES = [kind.__name__ for name, kind in METHODS.items() if name != DEFAULT]


def make(protocol: str | None) -> dict[str, Baseline]:
    """All eleven, by name."""
    return {
        name: getattr(baselines, name)(reference=0, protocol=protocol, random_state=0)
        for name in NAMES
    }


def measure() -> dict[str, dict[str, float]]:
    """Cost of each method in units U, for both protocols."""
    X, y, sources = make_pool(*SHAPES[SHAPE])
    figures: dict[str, dict[str, float]] = {}
    for protocol in ("paper", None):
        U = unit(X, y, sources)
        costs = {"U in seconds": U}
        for name, model in make(protocol).items():
            costs[name] = cpu_seconds(lambda m=model: m.fit(X, y, sources=sources)) / U
        costs["sum"] = sum(costs[name] for name in NAMES)
        models = make(protocol)
        costs["together"] = cpu_seconds(lambda m=models: fit_together(m, X, y, sources=sources)) / U
        figures[protocol or "default"] = costs
    return figures


def main(arguments: list[str] | None = None) -> None:
    """Print the table and, if asked, write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the figures here")
    options = parser.parse_args(arguments)
    figures = measure()
    print(f"{'cost in U':<22}" + "".join(f"{protocol:>10}" for protocol in figures))
    for name in figures["paper"]:
        print(f"{name:<22}" + "".join(f"{costs[name]:>10.3f}" for costs in figures.values()))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
