"""From pictures and their labels to files for ``sourcewise reproduce animals``, rows aligned."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from sourcewise import __version__
from sourcewise.experiments.animals import (
    FEATURES,
    IMAGE_FILES,
    LABELS,
    NAMES,
    RECORD,
    attribute_names,
)
from sourcewise.files import staged
from sourcewise.images.extractor import FeatureExtractor
from sourcewise.images.features import Features, concat_features
from sourcewise.images.pca import FeaturePCA
from sourcewise.images.pictures import Pictures
from sourcewise.progress import counter
from sourcewise.safe_text import csv_text
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
    """What each class has."""

    path: Path  # where this was read
    classes: list[str]
    attributes: list[str]
    values: np.ndarray  # of shape (n_classes, n_attributes); 0 or 1


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


SHARDS, PCA_FILE = "shards", "pca.npz"
LISTED, LEFT_OUT = "pictures.csv", "left-out.csv"
OPTIONAL = (*IMAGE_FILES.values(), LABELS, NAMES, PCA_FILE, LEFT_OUT)

BAD_PICTURES = (
    "{count} of {total} pictures cannot be used, the first of them: {first} Mend or remove them, "
    "or leave them out with --skip-bad-pictures; the features of the others are kept in {folder}."
)
NONE_LEFT = "None of the {total} pictures can be used, the first of them: {first}"


@dataclass(frozen=True)
class Extraction:
    """What is wanted."""

    extractor: FeatureExtractor
    pictures: Pictures
    corruptions: Sequence[str] = ()  # of the images; the clean ones come besides
    background: Pictures | None = None  # learn a PCA on them
    pca: FeaturePCA | None = None  # use this one
    n_components: int = 100  # of a PCA to be learnt
    attributes: ClassAttributes | None = None  # by default every class is an attribute
    seed: int = 0
    skip_bad: bool = False  # leave out pictures that cannot be used


def write_features(wanted: Extraction, folder: Path) -> dict[int, str]:
    """Write the files; what is finished is kept in a subfolder, and the same call goes on.

    Returns
    -------
    dict
        Positions of pictures that were left out, and why.
    """
    labels = _labels(wanted)  # unknown classes are found out before any work
    kinds = [None, *wanted.corruptions]
    background = wanted.background
    n_all = len(kinds) * len(wanted.pictures) + len(background or ())
    more = counter("pictures", n_all)
    pca, made_by = wanted.pca, _made_by(wanted.extractor)
    if pca is not None:
        pca.check_made_by(made_by)
    elif background is not None:
        parts = _parts(wanted, background, None, folder / SHARDS / "background", more)
        usable = (part.values[np.isfinite(part.values).all(axis=1)] for part in parts)
        pca = FeaturePCA.learn(usable, wanted.n_components, made_by)
    found = {}
    problems: dict[int, str] = {}
    for kind in kinds:
        place = folder / SHARDS / (kind or "clean")
        parts = _parts(wanted, wanted.pictures, kind, place, more)
        made = concat_features(part if pca is None else _reduced(part, pca) for part in parts)
        found[kind] = made.values
        problems |= made.problems
    _check_problems(problems, wanted, folder)
    kept = np.setdiff1d(np.arange(len(wanted.pictures)), list(problems))
    contents = {FEATURES: _array(_with_constant(found[None][kept]))}
    for kind in wanted.corruptions:
        contents[IMAGE_FILES[kind]] = _array(_with_constant(found[kind][kept]))
    if labels is not None:
        names, values = labels
        contents[LABELS] = _array(values[kept])
        if tuple(names) != attribute_names():
            contents[NAMES] = "".join(f"{name}\n" for name in names).encode()
    if pca is not None:
        contents[PCA_FILE] = pca.content()
    contents |= _lists(wanted, kept, problems)
    contents[RECORD] = _record(wanted, pca, contents, problems)
    _write(folder, contents)
    return problems


def _made_by(extractor: FeatureExtractor) -> str:
    return f"{extractor.name}, {extractor.size} pixels, {extractor.fingerprint()}"


def _parts(
    wanted: Extraction,
    pictures: Pictures,
    kind: str | None,
    place: Path,
    more: Callable[[int], None],
) -> Iterator[Features]:
    return wanted.extractor.shards(
        pictures, corruption=kind, seed=wanted.seed, folder=place, more=more
    )


def _reduced(part: Features, pca: FeaturePCA) -> Features:
    if not part.values.shape[1]:  # none of its pictures could be used
        return part
    return Features(pca.transform(part.values), part.problems)


def _labels(wanted: Extraction) -> tuple[list[str], np.ndarray] | None:
    """Names of the attributes, and those of each picture; None where classes are not known."""
    pictures = wanted.pictures
    if pictures.classes is None:
        return None
    if wanted.attributes is None:
        return one_each(pictures.classes)
    values = of_pictures(wanted.attributes, pictures.classes, pictures.names)
    return wanted.attributes.attributes, values


def _check_problems(problems: dict[int, str], wanted: Extraction, folder: Path) -> None:
    if not problems:
        return
    first, total = problems[min(problems)], len(wanted.pictures)
    if len(problems) == total:
        raise ValueError(NONE_LEFT.format(total=total, first=first))
    if not wanted.skip_bad:
        count = len(problems)
        place = folder / SHARDS
        raise ValueError(BAD_PICTURES.format(count=count, total=total, first=first, folder=place))


def _with_constant(values: np.ndarray) -> np.ndarray:
    return np.concatenate([values, np.ones((len(values), 1), dtype=values.dtype)], axis=1)


def _array(values: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, values)
    return stream.getvalue()


def _lists(wanted: Extraction, kept: np.ndarray, problems: dict[int, str]) -> dict[str, bytes]:
    """Say which picture each row is, and which ones have none."""
    pictures = wanted.pictures
    classes = pictures.classes
    lines = [
        {"row": row, "picture": pictures.names[k], "class": classes[k] if classes else ""}
        for row, k in enumerate(kept)
    ]
    lists = {LISTED: csv_text(lines).encode()}
    if problems:
        bad = [{"picture": pictures.names[k], "problem": problems[k]} for k in sorted(problems)]
        lists[LEFT_OUT] = csv_text(bad).encode()
    return lists


def _record(
    wanted: Extraction,
    pca: FeaturePCA | None,
    contents: dict[str, bytes],
    problems: dict[int, str],
) -> bytes:
    """Say how the features were made, and which files have the same pictures in their rows."""
    made = {
        "sourcewise": __version__,
        "network": _made_by(wanted.extractor),
        "layer": wanted.extractor.layer,
        "components": None if pca is None else len(pca.components),
        "corruptions": list(wanted.corruptions),
        "seed": wanted.seed,
        "pictures": len(wanted.pictures) - len(problems),
        "left out": len(problems),
        "files": {
            name: hashlib.sha256(content).hexdigest()
            for name, content in contents.items()
            if name in (FEATURES, *IMAGE_FILES.values())
        },
    }
    return json.dumps(made, indent=2).encode() + b"\n"


def _write(folder: Path, contents: dict[str, bytes]) -> None:
    """Write all files or none; those of an earlier call that have no place any more go."""
    folder.mkdir(parents=True, exist_ok=True)
    with staged(*(folder / name for name in contents)) as temporary:
        for file, content in zip(temporary, contents.values(), strict=True):
            file.write_bytes(content)
    for name in OPTIONAL:
        if name not in contents:
            (folder / name).unlink(missing_ok=True)
