"""Sources on a Dask cluster: every question is tasks on groups of them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from sourcewise.core.data import FloatArray, IntArray, SourceData, concat_sources
from sourcewise.core.engine import Engine, Question
from sourcewise.core.row_space import RowSpace
from sourcewise.core.source_weights import SourceWeights
from sourcewise.engines.dask.journal import Journal
from sourcewise.engines.dask.rows import GroupTask
from sourcewise.engines.dask.running import Runner
from sourcewise.engines.dask.sums import PairwiseSums, Sums
from sourcewise.engines.dask.tasks import (
    add_up,
    ask_sources,
    read_group,
    rows_of_group,
    spread_group,
)
from sourcewise.engines.memory import MemorySources, worth_row_space
from sourcewise.progress import counter

MOST_BYTES = 1 << 30  # of rows that are fewer than their features
ASKS_PER_THREAD = 16  # pieces of a question: each is written down when it is answered


class DaskEngine:
    """The untrusted sources of one fit, in groups that live on workers."""

    def __init__(self, runner: Runner, tasks: Sequence[GroupTask], journal: Journal):
        self.runner, self.journal = runner, journal
        self.groups = [task.group for task in tasks]
        self.fit = tasks[0].fit
        self.rules = tasks[0].rules
        runner.place(len(tasks))
        self.tasks = [runner.keep(task) for task in tasks]
        self._gathered: MemorySources | None = None
        found = zip(*self._read(), strict=True)
        self._sizes, self._row_counts, prints, self._no_rows = map(np.concatenate, found)
        journal.know(prints)

    def _read(self) -> list[tuple[Any, ...]]:
        jobs = [(g, (task, self.journal.active)) for g, task in enumerate(self.tasks)]
        facts: list[Any] = [None] * len(jobs)
        more = counter("reading", sum(group.n_sources for group in self.groups))
        for g, found in self.runner.each(read_group, jobs):
            facts[g] = found
            more(self.groups[g].n_sources)
        return facts

    @property
    def sizes(self) -> FloatArray:
        """Effective rows of every source."""
        return self._sizes

    @property
    def row_counts(self) -> IntArray:
        """Rows of every source."""
        return self._row_counts

    @property
    def n_classes(self) -> int:
        """Number of classes, 0 for regression."""
        return self.rules.n_classes

    def ask(
        self, question: Question, sources: Sequence[int] | None = None
    ) -> Iterator[tuple[IntArray, Any]]:
        """Ask some sources (by default all); yields positions and findings."""
        asked = np.arange(len(self._sizes)) if sources is None else np.sort(np.asarray(sources))
        entry = self.journal.answers(question)
        known, found = entry.known(asked)
        if len(known):
            yield known, found
            asked = np.setdiff1d(asked, known)
        if not len(asked):
            return
        pieces = self._pieces(asked)
        sent = self.runner.keep(question)
        jobs = [(g, (self.tasks[g], sent, mine)) for g, mine in pieces]
        for position, (some, found) in self.runner.each(ask_sources, jobs):
            some = some + self.groups[pieces[position][0]].first
            entry.write(some, found)
            yield some, found

    def _pieces(self, asked: IntArray) -> list[tuple[int, IntArray]]:
        """Cut a question into tasks: neighbouring chunks of one group each."""
        n_tasks = ASKS_PER_THREAD * sum(self.runner.threads.values())
        n_chunks = sum(len(group.chunks) for group in self.groups)
        step = -(-n_chunks // n_tasks)
        pieces = []
        for g, group in enumerate(self.groups):
            mine = asked[(asked >= group.sources.start) & (asked < group.sources.stop)]
            mine = mine - group.first
            cuts = np.searchsorted(mine, group.starts[step:-1:step])
            pieces += [(g, some) for some in np.split(mine, cuts) if len(some)]
        return pieces

    def weighted(self, weights: SourceWeights) -> DaskSums:
        """Get ready to answer for sums under these weights."""
        return DaskSums(self, weights)

    def spread(self, directions: FloatArray) -> FloatArray:
        """Sum over all rows of ``x (x' q)`` for some directions, the constant left out."""
        known = self.journal.sums("spread", directions)
        if known.found is None:
            sent = self.runner.keep(directions)
            jobs = [(g, (task, sent)) for g, task in enumerate(self.tasks)]
            known.write(self.total(spread_group, jobs) or (np.zeros_like(directions),))
        return known.found[0]  # type: ignore[index]

    def in_row_space(self, reference: FloatArray) -> tuple[Engine, RowSpace] | None:
        """Return the sources in coordinates of the span of all rows, if that saves any.

        There are then fewer rows than features, which is no case for a cluster: they are taken into
        memory here, so that the result is that in memory.
        """
        n_rows = len(reference) + int(self._row_counts.sum())
        small = n_rows * reference.shape[1] * reference.itemsize <= MOST_BYTES
        if not small or not worth_row_space(n_rows, reference):
            return None
        if self._gathered is None:
            jobs = [(g, (task,)) for g, task in enumerate(self.tasks)]
            found = dict(self.runner.each(rows_of_group, jobs))
            chunks = [data for g in range(len(jobs)) for data in found[g]]
            names = [name for g in self.groups for chunk in g.chunks for name in chunk.names]
            self._gathered = MemorySources(concat_sources(chunks), names)
        return self._gathered.in_row_space(reference)

    def total(self, function: Any, jobs: Sequence[Any]) -> Sums | None:
        """Add up what groups answer; None where nothing counts."""
        total = PairwiseSums()
        for _, found in self.runner.each(function, jobs):
            for (level, k), sums in found.pieces.items():
                total.add(level, k, sums)
        return total.total(sum(len(group.chunks) for group in self.groups))

    def nobody(self) -> MemorySources:
        """Return sources of no rows, whose sums have the right shape."""
        n = self.rules.n_classes
        y: Any = np.zeros(0, dtype=np.intp if n else np.float64)
        start = np.zeros(1, dtype=np.intp)
        return MemorySources(SourceData(self._no_rows, y, start, -1, np.zeros(0), n), [])


class DaskSums:
    """Sums over the sources under given weights."""

    def __init__(self, engine: DaskEngine, weights: SourceWeights):
        self.engine, self.weights = engine, weights
        self.fit = uuid.uuid4().hex
        self.digest = engine.journal.digest(weights)
        self.counts = np.stack(
            [weights.of_sources(g.sources).of(slice(None)).any(axis=0) for g in engine.groups]
        )
        self.parts: dict[int, Any] = {}

    def gradients(
        self, points: FloatArray, columns: IntArray, at: IntArray | None = None
    ) -> FloatArray:
        """Sum (x, label) times residual."""
        return self._sum("gradients", columns, (points, columns, at))[0]

    def curvature(
        self,
        points: FloatArray,
        columns: IntArray,
        at: IntArray,
        basis: FloatArray | None = None,
        every: int = 1,
    ) -> tuple[FloatArray, FloatArray]:
        """Curvature for preconditioners, in coordinates of a basis."""
        arguments = points, columns, at, basis, every
        matrices, outside = self._sum("curvature", columns, arguments)
        return matrices, outside

    def moments(self, columns: IntArray) -> tuple[FloatArray, FloatArray]:
        """Second moments, and those with the target."""
        grams, crosses = self._sum("moments", columns, (columns,))
        return grams, crosses

    def _sum(self, method: str, columns: IntArray, arguments: tuple[Any, ...]) -> Sums:
        engine = self.engine
        entry = engine.journal.sums(method, self.digest, arguments)
        if entry.found is None:
            groups = np.flatnonzero(self.counts[:, columns].any(axis=1)).tolist()
            sent = engine.runner.keep(arguments) if groups else None
            jobs = [
                (g, (engine.tasks[g], self.fit, self._part(g), method, sent, columns))
                for g in groups
            ]
            total = engine.total(add_up, jobs)
            if total is None:
                none = engine.nobody().weighted(self.weights.of_sources(slice(0, 0)))
                sums = getattr(none, method)(*arguments)
                total = sums if isinstance(sums, tuple) else (sums,)
            entry.write(total)
        found: Sums = entry.found  # type: ignore[assignment]
        return found

    def _part(self, group: int) -> Any:
        """Weights of a group, which go there once."""
        if group not in self.parts:
            mine = self.weights.of_sources(self.engine.groups[group].sources)
            self.parts[group] = self.engine.runner.keep(mine)
        return self.parts[group]
