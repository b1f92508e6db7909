"""Results of an experiment: one SQLite file that survives being killed at any moment."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

METHODS = (
    "paper",
    "reference only",
    "all data",
    "geometric median",
    "component median",
    "probability median",
    "robust logistic",
    "source normalized",
    "default",
)

IN_USE = "{path} is in use by another process; wait until it has ended, or give another file."
CANNOT = "{path} cannot be read or written: {error}."
TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'"
NOT_RESULTS = "{path} is not a file of results; give one that 'sourcewise reproduce' has written."
NO_RESULTS = "There is no file of results {path}; 'sourcewise reproduce' writes one."
OTHER_SETTINGS = (
    "{path} holds results of other settings ({key}: {theirs!r} there, {ours!r} now); results are "
    "not mixed, so choose another file."
)

SCHEMA = """
CREATE TABLE IF NOT EXISTS settings (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS results (
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
    PRIMARY KEY (study, target, corruption, n, p, repeat, method)
) WITHOUT ROWID;
"""


class Row(NamedTuple):
    """One method's outcome in one run.

    Attributes
    ----------
    study : str
        "products", "all-products" or "animals".
    target : str
        Product or attribute to be predicted.
    corruption : str
        Name of the corruption; "non-books" in "products", "none" in "all-products".
    n : int
        How many sources are corrupted (or non-books); 0 in "all-products".
    p : float
        Share of a corrupted source's rows that are; 1 in the products studies.
    repeat : int
    method : str
        One of `METHODS`.
    error : float
        Share of the test rows that are misclassified.
    trade_off : float
        Lambda chosen; NaN for a method without.
    C : float
        Regularisation chosen; NaN for a method that does not choose.
    cpu_seconds : float
        Processor time of the method in this run; work shared by several runs is shared out.
    seed : int
        Seed of the repeat.
    """

    study: str
    target: str
    corruption: str
    n: int
    p: float
    repeat: int
    method: str
    error: float
    trade_off: float
    C: float
    cpu_seconds: float
    seed: int


KEY = Row._fields[:7]
DTYPES: dict[str, Any] = {
    "study": np.str_,
    "target": np.str_,
    "corruption": np.str_,
    "n": np.int64,
    "p": np.float64,
    "repeat": np.int64,
    "method": np.str_,
    "error": np.float64,
    "trade_off": np.float64,
    "C": np.float64,
    "cpu_seconds": np.float64,
    "seed": np.int64,
}


@dataclass(frozen=True)
class Results:
    """All that a file of results holds.

    Attributes
    ----------
    settings : dict of str
        What was run: version, study, protocol, data and their fingerprint, sizes, seed.
    columns : dict of arrays of shape (n_rows,)
        By the names of `Row`, in the order of the key.
    """

    settings: dict[str, str]
    columns: dict[str, np.ndarray]

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.columns["method"])


def read_results(path: str | Path) -> Results:
    """Read a file of results, finished or not.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    Results
    """
    path = Path(path)
    if not path.is_file():
        raise ValueError(NO_RESULTS.format(path=path))
    try:
        connection = sqlite3.connect(path, timeout=60.0)
        try:
            settings = dict(connection.execute("SELECT key, value FROM settings"))
            rows = connection.execute(
                f"SELECT {', '.join(Row._fields)} FROM results ORDER BY {', '.join(KEY)}"
            ).fetchall()
        finally:
            connection.close()
    except sqlite3.DatabaseError as error:
        raise ValueError(refusal(path, error)) from error
    by_field = list(zip(*rows, strict=True)) if rows else [()] * len(Row._fields)
    columns = {
        name: np.array([np.nan if v is None else v for v in values], dtype=DTYPES[name])
        for name, values in zip(Row._fields, by_field, strict=True)
    }
    return Results(settings, columns)


class ResultsFile:
    """An open file of results, for the one process that writes to it.

    Rows appear in whole batches or not at all, whatever happens to the process or the machine.

    Parameters
    ----------
    path : Path
        Created if missing.
    settings : mapping of str to str
        What is run. A file that was written under other settings is refused.
    """

    def __init__(self, path: Path, settings: Mapping[str, str]):
        self.path = path
        try:
            self._connection = sqlite3.connect(path, timeout=60.0, isolation_level=None)
        except sqlite3.OperationalError as error:
            raise ValueError(f"{path} cannot be written: {error}.") from error
        try:
            self._open(dict(settings))
        except sqlite3.DatabaseError as error:
            self.close()
            raise ValueError(refusal(path, error)) from error
        except BaseException:
            self.close()
            raise

    def _open(self, settings: dict[str, str]) -> None:
        # One journal file beside the results while a batch is written, none in between.
        self._connection.execute("PRAGMA journal_mode = DELETE")
        self._connection.execute("PRAGMA synchronous = FULL")
        with self._transaction():
            tables = {name for (name,) in self._connection.execute(TABLES)}
            if tables and not {"settings", "results"} <= tables:
                raise ValueError(NOT_RESULTS.format(path=self.path))
            for statement in SCHEMA.split(";"):
                self._connection.execute(statement)
            known = dict(self._connection.execute("SELECT key, value FROM settings"))
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

    def _transaction(self) -> _Transaction:
        return _Transaction(self._connection)

    def __enter__(self) -> ResultsFile:
        """Return itself."""
        return self

    def __exit__(self, *_: Any) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def add(self, rows: Iterable[Row]) -> None:
        """Write rows, all or none; those already there are replaced."""
        plain = [tuple(None if v != v else v for v in row) for row in rows]  # NaN is NULL
        marks = ", ".join("?" * len(Row._fields))
        with self._transaction():
            self._connection.executemany(f"INSERT OR REPLACE INTO results VALUES ({marks})", plain)

    def keys(self) -> set[tuple[Any, ...]]:
        """Keys of all rows there are: study, target, corruption, n, p, repeat, method."""
        return set(self._connection.execute(f"SELECT {', '.join(KEY)} FROM results"))


def refusal(path: Path, error: sqlite3.DatabaseError) -> str:
    """Say why a file cannot be used: a good one that is locked must not be taken for a bad one."""
    name = getattr(error, "sqlite_errorname", "") or ""
    if name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")):
        return IN_USE.format(path=path)
    if name.startswith(("SQLITE_IOERR", "SQLITE_FULL", "SQLITE_READONLY", "SQLITE_CANTOPEN")):
        return CANNOT.format(path=path, error=error)
    return NOT_RESULTS.format(path=path)


class _Transaction:
    """All statements inside, or none of them."""

    def __init__(self, connection: sqlite3.Connection):
        self.connection = connection

    def __enter__(self) -> None:
        self.connection.execute("BEGIN IMMEDIATE")

    def __exit__(self, kind: Any, *_: Any) -> None:
        self.connection.execute("COMMIT" if kind is None else "ROLLBACK")
