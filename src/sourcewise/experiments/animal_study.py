"""The paper's second study: attributes of animals, six corruptions (section 4.3, appendix C)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from sourcewise.corruption import label_bias, shuffle_features, shuffle_labels
from sourcewise.corruption.contract import choose_rows
from sourcewise.experiments.animals import IMAGE_FILES, AnimalData
from sourcewise.experiments.facts import Facts
from sourcewise.experiments.grid import Key, Only, Task, distinct_runs
from sourcewise.experiments.splits import CORRUPTION, repeat_seed, split_groups
from sourcewise.experiments.study import PlannedRun, Study, fingerprint

LABEL_CORRUPTIONS = ("label-bias", "shuffled-labels")
CORRUPTIONS = (*LABEL_CORRUPTIONS, "shuffled-features", *IMAGE_FILES)


def corrupt_groups(
    data: AnimalData,
    labels: np.ndarray,
    groups: np.ndarray,
    kind: str,
    p: float,
    seed: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Corrupt a share of the rows of every group, (n_groups, group_size) of row numbers.

    Which rows of a group are touched, and how, depends on the seed, the corruption and the
    group's position alone: not on the attribute, nor on how many groups are corrupted. Returns X,
    y (the ``labels`` of one attribute) and which rows were chosen, by group.
    """
    X, y = data.X[groups], labels[groups]
    mask = np.zeros(groups.shape, dtype=bool)
    entropy = [seed, CORRUPTION, CORRUPTIONS.index(kind)]
    n_features = data.X.shape[1] - 1  # the constant stays where it is
    permutation = np.append(np.random.default_rng(entropy).permutation(n_features), n_features)
    states = np.random.SeedSequence(entropy).generate_state(len(groups))
    for g, rows in enumerate(groups):
        state = int(states[g])
        if kind == "label-bias":
            _, y[g], mask[g] = label_bias(X[g, :, :0], y[g], p=p, label=1, random_state=state)
        elif kind == "shuffled-labels":
            _, y[g], mask[g] = shuffle_labels(X[g, :, :0], y[g], p=p, random_state=state)
        elif kind == "shuffled-features":
            X[g], _, mask[g] = shuffle_features(
                X[g], y[g], p=p, permutation=permutation, random_state=state
            )
        else:
            mask[g], _ = choose_rows(len(rows), p, state)
            X[g, mask[g]] = data.corrupted[kind][rows[mask[g]]]
    return X, y, mask


TOO_FEW_ROWS = (
    "{found} rows are too few for {groups} groups of {size} and some rows to test on; the study "
    "needs more."
)


@dataclass
class AnimalStudy(Study):
    """Attributes of animals from 60 groups of images, some of them corrupted (section 4.3)."""

    name = "animals"
    data: AnimalData
    _: KW_ONLY
    repeats: int = 100
    group_size: int = 500  # rows of a group
    n_groups: int = 60  # the reference included
    corrupted_sources: tuple[int, ...] = (0, 10, 20, 30, 40, 50, 55, 59)  # values of n
    corrupted_shares: tuple[float, ...] = (1.0, 0.5, 0.2)  # values of p

    def __post_init__(self) -> None:
        """Check the data."""
        found, groups, size = len(self.data.X), self.n_groups, self.group_size
        if found <= groups * size:
            raise ValueError(TOO_FEW_ROWS.format(found=found, groups=groups, size=size))

    def settings(self) -> dict[str, str]:
        """Say what determines the numbers."""
        data = self.data
        return super().settings() | {
            "fingerprint": fingerprint(data.X, data.labels),
            **{f"fingerprint {kind}": fingerprint(X) for kind, X in data.corrupted.items()},
            "groups": str(self.n_groups),
            "rows per group": str(self.group_size),
            "test rows": str(len(data.X) - self.n_groups * self.group_size),
        }

    def grid(self) -> dict[str, Sequence[Any]]:
        """Return all values of each field of a key."""
        there = {*CORRUPTIONS[:3], *self.data.corrupted}
        return {
            "target": self.data.attributes,
            "corruption": [kind for kind in CORRUPTIONS if kind in there],
            "n": self.corrupted_sources,
            "p": self.corrupted_shares,
            "repeat": range(self.repeats),
        }

    def tasks(self, only: Only) -> list[Task]:
        """One task for each repeat and attribute."""
        wanted = only.part(self.grid())
        kinds = [(c, n, p) for c in wanted["corruption"] for p in wanted["p"] for n in wanted["n"]]
        return [
            Task(repeat, target, tuple(Key(target, *kind, repeat) for kind in kinds))
            for repeat in wanted["repeat"]
            for target in wanted["target"]
        ]

    def pools(self, task: Task) -> Iterator[PlannedRun]:
        """Compute clean sources once, each corruption's once, then put together run after run."""
        data, seed = self.data, repeat_seed(self.seed, task.repeat)
        split = split_groups(len(data.X), self.n_groups, self.group_size, seed)
        labels = data.labels[:, data.attributes.index(task.target)].astype(np.intp)
        own, others = split.groups[0], split.groups[1:]
        bench = self.bench(data.X, labels, own, split.test, task.repeat)
        names = tuple(f"group-{g}" for g in range(1, self.n_groups))
        clean = bench.facts(names, data.X[others], labels[others])
        runs = distinct_runs(task.keys)
        shared = (clean.costs, len(runs))
        by_kind: dict[tuple[str, float], list[Key]] = {}
        for run, keys in runs.items():
            if run.n:
                by_kind.setdefault((run.corruption, run.p), []).append(run)
            else:
                yield PlannedRun(keys, bench, clean, [shared])
        for (kind, p), mine in by_kind.items():
            X, y, _ = corrupt_groups(data, labels, others, kind, p, seed)
            bad = bench.facts(names, X, y, like=clean if kind in LABEL_CORRUPTIONS else None)
            for run in mine:
                pool = _replace_some(clean, bad, split.order[: run.n] - 1)
                yield PlannedRun(runs[run], bench, pool, [shared, (bad.costs, len(mine))])


def _replace_some(clean: Facts, bad: Facts, chosen: np.ndarray) -> Facts:
    """Return the clean sources but for those chosen, then the chosen ones corrupted."""
    kept = np.setdiff1d(np.arange(len(clean.names)), chosen)
    return clean.take(kept).append(bad.take(chosen))
