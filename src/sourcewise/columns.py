"""Checks of what the columns of X are, for learners that want numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, time, timedelta
from difflib import get_close_matches
from typing import Any

import numpy as np

NAMES_MIXED = (
    "The column names of X are of several kinds ({one!r} is {kind_one}, {other!r} is "
    "{kind_other}); make all of them strings, as X.columns.astype(str) does."
)
SPARSE_AROUND = (
    "Column {column!r} of X is sparse around the value {value!r}, not around zero; pass "
    "X.sparse.to_dense(), or make it pandas.SparseDtype(float, 0)."
)
TEXT_COLUMN = (
    "Column {column!r} of X holds text ({value!r}), and the default learner wants numbers; encode "
    "the column (OneHotEncoder, ...) or drop it."
)
DATE_COLUMN = (
    "Column {column!r} of X holds dates or times, and the default learner wants numbers; turn the "
    "column into one (a number of days, ...) or drop it."
)


SOURCES_NAME = (
    "sources={name!r} names a column, and X is no frame with columns but of type {kind}; pass one "
    "name of a source for each row."
)
SOURCES_NO_COLUMN = "X has no column {name!r} to take the sources from{hint}"


def check_container(X: Any) -> None:
    """Refuse what its numbers alone do not show: dates, mixed names, columns sparse around 1."""
    check_column_names(X)
    if isinstance(X, np.ndarray) and _holds_dates(X.dtype):
        raise ValueError(DATE_COLUMN.format(column=0))
    for name, column in _columns(X) if hasattr(X, "columns") else ():
        if _holds_dates(column.dtype):
            raise ValueError(DATE_COLUMN.format(column=name))
    _check_sparse_columns(X)


def _check_sparse_columns(X: Any) -> None:
    """Refuse a pandas frame of sparse columns that are not sparse around zero."""
    if not hasattr(X, "sparse"):  # which frames have whose columns are all sparse
        return
    for name, dtype in zip(X.columns, X.dtypes, strict=True):
        if dtype.fill_value != 0:
            raise ValueError(SPARSE_AROUND.format(column=name, value=dtype.fill_value))


def split_off(X: Any, name: str) -> tuple[Any, Any]:
    """Return a frame without a column, and the column."""
    names = list(getattr(X, "columns", ()))
    if not names or isinstance(X, np.ndarray):
        raise ValueError(SOURCES_NAME.format(name=name, kind=type(X).__name__))
    if name not in names:
        close = get_close_matches(name, [str(other) for other in names], n=1)
        hint = f"; did you mean {close[0]!r}?" if close else "."
        raise ValueError(SOURCES_NO_COLUMN.format(name=name, hint=hint))
    return without_column(X, name), X[name]


def meant(name: Any, there: Sequence[Any], most: int = 8) -> str:
    """Say which of the names that are there may have been meant, or what there is."""
    close = get_close_matches(str(name), [str(other) for other in there], n=1, cutoff=0.5)
    if close:
        return f"; did you mean {close[0]!r}?"
    return f"; it has {', '.join(map(repr, there[:most]))}{', ...' * (len(there) > most)}."


def without_column(X: Any, name: str | None) -> Any:
    """Return a frame without a column, if it is one and has it."""
    if name is None or name not in list(getattr(X, "columns", ())):
        return X
    return X.drop(columns=[name]) if hasattr(X, "iloc") else X.drop(name)


def check_column_names(X: Any) -> None:
    """Refuse a frame in which some column names are strings and some are not."""
    if not hasattr(X, "columns"):
        return
    names = list(X.columns)
    texts = [isinstance(name, str) for name in names]
    if any(texts) and not all(texts):
        one, other = names[texts.index(True)], names[texts.index(False)]
        raise ValueError(
            NAMES_MIXED.format(
                one=one, kind_one="str", other=other, kind_other=type(other).__name__
            )
        )


def check_values(X: Any) -> None:
    """Name the first column with a text or a date in it."""
    for name, column in _columns(X):
        for value in np.asarray(column, dtype=object).ravel().tolist():
            if isinstance(value, str) and not _is_number(value):
                raise ValueError(TEXT_COLUMN.format(column=name, value=value))
            if isinstance(value, date | time | timedelta):
                raise ValueError(DATE_COLUMN.format(column=name))


def _columns(X: Any) -> Iterator[tuple[Any, Any]]:
    """Names (positions where there are none) and columns; nothing for what is no table."""
    if hasattr(X, "columns") and hasattr(X, "iloc"):
        yield from ((name, X.iloc[:, k]) for k, name in enumerate(X.columns))
    elif hasattr(X, "columns"):
        yield from ((name, X[name]) for name in X.columns)
    elif isinstance(X, (np.ndarray, list)) and np.ndim(X) == 2:
        yield from enumerate(np.asarray(X, dtype=object).T)


def _holds_dates(dtype: Any) -> bool:
    """Whether a numpy, pandas or polars type is one of dates, times or durations."""
    kind = getattr(dtype, "kind", None)
    return kind in ("m", "M") if kind else str(dtype).startswith(("Date", "Time", "Duration"))


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
