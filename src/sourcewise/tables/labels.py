"""The column of labels: classes or numbers, every row's checked or held against its source."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sourcewise import validation
from sourcewise.tables import bad_rows
from sourcewise.tables.bad_rows import BadRows, check_mixed
from sourcewise.tables.reading import Table
from sourcewise.tables.request import TableRequest
from sourcewise.tables.values import as_text, column_kind, numbers_in_text

LABEL_MISSING = (
    "Source {source!r} has no label in {rows} (row {row} of column {column!r}{first}; empty cells, "
    "NA, N/A, NaN and null count as none); fill it in, or leave such rows out with --skip-bad-rows."
)
LABEL_INFINITE = (
    "Source {source!r} has an infinite label (row {row}, column {column!r}); correct it, or leave "
    "such rows out with --skip-bad-rows."
)
LABEL_TOO_LARGE = (
    "Column {column!r} holds larger whole numbers than a label can be (2^63); make them text."
)
LABEL_UNKNOWN = (
    "Source {source!r} has the label {label!r}, which the reference {reference!r} never shows (row "
    "{row}){hint}; add trusted rows with that label, or leave such rows out with --skip-bad-rows."
)
LABEL_TYPES_DIFFER = (
    "Column {column!r} holds {first} in {path} and {second} in {other}; make them the same."
)
NOT_CLASSES = (
    "Column {column!r} holds numbers with fractions, which are not classes; pass --task regression."
)
NOT_NUMBERS = (
    "Column {column!r} holds {kind}, which cannot be predicted as numbers; pass --task "
    "classification."
)
# Whole numbers with more values than this among the trusted rows are taken for quantities.
MOST_CLASSES = 20
_PLURAL = {"boolean": "true and false", "category": "text", "number": "numbers"}


def read_labels(
    parts: Sequence[Table],
    request: TableRequest,
    names: list[str],
    codes: np.ndarray,
    bad: BadRows,
) -> tuple[np.ndarray, bool]:
    """Labels of all rows, and whether they are classes; rows without a usable one are noted."""
    column = request.label
    values, kind = _as_one_column(parts, request, codes)
    missing = bad_rows.missing(values)
    if missing.any() and not request.skip_bad_rows:
        row = int(np.flatnonzero(missing)[0])
        count = int((missing & (codes == codes[row])).sum())
        raise ValueError(
            LABEL_MISSING.format(
                source=names[codes[row]],
                rows="1 row" if count == 1 else f"{count} rows",
                row=row + 1,
                column=column,
                first="" if count == 1 else " is the first",
            )
        )
    bad.add(missing, bad_rows.NO_LABEL)
    if kind == "category":
        if request.task == "regression":
            raise ValueError(NOT_NUMBERS.format(column=column, kind="text"))
        y, classes = _texts(values), True
    elif kind == "boolean":
        y = values.fill_null(False).to_numpy()
        classes = request.task != "regression"
        y = y if classes else y.astype(np.float64)
    else:
        y, classes = _numbers(values, request, names, codes, bad)
    if classes:
        _check_known(y, names, codes, bad, request.skip_bad_rows)
    return y, classes


def _as_one_column(
    parts: Sequence[Table], request: TableRequest, codes: np.ndarray
) -> tuple[Any, str]:
    """Put the labels of all parts below each other, and say of what kind they are."""
    import pyarrow as pa
    import pyarrow.types as types

    column = request.label
    chunks = [batch.column(0) for part in parts for _, batch in part.batches([column])]
    plain = [c.cast(c.type.value_type) if types.is_dictionary(c.type) else c for c in chunks]
    kinds = [column_kind(column, part.schema.field(column).type) for part in parts]
    if len(set(kinds)) > 1 and not (request.skip_bad_rows and set(kinds) == {"category", "number"}):
        raise ValueError(
            LABEL_TYPES_DIFFER.format(
                column=column,
                first=_PLURAL[kinds[0]],
                second=_PLURAL[kinds[1]],
                path=parts[0].path,
                other=parts[1].path,
            )
        )
    kind = "category" if "category" in kinds else kinds[0]
    if kind == "number":
        whole = all(types.is_integer(c.type) for c in plain)
        common = pa.int64() if whole else pa.float64()
        try:
            return pa.chunked_array([c.cast(common) for c in plain]), kind
        except pa.ArrowInvalid as error:
            raise ValueError(LABEL_TOO_LARGE.format(column=column)) from error
    if kind == "boolean":
        return pa.chunked_array(plain), kind
    values = pa.chunked_array([as_text(c) for c in plain])
    if not request.skip_bad_rows:
        check_mixed(column, values)
    elif bad_rows.numbers_with_mistakes(column, values.filter(pa.array(codes == 0)), values):
        return values, "number"
    return values, kind


def _texts(values: Any) -> np.ndarray:
    encoded = values.fill_null("").combine_chunks().dictionary_encode()
    levels = np.array(encoded.dictionary.to_pylist())
    return np.asarray(levels[encoded.indices.to_numpy(zero_copy_only=False)])


def _numbers(
    values: Any, request: TableRequest, names: list[str], codes: np.ndarray, bad: BadRows
) -> tuple[np.ndarray, bool]:
    """Numbers, and whether they are classes."""
    column = request.label
    if bad_rows.is_text(values.type):
        wrong, why = bad_rows.bad_values(column, values, number=True, order="")
        bad.add(wrong, why, values)
        y = numbers_in_text(values)
    else:
        y = np.asarray(values.fill_null(0).to_numpy())
    infinite = np.isinf(y) & bad.good
    if infinite.any() and not request.skip_bad_rows:
        row = int(np.flatnonzero(infinite)[0])
        raise ValueError(
            LABEL_INFINITE.format(source=names[codes[row]], row=row + 1, column=column)
        )
    bad.add(infinite, bad_rows.INFINITE.format(column=column))
    y = np.where(bad.good, y, 0.0) if y.dtype.kind == "f" else y
    # With bad rows to be skipped, what the labels are is for the trusted ones to say.
    judges = (codes == 0) if request.skip_bad_rows else np.ones(len(y), dtype=bool)
    whole = bool((y[judges] == np.floor(y[judges])).all())
    if request.task == "classification" and not whole:
        raise ValueError(NOT_CLASSES.format(column=column))
    if request.task == "auto":
        trusted = (codes == 0) & bad.good
        classes = whole and len(np.unique(y[trusted])) <= MOST_CLASSES
    else:
        classes = request.task == "classification"
    if not classes:
        return y.astype(np.float64), False
    fractions = y != np.floor(y)
    if fractions.any():
        bad.add(fractions, bad_rows.UNKNOWN_LABEL, y)
    return y.astype(np.int64), True


def _check_known(
    y: np.ndarray, names: list[str], codes: np.ndarray, bad: BadRows, skip: bool
) -> None:
    """Every label must be one of the reference's."""
    classes = np.unique(y[(codes == 0) & bad.good])
    if len(classes) < 2:
        if len(classes) == 1:
            validation.check_labels_known(y[:0], classes, codes[:0], names, 0)
        return
    unknown = ~np.isin(y, classes) & bad.good
    if not unknown.any():
        return
    row = int(np.flatnonzero(unknown)[0])
    label = y[[row]].tolist()[0]
    if not skip:
        raise ValueError(
            LABEL_UNKNOWN.format(
                source=names[codes[row]],
                label=label,
                reference=names[0],
                row=row + 1,
                hint=_almost(label, classes.tolist()),
            )
        )
    bad.add(unknown, bad_rows.UNKNOWN_LABEL, y)


def _almost(label: Any, classes: list[Any]) -> str:
    """Name the class that a label is but for capitals and spaces."""

    def bare(text: Any) -> str:
        return "".join(str(text).split()).casefold()

    same = [known for known in classes if bare(known) == bare(label)]
    return f", where it has {same[0]!r}" if same else ""
