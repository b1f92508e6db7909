"""Animals with attributes: the published feature files."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path

import numpy as np

from sourcewise.archives import load_array
from sourcewise.files import read_json

FEATURES, LABELS = "all_features.npy", "all_labels.npy"
NAMES = "attributes.txt"  # a line for each column of labels, where they are not the paper's
IMAGE_FILES = {
    "blur": "all_features_blured_6.npy",
    "dead-pixels": "all_features_pixels_30.npy",
    "rgb-swap": "all_features_RGB_0.npy",
}
# Written by 'sourcewise images extract': SHA-256 of files whose rows are the same pictures.
RECORD = "extraction.json"
SAMPLE = 500  # rows on which a corrupted file is compared with the clean one
# Share of corrupted rows that must be nearer to their own clean row than to most others; rows in
# another order reach one half by chance alone.
LEAST_AGREEMENT = 0.75

NO_FOLDER = "There is no folder {path}; give the one that holds the published feature files."
NO_FILE = "{path} is missing; the published features are {names}."
NOT_ARRAY = "{path} is not a NumPy array file: {why}."
NOT_TABLE = "{path} must hold a table of numbers; it has shape {shape} and type {dtype}."
NOT_FINITE = "{path} holds NaN or infinity (first in row {row})."
NO_CONSTANT = "{path} must have a constant column, as the published features do; none is constant."
LABEL_ROWS = "{path} has {found} rows and {features} has {expected}; they must agree."
LABEL_COLUMNS = "{path} has {found} columns; there are {expected} attributes."
BAD_NAMES = "{path} must hold a name for each column of labels, one a line, none of them twice."
WRONG_LABEL = "{path}, row {row}, column {column}: the label is {value}; labels must be 0 or 1."
OTHER_SHAPE = "{path} has shape {found} and {features} {expected}; they must agree."
OTHER_ROWS = (
    "{path} does not follow {features} row by row: only {share:.0%} of a sample of its rows are "
    "nearer to the clean features of the same row than to those of most other rows (50% would be "
    "chance). Every row must hold the features of the same image after corruption; extract them "
    "again in the order of the clean file."
)


@dataclass(frozen=True)
class AnimalData:
    """Images with attributes."""

    X: np.ndarray  # of shape (n_images, n_features + 1); the last column is constant
    labels: np.ndarray  # of shape (n_images, n_attributes); 0 or 1
    attributes: tuple[str, ...]  # names of the attributes
    # Features of the same images after an image corruption, by its name.
    corrupted: dict[str, np.ndarray] = field(default_factory=dict)


def attribute_names() -> tuple[str, ...]:
    """Names of the 85 attributes, in the order of the published labels."""
    text = files("sourcewise.experiments").joinpath("data/attributes.txt").read_text("utf-8")
    return tuple(text.split())


def own_names(folder: Path) -> tuple[str, ...] | None:
    """Names of the attributes if they are not the paper's; None if the folder does not say."""
    path = folder / NAMES
    if not path.is_file():
        return None
    lines = path.read_bytes().decode("utf-8", errors="replace").splitlines()
    names = tuple(line.strip() for line in lines if line.strip())
    if not names or len(set(names)) < len(names):
        raise ValueError(BAD_NAMES.format(path=path))
    return names


def read_animals(folder: Path, corruptions: tuple[str, ...] = tuple(IMAGE_FILES)) -> AnimalData:
    """Read the published feature files; of the corrupted ones those that are asked for."""
    if not folder.is_dir():
        raise ValueError(NO_FOLDER.format(path=folder))
    path = folder / FEATURES
    X = _features(path)
    constant = np.flatnonzero((X[:1] == X).all(axis=0) & (X[0] != 0))
    if not len(constant):
        raise ValueError(NO_CONSTANT.format(path=path))
    # The constant goes last, as the models want it.
    order = np.append(np.delete(np.arange(X.shape[1]), constant[-1]), constant[-1])
    attributes = own_names(folder) or attribute_names()
    labels = _labels(folder, len(X), len(attributes))
    corrupted = {
        name: _corrupted(folder / file, X)[:, order]
        for name, file in IMAGE_FILES.items()
        if name in corruptions
    }
    return AnimalData(X[:, order], labels, attributes, corrupted)


def check_same_rows(path: Path, clean: np.ndarray, corrupted: np.ndarray) -> None:
    """Refuse features of corrupted images that are not those of the same images, row by row."""
    rng = np.random.default_rng(0)
    rows = rng.choice(len(clean), size=min(SAMPLE, len(clean)), replace=False)
    # A corruption may shift and scale all images alike: compare what is left after that.
    own, other = (_standardised(X[rows].astype(np.float64)) for X in (clean, corrupted))
    distance = (other**2).sum(axis=1)[:, None] + (own**2).sum(axis=1) - 2.0 * other @ own.T
    nearer = np.diag(distance) <= np.median(distance, axis=1)
    share = float(nearer.mean())
    if share < LEAST_AGREEMENT:
        raise ValueError(OTHER_ROWS.format(path=path, features=FEATURES, share=share))


def _standardised(X: np.ndarray) -> np.ndarray:
    deviation = X.std(axis=0)
    result: np.ndarray = (X - X.mean(axis=0)) / np.where(deviation > 0, deviation, 1.0)
    return result


def _features(path: Path) -> np.ndarray:
    """Read features in single precision."""
    table = _table(path, "fiu").astype(np.float32, copy=False)
    finite = np.isfinite(table).all(axis=1)
    if not finite.all():
        raise ValueError(NOT_FINITE.format(path=path, row=int(np.argmin(finite))))
    return table


def _table(path: Path, kinds: str) -> np.ndarray:
    """Read a table of numbers of some kinds, as NumPy calls them."""
    if not path.is_file():
        names = ", ".join([FEATURES, LABELS, *IMAGE_FILES.values()])
        raise ValueError(NO_FILE.format(path=path, names=names))
    try:
        table = load_array(path)
    except (ValueError, OSError) as error:
        raise ValueError(NOT_ARRAY.format(path=path, why=error)) from error
    if table.ndim != 2 or 0 in table.shape or table.dtype.kind not in kinds:
        raise ValueError(NOT_TABLE.format(path=path, shape=table.shape, dtype=table.dtype))
    return table


def _labels(folder: Path, n_rows: int, expected: int) -> np.ndarray:
    path = folder / LABELS
    labels = _table(path, "fiub")
    if len(labels) != n_rows:
        raise ValueError(
            LABEL_ROWS.format(path=path, found=len(labels), features=FEATURES, expected=n_rows)
        )
    if labels.shape[1] != expected:
        raise ValueError(LABEL_COLUMNS.format(path=path, found=labels.shape[1], expected=expected))
    wrong = np.argwhere((labels != 0) & (labels != 1))
    if len(wrong):
        row, column = (int(k) for k in wrong[0])
        raise ValueError(
            WRONG_LABEL.format(path=path, row=row, column=column, value=labels[row, column])
        )
    return labels.astype(np.uint8)


def _corrupted(path: Path, clean: np.ndarray) -> np.ndarray:
    table = _features(path)
    if table.shape != clean.shape:
        raise ValueError(
            OTHER_SHAPE.format(
                path=path, found=table.shape, features=FEATURES, expected=clean.shape
            )
        )
    if not _made_together(path.parent / FEATURES, path):
        check_same_rows(path, clean, table)
    return table


def _made_together(*paths: Path) -> bool:
    """Whether the record beside files says that they were made from the same pictures."""
    try:
        record = read_json(paths[0].parent / RECORD)
        made = record["files"]
        return all(made[path.name] == _checksum(path) for path in paths)
    except (OSError, ValueError, TypeError, KeyError):
        return False


def _checksum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
