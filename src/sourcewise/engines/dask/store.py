"""A worker's share of the rows: read once from Parquet, mapped, and kept on its own disk.

Every pass of a fit needs the mapped rows again. Those that fit into a part of the worker's memory
stay there; the others are read back from the worker's own folder, where they lie as plain arrays.
What is lost with a worker is read from Parquet again by the one that takes its place.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from sourcewise.core.data import SourceData
from sourcewise.core.logistic import n_outputs
from sourcewise.core.source_weights import SourceWeights
from sourcewise.engines.dask.rows import GroupTask, rows_of_chunks
from sourcewise.engines.memory import MemorySources, MemorySums

CACHE_SHARE = 0.25  # of a worker's memory
IN_USE = 0.5  # of it, all that the process has in use besides included, before none is kept
LEAST_BUDGET = 16 << 20  # bytes of rows that are gathered before they are put aside
PLENTY = 4 << 30  # what a worker without a limit is taken to have


@dataclass
class Entry:
    """A chunk in memory, and what was prepared for its sums under some weights."""

    sources: MemorySources
    sums: dict[str, MemorySums] = field(default_factory=dict)


class Store:
    """Chunks of one fit on one worker."""

    def __init__(self, folder: Path, memory_limit: int):
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self.room = min(CACHE_SHARE * memory_limit, IN_USE * memory_limit - bytes_in_use())
        self.budget = max(0.5 * self.room, LEAST_BUDGET)
        self.entries: dict[tuple[int, int], Entry] = {}
        self.used: dict[tuple[str, int, int], Any] = {}
        self.lock = threading.Lock()
        self.building: dict[int, threading.Lock] = {}

    def build(self, task: GroupTask) -> None:
        """Read the rows of a group, unless they are here."""
        group = task.group
        with self.lock:
            lock = self.building.setdefault(group.number, threading.Lock())
        with lock:
            missing = [k for k in range(len(group.chunks)) if not self._path(task, k).exists()]
            if missing:
                scratch = self.folder / f"rows-{group.number}"
                for k, data in rows_of_chunks(task, missing, self.budget, scratch):
                    write_rows(self._path(task, k), data)

    def chunk(self, task: GroupTask, k: int) -> Entry:
        """Return a chunk, from memory if it is there.

        Passes go round in the same order, so that pushing out the oldest for the newest would keep
        none of them until it is needed: what is in memory stays.
        """
        key = task.group.number, k
        entry = self.entries.get(key)
        if entry is None:
            if not self._path(task, k).exists():
                self.build(task)
            data = read_rows(self._path(task, k), task.rules.n_classes)
            entry = Entry(MemorySources(data, task.group.chunks[k].names))
            size = bytes_held(data)
            with self.lock:
                if size <= self.room:
                    self.room -= size
                    self.entries[key] = entry
        return entry

    def chunks(self, task: GroupTask) -> Iterator[tuple[int, Entry]]:
        """Return a group's chunks in turn."""
        return ((k, self.chunk(task, k)) for k in range(len(task.group.chunks)))

    def sums(
        self, task: GroupTask, k: int, fit: str, weights: SourceWeights, columns: Any
    ) -> MemorySums | None:
        """Get a chunk ready for sums under some weights, if any of its sources counts."""
        starts = task.group.starts
        mine = weights.of_sources(slice(int(starts[k]), int(starts[k + 1])))
        key = fit, task.group.number, k
        if key not in self.used:
            self.used[key] = mine.of(slice(None)).any(axis=0)
        if not self.used[key][columns].any():
            return None
        entry = self.chunk(task, k)
        if fit not in entry.sums:
            entry.sums.clear()  # other weights are over
            entry.sums[fit] = entry.sources.weighted(mine)
        return entry.sums[fit]

    def drop(self) -> None:
        """Free everything."""
        self.entries.clear()
        self.used.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, task: GroupTask, k: int) -> Path:
        return self.folder / f"chunk-{task.group.number}-{k}.rows"


def write_rows(path: Path, data: SourceData) -> None:
    """Write the arrays of some sources one behind the other; the file appears whole."""
    temporary = path.with_suffix(".part")
    with temporary.open("wb") as file:
        for array in (data.X, data.y, data.starts, data.row_shares):
            np.save(file, array, allow_pickle=False)
    os.replace(temporary, path)


def read_rows(path: Path, n_classes: int) -> SourceData:
    """Read what `write_rows` has written."""
    with path.open("rb") as file:
        X, y, starts, shares = (np.load(file, allow_pickle=False) for _ in range(4))
    return SourceData(X, y, starts, -1, shares, n_classes)


def bytes_held(data: SourceData) -> int:
    """Memory that some rows need, with what their sums are prepared with."""
    k = n_outputs(data.n_classes)
    return int(data.X.nbytes + data.y.nbytes + len(data.y) * (k * data.X.itemsize + 24))


def bytes_in_use() -> int:
    """Memory of this process."""
    import psutil

    return int(psutil.Process().memory_info().rss)


# -- the stores of a worker process ----------------------------------------------------------

_stores: dict[tuple[str, str], Store] = {}
_lock = threading.Lock()


def store_here(fit: str) -> Store:
    """Return the store of a fit on the worker that runs this."""
    from distributed import get_worker

    worker = get_worker()
    key = fit, worker.id
    with _lock:
        if key not in _stores:
            limit = worker.memory_manager.memory_limit or PLENTY * worker.state.nthreads
            folder = Path(worker.local_directory, f"sourcewise-{fit}")
            _stores[key] = Store(folder, limit)
        return _stores[key]


def drop_store(fit: str, dask_worker: Any = None) -> None:
    """Free what a fit has on the worker that runs this."""
    with _lock:
        store = _stores.pop((fit, dask_worker.id), None)
    if store is not None:
        store.drop()
