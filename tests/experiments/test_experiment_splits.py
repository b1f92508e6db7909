"""Who sees which rows, and which rows a corruption touches."""

import numpy as np
import pytest

from experiments.small_studies import animals, books, every_product, part
from sourcewise.experiments import study as study_module
from sourcewise.experiments.animal_study import CORRUPTIONS, corrupt_groups
from sourcewise.experiments.bench import Bench
from sourcewise.experiments.catalog import make_animals, make_products
from sourcewise.experiments.grid import Only
from sourcewise.experiments.splits import repeat_seed, split_books, split_each, split_groups


def test_the_animals_split_has_the_papers_sizes_and_leaves_no_row_out():
    split = split_groups(37322, 60, 500, seed=1)
    assert split.groups.shape == (60, 500)
    assert len(split.test) == 7322
    rows = np.concatenate([split.groups.ravel(), split.test])
    assert np.array_equal(np.sort(rows), np.arange(37322))
    assert np.array_equal(np.sort(split.order), np.arange(1, 60))


def test_a_split_depends_on_the_repeat_and_the_seed_alone():
    seeds = [repeat_seed(seed, repeat) for seed in (0, 1) for repeat in range(50)]
    assert len(set(seeds)) == 100
    first, again = (split_groups(900, 8, 100, repeat_seed(0, 3)) for _ in range(2))
    assert np.array_equal(first.groups, again.groups)
    assert not np.array_equal(first.groups, split_groups(900, 8, 100, repeat_seed(0, 4)).groups)


def test_books_split_has_the_papers_sizes():
    products = make_products(n_features=3)
    for seed in range(20):
        split = split_books(products, 10, 100, seed)
        target = products[split.target]
        assert target.kind == "book"
        rows = np.concatenate([split.reference, split.test])
        assert (len(split.reference), len(split.test), len(set(rows))) == (100, 500, 600)
        assert target.y[rows].sum() == 300
        assert split.target not in split.books
        assert {products[k].kind for k in split.books} == {"book"}
        assert {products[k].kind for k in split.others} == {"non-book"}
        assert len(set(split.books)) == len(set(split.others)) == 10
        assert split.rows.shape == (40, 100)


def test_every_product_is_the_target_once_and_all_others_are_sources():
    products = make_products(n_features=3)[:7]
    split = split_each(products, 100, 0)
    assert [each.target for each in split] == list(range(7))
    for each in split:
        assert sorted([each.target, *each.books]) == list(range(7))
        assert not set(each.reference) & set(each.test)
        assert (len(each.reference), len(each.test)) == (100, 500)


@pytest.mark.parametrize("kind", CORRUPTIONS)
@pytest.mark.parametrize("p", [1.0, 0.5, 0.2])
def test_a_corruption_touches_the_share_of_rows_that_it_should(kind, p):
    data = make_animals(n_images=400, n_features=6)
    labels = data.labels[:, 3].astype(np.intp)
    groups = np.arange(300).reshape(3, 100)
    X, y, mask = corrupt_groups(data, labels, groups, kind, p, seed=5)
    assert (mask.sum(axis=1) == round(100 * p)).all()
    changed = (data.X[groups] != X).any(axis=2) | (y != labels[groups])
    assert not (changed & ~mask).any()
    if kind == "label-bias":
        assert (y[mask] == 1).all()
    elif kind == "shuffled-labels":
        assert np.array_equal(y.sum(axis=1), labels[groups].sum(axis=1))
        assert changed.any()
    else:
        assert changed[mask].all()
    if kind == "shuffled-features":
        assert np.array_equal(np.sort(X[mask], axis=1), np.sort(data.X[groups][mask], axis=1))
    elif kind in data.corrupted:
        assert np.array_equal(X[mask], data.corrupted[kind][groups][mask])
    assert (X[:, :, -1] == 1).all()


def test_which_rows_are_touched_does_not_depend_on_the_attribute():
    data = make_animals(n_images=400, n_features=6)
    groups = np.arange(300).reshape(3, 100)
    masks = [
        corrupt_groups(data, data.labels[:, k].astype(np.intp), groups, "blur", 0.5, 5)[2]
        for k in (0, 1)
    ]
    assert np.array_equal(*masks)


class Recorder(Bench):
    """A bench that keeps what it is shown instead of learning from it."""

    shown: list = []

    def __init__(self, X, y, X_test, y_test, **options):
        super().__init__(X, y, X_test, y_test, **options)
        self.given = X, y, X_test, y_test

    def run(self, facts):
        Recorder.shown.append((self.given, facts))
        return {}, {}


def test_exactly_n_sources_are_corrupted_and_never_reference_or_test_rows(monkeypatch):
    monkeypatch.setattr(study_module, "Bench", Recorder)
    monkeypatch.setattr(Recorder, "shown", [])
    study = animals(repeats=1, methods=("all data",))
    data = study.data
    tasks = study.tasks(Only(["target=black", "corruption=blur,shuffled-features"]))
    for task in tasks:
        list(study.run(task))
    labels = data.labels[:, 0]
    split = split_groups(len(data.X), 8, 60, repeat_seed(0, 0))
    clean = {f"group-{g}": data.X[split.groups[g]] for g in range(1, 8)}
    found = []
    for (X, y, X_test, y_test), facts in Recorder.shown:
        assert np.array_equal(X, data.X[split.groups[0]])
        assert np.array_equal(y, labels[split.groups[0]])
        assert np.array_equal(X_test, data.X[split.test])
        assert np.array_equal(y_test, labels[split.test])
        assert sorted(facts.names) == sorted(clean)
        rows = {
            name: int((facts.X["given"][k] != clean[name]).any(axis=1).sum())
            for k, name in enumerate(facts.names)
        }
        touched = [name for name, count in rows.items() if count]
        assert sorted(touched) == sorted(f"group-{g}" for g in split.order[: len(touched)])
        found.append((len(touched), max(rows.values())))
    assert sorted(found) == sorted(
        [(0, 0)] + [(n, rows) for n in (3, 7) for rows in (60, 30) for _ in range(2)]
    )


def test_the_grid_has_one_run_without_corruption_under_every_corruption():
    (task,) = animals(repeats=1).tasks(Only(["target=black"]))
    assert len(task.keys) == 6 * 2 * 3
    assert task.n_runs == 1 + 6 * 2 * 2
    assert [t.n_runs for t in animals().tasks(part())] == [9] * 4
    assert [t.n_runs for t in books().tasks(Only())] == [11] * 2
    assert len(every_product().tasks(Only())) == 6
