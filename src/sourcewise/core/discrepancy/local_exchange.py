"""What the reference and the sources tell each other for the ``local`` discrepancy.

The reference sends out fold models; a source answers with its losses under them (a few numbers),
with fold models of its own and their cross-fitted loss. The server judges the source's models on
the reference's rows. Nothing a source answers depends on another source, so sources can be asked in
any order, anywhere, and new ones added later.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sourcewise.core.data import FloatArray, IntArray, SourceData
from sourcewise.core.discrepancy.findings import Findings
from sourcewise.core.discrepancy.local import (
    Sample,
    from_cauchy,
    to_cauchy,
    two_sample_p_values,
)
from sourcewise.core.discrepancy.reference_models import ReferenceModels, from_raw, sample
from sourcewise.core.engine import Arrays, Message, Question
from sourcewise.core.family import Family, SourceRuns
from sourcewise.core.folds import named_seed, stratified_folds
from sourcewise.core.losses import BoundedLoss


def local_question(reference: ReferenceModels, seed: int) -> Question:
    """Ask for the ``local`` discrepancy."""
    message = Message(answer_local, local_sent(reference, seed))
    return Question(message, judge_local, {"reference": reference})


def local_sent(reference: ReferenceModels, seed: int) -> dict[str, Any]:
    """Return what a source is told: models, which of them are tested, how to fit its own.

    ``average`` is how each set of trusted rows averages the models' losses, (n_sets, n_models).
    The seed draws, with the source's name, the source's folds.
    """
    return {
        "family": reference.family,
        "setting": reference.setting,
        "loss": reference.loss,
        "models": reference.models,
        "average": reference.average,
        "tested": reference.tested,
        "n_folds": reference.folds.n_folds,
        "seed": seed,
    }


def answer_local(
    sources: SourceData,
    names: Sequence[Any],
    *,
    family: Family,
    setting: float,
    loss: BoundedLoss,
    models: Any,
    average: FloatArray,
    tested: IntArray,
    n_folds: int,
    seed: int,
) -> Arrays:
    """Answer for some sources at once."""
    losses = loss(family.predict(models, sources.X), sources.y)
    return {
        **measure_losses(sources, losses, average, tested),
        **fit_own(sources, names, family, setting, loss, n_folds, seed),
    }


def measure_losses(
    sources: SourceData, losses: FloatArray, average: FloatArray, tested: IntArray
) -> Arrays:
    """Tell what the reference's models lose on the rows of some sources, (n_models, n_rows).

    Means under each model, means of squares and cubes under those that are tested, and the variance
    of a row's loss under the models averaged as the whole reference does; NaN of one row.
    """

    def mean(of_rows: FloatArray) -> FloatArray:
        return per_source(sources, of_rows)

    return {
        "sizes": sources.sizes,
        "means": mean(losses),
        "squares": mean(losses[tested] ** 2),
        "cubes": mean(losses[tested] ** 3),
        "variance_under": np.where(
            sources.row_counts > 1, _variance(sources, average[0] @ losses), np.nan
        ),
    }


def per_source(sources: SourceData, of_rows: FloatArray) -> FloatArray:
    """Mean over the rows of each source."""
    weighted = of_rows * sources.row_shares
    return np.asarray(np.add.reduceat(weighted, sources.starts[:-1], axis=-1))


def _variance(sources: SourceData, of_rows: FloatArray) -> FloatArray:
    sizes = sources.sizes
    spread = np.maximum(per_source(sources, of_rows**2) - per_source(sources, of_rows) ** 2, 0.0)
    return np.asarray(spread * sizes / np.maximum(sizes - 1.0, 1e-9))


def fit_own(
    sources: SourceData,
    names: Sequence[Any],
    family: Family,
    setting: float,
    loss: BoundedLoss,
    n_folds: int,
    seed: int,
) -> Arrays:
    """Fit models of each source's own, each judged on the fold that it has not seen.

    Folds, and so own models, are along the axis before the last. A source of fewer rows has fewer;
    what stands in for the others counts nothing. One row has none.

    Returns
    -------
    dict
        The models, moments of their losses on the unseen fold, (4, n_folds, n_sources) as in
        `Sample`, the share of that fold in its source, the number of own models, the cross-fitted
        mean loss and the variance of a row's loss, NaN of one row.
    """
    X, y, shares, counts = sources.X, sources.y, sources.row_shares, sources.row_counts
    n_folds = min(n_folds, int(counts.max()))  # places cost memory, however many are asked for
    k = np.where(counts > 1, np.minimum(n_folds, counts), 0)
    fold = _own_folds(sources, names, k, seed)
    owner = sources.source_of_row
    model_of_row = np.concatenate([[0], np.cumsum(k)[:-1]])[owner] + fold
    judged = np.flatnonzero(counts[owner] > 1)
    own = np.full(len(y), np.nan)
    models: Any = np.zeros((0, 0))
    if len(judged):
        runs = SourceRuns(X, y, sources.sizes[owner] * shares, counts)
        models = family.fit_folds(runs, fold, k, setting)
        # As a rule all rows are, and need not be copied.
        rows = judged if len(judged) < len(y) else slice(None)
        by_own = family.predict_each(models, model_of_row[rows], X[rows])
        own[judged] = loss(by_own[None], y[judged])[0]
    unseen = _sample_by(model_of_row[judged], own[judged], shares[judged], int(k.sum()))
    masses = np.bincount(model_of_row[judged], shares[judged], int(k.sum())).astype(np.float64)
    no_rows = np.array([0.0, 0.0, 0.0, 1.0])
    return {
        "own_models": np.moveaxis(_in_places(models, k, n_folds), 0, -1),
        "own_moments": _in_places(np.stack(unseen, axis=-1), k, n_folds, no_rows).T,
        "own_masses": _in_places(masses, k, n_folds).T,
        "own_counts": k,
        "own_means": per_source(sources, own),
        "variance_own": _variance(sources, own),
    }


def _in_places(of_models: Any, k: IntArray, n_folds: int, empty: Any = 0.0) -> Any:
    """Lay out what there is of ``k`` models of each source in places (n_sources, n_folds)."""
    has_model = np.arange(n_folds) < k[:, None]
    if not isinstance(of_models, np.ndarray):  # estimators of the user's own
        places = np.full(has_model.shape, None, dtype=object)
        for place, model in zip(zip(*np.nonzero(has_model), strict=True), of_models, strict=True):
            places[place] = model
        return places
    places = np.empty((*has_model.shape, *of_models.shape[1:]), dtype=of_models.dtype)
    places[:] = empty
    places[has_model] = of_models
    return places


def _own_folds(sources: SourceData, names: Sequence[Any], n_folds: IntArray, seed: int) -> IntArray:
    return np.concatenate(
        [
            stratified_folds(
                sources.y[rows] if sources.n_classes else None,
                rows.stop - rows.start,
                max(int(k), 1),
                np.random.default_rng(named_seed(seed, name)),
            )
            for rows, k, name in zip(sources.slices(), n_folds, names, strict=True)
        ]
    )


def _sample_by(group: IntArray, losses: FloatArray, shares: FloatArray, n_groups: int) -> Sample:
    """Moments of the rows of each group."""
    mass = np.bincount(group, shares, minlength=n_groups)
    size = mass**2 / np.bincount(group, shares**2, minlength=n_groups)

    def mean_of(values: FloatArray) -> FloatArray:
        return np.bincount(group, shares * values, minlength=n_groups) / mass

    return from_raw(mean_of(losses), mean_of(losses**2), mean_of(losses**3), size)


def judge_local(answer: Arrays, reference: ReferenceModels) -> Findings:
    """Compare with the reference, whose rows judge the sources' own models.

    The two differences ``a`` and ``b`` and their standard errors, the models held fixed, are
    (n_sets, n_sources); ``b`` is NaN for a source too small to have a model of its own.
    """
    shares, own, size = reference.set_shares, reference.own, reference.set_sizes
    sizes, k = answer["sizes"], answer["own_counts"]
    tests = tested_losses(answer, reference)
    n_sources = len(sizes)
    foreign_mean = np.full((n_sources, len(shares)), np.nan)
    foreign_square = np.full((n_sources, len(shares)), np.nan)
    if k.any():
        has_model = np.arange(answer["own_masses"].shape[0]) < k[:, None]
        models = np.moveaxis(answer["own_models"], -1, 0)[has_model]
        X, y = reference.rows.X, reference.rows.y
        losses = reference.loss(reference.family.predict(models, X), y)
        fitted = np.flatnonzero(k)
        first = np.concatenate([[0], np.cumsum(k)[:-1]])[fitted]
        masses = answer["own_masses"].T[has_model]
        averaged = np.add.reduceat(masses[:, None] * losses, first, axis=0)
        foreign_mean[fitted] = averaged @ shares.T
        spread = averaged**2 @ shares.T - foreign_mean[fitted] ** 2
        foreign_square[fitted] = size * np.maximum(spread, 0.0)
        unseen = Sample(*answer["own_moments"].transpose(0, 2, 1)[:, has_model])
        by_model = to_cauchy(two_sample_p_values(unseen, sample(losses, shares[0])))
        own_tests = np.bincount(np.repeat(np.arange(n_sources), k), by_model, minlength=n_sources)
        tests = np.where(k > 0, 0.5 * (tests + own_tests / np.maximum(k, 1)), tests)

    def error(theirs: FloatArray, ours: FloatArray) -> FloatArray:
        # One row has no variance of its own; the reference's stands in.
        ours = ours / np.maximum(size - 1.0, 1e-9)[:, None]
        theirs = np.where(np.isnan(theirs), ours, theirs)
        return np.asarray(np.sqrt(theirs / sizes + ours / size[:, None]))

    return {
        "a": reference.average @ answer["means"] - own.mean[:, None],
        "b": foreign_mean.T - answer["own_means"],
        "error_a": error(answer["variance_under"], own.square[:, None]),
        "error_b": error(answer["variance_own"], foreign_square.T),
        "p_values": from_cauchy(tests),
    }


def tested_losses(answer: Arrays, reference: ReferenceModels) -> FloatArray:
    """Compare losses under the reference's models with those of its own rows: Cauchy quantiles."""
    means = answer["means"][reference.tested]
    theirs = from_raw(means, answer["squares"], answer["cubes"], answer["sizes"])
    ours = Sample(*(values[:, None] for values in reference.held_out))
    return np.asarray(to_cauchy(two_sample_p_values(theirs, ours)).mean(axis=0))
