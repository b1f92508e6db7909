"""Every source is asked once, and how they are taken together changes no answer."""

import numpy as np
import pytest

from sourcewise.core.data import ReferenceRows, group_rows
from sourcewise.core.discrepancy.findings import gather
from sourcewise.core.family import given_problems
from sourcewise.core.linear import LogisticFamily
from sourcewise.core.ridge import RidgeFamily
from sourcewise.core.row_space import RowSpace
from sourcewise.core.source_weights import GivenWeights
from sourcewise.engines import memory
from sourcewise.engines.memory import MemorySources

COUNTS = (3, 10, 1, 6, 2, 30, 4)
REFERENCE = 3
NAMES = ["a", "b", "c", "e", "f", "g"]


def pool(d=3, n_classes=2, reference=REFERENCE, counts=COUNTS, weighted=True):
    rng = np.random.default_rng(0)
    n = sum(counts)
    X = np.column_stack([rng.normal(size=(n, d)), np.ones(n)])
    y = rng.integers(n_classes, size=n) if n_classes else rng.normal(size=n)
    return group_rows(
        X,
        y,
        np.repeat(np.arange(len(counts)), counts),
        reference=reference,
        n_classes=n_classes,
        sample_weight=rng.random(n) + 0.1 if weighted else None,
    )[0]


class AskForMeans:
    """A question for mean features that writes down who was asked, and how many rows at a time."""

    def __init__(self, rows_beside=0):
        self.rows_beside = rows_beside
        self.asked, self.rows = [], []

    @property
    def message(self):
        return self

    def answer(self, sources, names):
        assert len(names) == sources.n_sources
        assert sources.reference == -1
        self.asked.append(list(names))
        self.rows.append(int(sources.row_counts.sum()))
        means = [sources.row_shares[rows] @ sources.X[rows] for rows in sources.slices()]
        return {"means": np.array(means).T}

    def judge(self, answer):
        return answer


def naive_means(data):
    return np.array([data.row_shares[r] @ data.X[r] for r in map(data.rows, data.untrusted)]).T


SUBSETS = [None, [0], [5], [1, 2, 3], [2, 3], [0, 2, 4], [5, 3, 4, 0], list(range(6))[::-1]]


@pytest.mark.parametrize("block_rows", [1, 7, 12, 4096])
@pytest.mark.parametrize("asked", SUBSETS)
@pytest.mark.parametrize("rows_beside", [0, 5])
@pytest.mark.parametrize("reference", [0, 3, 6])
def test_every_source_is_asked_exactly_once(block_rows, asked, rows_beside, reference, monkeypatch):
    monkeypatch.setattr(memory, "BLOCK_ROWS", block_rows)
    data = pool(reference=reference)
    question = AskForMeans(rows_beside)
    answers = list(MemorySources(data, NAMES).ask(question, asked))
    positions = np.concatenate([some for some, _ in answers])
    expected = list(range(6)) if asked is None else asked
    assert sorted(positions.tolist()) == sorted(expected)
    names = [name for names in question.asked for name in names]
    assert names == [NAMES[k] for k in positions]
    for (some, found), rows, asked_here in zip(answers, question.rows, question.asked, strict=True):
        np.testing.assert_allclose(found["means"], naive_means(data)[:, some], rtol=1e-12)
        together = rows + rows_beside * len(asked_here)
        assert len(asked_here) == 1 or together <= block_rows


def test_neighbours_are_asked_together_but_not_across_the_reference():
    question = AskForMeans()
    list(MemorySources(pool(), NAMES).ask(question))
    assert question.asked == [["a", "b", "c"], ["e", "f", "g"]]
    question = AskForMeans()
    list(MemorySources(pool(reference=-1), ["r", *NAMES]).ask(question))
    assert question.asked == [["r", *NAMES]]


@pytest.mark.parametrize("block_rows", [1, 12, 4096])
def test_asking_some_finds_that_part_of_asking_all(block_rows, monkeypatch):
    sources = MemorySources(pool(), NAMES)
    everything = gather(sources.ask(AskForMeans()))["means"]
    monkeypatch.setattr(memory, "BLOCK_ROWS", block_rows)
    for asked in SUBSETS[1:]:
        some = gather(sources.ask(AskForMeans(), asked))["means"]
        np.testing.assert_allclose(some, everything[:, sorted(asked)], rtol=1e-12)


def test_what_is_known_of_the_sources_is_of_the_untrusted_ones():
    data = pool()
    sources = MemorySources(data, NAMES)
    assert sources.row_counts.tolist() == [3, 10, 1, 2, 30, 4]
    assert sources.n_classes == 2
    expected = [1.0 / np.sum(data.row_shares[data.rows(i)] ** 2) for i in (0, 1, 2, 4, 5, 6)]
    np.testing.assert_allclose(sources.sizes, expected)


def test_sums_leave_the_reference_out():
    data = pool(n_classes=0)
    weights = GivenWeights(np.random.default_rng(1).random((6, 4)))
    grams, crosses = MemorySources(data, NAMES).weighted(weights).moments(np.array([2, 0]))
    for k, q in enumerate([2, 0]):
        R = np.zeros(len(data.y))
        for source, i in enumerate(data.untrusted):
            R[data.rows(i)] = weights.values[source, q] * data.row_shares[data.rows(i)]
        np.testing.assert_allclose(grams[k], data.X.T @ (data.X * R[:, None]), rtol=1e-12)
        np.testing.assert_allclose(crosses[k], data.X.T @ (R * data.y), rtol=1e-10, atol=1e-14)


def test_sums_under_all_calls_are_those_of_the_untrusted_rows_alone():
    data = pool(n_classes=3)
    alone = data.select(data.untrusted.tolist())
    weights = GivenWeights(np.random.default_rng(1).random((6, 4)))
    points = np.random.default_rng(2).normal(size=(4, 4, 3))
    columns, at = np.arange(4), np.array([0, 0, 0, 1])
    with_it, without = (MemorySources(rows, NAMES).weighted(weights) for rows in (data, alone))
    for ask in (
        lambda sums: sums.gradients(points, columns),
        lambda sums: sums.gradients(points, columns, at),
        lambda sums: np.concatenate([x.ravel() for x in sums.curvature(points, columns, at)]),
    ):
        np.testing.assert_allclose(ask(with_it), ask(without), rtol=1e-4, atol=1e-6)


def test_a_row_space_keeps_all_products_of_rows():
    data = pool(d=200)
    reference = ReferenceRows.of(data)
    sources, space = MemorySources(data, NAMES).in_row_space(reference.X)
    assert sources.names == NAMES
    assert sources.data.X.shape[1] == sum(COUNTS) + 1 == space.X.shape[1]
    np.testing.assert_array_equal(sources.row_counts, [3, 10, 1, 2, 30, 4])
    np.testing.assert_allclose(sources.sizes, MemorySources(data, NAMES).sizes)
    untrusted = data.select(data.untrusted.tolist())
    np.testing.assert_array_equal(sources.data.y, untrusted.y)
    np.testing.assert_array_equal(sources.data.row_shares, untrusted.row_shares)
    before = np.concatenate([reference.X, untrusted.X])
    after = np.concatenate([space.X, sources.data.X])
    np.testing.assert_array_equal(after[:, -1], before[:, -1])
    np.testing.assert_allclose(after @ after.T, before @ before.T, atol=1e-10)
    models = np.random.default_rng(1).normal(size=(2, space.X.shape[1]))
    np.testing.assert_allclose(after @ models.T, before @ space.back(models).T, atol=1e-10)


def test_no_row_space_where_it_saves_nothing():
    for d in (3, sum(COUNTS)):
        data = pool(d=d)
        assert MemorySources(data, NAMES).in_row_space(ReferenceRows.of(data).X) is None


@pytest.mark.parametrize("n_classes", [2, 3, 0])
@pytest.mark.parametrize("reference", [0, 3])
def test_fitted_models_are_the_same_in_a_row_space(n_classes, reference, monkeypatch):
    data = pool(d=90, n_classes=n_classes, reference=reference)
    rng = np.random.default_rng(1)
    n_trusted = COUNTS[reference]
    problems = given_problems(
        MemorySources(data, NAMES),
        data,
        rng.dirichlet(np.ones(7), size=3),
        np.full(3, 40.0),
        np.arange(n_trusted)[None] == 0,
        np.array([-1, 0, -1]),
    )
    settings = np.array([0.01, 1.0])
    family = LogisticFamily(n_classes, settings, tol=1e-13) if n_classes else RidgeFamily(settings)
    rotated, space = problems.in_row_space()
    assert space.basis is not None
    assert rotated.reference.X.shape == (n_trusted, sum(COUNTS) + 1)
    found = family.fit_grid(problems, settings)
    monkeypatch.setattr("sourcewise.core.row_space.MIN_FEATURES", 10**9)
    assert problems.in_row_space()[1].basis is None
    plain = family.fit_grid(problems, settings)
    np.testing.assert_allclose(found, plain, atol=2e-6)
    # The same by hand, from the problems in coordinates.
    np.testing.assert_allclose(
        RowSpace(space.X, space.basis).back(family.fit_grid(rotated, settings)), plain, atol=2e-6
    )
