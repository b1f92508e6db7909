"""What a fit has found so far, in a folder: files that appear whole, each with its checksum.

A fit that was stopped runs again from the start, and takes every answer that it already has from
here, so that it ends with the same result. What was found out about a source is kept under a
fingerprint of the question and one of the source's name and rows: it serves whenever the same is
asked again, whatever other sources have come or gone. Sums over all sources serve the same sources
only, and are removed when the fit is done. A file that is damaged, or not ours, is passed over:
what it held is found once more.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sourcewise import __version__
from sourcewise.core.data import FloatArray, IntArray
from sourcewise.core.discrepancy.findings import Findings, concat_findings, select_findings
from sourcewise.engines.dask.messages import NOT_A_FOLDER
from sourcewise.files import write_atomically

ANSWERS, SUMS = "answers", "sums"
ENDING = ".found"
FINGERPRINT = "fingerprint"
CHECKSUM = 16  # bytes before the table, which is laid out as Parquet
# What comes of a table that is whole but not laid out as ours.
NOT_OURS = (AttributeError, KeyError, StopIteration, TypeError, ValueError)


class Journal:
    """The folder of a fit, or none."""

    def __init__(self, folder: Path | None):
        self.folder = folder
        self.prints: Any = None
        self.data = ""
        if folder is not None:
            if folder.exists() and not folder.is_dir():
                raise ValueError(NOT_A_FOLDER.format(path=folder))
            (folder / ANSWERS).mkdir(parents=True, exist_ok=True)
            (folder / SUMS).mkdir(exist_ok=True)

    @property
    def active(self) -> bool:
        """Whether anything is written."""
        return self.folder is not None

    def know(self, prints: Any) -> None:
        """Take the sources' fingerprints, in the engine's order."""
        self.prints = prints
        self.data = digest(prints)

    def digest(self, value: Any) -> str:
        """Fingerprint of a message, if anybody needs it."""
        return digest(value) if self.active else ""

    def answers(self, question: Any) -> Answers:
        """Return what is known of the answers to a question."""
        if self.folder is None:
            return Answers(None, self.prints)
        return Answers(self.folder / ANSWERS / digest((__version__, question)), self.prints)

    def sums(self, *asked: Any) -> Sums:
        """Return what is known of sums over all sources."""
        if self.folder is None:
            return Sums(None)
        return Sums(self.folder / SUMS / f"{digest((self.data, *asked))}{ENDING}")

    def finished(self) -> None:
        """Remove what serves this fit only."""
        if self.folder is not None:
            for path in (self.folder / SUMS).glob(f"*{ENDING}"):
                path.unlink(missing_ok=True)


class Sums:
    """Sums that may have been found before."""

    def __init__(self, path: Path | None):
        self.path = path
        self.found: tuple[FloatArray, ...] | None = None
        table = None if path is None else _read(path)
        if table is not None:
            with suppress(*NOT_OURS):
                self.found = tuple(
                    np.array(row["values"], dtype=_number_type(row["dtype"])).reshape(row["shape"])
                    for row in table.to_pylist()
                )

    def write(self, found: tuple[FloatArray, ...]) -> None:
        """Keep what has been found."""
        import pyarrow as pa

        # Laid out as it will be read again: sums of other layouts may differ in their last digit.
        self.found = found = tuple(np.ascontiguousarray(array) for array in found)
        if self.path is None:
            return
        columns = {
            "dtype": [array.dtype.str for array in found],
            "shape": [list(array.shape) for array in found],
            "values": [np.asarray(array, dtype=np.float64).ravel() for array in found],
        }
        _write(self.path, pa.table(columns))


class Answers:
    """Findings about sources, one row a source, in files of some sources each."""

    def __init__(self, folder: Path | None, prints: Any):
        self.folder, self.prints = folder, prints
        if folder is not None:
            folder.mkdir(exist_ok=True)

    def known(self, asked: IntArray) -> tuple[IntArray, Findings | None]:
        """Return positions of sources that have answered before, and findings about them."""
        nobody = np.array([], dtype=np.intp)
        if self.folder is None:
            return nobody, None
        wanted = {self.prints[k].tobytes(): int(k) for k in asked}
        positions, parts = [], []
        for path in sorted(self.folder.glob(f"*{ENDING}")):
            table = _read(path)
            if table is None:
                continue
            with suppress(*NOT_OURS):
                prints = table.column(FINGERPRINT).to_pylist()
                rows = [row for row, one in enumerate(prints) if one in wanted]
                if rows:
                    parts.append(select_findings(_findings(table), np.array(rows)))
                    positions += [wanted.pop(prints[row]) for row in rows]
        if not parts:
            return nobody, None
        return np.array(positions, dtype=np.intp), concat_findings(parts)

    def write(self, positions: IntArray, found: Findings) -> None:
        """Keep findings about some sources."""
        if self.folder is None:
            return
        import pyarrow as pa

        prints = [self.prints[k].tobytes() for k in positions]
        columns = {FINGERPRINT: pa.array(prints, pa.binary(16)), **_columns(found)}
        _write(self.folder / f"{uuid.uuid4().hex}{ENDING}", pa.table(columns))


def _columns(found: Findings) -> dict[str, Any]:
    """Lay findings out as columns of lists; the last axis of every array runs over sources."""
    import pyarrow as pa

    columns: dict[str, Any] = {}
    for name, array in found.items():
        rows = np.ascontiguousarray(np.moveaxis(array, -1, 0)).reshape(array.shape[-1], -1)
        shape = ",".join(map(str, array.shape[:-1]))
        kind = pa.list_(pa.from_numpy_dtype(array.dtype))
        columns[f"{name}:{shape}"] = pa.array(list(rows), kind)
    return columns


def _findings(table: Any) -> Findings:
    """Make findings of columns again."""
    found = {}
    for column in table.column_names:
        if column != FINGERPRINT:
            name, _, lengths = column.partition(":")
            shape = [int(n) for n in lengths.split(",") if n]
            rows = table.column(column).combine_chunks()
            flat = rows.flatten().to_numpy(zero_copy_only=False)
            moved = np.moveaxis(flat.reshape(len(rows), *shape), 0, -1)
            found[name] = np.ascontiguousarray(moved)
    return found


def _number_type(name: str) -> Any:
    kind = np.dtype(name)
    if kind.kind not in "fiub":
        raise ValueError(name)
    return kind


def _write(path: Path, table: Any) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    made = pa.BufferOutputStream()
    parquet.write_table(table, made)
    content = made.getvalue().to_pybytes()
    write_atomically(path, _checksum(content) + content)


def _read(path: Path) -> Any:
    """Return a table, or None where there is none that is as it was written."""
    import pyarrow as pa
    from pyarrow import parquet

    try:
        found = path.read_bytes()
        if found[:CHECKSUM] != _checksum(found[CHECKSUM:]):
            return None
        return parquet.read_table(pa.BufferReader(found[CHECKSUM:]))
    except (OSError, pa.ArrowException):
        return None


def _checksum(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=CHECKSUM).digest()


# -- fingerprints ----------------------------------------------------------------------------


def digest(value: Any) -> str:
    """Fingerprint of arrays, numbers, texts and objects made of them, the same in any process."""
    made = hashlib.blake2b(digest_size=16)
    _feed(made, value)
    return made.hexdigest()


def _feed(made: Any, value: Any) -> None:
    if isinstance(value, np.ndarray) and value.dtype != object:
        made.update(f"{value.dtype.str}{value.shape}".encode())
        made.update(np.ascontiguousarray(value).data)
    elif isinstance(value, np.ndarray | list | tuple):
        items: Sequence[Any] = value.tolist() if isinstance(value, np.ndarray) else value
        made.update(f"{len(items)} of {type(value).__name__}".encode())
        for item in items:
            _feed(made, item)
    elif isinstance(value, dict):
        made.update(f"{len(value)} by name".encode())
        for name, part in value.items():
            _feed(made, (name, part))
    elif is_dataclass(value) and not isinstance(value, type):
        made.update(type(value).__qualname__.encode())
        for field in fields(value):
            made.update(field.name.encode())
            _feed(made, getattr(value, field.name))
    elif hasattr(value, "__dict__") and not isinstance(value, type) and not callable(value):
        made.update(type(value).__qualname__.encode())
        for name, part in sorted(vars(value).items()):
            made.update(name.encode())
            _feed(made, part)
    else:
        made.update(f"{type(value).__name__} {_plain(value)};".encode())


def _plain(value: Any) -> str:
    return value.__qualname__ if hasattr(value, "__qualname__") else repr(value)
