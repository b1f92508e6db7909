"""Values of raw columns as numbers, whatever type they come in."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from sourcewise.tables import dates as calendar
from sourcewise.tables.rules import ColumnRule

DATES = (
    "Column {name!r} holds dates or times; pass --dates to turn them into numbers (dates=True in "
    "Python), or leave the column out with --drop."
)
NOT_A_VALUE = "Column {name!r} holds {kind}, not single values; leave it out with --drop."
ALL_MISSING = (
    "Column {name!r} has no value in any row of the reference, so nothing can be learnt about it; "
    "leave it out with --drop."
)
KIND_CHANGED = (
    "Column {name!r} holds {found}, and the reference has {expected} there; make them the same."
)
NOT_A_NUMBER = (
    "Column {name!r} holds {value!r} (row {row}) where the reference has numbers; correct it."
)
NOT_A_DATE = (
    "Column {name!r} holds {value!r} (row {row}) where the reference has dates; correct it."
)
NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"


def as_arrow(table: Any) -> Any:
    """Take a pyarrow table, or a pandas or polars frame, as a pyarrow table."""
    import pyarrow as pa

    if isinstance(table, pa.Table):
        return table
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table])
    if hasattr(table, "to_arrow"):
        return table.to_arrow()
    try:
        return pa.Table.from_pandas(table, preserve_index=False)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        # Numbers and words in one column: as in a file, words decide.
        loose = {
            name: table[name].map(str, na_action="ignore")
            for name in table.columns
            if table[name].dtype == object
        }
        return pa.Table.from_pandas(table.assign(**loose), preserve_index=False)


def column_kind(name: str, kind: Any, *, dates: bool = False) -> str:
    """Say whether a type holds numbers, booleans, categories or dates, or refuse it by name."""
    import pyarrow.types as types

    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_boolean(kind):
        return "boolean"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "number"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "category"
    if types.is_null(kind):
        raise ValueError(ALL_MISSING.format(name=name))
    if types.is_temporal(kind):
        if dates:
            return "date"
        raise ValueError(DATES.format(name=name))
    raise ValueError(NOT_A_VALUE.format(name=name, kind=str(kind)))


def write_category(rule: ColumnRule, values: Any, out: np.ndarray) -> None:
    """Write ones to an array of zeros, a column for each category."""
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pc.index_in(values, value_set=pa.array(rule.levels, type=values.type))
    position = plain(pc.fill_null(found, -1)).astype(np.intp)
    missing = plain(pc.is_null(values)).astype(bool)
    n = len(rule.levels)
    if rule.other:
        position[(position < 0) & ~missing] = n
    if rule.indicator:
        position[missing] = n + rule.other
    rows = np.flatnonzero(position >= 0)
    out[rows, position[rows]] = 1.0


def write_number(rule: ColumnRule, numbers: np.ndarray, out: np.ndarray) -> None:
    """Write numbers, gaps filled, and where the rule says so which of them were gaps."""
    missing = np.isnan(numbers)
    if missing.any():
        numbers = np.where(missing, rule.fill, numbers)
    out[:, 0] = numbers if rule.unit == 1.0 else numbers / rule.unit
    if rule.indicator:
        out[:, 1] = missing


def as_numbers(rule: ColumnRule, values: Any) -> np.ndarray:
    """Floats, NaN where missing."""
    import pyarrow as pa
    import pyarrow.types as types

    name = rule.name
    if types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if types.is_null(values.type):
        return np.full(len(values), np.nan)
    kind = column_kind(name, values.type, dates=True)
    if rule.kind == "date":
        return _as_days(rule, values, kind)
    if kind == "category":
        return _sound(numbers_in_text(values), values, NOT_A_NUMBER, name)
    if kind == "date":
        raise ValueError(KIND_CHANGED.format(name=name, found="dates", expected="numbers"))
    if types.is_boolean(values.type):
        values = values.cast(pa.int8())
    if not types.is_float32(values.type):
        values = values.cast(pa.float64(), safe=False)
    return plain(values)


def is_plain(values: Any) -> bool:
    """Whether a column holds numbers without gaps, which need no conversion."""
    kind = values.type
    return bool(kind.id in _plain_types() and values.null_count == 0)


@cache
def _plain_types() -> frozenset[int]:
    import pyarrow as pa

    kinds = (pa.float64(), pa.float32(), pa.int64(), pa.int32(), pa.int16(), pa.int8(), pa.uint8())
    return frozenset(kind.id for kind in kinds)


def plain_block(columns: Sequence[Any]) -> np.ndarray:
    """Put plain columns side by side."""
    return np.column_stack([plain(values) for values in columns])


def _as_days(rule: ColumnRule, values: Any, kind: str) -> np.ndarray:
    if kind == "date":
        return calendar.typed_numbers(values)
    if kind != "category":
        raise ValueError(KIND_CHANGED.format(name=rule.name, found="numbers", expected="dates"))
    values = as_text(values)
    return _sound(calendar.text_days(values, rule.order or "ymd"), values, NOT_A_DATE, rule.name)


def numbers_in_text(values: Any) -> np.ndarray:
    """Read numbers; NaN for what is missing or no number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    values = as_text(values)
    good = pc.match_substring_regex(values, NUMBER)
    trimmed = pc.utf8_ltrim(pc.utf8_trim_whitespace(values), "+")
    return plain(pc.if_else(good, trimmed, None).cast(pa.float64()))


def _sound(numbers: np.ndarray, values: Any, message: str, name: str) -> np.ndarray:
    """Refuse what could not be read."""
    bad = np.isnan(numbers) & ~plain(values.is_null()).astype(bool)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise ValueError(message.format(name=name, value=values[row].as_py(), row=row + 1))
    return numbers


def as_text(values: Any, name: str = "") -> Any:
    """Take any values as text."""
    import pyarrow as pa

    if pa.types.is_floating(values.type):
        # 12.0 in one file is 12 in another.
        values = _whole_numbers(values)
    try:
        return values.cast(pa.large_string())
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid) as error:
        raise ValueError(NOT_A_VALUE.format(name=name, kind=str(values.type))) from error


def _whole_numbers(values: Any) -> Any:
    import pyarrow as pa

    try:
        return values.cast(pa.int64())
    except pa.ArrowInvalid:
        return values


def plain(values: Any) -> np.ndarray:
    """Return a numpy array; missing values become NaN."""
    if hasattr(values, "combine_chunks"):
        return np.asarray(values.to_numpy())
    return np.asarray(values.to_numpy(zero_copy_only=False))
