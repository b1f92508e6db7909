"""How a site reads its own rows: rules that were learnt from the reference and travel to it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sourcewise.core.data import SourceData
from sourcewise.core.feature_map import FeatureMap
from sourcewise.engines.flower.policy import SiteFile
from sourcewise.estimators.row_rules import RowRules
from sourcewise.tables.preprocessing import MAX_LEVELS, TablePreprocessor
from sourcewise.tables.reading import Table, open_table
from sourcewise.tables.rules import ColumnRule
from sourcewise.tables.values import column_kind

LABEL_KIND = "Column {column!r} holds {found}, and the reference has {expected} there."
NOT_NAMED = "Column {column!r} is not among those that the site file lets a server name."
NAMED_TWICE = "Column {column!r} is asked for twice."
TOO_MANY_LEVELS = "Column {column!r} is asked for with more than {most} categories."
LABEL_MISSING = "Column {column!r} has no label in {count} rows."
WORDS = {"boolean": "true and false", "number": "numbers", "category": "text"}


@dataclass(frozen=True)
class TableRules:
    """How columns of a table become numbers."""

    columns: tuple[ColumnRule, ...]
    dtype: str
    label: str  # column of the labels
    label_kind: str  # "boolean", "number" or "category"

    @property
    def preprocessor(self) -> TablePreprocessor:
        """The rules at work."""
        made = TablePreprocessor()
        made.rules_ = [replace(rule, levels=tuple(rule.levels)) for rule in self.columns]
        made.rarities_ = []
        made.dtype_ = "float32" if self.dtype == "float32" else "float64"
        return made


@dataclass(frozen=True)
class Setup:
    """What a site is told before anything is asked of its rows."""

    rules: RowRules
    table: TableRules | None  # for sites whose rows are tables

    @property
    def longest(self) -> float:
        """Squared length that no mapped row exceeds."""
        features = self.rules.features
        limits = np.broadcast_to(features.limit, self.rules.n_features)
        return float(np.sum(np.square(limits, dtype=np.float64)) + features.constant)

    def apply(self, X: np.ndarray, y: np.ndarray, name: str) -> SourceData:
        """Check, map and count a site's rows."""
        rules = self.rules
        if rules.classes is not None:
            rules = replace(rules, classes=np.asarray(rules.classes))
        return rules(X, y, np.zeros(len(y), dtype=np.intp), [name])


SETUP_CLASSES: dict[str, Any] = {
    cls.__name__: cls for cls in (Setup, RowRules, FeatureMap, TableRules, ColumnRule)
}


def learn_table(table: Any, label: str) -> TableRules:
    """Learn how columns are read from the reference's table, an Arrow one."""
    kind = column_kind(label, table.schema.field(label).type)
    made = TablePreprocessor().fit(table.drop_columns([label]))
    return TableRules(tuple(made.rules_), made.dtype_, label, kind)


def labels_of(table: Any, rules: TableRules) -> np.ndarray:
    """Labels of an Arrow table, of the kind that the reference has."""
    import pyarrow as pa
    import pyarrow.types as types

    column = table.column(rules.label)
    if types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    found = column_kind(rules.label, column.type)
    if found != rules.label_kind:
        raise ValueError(
            LABEL_KIND.format(
                column=rules.label, found=WORDS[found], expected=WORDS[rules.label_kind]
            )
        )
    missing = np.asarray(column.is_null(nan_is_null=True).to_numpy())
    if missing.any():
        raise ValueError(LABEL_MISSING.format(column=rules.label, count=int(missing.sum())))
    if found == "category":
        return np.array(column.cast(pa.large_string()).to_pylist())
    values = np.asarray(column.to_numpy())
    if found == "number" and np.isfinite(values).all() and (values == np.floor(values)).all():
        return values.astype(np.int64)
    return values


def read_site(file: SiteFile, setup: Setup) -> tuple[np.ndarray, np.ndarray]:
    """Read a site's table by the rules: features and labels of all rows."""
    import pyarrow as pa

    assert setup.table is not None
    check_names(file, setup.table)
    made = setup.table.preprocessor
    table: Table = open_table(file.data)
    wanted = [*made.columns_, setup.table.label]
    theirs = [file.columns.get(name, name) for name in wanted]
    table.check_columns(theirs)
    read = pa.Table.from_batches([batch for _, batch in table.batches(theirs)])
    read = read.rename_columns(wanted)
    return made.transform(read), labels_of(read, setup.table)


def check_names(file: SiteFile, rules: TableRules) -> None:
    """Refuse columns that the owner has not named, and rules that no reference leads to."""
    read = [rule.name for rule in rules.columns if rule.kind != "left out"]
    hidden = [] if file.features is None else [name for name in read if name not in file.features]
    if file.label is not None and rules.label != file.label:
        hidden.append(rules.label)
    if hidden:
        raise ValueError(NOT_NAMED.format(column=hidden[0]))
    theirs = [file.columns.get(name, name) for name in [*read, rules.label]]
    twice = [name for name, times in Counter(theirs).items() if times > 1]
    if twice:
        raise ValueError(NAMED_TWICE.format(column=twice[0]))
    long = [rule.name for rule in rules.columns if len(rule.levels) > MAX_LEVELS]
    if long:
        raise ValueError(TOO_MANY_LEVELS.format(column=long[0], most=MAX_LEVELS))
