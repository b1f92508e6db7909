"""The discrepancies by name: one registry, and what each name computes.

Everything that measures discrepancies goes through `measure`: the estimators, the function for
those who train elsewhere, the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from sourcewise.core.choices import Choices
from sourcewise.core.data import FloatArray, ReferenceRows
from sourcewise.core.discrepancy.combined import (
    answer_look,
    any_model_discrepancies,
    any_model_question,
    any_model_values,
    combined_discrepancies,
    combined_values,
    find,
    larger_of,
    random_labels_worth,
    unlimited_values,
)
from sourcewise.core.discrepancy.cross_fit import (
    answer_cross_fit,
    compare_cross_fit,
    cross_fit_question,
)
from sourcewise.core.discrepancy.findings import Findings, OnAnswer, concat_findings, gather
from sourcewise.core.discrepancy.local import local_discrepancies, local_values
from sourcewise.core.discrepancy.local_exchange import answer_local, local_question
from sourcewise.core.discrepancy.permutation import (
    Comparable,
    own_span_question,
    permutation_question,
)
from sourcewise.core.discrepancy.plug_in import answer_plug_in, compare_plug_in, plug_in_question
from sourcewise.core.discrepancy.power import LabelTest
from sourcewise.core.discrepancy.pull import answer_pull
from sourcewise.core.discrepancy.reference_folds import ReferenceFolds
from sourcewise.core.discrepancy.reference_models import ReferenceModels
from sourcewise.core.discrepancy.result import Discrepancies, with_variation
from sourcewise.core.discrepancy.separation import separation_discrepancies, separation_values
from sourcewise.core.engine import Arrays, Engine, Question
from sourcewise.core.family import Family
from sourcewise.core.losses import BoundedLoss
from sourcewise.core.sparse_rows import SparseRows

WORST_VARIANCE = 0.25  # of any loss between 0 and 1


@dataclass(frozen=True)
class Survey:
    """All that measuring discrepancies needs: who is asked, and what they are compared with."""

    sources: Engine  # the untrusted sources, as the learner sees them
    reference: ReferenceRows
    name: object  # of the reference
    folds: ReferenceFolds
    family: Family
    setting: float  # regularisation of local models
    loss: BoundedLoss
    seed: int
    choices: Choices
    # The same rows as numbers with a constant column, for the linear discrepancies.
    numbers: tuple[Engine, ReferenceRows] | None = None
    n_permutations: int = 0  # of tests that permute rows; 0 for no p-values from these
    with_folds: bool = True  # whether values without each validation fold are needed
    on_answer: OnAnswer | None = None  # told how many sources have just answered
    # The same of the default learner, which judges the sources beside a family of another kind.
    linear: Survey | None = None

    @cached_property
    def models(self) -> ReferenceModels:
        """The reference's fold models."""
        return ReferenceModels.fit(self.reference, self.folds, self.family, self.setting, self.loss)

    @cached_property
    def know_nothing(self) -> float:
        """Mean loss on the reference of a model that knows frequencies or the mean only."""
        return know_nothing_loss(self.reference, self.loss)


def know_nothing_loss(
    reference: ReferenceRows, loss: Callable[[FloatArray, Any], FloatArray]
) -> float:
    """Mean loss on the reference of a guess by its class frequencies or its mean only."""
    y, shares = reference.y, reference.shares
    guesses: FloatArray
    if reference.n_classes:
        guess: Any = np.bincount(y, weights=shares, minlength=reference.n_classes)
        guesses = np.broadcast_to(guess, (len(y), len(guess)))
    else:
        guesses = np.full(len(y), y @ shares)
    return float(loss(guesses, y) @ shares)


@dataclass(frozen=True)
class Measured:
    """What has been measured of the untrusted sources, in their order."""

    result: Discrepancies  # on the whole reference
    # (n_validation_folds, n_sources); values measured without each validation fold; no rows where
    # no fold was asked for.
    without_fold: FloatArray
    # Variance of a reference row's loss, for questions about the reference's size.
    reference_variance: float
    # By how much the reference's own model beats knowing nothing, in mean loss.
    reference_gain: float
    # For the question which sources p-values find; None where permutations give them.
    label_test: LabelTest | None = None
    # The default learner's part, where models of another kind have been asked too.
    linear: Measured | None = None


LINEAR_PART, OWN_PART = "linear", "own"  # findings of both, beside an estimator of the user's own


class Method(NamedTuple):
    """A discrepancy: what is asked of sources, and what follows from all answers together.

    Findings about further sources can be put behind earlier ones; ``findings`` are the names of
    their arrays, of each learner that there may be.
    """

    find: Callable[[Survey, Sequence[int]], Findings]
    conclude: Callable[[Survey, Findings], Measured]
    findings: tuple[tuple[str, ...], ...]
    not_by_set: tuple[str, ...] = ()  # of several axes, but not one for each set of trusted rows
    may_be_unknown: tuple[str, ...] = ()  # NaN, of a source of one row for example


# -- combined and local: the learner's own models --------------------------------------------


def _find_local(survey: Survey, asked: Sequence[int]) -> Findings:
    return gather(
        survey.sources.ask(local_question(survey.models, survey.seed), asked), survey.on_answer
    )


def _conclude_local(survey: Survey, found: Findings) -> Measured:
    return _measured(survey, local_discrepancies(found), local_values(found)[1:])


def _find_combined(survey: Survey, asked: Sequence[int]) -> Findings:
    """Ask by the survey's learner, and by the default one as well if that is another."""
    how = survey.choices
    if survey.family.linear:
        return find(survey.sources, survey.models, survey.seed, how, asked, survey.on_answer)
    question = any_model_question(survey.models, how)
    if survey.linear is None:
        return gather(survey.sources.ask(question, asked), survey.on_answer)
    own = gather(survey.sources.ask(question, asked))
    return {LINEAR_PART: _find_combined(survey.linear, asked), OWN_PART: own}


def _conclude_combined(survey: Survey, found: Findings) -> Measured:
    if LINEAR_PART in found:
        return _conclude_both(survey, found)
    how = survey.know_nothing, survey.choices
    if "pulls" not in found:  # of models of any kind
        values = any_model_values(found, *how)
        measured = _measured(survey, any_model_discrepancies(found, *how), values[1:])
        return _with_worth(measured, random_labels_worth(survey.know_nothing, 0.0, how[1]), 0.0)
    measured = _measured(
        survey,
        combined_discrepancies(found, *how),
        combined_values(found, *how)[1:],
        unlimited_values(found, *how)[1:],
    )
    worth = random_labels_worth(survey.know_nothing, measured.reference_gain, survey.choices)
    noise = survey.choices.pulled * float(np.median(found["pull_errors"][0]))
    return _with_worth(measured, worth, noise)


def _with_worth(measured: Measured, worth: float, noise: float) -> Measured:
    """Say what random labels are worth in this discrepancy, and what noise is."""
    assert measured.label_test is not None
    return replace(measured, label_test=replace(measured.label_test, worth=worth, noise=noise))


def _conclude_both(survey: Survey, found: Findings) -> Measured:
    """Take from each source what says more against it; the better learner says what is known.

    The default learner's folds begin with those of the other family.
    """
    assert survey.linear is not None
    linear = _conclude_combined(survey.linear, found[LINEAR_PART])
    own = _conclude_combined(survey, found[OWN_PART])
    n_sets = len(own.without_fold)
    better = own if own.reference_gain > linear.reference_gain else linear
    return Measured(
        larger_of(linear.result, own.result),
        np.maximum(linear.without_fold[:n_sets], own.without_fold),
        better.reference_variance,
        better.reference_gain,
        better.label_test,
        linear,
    )


def _measured(
    survey: Survey,
    result: Discrepancies,
    without_fold: FloatArray,
    unlimited: FloatArray | None = None,
) -> Measured:
    """Judge the reference itself, and count the models' variability in the standard errors."""
    varying = without_fold if unlimited is None else unlimited
    own = survey.models.cross_fitted[0]
    gain = survey.know_nothing - float(own @ survey.reference.shares)
    # The studies survey the reference before there are sources.
    sizes = survey.sources.sizes if len(survey.sources.sizes) else [len(survey.reference.y)]
    return Measured(
        with_variation(result, varying, survey.folds.n_folds),
        without_fold,
        float(own.var(ddof=1)),
        gain,
        LabelTest.of(survey.models, float(np.median(sizes)), survey.seed),
    )


# -- plug-in and cross-fit: linear models that separate a source from the reference -----------


def _find_plug_in(survey: Survey, asked: Sequence[int]) -> Findings:
    ridge = {"ridge": survey.choices.ridge}
    return _find_linear(survey, asked, plug_in_question, ridge, compare_plug_in, ridge)


def _find_cross_fit(survey: Survey, asked: Sequence[int]) -> Findings:
    _, reference, _ = _in_numbers(survey)
    how = {
        "n_folds": survey.folds.n_folds,
        "seed": survey.seed,
        "relative_ridge": survey.choices.relative_ridge,
    }
    options = {**how, "name": survey.name, "n_features": reference.X.shape[1]}
    test = {**how, "reference_name": survey.name}
    return _find_linear(survey, asked, cross_fit_question, options, compare_cross_fit, test)


def _in_numbers(survey: Survey) -> tuple[Engine, ReferenceRows, FloatArray]:
    """Return sources and reference as numbers, and the reference's row shares in every set."""
    assert survey.numbers is not None  # the estimators see to it
    sources, reference = survey.numbers
    if survey.with_folds:
        return sources, reference, survey.folds.set_shares(reference.shares)
    return sources, reference, reference.shares[None]


def _find_linear(
    survey: Survey,
    asked: Sequence[int],
    asking: Callable[..., Question],
    options: dict[str, Any],
    compare: Callable[..., Comparable],
    test: dict[str, Any],
) -> Findings:
    """Ask for differences at separating models and for p-values, which may need all rows."""
    sources, reference, shares = _in_numbers(survey)
    permuted = permutation_question(reference, compare, test, survey.n_permutations, survey.seed)
    tested = gather(sources.ask(permuted, asked))
    options = {"set_shares": shares, **options}
    if isinstance(reference.X, SparseRows):
        question = own_span_question(asking, reference, options)
    else:
        fewer = sources.in_row_space(reference.X)
        if fewer is not None:
            sources, space = fewer
            reference = reference.with_features(space.X)
        question = asking(reference, **options)
    return {**gather(sources.ask(question, asked), survey.on_answer), **tested}


def _conclude_linear(survey: Survey, found: Findings) -> Measured:
    n_classes = survey.reference.n_classes
    return Measured(
        separation_discrepancies(found, n_classes),
        separation_values(found)[1:],
        reference_variance=WORST_VARIANCE,
        # What a coin loses on it.
        reference_gain=0.5 if n_classes else 0.25,
    )


LOCAL = ("a", "b", "error_a", "error_b", "p_values")
ANY_MODEL = ("missing", "missing_errors", "p_values")
COMBINED = tuple(sorted({*LOCAL, *ANY_MODEL, "far", "pull_errors", "pulls"}))
SEPARATION = ("difference_errors", "differences", "p_values")
UNKNOWN = ("b",)
SEPARATED = ("difference_errors",), ("p_values",)
DISCREPANCIES: dict[str, Method] = {
    "combined": Method(
        _find_combined, _conclude_combined, (COMBINED, ANY_MODEL), may_be_unknown=UNKNOWN
    ),
    "local": Method(_find_local, _conclude_local, (LOCAL,), may_be_unknown=UNKNOWN),
    "cross-fit": Method(_find_cross_fit, _conclude_linear, (SEPARATION,), *SEPARATED),
    "plug-in": Method(_find_plug_in, _conclude_linear, (SEPARATION,), *SEPARATED),
}
# Who answers a question, by the name that owners of data know it by; permutations need all rows.
ANSWERED_BY: dict[str, Callable[..., Arrays]] = {
    "look": answer_look,
    "local": answer_local,
    "pull": answer_pull,
    "plug-in": answer_plug_in,
    "cross-fit": answer_cross_fit,
}
LINEAR = ("cross-fit", "plug-in")  # of numbers, whatever the learner


def measure(
    name: str, survey: Survey, asked: Sequence[int], known: Findings | None = None
) -> tuple[Measured, Findings | None]:
    """Measure the sources at positions ``asked``; also returns the findings.

    ``known`` are findings about the sources before them, which are not asked again.
    """
    method = DISCREPANCIES[name]
    found = known
    if len(asked):
        found = method.find(survey, asked)
        if known is not None:
            found = concat_findings([known, found])
    if found is None:
        n_sets = len(survey.folds.held_out) if survey.with_folds else 0
        nothing = np.zeros((n_sets, 0))
        return Measured(Discrepancies.of_reference(0), nothing, WORST_VARIANCE, np.nan), None
    return method.conclude(survey, found), found
