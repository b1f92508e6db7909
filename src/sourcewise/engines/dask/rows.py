"""Rows of some sources, gathered from the files that hold them, chunk by chunk."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
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
    """All that a worker needs to know to work on a group."""

    fit: str  # tells the rows of one fit from those of others on the same worker
    group: Group
    source: str  # column of the sources
    as_text: bool  # whether their names are texts whatever the column holds
    reader: RowReader
    rules: RowRules


@dataclass
class Gathered:
    """Rows of some chunks that have been found so far, in memory or in files.

    Rows are taken out of a batch once, in the order of the chunks, and put aside in one file for
    all chunks: sources that are spread over files cost few operations, however many they are.
    """

    chunks: dict[int, Chunk]
    folder: Path
    tables: dict[int, list[Any]] = field(default_factory=dict)
    files: dict[int, list[tuple[Path, int]]] = field(default_factory=dict)
    rows: dict[int, int] = field(default_factory=dict)
    held: float = 0.0
    n_files: int = 0

    def add(self, batch: Any, chunks: IntArray, codes: IntArray) -> list[int]:
        """Take rows whose chunk is not negative; returns the chunks that are complete."""
        import pyarrow as pa

        order = np.argsort(chunks, kind="stable")[np.count_nonzero(chunks < 0) :]
        if not len(order):
            return []
        table = _decoded(_taken(batch, order)).append_column(CODE, pa.array(codes[order]))
        self.held += table.nbytes
        numbers, starts = np.unique(chunks[order], return_index=True)
        ends = [*starts[1:].tolist(), len(order)]
        complete = []
        for k, low, high in zip(numbers.tolist(), starts.tolist(), ends, strict=True):
            self.tables.setdefault(k, []).append(table.slice(low, high - low))
            self.rows[k] = self.rows.get(k, 0) + high - low
            if self.rows[k] == self.chunks[k].rows:
                complete.append(k)
        return complete

    def put_aside(self) -> None:
        """Write what is in memory to a file: a batch for every chunk."""
        import pyarrow as pa

        self.folder.mkdir(exist_ok=True)
        with ExitStack() as stack:
            writers: dict[Any, tuple[Any, Path]] = {}  # by schema: files of a table may differ
            written: Counter[Path] = Counter()
            for k in sorted(self.tables):
                table = below_each_other(self.tables.pop(k))  # in one piece, and so in one batch
                if table.schema not in writers:
                    path = self.folder / f"{self.n_files}.arrow"
                    self.n_files += 1
                    writer = stack.enter_context(pa.ipc.new_file(str(path), table.schema))
                    writers[table.schema] = writer, path
                writer, path = writers[table.schema]
                writer.write_table(table)
                self.files.setdefault(k, []).append((path, written[path]))
                written[path] += 1
        self.held = 0.0

    def pop(self, k: int) -> tuple[Any, IntArray]:
        """Return all rows of a chunk, and the position of each one's source."""
        import pyarrow as pa

        parts = []
        for path, number in self.files.pop(k, []):
            with pa.memory_map(str(path)) as file:
                batch = pa.ipc.open_file(file).get_batch(number)
                parts.append(pa.Table.from_batches([batch]))
        last = self.tables.pop(k, [])
        self.held -= sum(table.nbytes for table in last)
        table = below_each_other([*parts, *last])
        codes = table.column(CODE).to_numpy()
        return table.drop_columns([CODE]), codes.astype(np.intp)


CODE = "\0code"  # a name that no column of a file has


def rows_of_chunks(
    task: GroupTask, wanted: Sequence[int], budget: float, scratch: Path
) -> Iterator[tuple[int, SourceData]]:
    """Yield chunks of a group as soon as all of their rows have been found.

    Every file is read once. Where the rows of many chunks come in at once, as from files in order
    of time, what exceeds the budget in bytes is put aside in files.
    """
    chunks = {k: task.group.chunks[k] for k in wanted}
    place = {name: (k, code) for k in wanted for code, name in enumerate(chunks[k].names)}
    columns = [task.source, *(n for n in task.reader.columns if n != task.source)]
    gathered, missing = Gathered(chunks, scratch), set(wanted)
    try:
        for part in task.group.parts:
            if not missing:
                return
            late = []  # spread over files: many at once, and they need what this file holds
            for batch in part.batches(columns):
                names, codes = source_codes(batch.column(0), task.as_text)
                found = np.array([place.get(name, (-1, -1)) for name in names], dtype=np.intp)
                chunk_of_row, code_of_row = found.reshape(-1, 2)[codes].T
                for k in gathered.add(batch, chunk_of_row, code_of_row):
                    missing.remove(k)
                    if k in gathered.files:
                        late.append(k)
                    else:
                        yield k, _as_numbers(task, k, *gathered.pop(k))
                if gathered.held > budget:
                    gathered.put_aside()
            for k in late:
                yield k, _as_numbers(task, k, *gathered.pop(k))
        if missing:  # there were more rows at the first look
            raise ValueError(FILE_CHANGED.format(path=task.group.parts[-1]))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _as_numbers(task: GroupTask, k: int, table: Any, codes: IntArray) -> SourceData:
    reader = task.reader
    return task.rules(
        reader.features(table),
        reader.labels(table),
        codes,
        task.group.chunks[k].names,
        reader.weights(table),
    )


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
    as_they_are = np.array_equal(rows, np.arange(table.num_rows))
    return table if as_they_are else table.take(pa.array(rows))


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
