"""Reviews of products: the published format, and the products of the paper's first study."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

import numpy as np

N_FEATURES = 25
PER_CLASS = 300  # reviews of each label that a target product must have

NO_FOLDER = "There is no folder {path}; give the one that holds the published files of reviews."
NO_PRODUCT = "{path} is missing; the published data have one file of reviews for each product."
NO_PRODUCTS = "The folder {path} holds no files of reviews (<product>.txt)."
NOT_NUMBERS = "{path}, line {line}: {text!r} is not a number."
WRONG_COLUMNS = (
    "{path}, line {line} has {found} columns; reviews have {expected}, the features and the label."
)
WRONG_LABEL = "{path}, line {line}: the label is {value:g}; labels must be 0 or 1."
NOT_FINITE = "{path}, line {line} holds NaN or infinity."
TOO_FEW = (
    "{where} has {negative} negative and {positive} positive reviews; the study needs "
    "{needed} of each."
)
TOO_FEW_PRODUCTS = "The study needs at least {needed} {kind}s; there are {found}."


@dataclass(frozen=True)
class Product:
    """Reviews of one product."""

    name: str  # identifier
    kind: str  # "book" or "non-book"; "" if it is not known
    X: np.ndarray  # of shape (n_reviews, n_features + 1); the last column is constant
    y: np.ndarray  # of shape (n_reviews,); 0 (negative) or 1 (positive)


def listed_products() -> dict[str, tuple[str, str]]:
    """Kind and title of the 20 books and 20 other products of the paper's first study."""
    text = files("sourcewise.experiments").joinpath("data/products.csv").read_text("utf-8")
    return {row["id"]: (row["kind"], row["name"]) for row in csv.DictReader(text.splitlines())}


def read_listed(folder: Path) -> list[Product]:
    """Read the forty products of the first study."""
    _check_folder(folder)
    return [
        _read(folder / f"{name}.txt", kind) for name, (kind, _) in sorted(listed_products().items())
    ]


def read_all(folder: Path) -> list[Product]:
    """Read every product of a folder, in the order of their identifiers."""
    _check_folder(folder)
    kinds = {name: kind for name, (kind, _) in listed_products().items()}
    paths = sorted(folder.glob("*.txt"))
    if not paths:
        raise ValueError(NO_PRODUCTS.format(path=folder))
    return [_read(path, kinds.get(path.stem, "")) for path in paths]


def check_products(products: Iterable[Product], needed: dict[str, int]) -> None:
    """Check that there are enough products of each kind, with enough reviews of each label."""
    products = list(products)
    for kind, least in needed.items():
        found = sum(not kind or each.kind == kind for each in products)
        if found < least:
            raise ValueError(
                TOO_FEW_PRODUCTS.format(needed=least, kind=kind or "product", found=found)
            )
    for each in products:
        positive = int(each.y.sum())
        negative = len(each.y) - positive
        if min(positive, negative) < PER_CLASS:
            raise ValueError(
                TOO_FEW.format(
                    where=f"Product {each.name}",
                    negative=negative,
                    positive=positive,
                    needed=PER_CLASS,
                )
            )


def with_constant(X: np.ndarray) -> np.ndarray:
    """Append a constant column; single precision is what the studies compute in."""
    wide = np.ones((len(X), X.shape[1] + 1), dtype=np.float32)
    wide[:, :-1] = X
    return wide


def _check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise ValueError(NO_FOLDER.format(path=folder))


def _read(path: Path, kind: str) -> Product:
    if not path.is_file():
        raise ValueError(NO_PRODUCT.format(path=path))
    rows: list[list[float]] = []
    with path.open(encoding="utf-8", errors="replace") as file:
        for line, text in enumerate(file, start=1):
            fields = text.split()
            if not fields:
                continue
            if len(fields) != N_FEATURES + 1:
                raise ValueError(
                    WRONG_COLUMNS.format(
                        path=path, line=line, found=len(fields), expected=N_FEATURES + 1
                    )
                )
            rows.append(_numbers(path, line, fields))
    table = np.array(rows).reshape(-1, N_FEATURES + 1)
    return Product(path.stem, kind, with_constant(table[:, :-1]), table[:, -1].astype(np.intp))


def _numbers(path: Path, line: int, fields: list[str]) -> list[float]:
    values = []
    for text in fields:
        try:
            values.append(float(text))
        except ValueError:
            raise ValueError(NOT_NUMBERS.format(path=path, line=line, text=text)) from None
    if not np.isfinite(values).all():
        raise ValueError(NOT_FINITE.format(path=path, line=line))
    if values[-1] not in (0.0, 1.0):
        raise ValueError(WRONG_LABEL.format(path=path, line=line, value=values[-1]))
    return values
