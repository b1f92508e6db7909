"""What is read of every part of a table, and what becomes of its columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from sourcewise.columns import meant
from sourcewise.core.data import FloatArray, IntArray
from sourcewise.engines.dask.messages import (
    COLUMN_MISSING,
    NAMES_DIFFER,
    OTHER_COLUMNS,
    SOURCE_MISSING,
)

INDEX = re.compile(r"__index_level_\d+__")  # of a pandas frame, which is no column of its own


class Part(Protocol):
    """A piece of a table that is read at a time."""

    @property
    def identity(self) -> str:
        """What the piece was when it was first looked at."""

    def current_identity(self) -> str:
        """Say what it is now."""

    def schema(self) -> Any:
        """Columns and their types."""

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield record batches with these columns."""


@dataclass(frozen=True)
class FramePart:
    """One partition of a Dask DataFrame, computed where it is needed."""

    frame: Any  # dask.dataframe.DataFrame of this partition alone, not computed yet
    number: int
    identity: str = ""  # partitions are taken to be the same whenever computed

    def __str__(self) -> str:
        """Name the partition in a message."""
        return f"partition {self.number} of the frame"

    def current_identity(self) -> str:
        """Nothing is known of how the partition came about."""
        return ""

    def schema(self) -> Any:
        """Columns and their types."""
        return self._table(list(self.frame.columns)).schema

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield record batches with these columns."""
        yield from self._table(list(columns)).to_batches()

    def _table(self, columns: list[str]) -> Any:
        import pyarrow as pa
        from distributed import worker_client

        with worker_client(timeout=60) as client:
            computed = client.compute(self.frame[columns]).result()
        return pa.Table.from_pandas(computed, preserve_index=False).replace_schema_metadata()


class RowReader(Protocol):
    """How the columns of a table become features and labels."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that are needed, those of labels and row weights among them."""

    def features(self, table: Any) -> FloatArray:
        """Return features as numbers, (n_rows, n_features)."""

    def labels(self, table: Any) -> Any:
        """Return labels as they are, (n_rows,)."""

    def weights(self, table: Any) -> FloatArray | None:
        """Return row weights, if there are any."""


@dataclass(frozen=True)
class ColumnReader:
    """Columns of numbers as they are."""

    names: tuple[str, ...]  # of the features
    label: str
    sample_weight: str | None
    dtype: str = "float64"  # of the features: "float32" if all of the reference's are

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that are needed."""
        weight = () if self.sample_weight is None else (self.sample_weight,)
        return (*self.names, self.label, *weight)

    def features(self, table: Any) -> FloatArray:
        """Return features as numbers, missing ones as NaN."""
        X = np.empty((table.num_rows, len(self.names)), dtype=self.dtype)
        for position, name in enumerate(self.names):
            X[:, position] = as_numbers(table.column(name))
        return X

    def labels(self, table: Any) -> Any:
        """Return labels as they are."""
        return as_labels(table.column(self.label))

    def weights(self, table: Any) -> FloatArray | None:
        """Return row weights, if there are any."""
        return None if self.sample_weight is None else as_numbers(table.column(self.sample_weight))


def as_numbers(values: Any) -> FloatArray:
    """Floats; NaN where a value is missing."""
    import pyarrow as pa

    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if not pa.types.is_floating(values.type):
        values = values.cast(pa.float64(), safe=False)
    return np.asarray(values.to_numpy())


def as_labels(values: Any) -> Any:
    """Labels as an array: objects if they are text, None where one is missing."""
    import pyarrow as pa

    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if pa.types.is_decimal(values.type):
        values = values.cast(pa.float64())
    return np.asarray(values.to_numpy())


# -- the first look at every part ------------------------------------------------------------


@dataclass(frozen=True)
class PartFacts:
    """What a part holds."""

    part: Any  # with its identity
    columns: dict[str, str]  # name and kind of every column
    names: list[Any]  # of sources, in order of first appearance
    counts: IntArray  # rows of each of them


def look_at(parts: Sequence[Any], source: str, as_text: bool) -> list[PartFacts]:
    """Find out which sources some parts hold; runs on a worker."""
    return [_look_at(part, source, as_text) for part in parts]


def _look_at(part: Any, source: str, as_text: bool) -> PartFacts:
    identity = part.current_identity()
    schema = part.schema()
    columns = {f.name: kind_of(f.type) for f in schema if not INDEX.fullmatch(f.name)}
    if identity:
        part = replace(part, identity=identity)
    check_column(part, columns, source)
    table: dict[Any, int] = {}
    counts: list[int] = []
    before = 0
    for batch in part.batches([source]):
        names, codes = source_codes(batch.column(0), as_text)
        for position, name in enumerate(names):
            if name is None or name != name or str(name).strip() == "":
                row = before + int(np.flatnonzero(codes == position)[0]) + 1
                raise ValueError(SOURCE_MISSING.format(path=part, row=row, name=source))
            if table.setdefault(name, len(table)) == len(counts):
                counts.append(0)
            counts[table[name]] += int(np.count_nonzero(codes == position))
        before += batch.num_rows
    return PartFacts(part, columns, list(table), np.array(counts, dtype=np.intp))


def source_codes(values: Any, as_text: bool) -> tuple[list[Any], IntArray]:
    """Names in order of first appearance, None for missing ones, and each row's position."""
    import pyarrow as pa

    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    if as_text:
        values = values.cast(pa.large_string())
    encoded = values.dictionary_encode(null_encoding="encode")
    if isinstance(encoded, pa.ChunkedArray):
        encoded = encoded.combine_chunks()
    codes = encoded.indices.to_numpy(zero_copy_only=False).astype(np.intp)
    return encoded.dictionary.to_pylist(), codes


def kind_of(kind: Any) -> str:
    """Say in a word what a type holds; a file without a single value has no say in it."""
    import pyarrow.types as types

    if types.is_dictionary(kind):
        kind = kind.value_type
    if types.is_boolean(kind):
        return "truth values"
    if types.is_integer(kind) or types.is_floating(kind) or types.is_decimal(kind):
        return "numbers"
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return "text"
    if types.is_null(kind):
        return "nothing"
    return "dates or times" if types.is_temporal(kind) else str(kind)


def check_column(path: Any, columns: Sequence[str] | dict[str, str], name: str) -> None:
    """Say that a column is missing, and which one may have been meant."""
    if name in columns:
        return
    hint = meant(name, list(columns))
    raise ValueError(COLUMN_MISSING.format(path=path, name=name, hint=hint))


def check_same_columns(facts: Sequence[PartFacts], source: str) -> None:
    """All parts must have the columns of the first one."""
    first = facts[0]
    kinds = dict(first.columns)
    for other in facts[1:]:
        what = _difference(kinds, other.columns)
        if what is not None:
            raise ValueError(OTHER_COLUMNS.format(path=other.part, first=first.part, what=what))
        kinds.update({n: k for n, k in other.columns.items() if kinds[n] == "nothing"})
    kind = None
    for one in facts:
        for name in one.names[:1]:
            if kind not in (None, type(name)):
                raise ValueError(
                    NAMES_DIFFER.format(
                        path=one.part, name=source, found=type(name).__name__, expected=kind
                    )
                )
            kind = type(name)


def _difference(first: dict[str, str], other: dict[str, str]) -> str | None:
    for name in first:
        if name not in other:
            return f"no {name!r}"
    for name, kind in other.items():
        if name not in first:
            return f"also {name!r}"
        if kind != first[name] and "nothing" not in (kind, first[name]):
            return f"{name!r} holds {kind} instead of {first[name]}"
    return None
