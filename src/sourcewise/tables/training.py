"""From tables on disk to one matrix: grouped by source, the reference first.

Three passes, each over the columns it needs: names and labels of all rows; the reference's rows, by
which columns are read; and then all rows, every batch written straight to where its rows belong.
The matrix is the only thing in memory that is as large as the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from sourcewise.columns import meant
from sourcewise.progress import report_progress
from sourcewise.tables import bad_rows
from sourcewise.tables.bad_rows import (
    MIXED_DATES,
    MIXED_TYPES,
    BadRows,
    SkippedRows,
    refuse_mixed,
)
from sourcewise.tables.labels import read_labels
from sourcewise.tables.preprocessing import TablePreprocessor
from sourcewise.tables.reading import Table, open_table
from sourcewise.tables.request import TableRequest
from sourcewise.tables.values import as_text, column_kind, looks_like_dates, order_of

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
    "The reference {reference!r} has {rows}; at least {least} trusted rows are needed."
)
NO_OTHER_SOURCE = (
    "Column {column!r} names no source besides the reference {reference!r}; there is nothing to "
    "compare."
)
SOURCE_MISSING = (
    "Row {row} has no source (column {column!r} is empty, or holds NA or null); name every row's "
    "source, or leave such rows out with --skip-bad-rows."
)
SOURCE_ONE_ROW = (
    "Source {source!r} has one row, from which nothing can be concluded{more}; add rows, or pass "
    "--min-rows 2 to leave such sources out."
)
ALL_LEFT_OUT = "No source has the {rows} rows that --min-rows asks for."
SOURCE_NO_NAME = (
    "Column {column!r} holds {kind}, which cannot name sources; turn it into text or whole numbers."
)
NOT_FINITE = (
    "Source {source!r} has {what} in column {column!r} (row {row}); correct it, or leave such "
    "rows out with --skip-bad-rows."
)
SAME_COLUMN = "Column {column!r} cannot hold both the labels and the sources."
DROPPED = "Column {column!r} holds the {what}; it cannot be left out with --drop."
USED_TWICE = "Column {column!r} holds the {what}; it cannot be a feature too."

LEAST_TRUSTED = 10


@dataclass
class TrainingTable:
    """Rows as numbers, grouped by source, the reference first."""

    X: Any  # array or csr matrix
    y: np.ndarray
    names: list[str]  # sources: the reference, then the others by first appearance
    counts: np.ndarray  # rows of each source, in that order
    preprocessor: TablePreprocessor
    classification: bool
    left_out: dict[str, int]  # sources with too few rows to be looked at, and their rows
    skipped: tuple[SkippedRows, ...] = ()  # rows that could not be used
    # For each row of the table, in its order, the position of its source; -1 if left out.
    row_codes: np.ndarray | None = None

    @property
    def codes(self) -> np.ndarray:
        """Position of each row's source among the names."""
        return np.repeat(np.arange(len(self.names)), self.counts)

    @property
    def name_of_row(self) -> np.ndarray:
        """Each row's source, as an object: rows share the names, however long they are."""
        names = np.empty(len(self.names), dtype=object)
        names[:] = self.names
        return np.asarray(names[self.codes])

    def rows(self, source: int) -> slice:
        """Rows of one source."""
        first = int(self.counts[:source].sum())
        return slice(first, first + int(self.counts[source]))


def read_training(request: TableRequest) -> TrainingTable:
    """Read, check and convert all rows."""
    parts, reference = _open(request)
    columns = _feature_columns(parts, request)
    names, codes, rows_before = _read_sources(parts, request, reference)
    bad = BadRows(codes, sum(part.unreadable for part in parts))
    bad.add(codes < 0, bad_rows.NO_SOURCE)
    y, classification = read_labels(parts, request, names, codes, bad)
    trusted = (codes == 0) & bad.good
    _check_enough(names[0], int(trusted.sum()))
    rows = _reference_rows(parts, columns, trusted, rows_before)
    numbers = _find_bad_values(parts, columns, rows, request, bad)
    still_good = bad.good[trusted]
    skipped = bad.summary(names)
    codes = np.where(bad.good, codes, -1)
    names, codes, left_out = _leave_out_small(names, codes, request)
    counts = np.bincount(codes[codes >= 0], minlength=len(names))
    _check_enough(names[0], int(counts[0]))
    preprocessor = TablePreprocessor(
        categories=list(request.categories),
        text=list(request.text),
        dates=request.dates,
        numbers=numbers,
    )
    preprocessor.fit(rows if still_good.all() else rows.filter(still_good))
    place = _places(codes, counts)
    X = _fill(parts, preprocessor, place, int(counts.sum()), rows_before)
    training = TrainingTable(
        X,
        _grouped(y, place, X.shape[0]),
        names,
        counts,
        preprocessor,
        classification,
        left_out,
        skipped,
        codes.astype(np.int32),
    )
    _check_finite(training, place)
    return training


def _check_enough(reference: str, rows: int) -> None:
    if rows < LEAST_TRUSTED:
        raise ValueError(
            REFERENCE_TOO_SMALL.format(
                reference=reference,
                rows="1 row" if rows == 1 else f"{rows} rows",
                least=LEAST_TRUSTED,
            )
        )


def _open(request: TableRequest) -> tuple[list[Table], str]:
    label, source = request.label, request.source
    if label == source:
        raise ValueError(SAME_COLUMN.format(column=label))

    def opened(given: Any) -> Table:
        as_text = [*request.categories, *request.text]
        return open_table(given, as_text=as_text, skip_bad_rows=request.skip_bad_rows)

    data = opened(request.data)
    data.check_columns([label], taken=[source])
    data.check_columns([source], taken=[label])
    if request.reference_file is None:
        if request.reference is None:
            raise ValueError(REFERENCE_UNSAID.format(column=source))
        return [data], request.reference
    trusted = opened(request.reference_file)
    trusted.check_columns([label])
    return [data, trusted], request.reference or "reference"


def _feature_columns(parts: list[Table], request: TableRequest) -> list[str]:
    data = parts[0]
    own = {request.label: "labels", request.source: "sources"}
    for name in request.drop:
        if name in own:
            raise ValueError(DROPPED.format(column=name, what=own[name]))
    for name in [*request.features, *request.categories, *request.text]:
        if name in own:
            raise ValueError(USED_TWICE.format(column=name, what=own[name]))
    for asked in (request.features, request.drop, request.categories, request.text):
        data.check_columns(asked, taken=list(own))
    taken = {*own, *request.drop}
    columns = [name for name in request.features or data.schema.names if name not in taken]
    free = {*request.categories, *request.text}
    for part in parts:
        part.check_columns(columns, taken=list(own))
        for name in columns:
            if name not in free:
                column_kind(name, part.schema.field(name).type, dates=request.dates)
    return columns


def _find_bad_values(
    parts: list[Table], columns: list[str], trusted: Any, request: TableRequest, bad: BadRows
) -> list[str]:
    """Note rows with rubbish in a number, or refuse them; returns columns of numbers in text."""
    numbers = []
    free = {*request.categories, *request.text}
    for name in columns:
        kinds = [part.schema.field(name).type for part in parts]
        text = any(bad_rows.is_text(kind) for kind in kinds)
        if name in free or not (text or request.skip_bad_rows):
            continue
        own = trusted.column(name)
        order = ""
        number = text and not bad_rows.is_text(own.type)
        if text and not number:
            if looks_like_dates(as_text(own)):
                if not request.dates:
                    continue  # refused where the rules are learnt
                order = order_of(name, as_text(own))
            elif bad_rows.numbers_with_mistakes(name, as_text(own), _column(parts, name, text)):
                number = True
            else:
                continue
        elif not text and not _may_be_infinite(kinds):
            continue
        values = _column(parts, name, text)
        wrong, why = bad_rows.bad_values(name, values, number=number, order=order)
        if number:
            numbers.append(name)
        if not wrong.any():
            continue
        if not request.skip_bad_rows:
            message = MIXED_DATES if order else MIXED_TYPES
            refuse_mixed(name, values, int(np.flatnonzero(wrong)[0]), message)
        bad.add(wrong, why, values)
    return numbers


def _may_be_infinite(kinds: list[Any]) -> bool:
    import pyarrow.types as types

    return any(types.is_floating(kind) or types.is_decimal(kind) for kind in kinds)


def _column(parts: list[Table], name: str, text: bool) -> Any:
    """All values of a column, those of the parts below each other."""
    import pyarrow as pa

    chunks = [batch.column(0) for part in parts for _, batch in part.batches([name])]
    return pa.chunked_array(
        [as_text(chunk) if text else chunk.cast(pa.float64(), safe=False) for chunk in chunks]
    )


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
        values = _as_names(values, request.source)
        empty = pc.or_kleene(pc.is_null(values), pc.equal(pc.utf8_trim_whitespace(values), ""))
        if pc.any(empty).as_py() and not request.skip_bad_rows:
            row = start + pc.index(empty, True).as_py()
            raise ValueError(SOURCE_MISSING.format(row=row + 1, column=request.source))
        # Not by if_else: before version 22 it misreads text that does not begin at a batch's start.
        named = pc.replace_with_mask(values, empty, pa.scalar(None, values.type))
        encoded = named.dictionary_encode()
        local = [table.setdefault(v, len(table)) for v in encoded.dictionary.to_pylist()]
        where = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        codes[start : start + batch.num_rows] = np.array([*local, -1], dtype=np.intp)[where]
        report_progress("reading", start + batch.num_rows, 3 * total)
    trusted_here = bool((codes[: data.n_rows] == 0).any())
    if len(parts) == 1 and not trusted_here:
        hint = meant(reference, list(table)[1:], most=5)
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


def _as_names(values: Any, column: str) -> Any:
    import pyarrow as pa

    try:
        return values.cast(pa.large_string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        kind = str(values.type)
        raise ValueError(SOURCE_NO_NAME.format(column=column, kind=kind)) from error


def _leave_out_small(
    names: list[str], codes: np.ndarray, request: TableRequest
) -> tuple[list[str], np.ndarray, dict[str, int]]:
    """Drop sources of too few rows: the others are renumbered, dropped rows get -1."""
    counts = np.bincount(codes[codes >= 0], minlength=len(names))
    least = request.min_rows
    if request.skip_bad_rows:  # what is left of a source may be a row, or none
        least = max(least, 2)
    elif least < 2 and (counts[1:] == 1).any():
        single = [names[i] for i in np.flatnonzero(counts[1:] == 1) + 1]
        more = f" (the same for {len(single) - 1} more)" if len(single) > 1 else ""
        raise ValueError(SOURCE_ONE_ROW.format(source=single[0], more=more))
    kept = counts >= least
    kept[0] = True
    if kept.sum() == 1:
        raise ValueError(ALL_LEFT_OUT.format(rows=least))
    position = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1)
    left_out = {names[i]: int(counts[i]) for i in np.flatnonzero(~kept)}
    return [n for n, k in zip(names, kept, strict=True) if k], position[codes], left_out


def _reference_rows(
    parts: list[Table], columns: Sequence[str], trusted: np.ndarray, rows_before: list[int]
) -> Any:
    import pyarrow as pa

    found = []
    for part, before in zip(parts, rows_before, strict=True):

        def wanted(start: int, stop: int, before: int = before) -> bool:
            return bool(trusted[before + start : before + stop].any())

        for start, batch in part.batches(columns, wanted):
            mask = trusted[before + start : before + start + batch.num_rows]
            if mask.any():
                found.append(pa.Table.from_batches([batch.filter(pa.array(mask))]))
    return pa.concat_tables(found, promote_options="permissive")


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
) -> Any:
    if preprocessor.is_sparse_:
        return _fill_sparse(parts, preprocessor, place, rows_before)
    X = np.empty((n_rows, preprocessor.n_features_out_), dtype=preprocessor.dtype_)
    total = len(place)
    for start, batch in _batches(parts, preprocessor.columns_, rows_before):
        where = place[start : start + batch.num_rows]
        kept = where >= 0
        good = batch if kept.all() else batch.filter(kept)
        block = np.zeros((good.num_rows, X.shape[1]), dtype=X.dtype)
        preprocessor.transform_into(good, block)
        X[where[kept]] = block
        report_progress("reading", total + 2 * (start + batch.num_rows), 3 * total)
    return X


def _fill_sparse(
    parts: list[Table],
    preprocessor: TablePreprocessor,
    place: np.ndarray,
    rows_before: list[int],
) -> Any:
    blocks, total = [], len(place)
    for start, batch in _batches(parts, preprocessor.columns_, rows_before):
        kept = place[start : start + batch.num_rows] >= 0
        blocks.append(preprocessor.transform(batch if kept.all() else batch.filter(kept)))
        report_progress("reading", total + 2 * (start + batch.num_rows), 3 * total)
    return scipy.sparse.vstack(blocks, format="csr")[np.argsort(place[place >= 0])]


def _grouped(y: np.ndarray, place: np.ndarray, n_rows: int) -> np.ndarray:
    grouped = np.empty(n_rows, dtype=y.dtype)
    grouped[place[place >= 0]] = y[place >= 0]
    return grouped


def _check_finite(training: TrainingTable, place: np.ndarray) -> None:
    """Name the source, the column and the row of the first number that is none to learn from."""
    for source in range(len(training.names)):
        rows = training.rows(source)
        block = training.X[rows]
        numbers = block.data if scipy.sparse.issparse(block) else block
        if numbers.size and not bad_rows.within(np.array([numbers.min(), numbers.max()])).all():
            dense = block.toarray() if scipy.sparse.issparse(block) else block
            row, column = (int(i) for i in np.argwhere(~bad_rows.within(dense))[0])
            infinite = np.isinf(dense[row, column])
            raise ValueError(
                NOT_FINITE.format(
                    source=training.names[source],
                    what="infinity" if infinite else bad_rows.BEYOND,
                    column=training.preprocessor.get_feature_names_out()[column],
                    row=int(np.flatnonzero(place == rows.start + row)[0]) + 1,
                )
            )
