"""From tables on disk to one matrix: grouped by source, the reference first.

Three passes, each over the columns it needs: names and labels of all rows; the reference's rows, by
which columns are read; and then all rows, every batch written straight to where its rows belong.
The matrix is the only thing in memory that is as large as the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from sourcewise import validation
from sourcewise.progress import report_progress
from sourcewise.tables.preprocessing import TablePreprocessor, column_kind
from sourcewise.tables.reading import CsvTable, Table, check_mixed, open_table

REFERENCE_ABSENT = (
    "Column {column!r} has no value {reference!r}, so there are no trusted rows{hint}"
)
REFERENCE_UNSAID = (
    "Say which rows you trust: --reference with a value of column {column!r}, or "
    "--reference-file with a table of them."
)
REFERENCE_NAMED_TWICE = (
    "Column {column!r} of {path} already has a source named {reference!r}; give the rows of "
    "--reference-file another name with --reference."
)
REFERENCE_TOO_SMALL = (
    "The reference {reference!r} has {rows} rows; at least {least} trusted rows are needed."
)
NO_OTHER_SOURCE = (
    "Column {column!r} names no source besides the reference {reference!r}; there is nothing to "
    "compare."
)
SOURCE_MISSING = "Row {row} has no source (column {column!r} is empty); name every row's source."
LABEL_MISSING = (
    "Source {source!r} has no label in {count} rows (the first is row {row}, column {column!r}); "
    "leave those rows out."
)
LABEL_INFINITE = "Source {source!r} has an infinite label (row {row}, column {column!r})."
LABEL_TYPES_DIFFER = (
    "Column {column!r} holds {first} in {path} and {second} in {other}; make them the same."
)
SOURCE_ONE_ROW = (
    "Source {source!r} has one row, from which nothing can be concluded{more}; add rows, or pass "
    "--min-rows 2 to leave such sources out."
)
ALL_LEFT_OUT = "No source has the {rows} rows that --min-rows asks for."
NOT_CLASSES = (
    "Column {column!r} holds numbers with fractions, which are not classes; pass --task regression."
)
NOT_NUMBERS = (
    "Column {column!r} holds {kind}, which cannot be predicted as numbers; pass --task "
    "classification."
)
NOT_FINITE = "Source {source!r} has infinity in column {column!r} (row {row}); correct it."
SAME_COLUMN = "Column {column!r} cannot hold both the labels and the sources."

LEAST_TRUSTED = 10
# Whole numbers with more values than this among the trusted rows are taken for quantities.
MOST_CLASSES = 20


@dataclass(frozen=True)
class TableRequest:
    """What a user says about a table.

    Attributes
    ----------
    data : path
    label, source : str
        Columns.
    reference : str, optional
        Value of the source column, or the name for the rows of ``reference_file``.
    reference_file : path, optional
    features, drop, categories : list of str
        Columns to use (default: all others), to leave out, to take as categories.
    task : {"auto", "classification", "regression"}
    min_rows : int
        Sources with fewer rows are left out.
    """

    data: Path
    label: str
    source: str
    reference: str | None = None
    reference_file: Path | None = None
    features: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    task: str = "auto"
    min_rows: int = 1


@dataclass
class TrainingTable:
    """Rows as numbers, grouped by source, the reference first.

    Attributes
    ----------
    X : array of shape (n_rows, n_features)
    y : array of shape (n_rows,)
    names : list of str
        Sources: the reference, then the others by first appearance.
    counts : int array
        Rows of each source, in that order.
    preprocessor : TablePreprocessor
    classification : bool
    left_out : dict
        Sources with too few rows to be looked at, and their rows.
    """

    X: np.ndarray
    y: np.ndarray
    names: list[str]
    counts: np.ndarray
    preprocessor: TablePreprocessor
    classification: bool
    left_out: dict[str, int]

    @property
    def codes(self) -> np.ndarray:
        """Position of each row's source among the names."""
        return np.repeat(np.arange(len(self.names)), self.counts)

    def rows(self, source: int) -> slice:
        """Rows of one source."""
        first = int(self.counts[:source].sum())
        return slice(first, first + int(self.counts[source]))


def read_training(request: TableRequest) -> TrainingTable:
    """Read, check and convert all rows."""
    parts, reference = _open(request)
    columns = _feature_columns(parts, request)
    names, codes, rows_before = _read_sources(parts, request, reference)
    y, classification = _read_labels(parts, request, names, codes)
    if classification:
        validation.check_labels_known(y, np.unique(y[codes == 0]), codes, names, 0)
    names, codes, left_out = _leave_out_small(names, codes, request.min_rows)
    counts = np.bincount(codes[codes >= 0], minlength=len(names))
    if counts[0] < LEAST_TRUSTED:
        raise ValueError(
            REFERENCE_TOO_SMALL.format(reference=names[0], rows=counts[0], least=LEAST_TRUSTED)
        )
    preprocessor = TablePreprocessor(categories=list(request.categories))
    preprocessor.fit(_reference_rows(parts, columns, codes, rows_before))
    place = _places(codes, counts)
    X = _fill(parts, preprocessor, place, int(counts.sum()), rows_before)
    training = TrainingTable(
        X, _grouped(y, place, len(X)), names, counts, preprocessor, classification, left_out
    )
    _check_finite(training, place)
    return training


def _open(request: TableRequest) -> tuple[list[Table], str]:
    if request.label == request.source:
        raise ValueError(SAME_COLUMN.format(column=request.label))
    data = open_table(request.data, categories=request.categories)
    data.check_columns([request.label, request.source])
    if request.reference_file is None:
        if request.reference is None:
            raise ValueError(REFERENCE_UNSAID.format(column=request.source))
        return [data], request.reference
    trusted = open_table(request.reference_file, categories=request.categories)
    trusted.check_columns([request.label])
    return [data, trusted], request.reference or "reference"


def _feature_columns(parts: list[Table], request: TableRequest) -> list[str]:
    data = parts[0]
    asked = [*request.features, *request.drop, *request.categories]
    data.check_columns(asked)
    taken = {request.label, request.source, *request.drop}
    columns = [name for name in request.features or data.schema.names if name not in taken]
    for part in parts:
        part.check_columns(columns)
        for name in columns:
            if name not in request.categories:
                column_kind(name, part.schema.field(name).type)
        if isinstance(part, CsvTable):
            part.check_mixed([n for n in [*columns, request.label] if n not in request.categories])
    return columns


def _read_sources(
    parts: list[Table], request: TableRequest, reference: str
) -> tuple[list[str], np.ndarray, list[int]]:
    """Names, the reference first; each row's position among them; rows before each part."""
    import pyarrow as pa
    import pyarrow.compute as pc

    table: dict[str, int] = {reference: 0}
    total = sum(part.n_rows for part in parts)
    codes = np.zeros(total, dtype=np.intp)
    data = parts[0]
    for start, batch in data.batches([request.source]):
        values = batch.column(0)
        if pa.types.is_dictionary(values.type):
            values = values.cast(values.type.value_type)
        values = values.cast(pa.large_string())
        empty = pc.or_kleene(pc.is_null(values), pc.equal(pc.utf8_trim_whitespace(values), ""))
        if pc.any(empty).as_py():
            row = start + pc.index(empty, True).as_py()
            raise ValueError(SOURCE_MISSING.format(row=row + 1, column=request.source))
        encoded = values.dictionary_encode()
        local = [table.setdefault(v, len(table)) for v in encoded.dictionary.to_pylist()]
        found = np.array(local, dtype=np.intp)[encoded.indices.to_numpy(zero_copy_only=False)]
        codes[start : start + batch.num_rows] = found
        report_progress("reading", start + batch.num_rows, 3 * total)
    trusted_here = bool((codes[: data.n_rows] == 0).any())
    if len(parts) == 1 and not trusted_here:
        close = get_close_matches(reference, list(table)[1:], n=1, cutoff=0.5)
        hint = f"; did you mean {close[0]!r}?" if close else f"; it has {_some(list(table)[1:])}."
        raise ValueError(
            REFERENCE_ABSENT.format(column=request.source, reference=reference, hint=hint)
        )
    if len(parts) == 2 and trusted_here:
        raise ValueError(
            REFERENCE_NAMED_TWICE.format(column=request.source, path=data.path, reference=reference)
        )
    if len(table) == 1:
        raise ValueError(NO_OTHER_SOURCE.format(column=request.source, reference=reference))
    return list(table), codes, [0, data.n_rows][: len(parts)]


def _some(names: list[str]) -> str:
    return ", ".join(map(repr, names[:5])) + (", ..." if len(names) > 5 else "")


def _read_labels(
    parts: list[Table], request: TableRequest, names: list[str], codes: np.ndarray
) -> tuple[np.ndarray, bool]:
    import pyarrow as pa
    import pyarrow.types as types

    column = request.label
    chunks = [batch.column(0) for part in parts for _, batch in part.batches([column])]
    plain = [c.cast(c.type.value_type) if types.is_dictionary(c.type) else c for c in chunks]
    kinds = [column_kind(column, part.schema.field(column).type) for part in parts]
    if len(set(kinds)) > 1:
        raise ValueError(
            LABEL_TYPES_DIFFER.format(
                column=column,
                first=_PLURAL[kinds[0]],
                second=_PLURAL[kinds[1]],
                path=parts[0].path,
                other=parts[1].path,
            )
        )
    kind = kinds[0]
    common = {"boolean": pa.bool_(), "category": pa.large_string()}.get(kind)
    if kind == "number":
        whole = all(types.is_integer(c.type) for c in plain)
        common = pa.int64() if whole else pa.float64()
    values = pa.chunked_array([c.cast(common) for c in plain])
    check_mixed(column, values)
    missing = np.asarray(values.is_null(nan_is_null=True).to_numpy())
    if missing.any():
        row = int(np.flatnonzero(missing)[0])
        count = int((missing & (codes == codes[row])).sum())
        raise ValueError(
            LABEL_MISSING.format(source=names[codes[row]], count=count, row=row + 1, column=column)
        )
    return _as_targets(values, kind, request, names, codes)


_PLURAL = {"boolean": "true and false", "category": "text", "number": "numbers"}


def _as_targets(
    values: Any, kind: str, request: TableRequest, names: list[str], codes: np.ndarray
) -> tuple[np.ndarray, bool]:
    """Labels as an array, and whether they are classes."""
    if kind == "category":
        if request.task == "regression":
            raise ValueError(NOT_NUMBERS.format(column=request.label, kind="text"))
        encoded = values.combine_chunks().dictionary_encode()
        levels = np.array(encoded.dictionary.to_pylist())
        return levels[encoded.indices.to_numpy(zero_copy_only=False)], True
    y = np.asarray(values.to_numpy())
    if kind == "boolean":
        return (y.astype(np.float64), False) if request.task == "regression" else (y, True)
    if not np.isfinite(y).all():
        row = int(np.flatnonzero(~np.isfinite(y))[0])
        raise ValueError(
            LABEL_INFINITE.format(source=names[codes[row]], row=row + 1, column=request.label)
        )
    whole = bool((y == np.floor(y)).all())
    if request.task == "classification" and not whole:
        raise ValueError(NOT_CLASSES.format(column=request.label))
    if request.task == "auto":
        classes = whole and len(np.unique(y[codes == 0])) <= MOST_CLASSES
    else:
        classes = request.task == "classification"
    return (y.astype(np.int64), True) if classes else (y.astype(np.float64), False)


def _leave_out_small(
    names: list[str], codes: np.ndarray, min_rows: int
) -> tuple[list[str], np.ndarray, dict[str, int]]:
    """Drop sources of too few rows: the others are renumbered, dropped rows get -1."""
    counts = np.bincount(codes, minlength=len(names))
    if min_rows < 2 and (counts[1:] == 1).any():
        single = [names[i] for i in np.flatnonzero(counts[1:] == 1) + 1]
        more = f" (the same for {len(single) - 1} more)" if len(single) > 1 else ""
        raise ValueError(SOURCE_ONE_ROW.format(source=single[0], more=more))
    kept = counts >= min_rows
    kept[0] = True
    if kept.sum() == 1:
        raise ValueError(ALL_LEFT_OUT.format(rows=min_rows))
    position = np.where(kept, np.cumsum(kept) - 1, -1)
    left_out = {names[i]: int(counts[i]) for i in np.flatnonzero(~kept)}
    return [n for n, k in zip(names, kept, strict=True) if k], position[codes], left_out


def _reference_rows(
    parts: list[Table], columns: Sequence[str], codes: np.ndarray, rows_before: list[int]
) -> Any:
    import pyarrow as pa

    found = []
    trusted = codes == 0
    for part, before in zip(parts, rows_before, strict=True):

        def wanted(start: int, stop: int, before: int = before) -> bool:
            return bool(trusted[before + start : before + stop].any())

        for start, batch in part.batches(columns, wanted):
            mask = trusted[before + start : before + start + batch.num_rows]
            if mask.any():
                found.append(pa.Table.from_batches([batch.filter(pa.array(mask))]))
    rows = pa.concat_tables(found, promote_options="permissive")
    for name in columns:
        check_mixed(name, rows.column(name))
    return rows


def _places(codes: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Where each row goes when rows are grouped by source; -1 for rows left out."""
    kept = np.flatnonzero(codes >= 0)
    order = kept[np.argsort(codes[kept], kind="stable")]
    place = np.full(len(codes), -1, dtype=np.intp)
    place[order] = np.arange(len(order))
    return place


def _batches(
    parts: list[Table], columns: Sequence[str], rows_before: list[int]
) -> Iterator[tuple[int, Any]]:
    for part, before in zip(parts, rows_before, strict=True):
        for start, batch in part.batches(columns):
            yield before + start, batch


def _fill(
    parts: list[Table],
    preprocessor: TablePreprocessor,
    place: np.ndarray,
    n_rows: int,
    rows_before: list[int],
) -> np.ndarray:
    X = np.empty((n_rows, preprocessor.n_features_out_), dtype=preprocessor.dtype_)
    total = len(place)
    for start, batch in _batches(parts, preprocessor.columns_, rows_before):
        block = np.zeros((batch.num_rows, X.shape[1]), dtype=X.dtype)
        preprocessor.transform_into(batch, block)
        where = place[start : start + batch.num_rows]
        kept = where >= 0
        X[where[kept]] = block if kept.all() else block[kept]
        report_progress("reading", total + 2 * (start + batch.num_rows), 3 * total)
    return X


def _grouped(y: np.ndarray, place: np.ndarray, n_rows: int) -> np.ndarray:
    grouped = np.empty(n_rows, dtype=y.dtype)
    grouped[place[place >= 0]] = y[place >= 0]
    return grouped


def _check_finite(training: TrainingTable, place: np.ndarray) -> None:
    """Name the source, the column and the row of the first infinity."""
    for source in range(len(training.names)):
        rows = training.rows(source)
        bad = ~np.isfinite(training.X[rows])
        if bad.any():
            row, column = (int(i) for i in np.argwhere(bad)[0])
            raise ValueError(
                NOT_FINITE.format(
                    source=training.names[source],
                    column=training.preprocessor.get_feature_names_out()[column],
                    row=int(np.flatnonzero(place == rows.start + row)[0]) + 1,
                )
            )
