r"""The ``combined`` discrepancy, of the default learners: three parts, each in units of a loss.

.. math::

    d_i = \tfrac12 \big(g_i + s(g_i)\big) + \tfrac25 L_0 r_i
          + \tfrac1{20} u_i \, \Phi\big(g_i / s(g_i)\big),

never quite zero, and never more than 1, as losses are; the same goes for a twentieth of
:math:`u_i`.

:math:`g_i` is the source's pull, a lower estimate of twice the discrepancy, and :math:`s` its
standard error. :math:`r_i` is how much of the reference's agreement with its own model the source
lacks, :math:`L_0` what knowing nothing costs. :math:`u_i` is how far its features lie; that counts
as far as the source is likely to do harm, with the probability :math:`\Phi(g_i / s(g_i))`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import ndtr

from sourcewise.core.choices import Choices
from sourcewise.core.data import FloatArray, IntArray, SourceData
from sourcewise.core.discrepancy.agreement import (
    agreement_known,
    agreement_sent,
    judge_agreement,
    measure_agreement,
)
from sourcewise.core.discrepancy.features import (
    describe_features,
    features_known,
    features_sent,
    judge_features,
)
from sourcewise.core.discrepancy.findings import Findings, OnAnswer, gather
from sourcewise.core.discrepancy.local import from_cauchy, to_cauchy
from sourcewise.core.discrepancy.local_exchange import (
    fit_own,
    judge_local,
    local_sent,
    measure_losses,
    tested_losses,
)
from sourcewise.core.discrepancy.pull import pull_question
from sourcewise.core.discrepancy.reference_models import ReferenceModels
from sourcewise.core.discrepancy.result import FAR_FEATURES, LACKING, Discrepancies, Witness
from sourcewise.core.engine import Arrays, Engine, Message, Question
from sourcewise.core.family import Family
from sourcewise.core.losses import BoundedLoss

TINY = 1e-9  # standard error of a pull that has none


def look_question(reference: ReferenceModels, seed: int, choices: Choices) -> Question:
    """Ask for local models, agreement and features at once.

    That is all that a source can answer without the reference's labelled rows.
    """
    agreement = agreement_sent(reference, choices)
    features = features_sent(reference.rows, choices)
    known = {
        "reference": reference,
        "agreement": agreement_known(reference, agreement, choices),
        "features": features_known(features, choices),
    }
    sent = {**local_sent(reference, seed), **agreement, **features}
    return Question(Message(answer_look, sent), judge_look, known)


def answer_look(
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
    centre: FloatArray,
    n_classes: int,
    farthest: float,
    X: FloatArray,
    shares: FloatArray,
    most_rows: int,
    least_rows: int,
) -> Arrays:
    """Answer for some sources; they predict with the reference's models once."""
    predicted = family.predict(models, sources.X)
    return {
        **measure_losses(sources, loss(predicted, sources.y), average, tested),
        **fit_own(sources, names, family, setting, loss, n_folds, seed),
        **measure_agreement(sources, predicted, centre, average, n_classes, farthest),
        **describe_features(sources, X, shares, most_rows, least_rows),
    }


def judge_look(
    answer: Arrays,
    reference: ReferenceModels,
    agreement: dict[str, Any],
    features: dict[str, Any],
) -> Findings:
    """Judge each part by itself."""
    return {
        **judge_local(answer, reference),
        **judge_agreement(answer, **agreement),
        **judge_features(answer, **features),
    }


def find(
    sources: Engine,
    reference: ReferenceModels,
    seed: int,
    choices: Choices,
    asked: Sequence[int] | None = None,
    on_answer: OnAnswer | None = None,
) -> Findings:
    """Ask some sources (by default all) all that there is to ask.

    ``on_answer`` is told how many sources have just answered; each does so twice.
    """
    look = gather(sources.ask(look_question(reference, seed, choices), asked), on_answer)
    return {**look, **gather(sources.ask(pull_question(reference), asked), on_answer)}


def combined_values(findings: Findings, know_nothing: float, choices: Choices) -> FloatArray:
    """Discrepancies in every set, (n_sets, n_sources).

    ``know_nothing`` is the mean loss on the reference of a model that knows its labels'
    frequencies only.
    """
    together = unlimited_values(findings, know_nothing, choices)
    return np.asarray(np.clip(together, choices.nearest, 1.0))


def unlimited_values(findings: Findings, know_nothing: float, choices: Choices) -> FloatArray:
    """Return the sum of the parts, which may be negative: what a standard error is of."""
    return np.asarray(np.sum(combined_parts(findings, know_nothing, choices), axis=0))


def combined_parts(findings: Findings, know_nothing: float, choices: Choices) -> FloatArray:
    """Return what pull, agreement and features each say, (3, n_sets, n_sources)."""
    pulls, errors = findings["pulls"], findings["pull_errors"]
    harm = ndtr(pulls / np.maximum(errors, TINY))
    far = np.minimum(choices.farness * findings["far"], 1.0)
    return np.stack(
        [
            choices.pulled * (pulls + errors),  # what they may well be
            choices.missed * know_nothing * findings["missing"],
            far * harm,
        ]
    )


def random_labels_worth(know_nothing: float, gain: float, choices: Choices) -> float:
    """Discrepancy of a source as large as the reference whose labels are all random.

    All of the agreement is missing. The joint model, one half of whose rows know nothing, explains
    half of what the reference's model does, which costs a quarter of the ``gain``: a pull of half.
    """
    return choices.missed * know_nothing + choices.pulled * 0.5 * max(gain, 0.0)


WITNESSES = (Witness("joint model", "reference"), LACKING, FAR_FEATURES)  # as the parts


def combined_discrepancies(
    findings: Findings, know_nothing: float, choices: Choices
) -> Discrepancies:
    """Values, standard errors and witnesses on the whole reference.

    The witness is the part that says most against a source. Features have no standard error.
    """
    parts = combined_parts(findings, know_nothing, choices)[:, 0]
    return Discrepancies(
        combined_values(findings, know_nothing, choices)[0],
        np.hypot(
            choices.pulled * findings["pull_errors"][0],
            choices.missed * know_nothing * findings["missing_errors"],
        ),
        findings["p_values"],
        tuple(WITNESSES[k] for k in parts.argmax(axis=0)),
    )


# -- models of any kind ----------------------------------------------------------------------------


def any_model_question(reference: ReferenceModels, choices: Choices) -> Question:
    """Ask what models of any kind know of sources: all that is asked where models are dear.

    The default learners are fitted to a source by itself and beside the reference. An estimator of
    the user's own is fitted to the reference's folds only, and a source answers how well these
    models know its labels and what they lose on its rows. That costs predictions, and shows a
    source which misleads models of this kind, though perhaps no line. The p-value tests each fold
    model as the ``local`` discrepancy does.
    """
    agreement = agreement_sent(reference, choices)
    sent = {
        "family": reference.family,
        "models": reference.models,
        "loss": reference.loss,
        "tested": reference.tested,
        **agreement,
    }
    known = {
        "reference": reference,
        "agreement": agreement_known(reference, agreement, choices),
    }
    return Question(Message(answer_any_model, sent), judge_any_model, known)


def answer_any_model(
    sources: SourceData,
    names: Sequence[Any],
    *,
    family: Family,
    models: Any,
    loss: BoundedLoss,
    tested: IntArray,
    **agreement: Any,
) -> Arrays:
    """Answer for some sources; they predict once."""
    predicted = family.predict(models, sources.X)
    losses = loss(predicted, sources.y)
    return {
        **measure_losses(sources, losses, agreement["average"], tested),
        **measure_agreement(sources, predicted, **agreement),
    }


def judge_any_model(
    answer: Arrays, reference: ReferenceModels, agreement: dict[str, Any]
) -> Findings:
    """Compare with the reference's own unseen rows."""
    p_values = from_cauchy(tested_losses(answer, reference))
    return {**judge_agreement(answer, **agreement), "p_values": p_values}


def any_model_values(findings: Findings, know_nothing: float, choices: Choices) -> FloatArray:
    """Discrepancies in every set, (n_sets, n_sources): what the agreement lacks."""
    lacking = choices.missed * know_nothing * findings["missing"]
    return np.asarray(np.clip(lacking, choices.nearest, 1.0))


def any_model_discrepancies(
    findings: Findings, know_nothing: float, choices: Choices
) -> Discrepancies:
    """Values, standard errors and witnesses on the whole reference."""
    values = any_model_values(findings, know_nothing, choices)[0]
    errors = choices.missed * know_nothing * findings["missing_errors"]
    return Discrepancies(values, errors, findings["p_values"], (LACKING,) * len(values))


def larger_of(one: Discrepancies, other: Discrepancies) -> Discrepancies:
    """Take from each source what says more against it, and test by both."""
    first = one.values >= other.values
    tests = 0.5 * (to_cauchy(one.p_values) + to_cauchy(other.p_values))
    return Discrepancies(
        np.maximum(one.values, other.values),
        np.where(first, one.standard_errors, other.standard_errors),
        from_cauchy(tests),
        tuple(
            a if chosen else b
            for a, b, chosen in zip(one.witnesses, other.witnesses, first, strict=True)
        ),
    )
