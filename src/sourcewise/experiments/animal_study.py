"""The paper's second study: attributes of animals (section 4.3, appendix C)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from sourcewise.experiments.animals import AnimalData
from sourcewise.experiments.bench import Bench
from sourcewise.experiments.corruptions import CORRUPTIONS, LABEL_CORRUPTIONS, corrupt_groups
from sourcewise.experiments.facts import Facts
from sourcewise.experiments.grid import Key, Only, Task, distinct_runs
from sourcewise.experiments.names import METHODS
from sourcewise.experiments.results import Row
from sourcewise.experiments.splits import repeat_seed, split_groups
from sourcewise.experiments.study import add, common_settings, fingerprint, run_rows, share

CORRUPTED_SOURCES = (0, 10, 20, 30, 40, 50, 55, 59)
CORRUPTED_SHARES = (1.0, 0.5, 0.2)

TOO_FEW_ROWS = (
    "{found} rows are too few for {groups} groups of {size} and some rows to test on; the study "
    "needs more."
)


class AnimalStudy:
    """Attributes of animals from 60 groups of images, some of them corrupted (section 4.3).

    Parameters
    ----------
    data : AnimalData
    data_name : str
    group_size : int
        Rows of a group.
    repeats : int
    seed : int
    methods : tuple of str
    n_groups : int
        The reference included.
    corrupted_sources : tuple of int
        Values of n.
    corrupted_shares : tuple of float
        Values of p.
    """

    name = "animals"

    def __init__(
        self,
        data: AnimalData,
        data_name: str,
        *,
        group_size: int = 500,
        repeats: int = 100,
        seed: int = 0,
        methods: tuple[str, ...] = tuple(METHODS),
        n_groups: int = 60,
        corrupted_sources: tuple[int, ...] = CORRUPTED_SOURCES,
        corrupted_shares: tuple[float, ...] = CORRUPTED_SHARES,
    ):
        if len(data.X) <= n_groups * group_size:
            raise ValueError(
                TOO_FEW_ROWS.format(found=len(data.X), groups=n_groups, size=group_size)
            )
        self.data, self.data_name = data, data_name
        self.group_size, self.n_groups = group_size, n_groups
        self.repeats, self.seed, self.methods = repeats, seed, methods
        self.corrupted_sources, self.corrupted_shares = corrupted_sources, corrupted_shares
        self.corruptions = tuple(
            kind for kind in CORRUPTIONS if kind in CORRUPTIONS[:3] or kind in data.corrupted
        )

    def settings(self) -> dict[str, str]:
        """Say what determines the numbers."""
        data = self.data
        prints = {
            f"fingerprint {kind}": fingerprint(data.corrupted[kind]) for kind in data.corrupted
        }
        return {
            **common_settings(self),
            "fingerprint": fingerprint(data.X, data.labels),
            **prints,
            "groups": str(self.n_groups),
            "rows per group": str(self.group_size),
            "test rows": str(len(data.X) - self.n_groups * self.group_size),
        }

    def tasks(self, only: Only) -> list[Task]:
        """One task for each repeat and attribute."""
        known = {
            "target": self.data.attributes,
            "corruption": self.corruptions,
            "n": self.corrupted_sources,
            "p": self.corrupted_shares,
            "repeat": range(self.repeats),
        }
        only.check(known)
        picked = {field: only.pick(field, list(values)) for field, values in known.items()}
        return [
            Task(
                repeat,
                target,
                tuple(
                    Key(target, corruption, n, p, repeat)
                    for corruption in picked["corruption"]
                    for p in picked["p"]
                    for n in picked["n"]
                ),
            )
            for repeat in picked["repeat"]
            for target in picked["target"]
        ]

    def run(self, task: Task) -> Iterator[list[Row]]:
        """Compute clean sources once, each corruption's once, then run after run."""
        data, seed = self.data, repeat_seed(self.seed, task.repeat)
        split = split_groups(len(data.X), self.n_groups, self.group_size, seed)
        labels = data.labels[:, data.attributes.index(task.target)].astype(np.intp)
        own, others = split.groups[0], split.groups[1:]
        bench = Bench(
            data.X[own],
            labels[own],
            data.X[split.test],
            labels[split.test],
            seed=seed,
            methods=self.methods,
        )
        names = tuple(f"group-{g}" for g in range(1, self.n_groups))
        bench.expect(data.X[others], labels[others])
        clean = bench.facts(names, data.X[others], labels[others])
        runs = distinct_runs(task.keys)
        shared = share(add(bench.costs, clean.costs), len(runs))
        kinds = {(run.corruption, run.p): 0 for run in runs if run.n}
        for run, keys in runs.items():
            if run.n == 0:
                yield run_rows(self, keys, seed, *bench.run(clean), shared)
            else:
                kinds[run.corruption, run.p] += 1
        for (kind, p), n_runs in kinds.items():
            X, y, _ = corrupt_groups(data, labels, others, kind, p, seed)
            bad = bench.facts(names, X, y, like=clean if kind in LABEL_CORRUPTIONS else None)
            extra = add(shared, share(bad.costs, n_runs))
            for run, keys in runs.items():
                if run.n and (run.corruption, run.p) == (kind, p):
                    pool = _replace_some(clean, bad, split.order[: run.n] - 1)
                    yield run_rows(self, keys, seed, *bench.run(pool), extra)


def _replace_some(clean: Facts, bad: Facts, chosen: np.ndarray) -> Facts:
    """Return the clean sources but for those chosen, then the chosen ones corrupted."""
    kept = np.setdiff1d(np.arange(len(clean.names)), chosen)
    return clean.take(kept).append(bad.take(chosen))
