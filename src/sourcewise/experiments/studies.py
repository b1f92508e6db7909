"""The studies of the paper: which runs there are, and how those of one task are computed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from sourcewise.experiments.animals import AnimalData
from sourcewise.experiments.bench import TOL, Bench, Outcome
from sourcewise.experiments.corruptions import CORRUPTIONS, LABEL_CORRUPTIONS, corrupt_groups
from sourcewise.experiments.facts import Costs, Facts
from sourcewise.experiments.grid import Key, Only, Task, distinct_runs
from sourcewise.experiments.products import Product, check_products
from sourcewise.experiments.results import METHODS, Row
from sourcewise.experiments.splits import (
    ProductSplit,
    repeat_seed,
    split_books,
    split_each,
    split_groups,
)

CORRUPTED_SOURCES = (0, 10, 20, 30, 40, 50, 55, 59)
CORRUPTED_SHARES = (1.0, 0.5, 0.2)

TOO_FEW_ROWS = (
    "{found} rows are too few for {groups} groups of {size} and some rows to test on; the study "
    "needs more."
)


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
        methods: tuple[str, ...] = METHODS,
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
            **_common_settings(self),
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
        shared = _share(_add(bench.costs, clean.costs), len(runs))
        kinds = {(run.corruption, run.p): 0 for run in runs if run.n}
        for run, keys in runs.items():
            if run.n == 0:
                yield _rows(self, keys, seed, *bench.run(clean), shared)
            else:
                kinds[run.corruption, run.p] += 1
        for (kind, p), n_runs in kinds.items():
            X, y, _ = corrupt_groups(data, labels, others, kind, p, seed)
            bad = bench.facts(names, X, y, like=clean if kind in LABEL_CORRUPTIONS else None)
            extra = _add(shared, _share(bad.costs, n_runs))
            for run, keys in runs.items():
                if run.n and (run.corruption, run.p) == (kind, p):
                    pool = _replace_some(clean, bad, split.order[: run.n] - 1)
                    yield _rows(self, keys, seed, *bench.run(pool), extra)


class BookStudy:
    """A book's reviews from those of ten products, n of them no books (section 4.2)."""

    name = "products"

    def __init__(
        self,
        data: Sequence[Product],
        data_name: str,
        *,
        repeats: int = 1000,
        seed: int = 0,
        methods: tuple[str, ...] = METHODS,
        n_sources: int = 10,
        rows: int = 100,
    ):
        check_products(data, {"book": n_sources + 1, "non-book": n_sources})
        self.data, self.data_name = list(data), data_name
        self.repeats, self.seed, self.methods = repeats, seed, methods
        self.n_sources, self.rows = n_sources, rows

    def settings(self) -> dict[str, str]:
        """Say what determines the numbers."""
        return {
            **_common_settings(self),
            **_product_settings(self.data, self.rows),
            "sources": str(self.n_sources),
        }

    def _split(self, repeat: int) -> ProductSplit:
        return split_books(self.data, self.n_sources, self.rows, repeat_seed(self.seed, repeat))

    def tasks(self, only: Only) -> list[Task]:
        """One task for each repeat, which draws its own target."""
        known = {
            "target": [each.name for each in self.data if each.kind == "book"],
            "corruption": ("non-books",),
            "n": range(self.n_sources + 1),
            "p": (1.0,),
            "repeat": range(self.repeats),
        }
        only.check(known)
        tasks = []
        for repeat in only.pick("repeat", range(self.repeats)):
            target = self.data[self._split(repeat).target].name
            keys = [Key(target, "non-books", n, 1.0, repeat) for n in only.pick("n", known["n"])]
            if only.takes("target", target) and keys:
                tasks.append(Task(repeat, target, tuple(keys)))
        return tasks

    def run(self, task: Task) -> Iterator[list[Row]]:
        """Compute every product that takes part once, then run after run."""
        split = self._split(task.repeat)
        bench, seed = _product_bench(self, split, task.repeat)
        sources = np.concatenate([split.books, split.others])
        facts = _product_facts(bench, self.data, split, sources)
        shared = _share(_add(bench.costs, facts.costs), len(task.keys))
        for key in task.keys:
            books = np.arange(self.n_sources - key.n)
            others = self.n_sources + np.arange(key.n)
            pool = facts.take(np.concatenate([books, others]))
            yield _rows(self, [key], seed, *bench.run(pool), shared)


class EveryProductStudy:
    """Each product in turn, learnt about from a few of its reviews and all other products."""

    name = "all-products"

    def __init__(
        self,
        data: Sequence[Product],
        data_name: str,
        *,
        repeats: int = 1,
        seed: int = 0,
        methods: tuple[str, ...] = METHODS,
        rows: int = 100,
    ):
        check_products(data, {"": 2})
        self.data, self.data_name = list(data), data_name
        self.repeats, self.seed, self.methods = repeats, seed, methods
        self.rows = rows

    def settings(self) -> dict[str, str]:
        """Say what determines the numbers."""
        return {**_common_settings(self), **_product_settings(self.data, self.rows)}

    def tasks(self, only: Only) -> list[Task]:
        """One task for each repeat and product."""
        targets = [each.name for each in self.data]
        known = {
            "target": targets,
            "corruption": ("none",),
            "n": (0,),
            "p": (1.0,),
            "repeat": range(self.repeats),
        }
        only.check(known)
        return [
            Task(repeat, target, (Key(target, "none", 0, 1.0, repeat),))
            for repeat in only.pick("repeat", range(self.repeats))
            for target in only.pick("target", targets)
        ]

    def run(self, task: Task) -> Iterator[list[Row]]:
        """Compute one target."""
        split = split_each(self.data, self.rows, repeat_seed(self.seed, task.repeat))
        mine = split[[each.name for each in self.data].index(task.target)]
        bench, seed = _product_bench(self, mine, task.repeat)
        facts = _product_facts(bench, self.data, mine, mine.books)
        yield _rows(self, list(task.keys), seed, *bench.run(facts), facts.costs)


def fingerprint(*arrays: np.ndarray) -> str:
    """Short name of arrays: other numbers, types or shapes have another one."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(f"{array.shape}{array.dtype.str}".encode())
        digest.update(np.ascontiguousarray(array))
    return digest.hexdigest()[:16]


def _common_settings(study: Any) -> dict[str, str]:
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


def _product_settings(products: Sequence[Product], rows: int) -> dict[str, str]:
    names = np.array([f"{each.name} {each.kind}" for each in products])
    arrays = [array for each in products for array in (each.X, each.y)]
    return {
        "fingerprint": fingerprint(names, *arrays),
        "products": str(len(products)),
        "rows per source": str(rows),
    }


def _product_bench(study: Any, split: ProductSplit, repeat: int) -> tuple[Bench, int]:
    target, seed = study.data[split.target], repeat_seed(study.seed, repeat)
    own, test = split.reference, split.test
    bench = Bench(
        target.X[own],
        target.y[own],
        target.X[test],
        target.y[test],
        seed=seed,
        methods=study.methods,
    )
    return bench, seed


def _product_facts(
    bench: Bench, products: Sequence[Product], split: ProductSplit, sources: np.ndarray
) -> Facts:
    X = np.stack([products[k].X[split.rows[k]] for k in sources])
    y = np.stack([products[k].y[split.rows[k]] for k in sources])
    if len(split.others):  # many pools of these sources, not one
        bench.expect(X, y)
    return bench.facts(tuple(products[k].name for k in sources), X, y)


def _replace_some(clean: Facts, bad: Facts, chosen: np.ndarray) -> Facts:
    """Return the clean sources but for those chosen, then the chosen ones corrupted."""
    kept = np.setdiff1d(np.arange(len(clean.names)), chosen)
    return clean.take(kept).append(bad.take(chosen))


def _share(costs: Costs, n_runs: int) -> Costs:
    return Costs({method: seconds / max(n_runs, 1) for method, seconds in costs.items()})


def _add(first: Costs, second: Costs) -> Costs:
    return Costs({m: first.get(m, 0.0) + second.get(m, 0.0) for m in {*first, *second}})


def _rows(
    study: Study,
    keys: Sequence[Key],
    seed: int,
    outcomes: dict[str, Outcome],
    costs: Costs,
    shared: Costs,
) -> list[Row]:
    """One run's rows, under each of its keys."""
    spent = _add(costs, shared)
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
