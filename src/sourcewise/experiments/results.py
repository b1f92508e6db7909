"""Results of a study: one SQLite file that survives being killed and notices being damaged.

Every row carries a checksum, and one line says how many rows there are and what the settings come
to: a bit that flips on the disk is noticed when the file is read or continued.
"""

from __future__ import annotations

import math
import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from sourcewise.progress import counter

BATCH = 100_000  # rows in memory at a time
# A checksum keeps nobody from making such a file: what is in it is bounded by these.
LONGEST = 200  # characters of a name
MOST_BYTES = 1_000_000  # of one value
RANGES = {"n": (0, 10**6), "p": (0, 1), "repeat": (0, 10**9), "error": (0, 1)}

IN_USE = "{path} is in use by another process; wait until it has ended, or give another file."
CANNOT = "{path} cannot be read or written: {error}."
NOT_RESULTS = "{path} is not a file of results; give one that 'sourcewise reproduce' has written."
NO_RESULTS = "There is no file of results {path}; 'sourcewise reproduce' writes one."
OLD = "{path} was written before results had checksums; run the study again, into another file."
DAMAGED = (
    "{path} is damaged: what is in it is not what was written; take a copy that is whole, or run "
    "the study again, into another file."
)
OTHER_SETTINGS = (
    "{path} holds results of other settings ({key}: {theirs!r} there, {ours!r} now); results are "
    "not mixed, so choose another file."
)

# One journal file beside the results while a batch is written, none in between.
PRAGMAS = ("PRAGMA journal_mode = DELETE", "PRAGMA synchronous = FULL")
SCHEMA = (
    "CREATE TABLE settings (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID",
    "CREATE TABLE seal (rows INTEGER NOT NULL, settings INTEGER NOT NULL)",
    "INSERT INTO seal VALUES (0, 0)",
    """CREATE TABLE results (
    study TEXT NOT NULL,
    target TEXT NOT NULL,
    corruption TEXT NOT NULL,
    n INTEGER NOT NULL,
    p REAL NOT NULL,
    repeat INTEGER NOT NULL,
    method TEXT NOT NULL,
    error REAL NOT NULL,
    trade_off REAL,
    C REAL,
    cpu_seconds REAL NOT NULL,
    seed INTEGER NOT NULL,
    checksum INTEGER NOT NULL,
    PRIMARY KEY (study, target, corruption, n, p, repeat, method)
) WITHOUT ROWID""",
)


class Row(NamedTuple):
    """One method's outcome in one run."""

    study: str  # "products", "all-products" or "animals"
    target: str  # product or attribute to be predicted
    corruption: str  # name of the corruption; "non-books" in "products", "none" in "all-products"
    n: int  # how many sources are corrupted (or non-books); 0 in "all-products"
    p: float  # share of a corrupted source's rows that are; 1 in the products studies
    repeat: int
    method: str  # one of `names.METHODS`
    error: float  # share of the test rows that are misclassified
    trade_off: float  # lambda chosen; NaN for a method without
    C: float  # regularisation chosen; NaN for a method that does not choose
    # Processor time of the method in this run; work shared by several runs is shared out.
    cpu_seconds: float
    seed: int  # seed of the repeat


KEY = Row._fields[:7]

COLUMNS = get_type_hints(Row)


@contextmanager
def reading(path: Path) -> Iterator[tuple[dict[str, str], Iterator[list[tuple[Any, ...]]]]]:
    """Give the settings and the rows, batch by batch, in the order of the key.

    The paper's grid has eleven million rows: no list of all. NaN comes as None.
    """
    if not path.is_file():
        raise ValueError(NO_RESULTS.format(path=path))
    with _explaining(path):
        connection = _connect(path)
        try:
            connection.execute("BEGIN")  # all that is read is of one moment
            _check_tables(path, connection, new_is_fine=False)
            yield _settings(path, connection), _batches(path, connection)
        finally:
            connection.close()


class ResultsFile(AbstractContextManager["ResultsFile"]):
    """An open file of results, for the one process that writes to it.

    Rows appear in whole batches or not at all, whatever happens to the process or the machine. The
    file is created if missing; one that was written under other settings is refused.
    """

    def __init__(self, path: Path, settings: Mapping[str, str]):
        self.path = path
        is_new = not path.exists()
        with _explaining(path):
            self._connection = _connect(path, isolation_level=None)
            try:
                self._open(dict(settings))
            except BaseException:
                self.close()
                if is_new and path.exists() and not path.stat().st_size:
                    path.unlink()  # a full disk leaves no empty file behind
                raise

    def _open(self, settings: dict[str, str]) -> None:
        for pragma in PRAGMAS:
            self._connection.execute(pragma)
        with self._transaction():
            if _check_tables(self.path, self._connection, new_is_fine=True):
                for statement in SCHEMA:
                    self._connection.execute(statement)
                known = {}
            else:
                known = _settings(self.path, self._connection)
            for key in sorted({*known} & {*settings}):
                if known[key] != settings[key]:
                    raise ValueError(
                        OTHER_SETTINGS.format(
                            path=self.path, key=key, theirs=known[key], ours=settings[key]
                        )
                    )
            # A later part of a study may need data that an earlier one did not read.
            added = [item for item in settings.items() if item[0] not in known]
            self._connection.executemany("INSERT INTO settings VALUES (?, ?)", added)
            seal = _checksum(sorted((known | settings).items()))
            self._connection.execute("UPDATE seal SET settings = ?", (seal,))

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """Execute all statements inside, or none of them."""
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def __exit__(self, *_: Any) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def add(self, rows: Iterable[Row]) -> None:
        """Write rows, all or none; those already there stay as they are."""
        marks = ", ".join("?" * (len(COLUMNS) + 1))
        statement = f"INSERT INTO results VALUES ({marks}) ON CONFLICT DO NOTHING"
        with self._transaction():
            added = 0
            for row in map(_as_stored, rows):
                added += self._connection.execute(statement, (*row, _checksum(row))).rowcount
            self._connection.execute("UPDATE seal SET rows = rows + ?", (added,))

    def keys(self) -> set[tuple[Any, ...]]:
        """Keys of all rows there are: study, target, corruption, n, p, repeat, method."""
        with _explaining(self.path):
            batches = _batches(self.path, self._connection)
            return {row[: len(KEY)] for batch in batches for row in batch}


def _connect(path: Path, **how: Any) -> sqlite3.Connection:
    """Open a file so that what its own definitions ask for stays small and harmless."""
    connection: sqlite3.Connection = sqlite3.connect(path, timeout=60.0, **how)
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, MOST_BYTES)
    connection.execute("PRAGMA trusted_schema = OFF")
    return connection


def _as_stored(row: Row) -> tuple[Any, ...]:
    """Turn values into what SQLite will give back; NaN is NULL."""
    return tuple(
        None if value is None or value != value else kind(value)
        for value, kind in zip(row, COLUMNS.values(), strict=True)
    )


def _checksum(values: Any) -> int:
    return zlib.crc32(repr(values).encode())


def _check_tables(path: Path, connection: sqlite3.Connection, *, new_is_fine: bool) -> bool:
    """Refuse a file of something else; returns whether there is nothing in it."""
    query = "SELECT name FROM sqlite_master WHERE type = 'table'"
    tables = {name for (name,) in connection.execute(query)}
    if not tables and new_is_fine:
        return True
    if not {"settings", "results"} <= tables:
        raise ValueError(NOT_RESULTS.format(path=path))
    if "seal" not in tables:
        # Another program's tables of these names have no such columns.
        connection.execute(f"SELECT {', '.join(COLUMNS)} FROM results LIMIT 1")
        raise ValueError(OLD.format(path=path))
    return False


def _settings(path: Path, connection: sqlite3.Connection) -> dict[str, str]:
    settings = dict(connection.execute("SELECT key, value FROM settings"))
    right = all(isinstance(text, str) for item in settings.items() for text in item)
    if not right or connection.execute("SELECT settings FROM seal").fetchall() != [
        (_checksum(sorted(settings.items())),)
    ]:
        raise ValueError(DAMAGED.format(path=path))
    return settings


def _batches(path: Path, connection: sqlite3.Connection) -> Iterator[list[tuple[Any, ...]]]:
    seal = connection.execute("SELECT rows FROM seal").fetchall()
    total = seal[0][0] if len(seal) == 1 else None
    if not isinstance(total, int):
        raise ValueError(DAMAGED.format(path=path))
    fields = ", ".join([*COLUMNS, "checksum"])
    cursor = connection.execute(f"SELECT {fields} FROM results ORDER BY {', '.join(KEY)}")
    more, found = counter("results", total), 0
    while batch := cursor.fetchmany(BATCH):
        rows = [row[:-1] for row in batch]
        whole = all(_checksum(row) == told[-1] for row, told in zip(rows, batch, strict=True))
        if not whole or not _can_be(rows):
            raise ValueError(DAMAGED.format(path=path))
        found += len(rows)
        more(len(rows))
        yield rows
    if found != total:
        raise ValueError(DAMAGED.format(path=path))


def _can_be(rows: list[tuple[Any, ...]]) -> bool:
    """Whether values are of the types, lengths and sizes that we write."""
    for (name, kind), values in zip(COLUMNS.items(), zip(*rows, strict=True), strict=True):
        optional = {type(None)} if name in ("trade_off", "C") else set()
        if not set(map(type, values)) <= {kind} | optional:
            return False
        if kind is str and max(map(len, values)) > LONGEST:
            return False
        low, high = RANGES.get(name, (-math.inf, math.inf))
        if name in RANGES and not (low <= min(values) and max(values) <= high):
            return False
    return True


@contextmanager
def _explaining(path: Path) -> Iterator[None]:
    try:
        yield
    except (sqlite3.DatabaseError, UnicodeDecodeError) as error:  # even its messages quote the file
        raise ValueError(refusal(path, error)) from error


def refusal(path: Path, error: Exception) -> str:
    """Say why a file cannot be used: a good one that is locked must not be taken for a bad one."""
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return IN_USE.format(path=path)
    if name.startswith(("SQLITE_IOERR", "SQLITE_FULL", "SQLITE_READONLY", "SQLITE_CANTOPEN")):
        return CANNOT.format(path=path, error=error)
    if name.startswith("SQLITE_CORRUPT") or "decode" in str(error):
        return DAMAGED.format(path=path)
    return NOT_RESULTS.format(path=path)
