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
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr

from sourcewise.core.choices import Choices
from sourcewise.core.data import FloatArray, SourceData
from sourcewise.core.discrepancy.agreement import (
    Agreement,
    AgreementAnswer,
    AgreementMessage,
    AgreementQuestion,
)
from sourcewise.core.discrepancy.features import (
    FeatureAnswer,
    FeatureDistances,
    FeatureMessage,
    FeatureQuestion,
)
from sourcewise.core.discrepancy.findings import OnAnswer, gather
from sourcewise.core.discrepancy.local import LocalFindings
from sourcewise.core.discrepancy.local_exchange import LocalAnswer, LocalMessage, LocalQuestion
from sourcewise.core.discrepancy.pull import PullQuestion, Pulls
from sourcewise.core.discrepancy.reference_models import ReferenceModels
from sourcewise.core.discrepancy.result import FAR_FEATURES, LACKING, Discrepancies, Witness
from sourcewise.core.engine import Engine

TINY = 1e-9  # standard error of a pull that has none


@dataclass(frozen=True)
class Look:
    """What one look at some sources finds: see the three parts."""

    local: LocalFindings
    agreement: Agreement
    features: FeatureDistances


@dataclass(frozen=True)
class LookAnswer:
    """What some sources answer to one look."""

    local: LocalAnswer
    agreement: AgreementAnswer
    features: FeatureAnswer


@dataclass(frozen=True)
class LookMessage:
    """One message for all that a source can answer without the reference's labelled rows."""

    rows_beside: ClassVar[int] = 0

    local: LocalMessage
    agreement: AgreementMessage
    features: FeatureMessage

    def answer(self, sources: SourceData, names: Sequence[Any]) -> LookAnswer:
        """Answer for some sources; they predict with the reference's models once."""
        predicted = self.local.family.predict(self.local.models, sources.X)
        return LookAnswer(
            self.local.answer(sources, names, predicted),
            self.agreement.answer(sources, names, predicted),
            self.features.answer(sources, names),
        )


@dataclass(frozen=True)
class LookQuestion:
    """Local models, agreement and features in one question."""

    reference: ReferenceModels
    seed: int
    choices: Choices

    @cached_property
    def _parts(self) -> tuple[LocalQuestion, AgreementQuestion, FeatureQuestion]:
        reference = self.reference
        return (
            LocalQuestion(reference, self.seed),
            AgreementQuestion(reference, self.choices),
            FeatureQuestion(reference.rows, self.choices),
        )

    @cached_property
    def message(self) -> LookMessage:
        """What has to be sent to the sources."""
        local, agreement, features = self._parts
        return LookMessage(local.message, agreement.message, features.message)

    def judge(self, answer: LookAnswer) -> Look:
        """Judge each part by itself."""
        local, agreement, features = self._parts
        return Look(
            local.judge(answer.local),
            agreement.judge(answer.agreement),
            features.judge(answer.features),
        )


@dataclass(frozen=True)
class Findings:
    """All that is known of some sources, on the whole reference and without each fold of it."""

    look: Look
    pulls: Pulls


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
    return Findings(
        gather(sources.ask(LookQuestion(reference, seed, choices), asked), on_answer),
        gather(sources.ask(PullQuestion(reference), asked), on_answer),
    )


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
    pulls = findings.pulls
    harm = ndtr(pulls.values / np.maximum(pulls.errors, TINY))
    far = np.minimum(choices.farness * findings.look.features.values, 1.0)
    return np.stack(
        [
            choices.pulled * pulls.upper,
            choices.missed * know_nothing * findings.look.agreement.missing,
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
    look = findings.look
    return Discrepancies(
        combined_values(findings, know_nothing, choices)[0],
        np.hypot(
            choices.pulled * findings.pulls.errors[0],
            choices.missed * know_nothing * look.agreement.missing_errors,
        ),
        look.local.p_values,
        tuple(WITNESSES[k] for k in parts.argmax(axis=0)),
    )
