"""Results that nobody had to run: files with a known answer in every cell."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sourcewise.experiments.names import CORRUPTIONS, METHODS
from sourcewise.experiments.results import COLUMNS, ResultsFile, Row, reading
from sourcewise.experiments.study_errors import FIELDS, Studies, arrange

SETTINGS = {"sourcewise": "9.9", "data": "synthetic", "seed": "5"}


def rows_of(study, target, corruption, n, p, errors):
    """Rows of one cell; errors per method, a list over repeats (None: not run)."""
    return [
        Row(study, target, corruption, n, p, repeat, method, e, np.nan, np.nan, 0.1, repeat)
        for method, values in errors.items()
        for repeat, e in enumerate(values)
        if e is not None
    ]


def results_of(rows, **settings):
    """Results as they would be read from a file with these rows."""
    rows = [row[: len(FIELDS)] for row in rows]
    return Studies(SETTINGS | settings, arrange([rows] if rows else []))


def write_results(path, rows, **settings):
    """Write a file of results."""
    with ResultsFile(path, SETTINGS | settings) as file:
        file.add(rows)
    return path


@dataclass(frozen=True)
class Results:
    """All that a file of results holds.

    Attributes
    ----------
    settings : dict of str
        What was run: version, study, protocol, data and their fingerprint, sizes, seed.
    columns : dict of arrays of shape (n_rows,)
        By the names of `Row`, in the order of the key.
    """

    settings: dict[str, str]
    columns: dict[str, np.ndarray]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.columns["method"])


def read_results(path) -> Results:
    """Read a file of results, finished or not."""
    with reading(path) as (settings, batches):
        rows = [row for batch in batches for row in batch]
    by_field = zip(*rows, strict=True) if rows else [()] * len(COLUMNS)
    columns = {
        name: np.array([np.nan if v is None else v for v in values], dtype=kind)
        for (name, kind), values in zip(COLUMNS.items(), by_field, strict=True)
    }
    return Results(settings, columns)


def animals_rows(
    targets=("black", "white"),
    corruptions=tuple(CORRUPTIONS),
    numbers=(0, 10, 59),
    shares=(1.0,),
    methods=tuple(METHODS),
    repeats=3,
):
    """Baselines get worse with n, one more than the other; the two methods do not."""
    rng = np.random.default_rng(0)
    rows = []
    for share in shares:
        for c, corruption in enumerate(corruptions):
            for n in numbers:
                for target in targets:
                    bad = n / 59 * share * (0.2 + 0.05 * c)
                    noise = rng.normal(0, 0.004, (len(methods), repeats)) * (n > 0)
                    levels = {
                        m: 0.1 + (0 if m in ("paper", "default") else bad * (1 + k / 10))
                        for k, m in enumerate(methods)
                    }
                    errors = {
                        m: (levels[m] + np.linspace(-0.005, 0.005, repeats) + noise[k]).tolist()
                        for k, m in enumerate(methods)
                    }
                    rows += rows_of("animals", target, corruption, n, share, errors)
    return rows


def products_rows(numbers=tuple(range(11)), methods=tuple(METHODS), repeats=4):
    """Rows of the books study: a target drawn in each repeat."""
    rng = np.random.default_rng(1)
    rows = []
    for n in numbers:
        for repeat in range(repeats):
            for k, method in enumerate(methods):
                error = 0.28 + 0.005 * k + 0.002 * n + rng.normal(0, 0.01)
                target = f"book-{repeat % 3}"
                values = [None] * repeat + [error]
                rows += rows_of("products", target, "non-books", n, 1.0, {method: values})
    return rows


def all_products_rows(targets=6, methods=tuple(METHODS)):
    """Every product as the target, once."""
    rng = np.random.default_rng(2)
    rows = []
    for t in range(targets):
        errors = {m: [0.28 + 0.01 * k + rng.normal(0, 0.02)] for k, m in enumerate(methods)}
        rows += rows_of("all-products", f"product-{t}", "none", 0, 1.0, errors)
    return rows
