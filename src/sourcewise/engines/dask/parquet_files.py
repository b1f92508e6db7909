"""Parquet files at any address that fsspec knows, and what is wrong with them in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from sourcewise.engines.dask.messages import (
    FILE_CHANGED,
    NO_FILES,
    NO_PATH,
    NOT_READABLE,
    NOT_WITH_WORKERS,
)
from sourcewise.files import natural

SUFFIXES = (".parquet", ".pq", ".parq")
READ_BYTES = 1 << 16  # of a column at a time
BATCH_BYTES = 8 << 20  # of rows at a time
WHOLE_GROUP = 1 << 18  # rows: 2 MB a column
LEAST_BATCH, MOST_BATCH = 1024, 32_768  # rows


@dataclass(frozen=True)
class ParquetPart:
    """One file of a table."""

    address: str  # with the protocol, as a worker opens it
    # Columns and values that the folders' names hold (``vendor=north/part-0.parquet``).
    keys: tuple[tuple[str, str], ...] = ()
    # For the file system (keys, end points).
    options: dict[str, Any] = field(default_factory=dict, repr=False)
    identity: str = ""  # what the file was when it was first looked at: it must not change

    def __str__(self) -> str:
        """Name the file in a message."""
        return self.address.removeprefix("file://")

    def current_identity(self) -> str:
        """Say what the file is now: size, time, version, whatever its file system knows."""
        system, path = self._system()
        try:
            found: str = system.ukey(path)
        except FileNotFoundError:
            gone = FILE_CHANGED if self.identity else NOT_WITH_WORKERS
            raise ValueError(gone.format(path=self)) from None
        except Exception as error:  # whatever a file system raises
            raise ValueError(NOT_READABLE.format(path=self, why=_reason(error))) from error
        return found

    def schema(self) -> Any:
        """Columns and their types, those of the folders' names behind."""
        import pyarrow as pa

        with self._opened() as file:
            schema = file.schema_arrow
        for name, _ in self.keys:
            if name not in schema.names:
                schema = schema.append(pa.field(name, pa.string()))
        return schema

    def batches(self, columns: Sequence[str]) -> Iterator[Any]:
        """Yield record batches with these columns; the file must be as it was."""
        import pyarrow as pa

        inside = [name for name in columns if name not in dict(self.keys)]
        self._check_unchanged()
        with self._opened() as file:
            inside = [name for name in columns if name in file.schema_arrow.names]
            # Rows of a file all of whose columns are in its folders' names are counted by any.
            read = inside or file.schema_arrow.names[:1]
            batches = _batches(file, read)
            while True:
                try:
                    batch = next(batches, None)
                except (pa.ArrowException, OSError) as error:
                    self._check_unchanged()
                    raise ValueError(NOT_READABLE.format(path=self, why=_reason(error))) from error
                if batch is None:
                    break
                yield self._with_keys(batch, columns)
        # Arrow would keep the memory of what it has decoded.
        pa.default_memory_pool().release_unused()
        self._check_unchanged()

    def _with_keys(self, batch: Any, columns: Sequence[str]) -> Any:
        import pyarrow as pa

        keys = dict(self.keys)
        arrays = [
            batch.column(name)
            if name in batch.schema.names
            else pa.repeat(pa.scalar(keys[name]), batch.num_rows)
            for name in columns
        ]
        return pa.RecordBatch.from_arrays(arrays, names=list(columns))

    def _check_unchanged(self) -> None:
        if self.identity and self.current_identity() != self.identity:
            raise ValueError(FILE_CHANGED.format(path=self))

    def _system(self) -> tuple[Any, str]:
        from fsspec.core import url_to_fs

        system, path = url_to_fs(self.address, **self.options)
        return system, path

    def _opened(self) -> Any:
        import pyarrow as pa
        from pyarrow import parquet

        system, path = self._system()
        try:
            # A local file is read without the detour.
            local = "file" in _protocols(system)
            where = path if local else system.open(path, "rb")
            return parquet.ParquetFile(
                where, buffer_size=READ_BYTES, page_checksum_verification=True
            )
        except FileNotFoundError:
            raise ValueError(FILE_CHANGED.format(path=self)) from None
        except (pa.ArrowException, OSError) as error:
            raise ValueError(NOT_READABLE.format(path=self, why=_reason(error))) from error


def _batches(file: Any, columns: Sequence[str]) -> Iterator[Any]:
    """Yield the rows of a file, a few MB at a time.

    A row group is decoded whole, one column after the other, unless it is large: in pieces, pages
    of all columns are in memory at once, some 3 MB a column.
    """
    rows = min(max(BATCH_BYTES // (8 * len(columns)), LEAST_BATCH), MOST_BATCH)
    for number in range(file.num_row_groups):
        if file.metadata.row_group(number).num_rows <= WHOLE_GROUP:
            table = file.read_row_group(number, columns=columns, use_threads=False)
            yield from table.to_batches(rows)
        else:
            yield from file.iter_batches(
                rows, row_groups=[number], columns=columns, use_threads=False
            )


def find_files(path: str, options: dict[str, Any]) -> list[ParquetPart]:
    """Find the Parquet files of a folder and its subfolders, in the natural order of their names.

    Names that begin with a dot or an underscore are passed over, as everywhere in this format.
    """
    from fsspec.core import url_to_fs

    system, root = url_to_fs(path, **options)
    if not system.exists(root):
        raise ValueError(NO_PATH.format(path=path))
    if system.isfile(root):
        return [ParquetPart(system.unstrip_protocol(root), (), options)]
    found = []
    for name in system.find(root):
        steps = name[len(root) :].strip("/").split("/")
        if steps[-1].lower().endswith(SUFFIXES) and not any(s[0] in "._" for s in steps if s):
            found.append((natural(steps), steps, name))
    if not found:
        raise ValueError(NO_FILES.format(path=path))
    found.sort()
    return [
        ParquetPart(system.unstrip_protocol(name), _keys(steps[:-1]), options)
        for _, steps, name in found
    ]


def _keys(folders: Sequence[str]) -> tuple[tuple[str, str], ...]:
    pairs = [folder.partition("=") for folder in folders if "=" in folder]
    return tuple((unquote(name), unquote(value)) for name, _, value in pairs)


def _protocols(system: Any) -> Sequence[str]:
    return (system.protocol,) if isinstance(system.protocol, str) else system.protocol


def _reason(error: Exception) -> str:
    """First line of what a library says."""
    text = (getattr(error, "strerror", None) or str(error)).strip().splitlines()
    return text[0].rstrip(".") if text else type(error).__name__
