"""A table whose rows are on a Dask cluster, ready for ``fit_sources``."""

from __future__ import annotations

import os
import uuid
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Self

import numpy as np

from sourcewise.columns import meant
from sourcewise.core.engine import OpenSources, RowRules, TrustedRows
from sourcewise.engines.dask.cluster import local_cluster
from sourcewise.engines.dask.engine import DaskEngine
from sourcewise.engines.dask.journal import Journal
from sourcewise.engines.dask.layout import SourceTable, groups_of
from sourcewise.engines.dask.messages import (
    CLOSED,
    DASK_MISSING,
    NO_ROWS,
    NOT_A_FRAME,
    REFERENCE_ABSENT,
    SAME_COLUMN,
    SOURCE_TOO_LARGE,
)
from sourcewise.engines.dask.parquet_files import find_files
from sourcewise.engines.dask.reading import (
    ColumnReader,
    FramePart,
    PartFacts,
    RowReader,
    check_column,
    check_same_columns,
    look_at,
)
from sourcewise.engines.dask.rows import (
    GroupTask,
    below_each_other,
    reference_rows,
)
from sourcewise.engines.dask.running import PATIENCE, Runner
from sourcewise.engines.dask.store import drop_store
from sourcewise.extras import how_to_install
from sourcewise.progress import counter

NEEDED = ("cryptography", "dask", "distributed", "fsspec", "pandas", "pyarrow")
LOOKS_PER_THREAD = 8  # first looks at parts, several of them a task
BESIDE_A_ROW = 1500  # bytes that are needed beside a row's features while its source is looked at
OF_THE_LIMIT = 0.6  # of a worker's memory that one source may take


class DaskSources:
    """Sources whose rows are in Parquet files or in a Dask DataFrame, for ``fit_sources``.

    A source may be spread over files, and a file may hold many sources. Files are taken in the
    natural order of their names, and the result is that of ``fit`` with all rows in that order.

    Parameters
    ----------
    path : str, path or dask.dataframe.DataFrame
        A folder of Parquet files, or one file, at any address that fsspec knows (``s3://...``).
        Workers open the same address. ``vendor=north/part-0.parquet`` has a column ``vendor``.
    label, source : str
        Columns of the labels and of the sources' names.
    client : distributed.Client, optional
        Of a cluster that is running. By default a cluster on this machine, one worker a core, is
        started for the fit and closed again; for several fits, keep it open by a ``with``
        statement. A script has to do that under ``if __name__ == "__main__"``.
    features : list of str, optional
        Columns to predict from; by default all others.
    sample_weight : str, optional
        Column that says how much a row counts within its source.
    resume : path, optional
        Folder to keep findings in; see docs/cluster.md.
    storage_options : dict, optional
        For the file system (keys, end points).

    Examples
    --------
    Workers that are threads of this process; a path may as well be ``"s3://bucket/rows"``:

    >>> import tempfile
    >>> import numpy as np
    >>> import pandas
    >>> import sourcewise as sw
    >>> from distributed import Client
    >>> from sourcewise.engines import DaskSources
    >>> rng = np.random.default_rng(0)
    >>> rows = pandas.DataFrame({"x": rng.normal(size=220), "z": rng.normal(size=220)})
    >>> rows["y"] = rows["x"] > 0
    >>> rows["vendor"] = np.repeat(["gold", "good", "bad"], [60, 80, 80])
    >>> rows.loc[rows["vendor"] == "bad", "y"] ^= True
    >>> model = sw.SourceWeightedClassifier(reference="gold", trade_off=1.0, random_state=0)
    >>> with (
    ...     tempfile.TemporaryDirectory() as folder,
    ...     Client(processes=False, n_workers=1, dashboard_address="127.0.0.1:0") as client,
    ... ):
    ...     rows.to_parquet(f"{folder}/rows.parquet", index=False)
    ...     sources = DaskSources(folder, label="y", source="vendor", client=client)
    ...     _ = model.fit_sources(sources)
    >>> dict(zip(model.sources_.tolist(), model.source_weights_.round(2).tolist()))["bad"]
    0.0
    """

    trusted_rows_may_travel = True  # to workers of one's own

    def __init__(
        self,
        path: Any,
        *,
        label: str,
        source: str,
        client: Any = None,
        features: Any = None,
        sample_weight: str | None = None,
        resume: str | os.PathLike[str] | None = None,
        storage_options: dict[str, Any] | None = None,
    ):
        check_installed()
        self.path, self.label, self.source = path, label, source
        self.client, self.sample_weight = client, sample_weight
        self.given_features = None if features is None else tuple(features)
        self.resume = None if resume is None else Path(resume)
        self.storage_options = dict(storage_options or {})
        self.patience = PATIENCE
        self._entered = 0
        self._open: ExitStack | None = None
        self._fits: list[str] = []

    # -- the cluster -------------------------------------------------------------------------

    def _cluster(self) -> AbstractContextManager[Any]:
        return local_cluster() if self.client is None else nullcontext(self.client)

    def __enter__(self) -> Self:
        """Start the cluster, if there is none; may be nested."""
        if not self._entered:
            with ExitStack() as stack:
                journal = Journal(self.resume)
                client = stack.enter_context(self._cluster())
                self.runner = Runner(client, self.resume, self.patience)
                self.journal = journal
                self._facts: list[PartFacts] | None = None
                self._open = stack.pop_all()
        self._entered += 1
        return self

    def __exit__(self, kind: Any, *problem: Any) -> None:
        """Free what was held on the cluster; stop it if it was started here."""
        self._entered -= 1
        if self._entered:
            return
        if kind is None:
            self.journal.finished()
        self.runner.closed = True
        stack, self._open = self._open, None
        assert stack is not None
        with stack:
            self.release()

    def release(self) -> None:
        """Free what fits so far hold on the workers; it is read again where it is needed again."""
        with suppress(Exception):  # of a cluster that is gone nothing has to be freed
            while self._fits:
                self.runner.client.run(drop_store, self._fits.pop(), on_error="ignore")

    def _check_open(self) -> None:
        if not self._entered:
            raise ValueError(CLOSED)

    # -- what fit_sources asks ---------------------------------------------------------------

    def trusted(self, reference: Any) -> TrustedRows:
        """Bring the reference's rows here, and learn how the columns are read."""
        self._check_open()
        facts = self._look()
        table = SourceTable.of(facts)
        position = self._find(reference, table)
        parts = [
            one.part
            for one, held in zip(facts, table.holders, strict=True)
            if (held == position).any()
        ]
        columns = self._needed(facts)
        jobs = [(None, (part, self.source, columns, table.names[position])) for part in parts]
        found = dict(self.runner.each(reference_rows, jobs))
        self._table = table
        self._position: int | None = position
        rows = below_each_other([found[k] for k in range(len(parts))])
        self.reader, X = self._learn(rows)
        return TrustedRows(X, self.reader.labels(rows), self.reader.weights(rows))

    def open(self, rules: RowRules) -> OpenSources:
        """Have all other rows read, checked and mapped on the workers."""
        self._check_open()
        table, position = self._table, self._position
        if position is not None:
            table = table.without(position)
        threads = sum(self.runner.threads.values())
        facts = self._look()
        width = self._width(rules)
        names = table.names
        if not names:
            return OpenSources(None, names, position or 0)  # type: ignore[arg-type]
        self._check_room(table, 8 * width)
        groups = groups_of(table, [one.part for one in facts], 8 * width, threads)
        fit = uuid.uuid4().hex
        self._fits.append(fit)
        tasks = [
            GroupTask(fit, group, self.source, self.names_are_text, self.reader, rules)
            for group in groups
        ]
        engine = DaskEngine(self.runner, tasks, self.journal)
        copies = None
        if rules.copies is not None and self.sample_weight is None:  # rows of weight 0 are gone too
            copies = table.counts - engine.row_counts
        return OpenSources(engine, names, position or 0, copies=copies)

    # -- how columns are read; tables with rules for their columns do it otherwise -------------

    names_are_text = False

    def _needed(self, facts: list[PartFacts]) -> tuple[str, ...]:
        """Columns that the reference's rows are brought here with."""
        first = facts[0]
        used = [("source", self.source), ("label", self.label)]
        if self.sample_weight is not None:
            used.append(("sample_weight", self.sample_weight))
        for k, (what, name) in enumerate(used):
            check_column(self.path, first.columns, name)
            for other, before in used[:k]:
                if name == before:
                    raise ValueError(SAME_COLUMN.format(name=name, one=other, other=what))
        taken = {name for _, name in used}
        names = self.given_features
        if names is None:
            names = tuple(name for name in first.columns if name not in taken)
        for name in names:
            check_column(self.path, first.columns, name)
        self._names = names
        return (*names, *(name for _, name in used[1:]))

    def _learn(self, rows: Any) -> tuple[RowReader, Any]:
        """Learn how to read columns from the reference's rows; also returns these as features."""
        frame = rows.select(list(self._names)).to_pandas()
        single = len(self._names) and all(kind == np.float32 for kind in frame.dtypes)
        dtype = "float32" if single else "float64"
        return ColumnReader(self._names, self.label, self.sample_weight, dtype), frame

    def _width(self, rules: RowRules) -> int:
        return len(self._names) + 1

    # -- the first look ----------------------------------------------------------------------

    def _look(self) -> list[PartFacts]:
        """Find out what every file holds, once."""
        if self._facts is None:
            parts = self._parts()
            step = -(-len(parts) // (LOOKS_PER_THREAD * sum(self.runner.threads.values())))
            some = [parts[low : low + step] for low in range(0, len(parts), step)]
            jobs = [(None, (few, self.source, self.names_are_text)) for few in some]
            found: dict[int, list[PartFacts]] = {}
            more = counter("files", len(parts))
            for k, facts in self.runner.each(look_at, jobs):
                found[k] = facts
                more(len(facts))
            everything = [one for k in range(len(some)) for one in found[k]]
            check_same_columns(everything, self.source)
            self._facts = everything
        return self._facts

    def _parts(self) -> list[Any]:
        if isinstance(self.path, str | os.PathLike):
            return find_files(os.fspath(self.path), self.storage_options)
        if hasattr(self.path, "npartitions") and hasattr(self.path, "partitions"):
            return [FramePart(self.path.partitions[k], k) for k in range(self.path.npartitions)]
        raise ValueError(NOT_A_FRAME.format(value=self.path))

    def _find(self, reference: Any, table: SourceTable) -> int:
        if not table.names:
            raise ValueError(NO_ROWS.format(path=self.path))
        for position, name in enumerate(table.names):
            if name == reference:
                return position
        hint = meant(reference, table.names[:100_000], most=5)
        raise ValueError(REFERENCE_ABSENT.format(name=self.source, reference=reference, hint=hint))

    def _check_room(self, table: SourceTable, row_bytes: int) -> None:
        """Check that the rows of one source, which are looked at together, fit."""
        limit = self.runner.memory_limit
        largest = int(np.argmax(table.counts))
        need = int(table.counts[largest]) * (2 * row_bytes + BESIDE_A_ROW)
        if limit and need > OF_THE_LIMIT * limit:
            raise ValueError(
                SOURCE_TOO_LARGE.format(
                    source=table.names[largest],
                    rows=int(table.counts[largest]),
                    need=f"{need / 2**20:.0f} MiB",
                    limit=f"{limit / 2**20:.0f} MiB",
                )
            )


def check_installed() -> None:
    """Say what is missing, and how to get it."""
    for name in NEEDED:
        if find_spec(name) is None:
            raise ImportError(DASK_MISSING.format(name=name, how=how_to_install("dask")))
