"""Rows of some sources, gathered from the files that hold them, chunk by chunk."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sourcewise.core.data import IntArray, SourceData
from sourcewise.core.engine import RowRules
from sourcewise.engines.dask.layout import Chunk, Group
from sourcewise.engines.dask.messages import FILE_CHANGED
from sourcewise.engines.dask.reading import RowReader, source_codes


@dataclass(frozen=True)
class GroupTask:
    """All that a worker needs to know to work on a group.

    Attributes
    ----------
    fit : str
        Tells the rows of one fit from those of others on the same worker.
    group : Group
    source : str
        Column of the sources.
    as_text : bool
        Whether their names are texts whatever the column holds.
    reader : RowReader
    rules : RowRules
    """

    fit: str
    group: Group
    source: str
    as_text: bool
    reader: RowReader
    rules: RowRules


@dataclass
class Gathered:
    """Rows of a chunk that have been found so far."""

    chunk: Chunk
    tables: list[Any] = field(default_factory=list)
    codes: list[IntArray] = field(default_factory=list)
    files: list[Path] = field(default_factory=list)
    rows: int = 0

    @property
    def held(self) -> int:
        """Bytes in memory."""
        return sum(table.nbytes for table in self.tables)

    def add(self, table: Any, codes: IntArray) -> None:
        """Put rows behind those that are here."""
        self.tables.append(table)
        self.codes.append(codes)
        self.rows += len(codes)

    def put_aside(self, path: Path) -> None:
        """Write what is in memory to a file."""
        import pyarrow as pa

        if not self.tables:
            return
        table = below_each_other(self.tables)
        with pa.ipc.new_file(str(path), table.schema) as writer:
            writer.write_table(table)
        self.files.append(path)
        self.tables = []

    def finish(self, reader: RowReader, rules: RowRules) -> SourceData:
        """Turn all rows into numbers, by the rules."""
        import pyarrow as pa

        aside = [pa.ipc.open_file(str(path)).read_all() for path in self.files]
        table = below_each_other([*aside, *self.tables])
        return rules(
            reader.features(table),
            reader.labels(table),
            np.concatenate(self.codes),
            self.chunk.names,
            reader.weights(table),
        )


def rows_of_chunks(
    task: GroupTask, wanted: Sequence[int], budget: float, scratch: Path
) -> Iterator[tuple[int, SourceData]]:
    """Yield chunks of a group as soon as all of their rows have been found.

    Every file is read once. Where the rows of many chunks come in at once, as from files in order
    of time, what exceeds the budget in bytes is put aside in files.
    """
    waiting = {k: Gathered(task.group.chunks[k]) for k in wanted}
    place = {
        name: (k, code) for k in wanted for code, name in enumerate(task.group.chunks[k].names)
    }
    columns = [task.source, *(n for n in task.reader.columns if n != task.source)]
    aside = 0
    try:
        for part in task.group.parts:
            if not waiting:
                return
            for batch in part.batches(columns):
                names, codes = source_codes(batch.column(0), task.as_text)
                found = np.array([place.get(name, (-1, -1)) for name in names], dtype=np.intp)
                chunk_of_row, code_of_row = found.reshape(-1, 2)[codes].T
                for k in np.unique(chunk_of_row[chunk_of_row >= 0]).tolist():
                    rows = np.flatnonzero(chunk_of_row == k)
                    waiting[k].add(_taken(batch, rows), code_of_row[rows])
                    if waiting[k].rows == waiting[k].chunk.rows:
                        yield k, waiting.pop(k).finish(task.reader, task.rules)
                if sum(one.held for one in waiting.values()) > budget:
                    scratch.mkdir(exist_ok=True)
                    for k, one in waiting.items():
                        one.put_aside(scratch / f"{k}-{aside}.arrow")
                    aside += 1
        if waiting:  # there were more rows at the first look
            raise ValueError(FILE_CHANGED.format(path=task.group.parts[-1]))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def reference_rows(part: Any, source: str, columns: Sequence[str], name: Any) -> Any:
    """Return the rows of one source in a part, as a table."""
    import pyarrow as pa

    found = []
    wanted = list(dict.fromkeys([source, *columns]))
    for batch in part.batches(wanted):
        names, codes = source_codes(batch.column(0), isinstance(name, str))
        if name in names:
            found.append(_taken(batch, np.flatnonzero(codes == names.index(name))))
    return below_each_other(found) if found else pa.table({})


def first_rows(
    part: Any, source: str, columns: Sequence[str], names: Sequence[Any], most: int
) -> dict[Any, Any]:
    """Return the first rows of some sources in a part, as a table for each that has any."""
    wanted = set(names)
    as_text = isinstance(names[0], str)
    found: dict[Any, list[Any]] = {}
    rows_of: dict[Any, int] = {}
    for batch in part.batches(list(dict.fromkeys([source, *columns]))):
        there, codes = source_codes(batch.column(0), as_text)
        for code, name in enumerate(there):
            left = most - rows_of.get(name, 0)
            if name in wanted and left > 0:
                rows = np.flatnonzero(codes == code)[:left]
                found.setdefault(name, []).append(_taken(batch, rows))
                rows_of[name] = rows_of.get(name, 0) + len(rows)
    return {name: below_each_other(tables) for name, tables in found.items()}


def _taken(batch: Any, rows: IntArray) -> Any:
    import pyarrow as pa

    table = pa.Table.from_batches([batch])
    return table if len(rows) == table.num_rows else table.take(pa.array(rows))


def below_each_other(tables: Sequence[Any]) -> Any:
    """Concatenate tables whose columns are of the same kinds, if not of the same types."""
    import pyarrow as pa

    plain = [_decoded(table) for table in tables]
    return pa.concat_tables(plain, promote_options="permissive").combine_chunks()


def _decoded(table: Any) -> Any:
    import pyarrow as pa

    for position, column in enumerate(table.schema):
        if pa.types.is_dictionary(column.type):
            values = table.column(position).cast(column.type.value_type)
            table = table.set_column(position, column.name, values)
    return table
