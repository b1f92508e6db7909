"""Raw columns to numbers, by rules learnt from the reference's rows alone.

Untrusted rows do not influence how columns are read: a vendor cannot move a median, add a
category or make a level common.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

DATES = (
    "Column {name!r} holds dates or times; turn them into numbers (days since a fixed day, say) or "
    "leave the column out with --drop."
)
NOT_A_VALUE = "Column {name!r} holds {kind}, not single values; leave it out with --drop."
ALL_MISSING = (
    "Column {name!r} has no value in any row of the reference, so nothing can be learnt about it; "
    "leave it out with --drop."
)
NO_FEATURES = (
    "No column is left to predict from; check --features and --drop, and that the reference's rows "
    "differ in some column."
)
COLUMN_ABSENT = "The table has no column {name!r}, which the model was fitted with."
KIND_CHANGED = (
    "Column {name!r} holds {found}, and the reference has {expected} there; make them the same."
)

MAX_LEVELS = 30
RARE_SHARE = 0.01
RARE_ROWS = 2
DATE_LIKE = r"^\s*\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}([ T]\d{1,2}:\d{2}.*)?\s*$"
MISSING, OTHER = "(missing)", "(other)"


@dataclass(frozen=True)
class ColumnRule:
    """What is done to one column.

    Attributes
    ----------
    name : str
    kind : {"number", "boolean", "category", "left out"}
    fill : float
        What a missing number or boolean is replaced by: the reference's median, or the more
        frequent of the two values.
    indicator : bool
        Whether a column that says "was missing" is added: where the reference misses some.
    levels : list of str
        Categories with a column of their own, the most frequent first.
    other : bool
        Whether rare categories share a column; categories the reference does not have go there
        too, and count as none of the levels where there is no such column.
    missing, grouped : int
        Reference rows with no value, and rare categories put together.
    """

    name: str
    kind: Literal["number", "boolean", "category", "left out"]
    fill: float = 0.0
    indicator: bool = False
    levels: tuple[str, ...] = ()
    other: bool = False
    missing: int = 0
    grouped: int = 0

    @property
    def features(self) -> list[str]:
        """Names of the numbers this column turns into."""
        if self.kind == "left out":
            return []
        if self.kind == "category":
            levels = [*self.levels, *([OTHER] * self.other), *([MISSING] * self.indicator)]
            return [f"{self.name} = {level}" for level in levels]
        return [self.name, *([f"{self.name} = {MISSING}"] * self.indicator)]

    def __str__(self) -> str:
        """Say what was done in words."""
        if self.kind == "left out":
            return "left out: hardly any two rows share a value"
        if self.kind == "category":
            text = f"{_count(len(self.levels), 'category', 'categories')}, a column each"
            if self.other:
                text += f"; {_count(self.grouped, 'rare one', 'rare ones')} put together"
            if self.indicator:
                text += f"; missing in {_count(self.missing, 'trusted row')}, a column of its own"
            return text
        text = "as it is" if self.kind == "number" else "true is 1, false is 0"
        by = "the reference's median" if self.kind == "number" else "the more frequent value"
        if self.indicator:
            return (
                f"{text}; missing in {_count(self.missing, 'trusted row')}: replaced by {by} "
                f"({self.fill:.6g}), with a column that says so"
            )
        return f"{text}; if missing, {by} ({self.fill:.6g})"


class TablePreprocessor(TransformerMixin, BaseEstimator):
    """Turns tables of raw columns into a matrix of numbers.

    Numbers stay as they are, true and false become 1 and 0, text becomes one column for each
    frequent category and one for all rare ones. Missing values are replaced by the reference's
    median (or its more frequent value), with a column that says so where the reference itself
    misses values.

    Parameters
    ----------
    categories : list of str
        Columns to be taken as categories even if they hold numbers (post codes, say).

    Attributes
    ----------
    rules_ : list of ColumnRule
        What is done to each column.
    dtype_ : str
        ``"float32"`` where every column that was fitted fits into it, ``"float64"`` otherwise.

    Examples
    --------
    >>> import pyarrow as pa
    >>> reference = pa.table({"age": [30, 40, None], "city": ["Oslo", "Oslo", "Rome"]})
    >>> made = TablePreprocessor().fit(reference)
    >>> made.get_feature_names_out().tolist()
    ['age', 'age = (missing)', 'city = Oslo', 'city = (other)']
    >>> made.transform(pa.table({"age": [None, 7], "city": ["Rome", "Oslo"]}))
    array([[35.,  1.,  0.,  1.],
           [ 7.,  0.,  1.,  0.]])
    """

    def __init__(self, categories: Sequence[str] = ()):
        self.categories = categories

    def fit(self, X: Any, y: Any = None) -> TablePreprocessor:
        """Learn the rules from the reference's rows.

        Parameters
        ----------
        X : pyarrow table, or pandas or polars frame
        y : ignored
        """
        table = as_arrow(X)
        rules = [self._rule(name, table.column(name)) for name in table.column_names]
        if not any(rule.features and _varies(table.column(rule.name)) for rule in rules):
            raise ValueError(NO_FEATURES)
        narrow = all(_is_narrow(table.column(r.name).type) for r in rules if r.kind != "left out")
        self.rules_ = rules
        self.dtype_ = "float32" if narrow else "float64"
        return self

    def _rule(self, name: str, values: Any) -> ColumnRule:
        kind = "category" if name in list(self.categories) else column_kind(name, values.type)
        if kind == "category":
            return _category_rule(name, _as_text(values))
        numbers = _as_numbers(name, values)
        missing = np.isnan(numbers)
        if missing.all():
            raise ValueError(ALL_MISSING.format(name=name))
        known = numbers[~missing]
        fill = float(np.median(known)) if kind == "number" else float(known.mean() > 0.5)
        return ColumnRule(
            name,
            "number" if kind == "number" else "boolean",
            fill=fill,
            indicator=bool(missing.any()),
            missing=int(missing.sum()),
        )

    def transform(self, X: Any) -> np.ndarray:
        """Apply the rules to a table; columns it has besides are ignored."""
        check_is_fitted(self)
        table = as_arrow(X)
        out = np.zeros((table.num_rows, self.n_features_out_), dtype=self.dtype_)
        self.transform_into(table, out)
        return out

    def transform_into(self, batch: Any, out: np.ndarray) -> None:
        """Apply the rules to a record batch, writing to an array of zeros."""
        position = 0
        for rule in self.rules_:
            if rule.kind == "left out":
                continue
            if rule.name not in batch.schema.names:
                raise ValueError(COLUMN_ABSENT.format(name=rule.name))
            values = batch.column(rule.name)
            width = len(rule.features)
            target = out[:, position : position + width]
            if rule.kind == "category":
                _write_category(rule, _as_text(values), target)
            else:
                _write_number(rule, _as_numbers(rule.name, values), target)
            position += width

    @property
    def n_features_out_(self) -> int:
        """Number of columns that :meth:`transform` makes."""
        return sum(len(rule.features) for rule in self.rules_)

    @property
    def columns_(self) -> list[str]:
        """Columns that a table must have."""
        return [rule.name for rule in self.rules_ if rule.kind != "left out"]

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns that :meth:`transform` makes."""
        check_is_fitted(self)
        return np.array([f for rule in self.rules_ for f in rule.features], dtype=object)


def as_arrow(table: Any) -> Any:
    """Take a pyarrow table, or a pandas or polars frame, as a pyarrow table."""
    import pyarrow as pa

    if isinstance(table, pa.Table):
        return table
    if isinstance(table, pa.RecordBatch):
        return pa.Table.from_batches([table])
    if hasattr(table, "to_arrow"):
        return table.to_arrow()
    return pa.Table.from_pandas(table, preserve_index=False)


def column_kind(name: str, kind: Any) -> str:
    """Say whether a type holds numbers, booleans or categories, or refuse it by name."""
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
        raise ValueError(DATES.format(name=name))
    raise ValueError(NOT_A_VALUE.format(name=name, kind=str(kind)))


def _varies(values: Any) -> bool:
    import pyarrow.compute as pc

    return len(pc.unique(values)) > 1


def _category_rule(name: str, values: Any) -> ColumnRule:
    import pyarrow.compute as pc

    missing = values.null_count
    known = len(values) - missing
    if known == 0:
        raise ValueError(ALL_MISSING.format(name=name))
    if (pc.sum(pc.match_substring_regex(values, DATE_LIKE)).as_py() or 0) > 0.8 * known:
        raise ValueError(DATES.format(name=name))
    counts = {
        item["values"]: item["counts"]
        for item in pc.value_counts(values).to_pylist()
        if item["values"] is not None
    }
    least = max(RARE_ROWS, RARE_SHARE * len(values))
    ranked = sorted(counts, key=lambda level: (-counts[level], level))
    levels = [level for level in ranked if counts[level] >= least][:MAX_LEVELS]
    grouped = len(ranked) - len(levels)
    if not levels:
        return ColumnRule(name, "left out", missing=missing)
    return ColumnRule(
        name,
        "category",
        indicator=missing > 0,
        levels=tuple(levels),
        other=grouped > 0,
        missing=missing,
        grouped=grouped,
    )


def _write_category(rule: ColumnRule, values: Any, out: np.ndarray) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    found = pc.index_in(values, value_set=pa.array(rule.levels, type=values.type))
    position = _plain(pc.fill_null(found, -1)).astype(np.intp)
    missing = _plain(pc.is_null(values)).astype(bool)
    n = len(rule.levels)
    if rule.other:
        position[(position < 0) & ~missing] = n
    if rule.indicator:
        position[missing] = n + rule.other
    rows = np.flatnonzero(position >= 0)
    out[rows, position[rows]] = 1.0


def _write_number(rule: ColumnRule, numbers: np.ndarray, out: np.ndarray) -> None:
    missing = np.isnan(numbers)
    if missing.any():
        numbers = np.where(missing, rule.fill, numbers)
    out[:, 0] = numbers
    if rule.indicator:
        out[:, 1] = missing


def _as_numbers(name: str, values: Any) -> np.ndarray:
    """Floats, NaN where missing."""
    import pyarrow as pa
    import pyarrow.types as types

    if types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if types.is_null(values.type):
        return np.full(len(values), np.nan)
    kind = column_kind(name, values.type)
    if kind == "category":
        raise ValueError(KIND_CHANGED.format(name=name, found="text", expected="numbers"))
    if types.is_boolean(values.type):
        values = values.cast(pa.int8())
    if not types.is_float32(values.type):
        values = values.cast(pa.float64(), safe=False)
    return _plain(values)


def _as_text(values: Any) -> Any:
    import pyarrow as pa

    if pa.types.is_floating(values.type):
        # 12.0 in one file is 12 in another.
        values = _whole_numbers(values)
    return values.cast(pa.large_string())


def _whole_numbers(values: Any) -> Any:
    import pyarrow as pa

    try:
        return values.cast(pa.int64())
    except pa.ArrowInvalid:
        return values


def _plain(values: Any) -> np.ndarray:
    """Return a numpy array; missing values become NaN."""
    if hasattr(values, "combine_chunks"):
        return np.asarray(values.to_numpy())
    return np.asarray(values.to_numpy(zero_copy_only=False))


def _is_narrow(kind: Any) -> bool:
    """Whether single precision holds every value of a type."""
    import pyarrow.types as types

    if types.is_dictionary(kind):
        kind = kind.value_type
    wide = types.is_integer(kind) and kind.bit_width > 16
    return not (types.is_float64(kind) or types.is_decimal(kind) or wide)


def _count(n: int, one: str, many: str | None = None) -> str:
    return f"{n} {one if n == 1 else many or one + 's'}"
