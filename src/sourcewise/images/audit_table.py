"""Tables with a column of picture paths: features in its place, and small pictures for a page."""

from __future__ import annotations

import base64
import io
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from sourcewise.images.extractor import FeatureExtractor
from sourcewise.images.features import Features, concat_features
from sourcewise.images.pca import N_COMPONENTS, FeaturePCA
from sourcewise.images.pictures import Pictures, open_pictures
from sourcewise.images.reading import PictureError
from sourcewise.progress import counter
from sourcewise.tables.reading import open_table

SAME_COLUMN = "Column {column!r} cannot hold both the pictures and the {what}."
NO_REFERENCE = (
    "Column {column!r} has no value {reference!r}, so there are no trusted pictures to learn from."
)
TOO_FEW = "{found} trusted pictures can be used; at least {least} are needed."
BAD_PICTURES = (
    "{count} of {total} pictures cannot be used, the first of them: {first} Mend them, or leave "
    "their rows out with --skip-bad-pictures."
)
LEAST = 10


@dataclass(frozen=True)
class PictureTable:
    """What stands in for a table of pictures."""

    request: Any  # like the one given, for the new table
    columns: list[str]  # of the features
    problems: list[str]  # what is wrong with pictures whose rows were left out
    _pictures: dict[bytes, tuple[Pictures, int]]

    def picture(self, features: np.ndarray) -> tuple[Pictures, int] | None:
        """Find a picture by its features: however rows are sorted later, or left out."""
        return self._pictures.get(features.astype(np.float32).tobytes())


@contextmanager
def picture_table(
    request: Any,
    column: str,
    extractor: FeatureExtractor,
    *,
    folder: Path | None = None,
    skip_bad: bool = False,
) -> Iterator[PictureTable]:
    """Write a table of features beside the other columns; it is there as long as the context.

    A PCA to at most 100 dimensions is learnt on the reference's pictures alone, as all rules for
    columns are.
    """
    for what, other in (("labels", request.label), ("sources", request.source)):
        if column == other:
            raise ValueError(SAME_COLUMN.format(column=column, what=what))
    paths = [path for path in (request.data, request.reference_file) if path is not None]
    for path in paths:
        table = open_table(path)
        table.check_columns([column, request.label])
        if path is request.data:
            table.check_columns([request.source])
    opened = [open_pictures(path, column=column, folder=folder) for path in paths]
    more = counter("pictures", sum(map(len, opened)))
    found = []
    for pictures in opened:
        found.append(concat_features(extractor.shards(pictures, more=more)))
    problems = [why for each in found for _, why in sorted(each.problems.items())]
    if problems and not skip_bad:
        total = sum(map(len, opened))
        raise ValueError(BAD_PICTURES.format(count=len(problems), total=total, first=problems[0]))
    pca = _learn(request, found[-1], column)
    columns = [f"{column} {k + 1}" for k in range(len(pca.components))]
    known: dict[bytes, tuple[Pictures, int]] = {}
    with tempfile.TemporaryDirectory(prefix="sourcewise-") as place:
        written = []
        for number, (path, pictures, features) in enumerate(zip(paths, opened, found, strict=True)):
            values = pca.transform(features.values)
            for row in np.flatnonzero(np.isfinite(values).all(axis=1)):
                known.setdefault(values[row].tobytes(), (pictures, int(row)))
            new = Path(place) / str(number) / f"{path.stem}.parquet"
            new.parent.mkdir()
            _write(path, new, column, columns, values, request.categories)
            written.append(new)
        asked = tuple(name for name in request.features if name != column)
        yield PictureTable(
            replace(
                request,
                data=written[0],
                reference_file=written[1] if len(written) > 1 else None,
                features=(*asked, *columns) if request.features else (),
            ),
            columns,
            problems,
            known,
        )


def _learn(request: Any, features: Features, column: str) -> FeaturePCA:
    """Learn a PCA on the trusted pictures."""
    values = features.values
    if request.reference_file is None:
        table = open_table(request.data)
        names = [
            str(name)
            for _, batch in table.batches([request.source])
            for name in batch.column(0).to_pylist()
        ]
        trusted = np.array([name == str(request.reference) for name in names])
        if not trusted.any():
            raise ValueError(
                NO_REFERENCE.format(column=request.source, reference=request.reference)
            )
        values = values[trusted]
    usable = values[np.isfinite(values).all(axis=1)] if values.shape[1] else values[:0]
    if len(usable) < LEAST:
        raise ValueError(TOO_FEW.format(found=len(usable), least=LEAST))
    distinct = len(np.unique(usable, axis=0))
    n_components = max(1, min(N_COMPONENTS, distinct - 1, usable.shape[1]))
    return FeaturePCA.learn([usable], n_components, column)


def _write(
    path: Path,
    new: Path,
    column: str,
    columns: list[str],
    values: np.ndarray,
    categories: Sequence[str],
) -> None:
    """Copy a table, its column of pictures replaced by their features."""
    import pyarrow as pa
    from pyarrow import parquet

    table = open_table(path, as_text=categories)
    others = [name for name in table.schema.names if name != column]
    kept = np.isfinite(values).all(axis=1)
    batches = [pa.Table.from_batches([batch]) for _, batch in table.batches(others)]
    rows = pa.concat_tables(batches, promote_options="permissive").filter(pa.array(kept))
    for k, name in enumerate(columns):
        rows = rows.append_column(name, pa.array(values[kept, k]))
    parquet.write_table(rows, new)


# -- small pictures for a page ------------------------------------------------------------------


SIDE, QUALITY, MOST = 72, 80, 8
# Kinds of sources that a card says to have other features; all others are told by their labels.
BY_FEATURES = ("other population", "other units", "columns permuted", "noisy features")


class Thumbnail(NamedTuple):
    """A small picture."""

    name: str  # of the picture, in the table
    label: str  # what the source calls it
    uri: str  # a data URI: nothing is loaded from anywhere


def strips(audit: Any, fitted: Any, training: Any, table: PictureTable) -> dict[str, Any]:
    """Return thumbnails for every source that has a card.

    Where its features differ, the pictures furthest from the trusted ones; where its labels do,
    those whose label the reference's own model finds least likely.
    """
    names = [str(name) for name in training.names]
    features = list(training.preprocessor.get_feature_names_out())
    columns = [features.index(name) for name in table.columns if name in features]
    own = training.X[training.rows(0)]
    alone = fitted.model_.at_trade_off(0.0) if audit.cards else None
    result = {}
    for card in audit.cards:
        if str(card.source) not in names:
            continue
        rows = training.rows(names.index(str(card.source)))
        X, y = training.X[rows], training.y[rows]
        if card.kind in BY_FEATURES:
            unlike = unlikeness(X[:, columns], own[:, columns])
        else:
            unlike = surprise(alone, X, y)
        order = np.argsort(-unlike, kind="stable")
        result[str(card.source)] = _thumbnails(table, X[:, columns], y, order)
    return result


def unlikeness(X: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Mean squared distance from the reference's mean, in its standard deviations."""
    spread = reference.std(axis=0)
    scaled = (X - reference.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return np.asarray((scaled**2).mean(axis=1))


def surprise(model: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """How little a model expects each label: the error for numbers, else 1 - probability."""
    if not hasattr(model, "classes_"):
        return np.asarray(np.abs(model.predict(X) - y))
    place = np.searchsorted(model.classes_, y)
    return np.asarray(1.0 - model.predict_proba(X)[np.arange(len(y)), place])


def _thumbnails(
    table: PictureTable, features: np.ndarray, y: np.ndarray, order: np.ndarray
) -> tuple[Thumbnail, ...]:
    chosen: list[Thumbnail] = []
    for row in order:
        found = table.picture(features[row])
        if found is None:
            continue
        pictures, position = found
        try:
            uri = thumbnail(pictures.read(position, SIDE))
        except PictureError:  # gone since its features were computed
            continue
        chosen.append(Thumbnail(str(pictures.names[position]), str(y[row]), uri))
        if len(chosen) == MOST:
            break
    return tuple(chosen)


def thumbnail(pixels: np.ndarray) -> str:
    """Encode a small picture as a data URI; what a camera wrote beside the pixels is not in it."""
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG", quality=QUALITY)
    return "data:image/jpeg;base64," + base64.b64encode(stream.getvalue()).decode()
