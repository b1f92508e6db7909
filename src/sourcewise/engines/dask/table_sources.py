"""A table whose rows are on a cluster: its columns are read by rules learnt from the reference."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sourcewise import validation
from sourcewise.core.engine import OpenSources, RowRules, TrustedRows
from sourcewise.engines.dask.layout import SourceTable
from sourcewise.engines.dask.reading import PartFacts, as_labels, check_column
from sourcewise.engines.dask.rows import below_each_other, first_rows
from sourcewise.engines.dask.sources import DaskSources
from sourcewise.tables.bad_rows import check_mixed, within
from sourcewise.tables.labels import MOST_CLASSES, NOT_CLASSES, NOT_NUMBERS
from sourcewise.tables.preprocessing import TablePreprocessor
from sourcewise.tables.reading import open_table
from sourcewise.tables.request import ONLY_IN_MEMORY, TableRequest
from sourcewise.tables.training import (
    ALL_LEFT_OUT,
    LEAST_TRUSTED,
    NO_OTHER_SOURCE,
    REFERENCE_NAMED_TWICE,
    REFERENCE_TOO_SMALL,
    REFERENCE_UNSAID,
    SAME_COLUMN,
    SOURCE_ONE_ROW,
)
from sourcewise.tables.values import column_kind

BROUGHT = 64 << 20  # bytes of rows that are looked at here at a time
ADDRESS = re.compile(r"^([A-Za-z][\w+.-]+):/+")
ON_DISK = "file", "local"  # whose addresses name no host


@dataclass(frozen=True)
class TableReader:
    """Columns as a preprocessor reads them, and labels as classes or as numbers."""

    preprocessor: TablePreprocessor
    label: str
    classification: bool

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that are needed."""
        return (*self.preprocessor.columns_, self.label)

    def features(self, table: Any) -> Any:
        """Return features as numbers; too large ones as infinity, which is refused by name."""
        found = self.preprocessor.transform(table.select(self.preprocessor.columns_))
        numbers = validation.stored_values(found)
        if numbers.size and not within(np.array([numbers.min(), numbers.max()])).all():
            numbers[~within(numbers) & ~np.isnan(numbers)] = np.inf
        return found

    def labels(self, table: Any) -> Any:
        """Return labels as they are, or truth values as numbers."""
        values = as_labels(table.column(self.label))
        numbers = values.dtype == bool and not self.classification
        return values.astype(np.float64) if numbers else values

    def weights(self, table: Any) -> None:
        """Return nothing: every row of a source counts the same."""


class TableSources(DaskSources):
    """The sources of a table on a cluster, by what a user says about the table."""

    names_are_text = True
    reader: TableReader

    def __init__(self, request: TableRequest, client: Any, resume: Path | None = None):
        if request.label == request.source:
            raise ValueError(SAME_COLUMN.format(column=request.label))
        if request.reference_file is None and request.reference is None:
            raise ValueError(REFERENCE_UNSAID.format(column=request.source))
        for option, wanted in {
            "--text": request.text, "--skip-bad-rows": request.skip_bad_rows
        }.items():  # fmt: skip
            if wanted:
                raise ValueError(ONLY_IN_MEMORY.format(option=option))
        super().__init__(
            address_of(request.data),
            label=request.label,
            source=request.source,
            client=client,
            resume=resume,
        )
        self.request = request
        self.reference = request.reference or "reference"
        self.left_out: dict[str, int] = {}  # sources with too few rows to be looked at
        self.trusted_rows: TrustedRows | None = None  # as numbers
        self._untrusted: SourceTable | None = None

    def trusted(self, reference: Any) -> TrustedRows:
        """Bring the reference's rows here, and learn how the columns are read; once."""
        if self.trusted_rows is not None:
            return self.trusted_rows
        if self.request.reference_file is None:
            rows = super().trusted(reference)
        else:
            self._check_open()
            facts = self._look()
            self._table, self._position = SourceTable.of(facts), None
            if reference in self._table.names:
                raise ValueError(
                    REFERENCE_NAMED_TWICE.format(
                        column=self.source, path=self.path, reference=reference
                    )
                )
            self.reader, X = self._learn(self._read_reference(self._needed(facts)))
            rows = TrustedRows(X, self._own_labels)
        rows = replace(rows, y=self._own_labels)
        if len(rows.y) < LEAST_TRUSTED:
            raise ValueError(
                REFERENCE_TOO_SMALL.format(
                    reference=reference, rows=len(rows.y), least=LEAST_TRUSTED
                )
            )
        self.trusted_rows = rows
        return rows

    def open(self, rules: RowRules) -> OpenSources:
        """Have all other rows read, checked and mapped on the workers; the reference is first."""
        if self._untrusted is None:
            self._untrusted = self._without_small(self._others())
        self._table, self._position = self._untrusted, None
        names = tuple(self.reader.preprocessor.get_feature_names_out())
        opened = super().open(replace(rules, columns=names))  # type: ignore[type-var]
        return replace(opened, position=0)

    @property
    def untrusted(self) -> SourceTable:
        """All sources but the reference; there when they have been opened."""
        assert self._untrusted is not None
        return self._untrusted

    def rows_of(self, which: Sequence[int], most: int) -> Iterator[Any]:
        """Bring the first rows of some untrusted sources here; yields a table for each in turn.

        So many sources are read at a time as fit into a little memory.
        """
        table, width = self.untrusted, 8 * (len(self.reader.columns) + 1)
        rows = np.minimum(table.counts[list(which)], most)
        share = (np.cumsum(rows) * width // BROUGHT).astype(np.intp)
        for number in np.unique(share):
            some = [which[k] for k in np.flatnonzero(share == number).tolist()]
            names = [table.names[i] for i in some]
            wanted = np.zeros(len(table.names), dtype=bool)
            wanted[some] = True
            parts = [
                one.part
                for one, held in zip(self._look(), table.holders, strict=True)
                if wanted[held].any()
            ]
            columns = self.reader.columns
            jobs = [(None, (part, self.source, columns, names, most)) for part in parts]
            found = dict(self.runner.each(first_rows, jobs))
            for name in names:
                pieces = [found[k][name] for k in range(len(parts)) if name in found[k]]
                yield below_each_other(pieces).slice(0, most)

    def labels_of(self, table: Any) -> np.ndarray:
        """Labels of some rows, of the type of the trusted ones."""
        values = self.reader.labels(table)
        if values.dtype == object:
            return np.array(values.tolist())
        return np.asarray(values.astype(self._own_labels.dtype))

    def _others(self) -> SourceTable:
        if self._position is None:
            return self._table
        return self._table.without(self._position)

    def _without_small(self, table: SourceTable) -> SourceTable:
        """Leave out sources of fewer rows than were asked for; a single row is refused."""
        least = self.request.min_rows
        if not table.names:
            raise ValueError(NO_OTHER_SOURCE.format(column=self.source, reference=self.reference))
        single = np.flatnonzero(table.counts == 1)
        if least < 2 and len(single):
            more = f" (the same for {len(single) - 1} more)" if len(single) > 1 else ""
            raise ValueError(SOURCE_ONE_ROW.format(source=table.names[single[0]], more=more))
        kept = table.counts >= least
        if not kept.any():
            raise ValueError(ALL_LEFT_OUT.format(rows=least))
        for position in np.flatnonzero(~kept):
            self.left_out[table.names[position]] = int(table.counts[position])
        return table.only(kept)

    def _read_reference(self, columns: Sequence[str]) -> Any:
        import pyarrow as pa

        opened = open_table(self.request.reference_file, as_text=self.request.categories)
        opened.check_columns(list(columns))
        return pa.Table.from_batches([batch for _, batch in opened.batches(list(columns))])

    def _needed(self, facts: list[PartFacts]) -> tuple[str, ...]:
        known, asked = facts[0].columns, self.request
        for name in (self.label, self.source, *asked.features, *asked.drop, *asked.categories):
            check_column(self.path, known, name)
        taken = {self.label, self.source, *asked.drop}
        names = tuple(name for name in asked.features or known if name not in taken)
        self._names = names
        return (*names, self.label)

    def _learn(self, rows: Any) -> tuple[TableReader, Any]:
        for name in (*self._names, self.label):
            check_mixed(name, rows.column(name))
        self._own_labels, classes = own_labels(rows.column(self.label), self.request)
        self.classification = classes
        preprocessor = TablePreprocessor(
            categories=list(self.request.categories), dates=self.request.dates
        )
        preprocessor.fit(rows.select(list(self._names)))
        reader = TableReader(preprocessor, self.label, classes)
        return reader, reader.features(rows)

    def _width(self, rules: RowRules) -> int:
        return int(self.reader.preprocessor.n_features_out_) + 1


def address_of(path: Any) -> str:
    """Return an address that was taken for a path, which has one slash where that has more."""
    return ADDRESS.sub(lambda m: f"{m[1]}://{'/' * (m[1] in ON_DISK)}", str(path))


def own_labels(values: Any, request: TableRequest) -> tuple[np.ndarray, bool]:
    """Labels of the reference as an array, and whether they are classes: it is for it to say."""
    name, kind = request.label, column_kind(request.label, values.type)
    y = as_labels(values)
    if kind == "category":
        if request.task == "regression":
            raise ValueError(NOT_NUMBERS.format(column=name, kind="text"))
        return (y if values.null_count else np.array(y.tolist())), True
    if kind == "boolean" and not values.null_count:
        return (y.astype(np.float64), False) if request.task == "regression" else (y, True)
    y = y.astype(np.float64) if values.null_count else y
    known = y[np.isfinite(y)]
    whole = bool((known == np.floor(known)).all())
    if request.task == "classification" and not whole:
        raise ValueError(NOT_CLASSES.format(column=name))
    classes = request.task == "classification" or (
        request.task == "auto" and whole and len(np.unique(known)) <= MOST_CLASSES
    )
    if classes and len(known) == len(y):
        return y.astype(np.int64), True
    return y.astype(np.float64), classes
