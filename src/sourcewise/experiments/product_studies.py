"""The paper's first study: reviews of products (section 4.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sourcewise.experiments.bench import Bench
from sourcewise.experiments.facts import Facts
from sourcewise.experiments.grid import Key, Only, Task
from sourcewise.experiments.names import METHODS
from sourcewise.experiments.products import Product, check_products
from sourcewise.experiments.results import Row
from sourcewise.experiments.splits import ProductSplit, repeat_seed, split_books, split_each
from sourcewise.experiments.study import add, common_settings, fingerprint, run_rows, share


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
        methods: tuple[str, ...] = tuple(METHODS),
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
            **common_settings(self),
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
        shared = share(add(bench.costs, facts.costs), len(task.keys))
        for key in task.keys:
            books = np.arange(self.n_sources - key.n)
            others = self.n_sources + np.arange(key.n)
            pool = facts.take(np.concatenate([books, others]))
            yield run_rows(self, [key], seed, *bench.run(pool), shared)


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
        methods: tuple[str, ...] = tuple(METHODS),
        rows: int = 100,
    ):
        check_products(data, {"": 2})
        self.data, self.data_name = list(data), data_name
        self.repeats, self.seed, self.methods = repeats, seed, methods
        self.rows = rows

    def settings(self) -> dict[str, str]:
        """Say what determines the numbers."""
        return {**common_settings(self), **_product_settings(self.data, self.rows)}

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
        yield run_rows(self, list(task.keys), seed, *bench.run(facts), facts.costs)


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
