"""Sums over chunks do not depend on who adds them up; a worker holds one chunk at a time."""

from __future__ import annotations

import weakref
from types import SimpleNamespace

import numpy as np
import pytest

from sourcewise.core.data import SourceData
from sourcewise.engines.dask import layout, tasks
from sourcewise.engines.dask.layout import SourceTable, groups_of
from sourcewise.engines.dask.sums import PairwiseSums
from sourcewise.engines.memory import MemorySources


def added_up(values, cuts, rng):
    """Sum by groups between the cuts, which answer in any order; None does not count."""
    total = PairwiseSums()
    groups = list(zip(cuts[:-1], cuts[1:], strict=True))
    most = 0
    for position in rng.permutation(len(groups)):
        first, last = (int(cut) for cut in groups[position])
        mine = PairwiseSums()
        for k in range(first, last):
            if values[k] is not None:
                mine.add(0, k, values[k])
            mine.close(first, k + 1)
            most = max(most, len(mine.pieces))
        for (level, k), sums in mine.pieces.items():
            total.add(level, k, sums)
    return total.total(len(values)), most


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 37, 100, 129])
def test_sums_are_the_same_to_the_last_bit_for_any_groups(n):
    rng = np.random.default_rng(n)
    values = [rng.normal(size=3) * 10.0 ** rng.integers(-6, 6) for _ in range(n)]
    for absent in (0.0, 0.2, 0.9):
        some = [None if rng.random() < absent else value for value in values]
        (whole, most) = added_up(some, [0, n], rng)
        assert most <= 2 * max(n - 1, 1).bit_length()  # few are held at a time
        if all(value is None for value in some):
            assert whole is None
            continue
        there = [value for value in some if value is not None]
        np.testing.assert_allclose(whole[0], np.sum(there, axis=0), rtol=1e-9, atol=1e-9)
        for n_groups in (2, 3, 5, 17):
            cuts = np.unique([0, *rng.integers(0, n + 1, n_groups - 1), n])
            (again, _) = added_up(some, cuts, rng)
            np.testing.assert_array_equal(again[0], whole[0])


@pytest.mark.parametrize("n_threads", [1, 2, 3, 5, 16, 40])
def test_groups_share_the_rows_evenly_and_answer_few_pieces(n_threads, monkeypatch):
    monkeypatch.setattr(layout, "CHUNK_BYTES", 800)
    counts = np.random.default_rng(0).integers(20, 90, 3000)
    names = list(range(3000))
    table = SourceTable(names, counts, [np.arange(3000)])
    groups = groups_of(table, ["all"], 8, n_threads)
    assert len(groups) >= n_threads
    chunks = [chunk for group in groups for chunk in group.chunks]
    assert [name for chunk in chunks for name in chunk.names] == names
    assert [g.first_chunk for g in groups] == np.cumsum(
        [0, *(len(g.chunks) for g in groups[:-1])]
    ).tolist()
    rows = np.array([sum(chunk.rows for chunk in group.chunks) for group in groups])
    assert rows.max() <= 1.3 * rows.mean()
    pieces = []
    for group in groups:
        mine = PairwiseSums()
        first = group.first_chunk
        for k in range(len(group.chunks)):
            mine.add(0, first + k, np.ones(1))
            mine.close(first, first + k + 1)
        pieces.append(len(mine.pieces))
    assert max(pieces) <= 6


class Passing:
    """A store that keeps nothing, and counts the chunks that somebody else keeps."""

    def __init__(self):
        self.seen = []
        self.most = 0

    def build(self, task):
        pass

    def chunks(self, task):
        for k in range(5):
            yield k, SimpleNamespace(sources=MemorySources(self.rows(), [f"s{k}"]))
            self.most = max(self.most, sum(one() is not None for one in self.seen))

    def rows(self):
        X = np.zeros((4, 2))
        self.seen.append(weakref.ref(X))
        return SourceData(X, np.array([0, 1, 0, 1]), np.array([0, 4]), -1, np.full(4, 0.25), 2)


def test_a_first_look_at_rows_keeps_none_of_them(monkeypatch):
    store = Passing()
    monkeypatch.setattr(tasks, "store_here", lambda fit: store)
    chunks = tuple(layout.Chunk((f"s{k}",), np.array([4])) for k in range(5))
    task = SimpleNamespace(fit="fit", group=layout.Group(0, 0, 0, chunks, ()))
    _, row_counts, _, no_rows = tasks.read_group(task, True)
    assert row_counts.tolist() == [4] * 5
    assert no_rows.shape == (0, 2)
    assert store.most == 1  # the one at hand
