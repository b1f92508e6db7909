"""Labels of pictures, for studies: what each class has and lacks, one attribute a column."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sourcewise.tables.reading import open_table

MATRIX, CLASSES, ATTRIBUTES = "predicate-matrix-binary.txt", "classes.txt", "predicates.txt"

NO_FILE = "{path} is missing; the attributes of animals are {matrix}, {classes} and {attributes}."
NOT_NUMBERED = "{path}, line {line}: expected a number and a name, as in the published files."
NOT_BINARY = "{path} must hold 0 and 1, {rows} rows of {columns} (a class a row)."
NOT_ATTRIBUTES = (
    "{path} must have a column of classes and then columns of 0 and 1, one for each attribute; "
    "column {column!r} is something else."
)
CLASS_TWICE = "{path} lists the class {name!r} twice."
CLASS_UNKNOWN = "The class {name!r} of the picture {picture} is not in {path}."


class ClassAttributes(NamedTuple):
    """What each class has.

    Attributes
    ----------
    path : Path
        Where this was read.
    classes, attributes : list of str
    values : uint8 array of shape (n_classes, n_attributes)
        0 or 1.
    """

    path: Path
    classes: list[str]
    attributes: list[str]
    values: np.ndarray


def find_attributes(pictures: Path) -> ClassAttributes | None:
    """Read the files that come with Animals with Attributes, in the folder or the one above."""
    for place in (pictures, pictures.parent):
        if (place / MATRIX).is_file():
            return read_attributes(place)
    return None


def read_attributes(path: Path) -> ClassAttributes:
    """Read the published files of a folder, or a table: classes, then columns of 0 and 1."""
    return _published(path) if path.is_dir() else _table(path)


def one_each(classes: Sequence[str]) -> tuple[list[str], np.ndarray]:
    """Make an attribute of every class: a picture has that of its own."""
    names = sorted(set(classes))
    place = {name: k for k, name in enumerate(names)}
    return names, np.eye(len(names), dtype=np.uint8)[[place[each] for each in classes]]


def of_pictures(known: ClassAttributes, classes: Sequence[str], names: Sequence[str]) -> np.ndarray:
    """Return the attributes of each picture, by its class."""
    place = {name: k for k, name in enumerate(known.classes)}
    for each, picture in zip(classes, names, strict=True):
        if each not in place:
            raise ValueError(CLASS_UNKNOWN.format(name=each, picture=picture, path=known.path))
    return np.asarray(known.values[[place[each] for each in classes]])


def _published(folder: Path) -> ClassAttributes:
    for name in (MATRIX, CLASSES, ATTRIBUTES):
        if not (folder / name).is_file():
            raise ValueError(
                NO_FILE.format(
                    path=folder / name, matrix=MATRIX, classes=CLASSES, attributes=ATTRIBUTES
                )
            )
    classes, attributes = (_numbered(folder / name) for name in (CLASSES, ATTRIBUTES))
    path, shape = folder / MATRIX, (len(classes), len(attributes))
    cells = [line.split() for line in _text(path).splitlines() if line.strip()]
    right = len(cells) == shape[0] and all(len(row) == shape[1] for row in cells)
    if not right or not all(cell in ("0", "1") for row in cells for cell in row):
        raise ValueError(NOT_BINARY.format(path=path, rows=shape[0], columns=shape[1]))
    return _checked(path, classes, attributes, np.array(cells, dtype=np.uint8))


def _numbered(path: Path) -> list[str]:
    names = []
    for number, line in enumerate(_text(path).splitlines(), start=1):
        if line.strip():
            parts = line.split(maxsplit=1)
            if len(parts) != 2 or not parts[0].isdigit():
                raise ValueError(NOT_NUMBERED.format(path=path, line=number))
            names.append(parts[1].strip())
    return names


def _text(path: Path) -> str:
    return path.read_bytes().decode("utf-8", errors="replace")


def _table(path: Path) -> ClassAttributes:
    table = open_table(path)
    columns = list(table.schema.names)
    rows = [row for _, batch in table.batches(columns) for row in batch.to_pylist()]
    if len(columns) < 2:
        raise ValueError(NOT_ATTRIBUTES.format(path=path, column=columns[0]))
    for name in columns[1:]:
        if not all(row[name] in (0, 1) for row in rows):
            raise ValueError(NOT_ATTRIBUTES.format(path=path, column=name))
    values = np.array([[int(row[name]) for name in columns[1:]] for row in rows], dtype=np.uint8)
    return _checked(path, [str(row[columns[0]]) for row in rows], columns[1:], values)


def _checked(
    path: Path, classes: list[str], attributes: list[str], values: np.ndarray
) -> ClassAttributes:
    for k, name in enumerate(classes):
        if name in classes[:k]:
            raise ValueError(CLASS_TWICE.format(path=path, name=name))
    return ClassAttributes(path, classes, attributes, values)
