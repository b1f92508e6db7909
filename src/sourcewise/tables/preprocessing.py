"""Raw columns to numbers, by rules learnt from the reference's rows alone.

Untrusted rows do not influence how columns are read: a vendor cannot move a median, add a
category or make a level common.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from sourcewise.tables.rules import IN_DAYS, ColumnRule
from sourcewise.tables.values import (
    ALL_MISSING,
    BUCKETS,
    DATES,
    as_arrow,
    as_numbers,
    as_text,
    column_kind,
    is_plain,
    looks_like_dates,
    measure_of,
    order_of,
    plain_block,
    rarity,
    text_features,
    words_of_buckets,
    write_category,
    write_number,
)

NO_FEATURES = (
    "No column is left to predict from; check --features and --drop, and that the reference's rows "
    "differ in some column."
)
COLUMN_ABSENT = "The table has no column {name!r}, which the model was fitted with."
NOT_TEXT = "Column {name!r} holds {kind}, which is no text; leave it out of --text."

MAX_LEVELS = 30
RARE_SHARE = 0.01
RARE_ROWS = 2
# Values of as many words on average look like free text.
WORDY = 3.0
# Plain columns that are looked at together.
BLOCK = 256


class TablePreprocessor(TransformerMixin, BaseEstimator):
    """Turns tables of raw columns into a matrix of numbers.

    Numbers stay as they are, true and false become 1 and 0, text becomes one column for each
    frequent category and one for all rare ones. Missing values are replaced by the reference's
    median (or its more frequent value), with a column that says so where the reference itself
    misses values.

    Free text becomes columns of hashed words and pairs of words, and the matrix sparse.

    Parameters
    ----------
    categories : list of str
        Columns to be taken as categories even if they hold numbers (post codes, say).
    text : list of str
        Columns of free text.
    dates : bool
        Turn dates into days since 1970-01-01 and times of the day into hours, instead of refusing
        them.
    numbers : list of str
        Columns of text that hold numbers.

    Attributes
    ----------
    rules_ : list of ColumnRule
        What is done to each column.
    rarities_ : list of arrays
        For each column of text: what its hashed words count, by how rare they are in the reference.
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

    def __init__(
        self,
        categories: Sequence[str] = (),
        text: Sequence[str] = (),
        dates: bool = False,
        numbers: Sequence[str] = (),
    ):
        self.categories = categories
        self.text = text
        self.dates = dates
        self.numbers = numbers

    def fit(self, X: Any, y: Any = None) -> TablePreprocessor:
        """Learn the rules from the reference's rows.

        Parameters
        ----------
        X : pyarrow table, or pandas or polars frame
        y : ignored
        """
        table = as_arrow(X)
        plain = self._plain_rules(table)
        rules = [
            plain.get(name) or self._rule(name, values)
            for name, values in zip(table.column_names, table.columns, strict=True)
        ]
        pairs = list(zip(rules, table.columns, strict=True))
        if not any(rule.width and _varies(values) for rule, values in pairs):
            raise ValueError(NO_FEATURES)
        narrow = all(_is_narrow(values.type) for rule, values in pairs if rule.kind != "left out")
        narrow &= not any(rule.kind == "date" or rule.name in self.numbers for rule in rules)
        self.rules_ = rules
        self.dtype_ = "float32" if narrow else "float64"
        texts = [
            as_text(table.column(rule.name), rule.name) for rule in rules if rule.kind == "text"
        ]
        self.rarities_ = [rarity(values) for values in texts]
        self._words = [words_of_buckets(values) for values in texts]
        return self

    def _rule(self, name: str, values: Any) -> ColumnRule:
        kind = self._kind(name, values.type)
        if kind == "text":
            return ColumnRule(name, "text", buckets=BUCKETS)
        if kind == "category":
            values = as_text(values, name)
            if looks_like_dates(values):
                if not self.dates:
                    raise ValueError(DATES.format(name=name))
                order = order_of(name, values)
                return self._number_rule(name, values, "date", order, IN_DAYS)
            return _category_rule(name, values)
        measure = measure_of(values.type) if kind == "date" else ""
        return self._number_rule(name, values, kind, "", measure)

    def _plain_rules(self, table: Any) -> dict[str, ColumnRule]:
        """Rules of columns of numbers without gaps, many at once: wide tables are made of them."""
        if self.text:
            return {}
        special = set(self.categories)
        found: dict[str, ColumnRule] = {}
        pairs = zip(table.column_names, table.columns, strict=True)
        for block in batched(((n, v) for n, v in pairs if n not in special and is_plain(v)), BLOCK):
            numbers = plain_block([values for _, values in block])
            whole = ~np.isnan(numbers).any(axis=0)
            middles = np.median(numbers, axis=0).tolist() if len(numbers) else []
            for (name, _), good, fill in zip(block, whole.tolist(), middles, strict=False):
                if good:
                    found[name] = ColumnRule(name, "number", fill=fill)
        return found

    def _kind(self, name: str, kind: Any) -> str:
        if name in self.text:
            if column_kind(name, kind, dates=True) not in ("category", "number"):
                raise ValueError(NOT_TEXT.format(name=name, kind=str(kind)))
            return "text"
        if name in self.categories:
            return "category"
        found = column_kind(name, kind, dates=self.dates)
        return "number" if found == "category" and name in self.numbers else found

    def _number_rule(
        self, name: str, values: Any, kind: Any, order: str, measure: str
    ) -> ColumnRule:
        rule = ColumnRule(name, kind, order=order, measure=measure)
        numbers = as_numbers(rule, values)
        missing = np.isnan(numbers)
        if missing.all():
            raise ValueError(ALL_MISSING.format(name=name))
        known = numbers[~missing]
        fill = float(known.mean() > 0.5) if kind == "boolean" else float(np.median(known))
        unit = float(known.std()) if self.text and np.isfinite(known).all() else 1.0
        return ColumnRule(
            name,
            kind,
            fill=fill,
            indicator=bool(missing.any()),
            missing=int(missing.sum()),
            order=order,
            measure=measure,
            unit=unit or 1.0,
        )

    def transform(self, X: Any) -> Any:
        """Apply the rules to a table; columns it has besides are ignored.

        Returns
        -------
        array, or csr matrix where there is a column of text
        """
        check_is_fitted(self)
        table = as_arrow(X)
        if self.is_sparse_:
            return self._transform_sparse(table)
        out = np.zeros((table.num_rows, self.n_features_out_), dtype=self.dtype_)
        self.transform_into(table, out)
        return out

    def transform_into(self, batch: Any, out: np.ndarray) -> None:
        """Apply the rules to a record batch, writing to an array of zeros.

        Columns of text have no place in it.
        """
        position = 0
        there = dict(zip(batch.schema.names, batch.columns, strict=True))
        rules = [rule for rule in self.rules_ if rule.kind not in ("left out", "text")]
        for rule in rules:
            if rule.name not in there:
                raise ValueError(COLUMN_ABSENT.format(name=rule.name))
        for block in batched(rules, BLOCK):
            if all(_as_it_is(rule) and is_plain(there[rule.name]) for rule in block):
                numbers = plain_block([there[rule.name] for rule in block])
                fill = np.array([rule.fill for rule in block])
                target = out[:, position : position + len(block)]
                target[:] = np.where(np.isnan(numbers), fill, numbers)
                position += len(block)
                continue
            position = self._one_by_one(block, there, out, position)

    def _one_by_one(
        self, rules: Sequence[ColumnRule], columns: dict[str, Any], out: np.ndarray, position: int
    ) -> int:
        for rule in rules:
            values = columns[rule.name]
            target = out[:, position : position + rule.width]
            if rule.kind == "category":
                write_category(rule, as_text(values, rule.name), target)
            else:
                write_number(rule, as_numbers(rule, values), target)
            position += rule.width
        return position

    def _transform_sparse(self, table: Any) -> Any:
        """Put numbers first, and behind them the words of each text."""
        width = sum(rule.width for rule in self.rules_ if rule.kind != "text")
        numbers = np.zeros((table.num_rows, width), dtype=self.dtype_)
        self.transform_into(table, numbers)
        blocks = [scipy.sparse.csr_array(numbers)]
        texts = [rule.name for rule in self.rules_ if rule.kind == "text"]
        for name, rarities in zip(texts, self.rarities_, strict=True):
            if name not in table.schema.names:
                raise ValueError(COLUMN_ABSENT.format(name=name))
            blocks.append(text_features(as_text(table.column(name), name), rarities, self.dtype_))
        return scipy.sparse.hstack(blocks, format="csr")

    @property
    def is_sparse_(self) -> bool:
        """Whether :meth:`transform` makes sparse rows."""
        return any(rule.kind == "text" for rule in self.rules_)

    @property
    def n_features_out_(self) -> int:
        """Number of columns that :meth:`transform` makes."""
        return sum(rule.width for rule in self.rules_)

    @property
    def columns_(self) -> list[str]:
        """Columns that a table must have."""
        return [rule.name for rule in self.rules_ if rule.kind != "left out"]

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the columns that :meth:`transform` makes: of texts, those that it has seen."""
        check_is_fitted(self)
        names = [f for rule in self.rules_ if rule.kind != "text" for f in rule.features]
        texts = [rule for rule in self.rules_ if rule.kind == "text"]
        for rule, words in zip(texts, getattr(self, "_words", [{}] * len(texts)), strict=True):
            found = rule.features
            for bucket, word in words.items():
                found[bucket] = f"{rule.name}: {word}"
            names += found
        return np.array(names, dtype=object)

    def __getstate__(self) -> dict[str, Any]:
        """Words of trusted rows stay out of files."""
        return {key: value for key, value in super().__getstate__().items() if key != "_words"}


def _as_it_is(rule: ColumnRule) -> bool:
    return rule.kind == "number" and not rule.indicator and rule.unit == 1.0


def _varies(values: Any) -> bool:
    import pyarrow.compute as pc

    return len(pc.unique(values)) > 1


def _category_rule(name: str, values: Any) -> ColumnRule:
    import pyarrow.compute as pc

    missing = values.null_count
    known = len(values) - missing
    if known == 0:
        raise ValueError(ALL_MISSING.format(name=name))
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
        words = pc.mean(
            pc.add(pc.count_substring_regex(pc.utf8_trim_whitespace(values), r"\s+"), 1)
        )
        return ColumnRule(name, "left out", missing=missing, wordy=words.as_py() >= WORDY)
    return ColumnRule(
        name,
        "category",
        indicator=missing > 0,
        levels=tuple(levels),
        other=grouped > 0,
        missing=missing,
        grouped=grouped,
    )


def _is_narrow(kind: Any) -> bool:
    """Whether single precision holds every value of a type."""
    import pyarrow.types as types

    if types.is_dictionary(kind):
        kind = kind.value_type
    wide = types.is_integer(kind) and kind.bit_width > 16
    return not (types.is_float64(kind) or types.is_decimal(kind) or wide)


def batched(items: Iterable[Any], size: int) -> Iterator[tuple[Any, ...]]:
    """Yield the items in tuples of a size (Python 3.12 has this)."""
    rest = iter(items)
    while block := tuple(islice(rest, size)):
        yield block
