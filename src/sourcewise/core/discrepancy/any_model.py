r"""What fold models of any kind know of each source: all that is asked where models are dear.

The default learners are fitted to a source by itself and beside the reference. An estimator of
the user's own is fitted to the reference's folds only, and a source answers how well these models
know its labels (its agreement) and what they lose on its rows. That costs predictions, and shows
a source which misleads models of this kind, though perhaps no line.

The p-value tests each fold model as the ``local`` discrepancy does, by its losses on rows that it
has not seen on either side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from sourcewise.core.choices import Choices
from sourcewise.core.data import FloatArray, IntArray, SourceData
from sourcewise.core.discrepancy.agreement import (
    agreement_known,
    agreement_sent,
    judge_agreement,
    measure_agreement,
)
from sourcewise.core.discrepancy.findings import Findings
from sourcewise.core.discrepancy.local import from_cauchy, to_cauchy
from sourcewise.core.discrepancy.local_exchange import measure_losses, tested_losses
from sourcewise.core.discrepancy.reference_models import ReferenceModels
from sourcewise.core.discrepancy.result import LACKING, Discrepancies
from sourcewise.core.engine import Arrays, Message, Question
from sourcewise.core.family import Family
from sourcewise.core.losses import BoundedLoss


def any_model_question(reference: ReferenceModels, choices: Choices) -> Question:
    """Ask what models of any kind know of sources."""
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
