"""What the notes of a report say beyond the table."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

import sourcewise as sw
from sourcewise.core.choices import PAPER
from sourcewise.estimators.closer_look import Seen, _suspicions

NAMES = ("gold", "a", "b", "c")


def rows(seed=0, trusted=200, n=300, d=6):
    """Draw four sources around ten centres, the labels right but for a few."""
    rng = np.random.default_rng(seed)
    centres = 3.0 * np.random.default_rng(99).normal(size=(10, d))
    counts = [trusted, n, n, n]
    group = rng.integers(10, size=sum(counts))
    X = centres[group] + rng.normal(size=(len(group), d))
    y = (X @ np.arange(1, d + 1) > 0) ^ (rng.random(len(group)) < 0.05)
    return X, y.astype(int), np.repeat(NAMES, counts), group


def fit(X, y, s, **how):
    kind = sw.SourceWeightedRegressor if y.dtype.kind == "f" else sw.SourceWeightedClassifier
    return kind(reference="gold", random_state=0, **how).fit(X, y, sources=s)


def flipped(seed=0, **how):
    X, y, s, group = rows(seed, **how)
    return X, np.where((s == "b") & (group == 4), 1 - y, y), s


def about(model, words):
    return [note for note in model.report().notes if words in note]


def test_nothing_is_said_of_clean_sources():
    for seed in range(6):
        X, y, s, _ = rows(seed)
        assert fit(X, y, s, strict=True).report().notes == ()
        score = X @ np.arange(6.0) + np.random.default_rng(seed).normal(size=len(X))
        assert fit(X, score, s).report().notes == ()


@pytest.mark.parametrize("sparse", [False, True])
def test_a_flipped_tenth_is_found_as_a_rule(sparse):
    kind = scipy.sparse.csr_array if sparse else np.asarray
    found = []
    for seed in range(10):
        X, y, s = flipped(seed)
        found.append(about(fit(kind(X), y, s, strict=True), "'b' goes against your reference"))
    assert sum(map(bool, found)) >= 8
    assert "in one region (feature" in next(filter(None, found))[0]


def test_it_is_a_warning_and_no_weight(monkeypatch):
    X, y, s = flipped()
    found = fit(X, y, s)
    monkeypatch.setattr(type(found), "_look_closer", lambda *_: Seen())
    assert np.array_equal(fit(X, y, s).source_weights_, found.source_weights_)
    assert about(found, "goes against") == []


def test_columns_are_named():
    X, y, s = flipped()
    frame = pd.DataFrame(X, columns=list("uvwxyz"))
    (note,) = about(fit(frame, y, s), "goes against")
    assert "high '" in note or "low '" in note


def test_noisy_numbers_are_named_even_if_they_do_no_harm():
    X, _, s, _ = rows()
    rng = np.random.default_rng(0)
    y = 145.0 * (X @ np.arange(6.0) + rng.normal(size=len(X)))
    y[s == "b"] += 250.0 * rng.normal(size=(s == "b").sum())
    (note,) = about(fit(X, y, s), "scatter")
    assert note.startswith("The labels of 'b' scatter")
    assert " 2.0 times" in note or " 1.9 times" in note or " 1.8 times" in note


def test_a_region_without_trusted_rows_is_named():
    X, y, s, group = rows(n=400)
    kept = ~((s == "gold") & np.isin(group, [2, 4]))
    (note, *_) = about(fit(X[kept], y[kept], s[kept]), "nobody checked")
    assert "lie in a region" in note


def test_notes_are_kept_with_the_model(tmp_path):
    X, y, s = flipped()
    found = fit(X, y, s)
    sw.save(found, tmp_path / "m.skops")
    assert about(found, "goes against")
    assert sw.load(tmp_path / "m.skops").report().notes == found.report().notes
    assert fit(X, y, s, keep_data=False).report().notes == found.report().notes


@pytest.mark.parametrize("how", [{"protocol": "paper"}, {"trade_off": 0.0}])
def test_the_paper_looks_no_closer(how):
    X, y, s = flipped()
    assert bool(about(fit(X, y, s, **how), "goes against")) == ("protocol" not in how)
    assert not PAPER.only_varying


@pytest.mark.parametrize("discrepancy", ["local", "cross-fit", "plug-in"])
def test_every_discrepancy_has_them(discrepancy):
    assert about(fit(*flipped(), discrepancy=discrepancy), "'b' goes against")


def test_a_reference_without_sources_has_none():
    X, y, s, _ = rows()
    own = s == "gold"
    assert fit(X[own], y[own], s[own]).report().notes == ()


def test_a_source_whose_rows_are_all_in_one_region_agrees_nowhere_else():
    """Nothing is known of it elsewhere, so it is no matter of a region."""
    rng = np.random.default_rng(0)
    regions = SimpleNamespace(
        own=np.arange(200) % 2, others=np.zeros(100, dtype=int), columns=(((0, True),),) * 2
    )
    wrong = np.ones(100), (rng.random(200) < 0.1).astype(float)
    found = _suspicions(regions, [1], np.ones(100, dtype=int), wrong, wrong, level=0.05)
    assert found == []


def test_trusted_rows_that_a_source_labelled_are_known_though_numbers_are_rounded():
    """Of whole numbers two rows may be equal by chance, but not fifty of them."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 12, (520, 8)).astype(float)
    y = 1000.0 * X[:, 0] + rng.normal(size=520)
    X[150:200], y[150:200] = X[:50], y[:50] + 12_345.0
    names = np.repeat(["gold", "north", "south"], [120, 200, 200])
    model = sw.SourceWeightedRegressor(reference="gold", random_state=0).fit(X, y, sources=names)
    (said,) = [note for note in model.report().notes if "labelled 50 of your trusted" in note]
    assert said.startswith("'north'") and "+12,300" in said
