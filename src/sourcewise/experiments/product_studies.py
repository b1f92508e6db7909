"""The paper's first study: reviews of products (section 4.2)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from sourcewise.experiments.bench import Bench
from sourcewise.experiments.facts import Facts
from sourcewise.experiments.grid import Key, Only, Task
from sourcewise.experiments.products import Product, check_products
from sourcewise.experiments.splits import ProductSplit, repeat_seed, split_books, split_each
from sourcewise.experiments.study import PlannedRun, Study, fingerprint


@dataclass
class ProductStudy(Study):
    """Reviews of one product from those of others; ``rows_each`` of every source."""

    data: Sequence[Product]
    _: KW_ONLY
    rows_each: int = 100

    def settings(self) -> dict[str, str]:
        """Say what determines the numbers."""
        names = np.array([f"{each.name} {each.kind}" for each in self.data])
        arrays = [array for each in self.data for array in (each.X, each.y)]
        return super().settings() | {
            "fingerprint": fingerprint(names, *arrays),
            "products": str(len(self.data)),
            "rows per source": str(self.rows_each),
        }

    def prepare(self, split: ProductSplit, repeat: int) -> tuple[Bench, Facts]:
        """Compute every product that takes part once."""
        target, products = self.data[split.target], self.data
        bench = self.bench(target.X, target.y, split.reference, split.test, repeat)
        sources = np.concatenate([split.books, split.others])
        X = np.stack([products[k].X[split.rows[k]] for k in sources])
        y = np.stack([products[k].y[split.rows[k]] for k in sources])
        return bench, bench.facts(tuple(products[k].name for k in sources), X, y)


@dataclass
class BookStudy(ProductStudy):
    """A book's reviews from those of ten products, n of them no books (section 4.2)."""

    name = "products"
    _: KW_ONLY
    repeats: int = 1000
    n_sources: int = 10

    def __post_init__(self) -> None:
        """Check the data."""
        check_products(self.data, {"book": self.n_sources + 1, "non-book": self.n_sources})

    def settings(self) -> dict[str, str]:
        """Say what determines the numbers."""
        return super().settings() | {"sources": str(self.n_sources)}

    def _split(self, repeat: int) -> ProductSplit:
        seed = repeat_seed(self.seed, repeat)
        return split_books(self.data, self.n_sources, self.rows_each, seed)

    def grid(self) -> dict[str, Sequence[Any]]:
        """Return all values of each field of a key."""
        return {
            "target": [each.name for each in self.data if each.kind == "book"],
            "corruption": ("non-books",),
            "n": range(self.n_sources + 1),
            "p": (1.0,),
            "repeat": range(self.repeats),
        }

    def tasks(self, only: Only) -> list[Task]:
        """One task for each repeat, which draws its own target."""
        wanted = only.part(self.grid())
        tasks = []
        for repeat in wanted["repeat"]:
            target = self.data[self._split(repeat).target].name
            keys = [Key(target, "non-books", n, 1.0, repeat) for n in wanted["n"]]
            if target in wanted["target"] and keys:
                tasks.append(Task(repeat, target, tuple(keys)))
        return tasks

    def pools(self, task: Task) -> Iterator[PlannedRun]:
        """Compute every product once, then put together run after run."""
        bench, facts = self.prepare(self._split(task.repeat), task.repeat)
        for key in task.keys:
            books = np.arange(self.n_sources - key.n)
            others = self.n_sources + np.arange(key.n)
            pool = facts.take(np.concatenate([books, others]))
            yield PlannedRun([key], bench, pool, [(facts.costs, len(task.keys))])


@dataclass
class EveryProductStudy(ProductStudy):
    """Each product in turn, learnt about from a few of its reviews and all other products."""

    name = "all-products"
    _: KW_ONLY
    repeats: int = 1

    def __post_init__(self) -> None:
        """Check the data."""
        check_products(self.data, {"": 2})

    def grid(self) -> dict[str, Sequence[Any]]:
        """Return all values of each field of a key."""
        return {
            "target": [each.name for each in self.data],
            "corruption": ("none",),
            "n": (0,),
            "p": (1.0,),
            "repeat": range(self.repeats),
        }

    def tasks(self, only: Only) -> list[Task]:
        """One task for each repeat and product."""
        wanted = only.part(self.grid())
        return [
            Task(repeat, target, (Key(target, "none", 0, 1.0, repeat),))
            for repeat in wanted["repeat"]
            for target in wanted["target"]
        ]

    def pools(self, task: Task) -> Iterator[PlannedRun]:
        """Prepare the one run of a target."""
        splits = split_each(self.data, self.rows_each, repeat_seed(self.seed, task.repeat))
        mine = splits[[each.name for each in self.data].index(task.target)]
        bench, facts = self.prepare(mine, task.repeat)
        yield PlannedRun(task.keys, bench, facts, [(facts.costs, 1)])
