r"""The ``combined`` discrepancy, of the default learners: all that can be found out together.

.. math::

    d_i &= k_i + \max\big( \tfrac1{20} f_i \, \pi_i, \; \tfrac1{20} u_i \, (2 \pi_i - 1) \big),
    \qquad \pi_i = \Phi\big(g_i / s(g_i)\big), \\
    k_i &= \tfrac12 \big(g_i + s(g_i)\big) + \tfrac25 L_0 r_i
          + \tfrac14 \max\big(b_i - 3 s(b_i), 0\big),

both :math:`k_i` and :math:`d_i` never quite zero, and never more than 1, as losses are; the same
goes for each of the two twentieths.

:math:`g_i` is the source's pull, a lower estimate of twice the discrepancy. :math:`r_i` is how much
of the reference's agreement with its own model the source lacks, :math:`L_0` what knowing nothing
costs. The source's own model speaks through :math:`b_i`, where it is beyond doubt. :math:`u_i` is
how far its features lie, :math:`f_i` how much farther than those of the nearest sources. That
excess counts as far as the source is likely to pull the wrong way, with probability
:math:`\pi_i`; the whole distance as far as that is likelier than not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr

from sourcewise.core.choices import CombinedChoices
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
    beyond_nearest,
)
from sourcewise.core.discrepancy.findings import OnAnswer, gather
from sourcewise.core.discrepancy.local import LocalFindings
from sourcewise.core.discrepancy.local_exchange import LocalAnswer, LocalMessage, LocalQuestion
from sourcewise.core.discrepancy.pull import PullQuestion, Pulls
from sourcewise.core.discrepancy.reference_models import ReferenceModels
from sourcewise.core.discrepancy.result import FAR_FEATURES, LACKING, Discrepancies, Witness
from sourcewise.core.engine import Engine


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
    choices: CombinedChoices

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
    choices: CombinedChoices,
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


def combined_values(
    findings: Findings, know_nothing: float, choices: CombinedChoices
) -> FloatArray:
    """Discrepancies in every set, (n_sets, n_sources).

    ``know_nothing`` is the mean loss on the reference of a model that knows its labels'
    frequencies only.
    """
    pulled, missed, failed, farther = _parts(findings, know_nothing, choices)
    known = _within_limits(pulled + missed + failed, choices)
    far = np.maximum(farther, _far_and_harmful(findings, choices))
    return _within_limits(known + far, choices)


def _parts(
    findings: Findings, know_nothing: float, choices: CombinedChoices
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return what pulls, agreement, sources' own models and features each say, in every set.

    Features speak by what exceeds the nearest sources.
    """
    look, pulls = findings.look, findings.pulls
    beyond_doubt = look.local.b - choices.beyond_doubt * look.local.error_b
    beyond = beyond_nearest(look.features.values, choices.natural_share, choices.natural_margin)
    return (
        choices.pulled * pulls.upper,
        choices.missed * know_nothing * look.agreement.missing,
        choices.failed * np.maximum(np.nan_to_num(beyond_doubt, nan=0.0), 0.0),
        _far(beyond, choices) * _wrong_way(pulls),
    )


def _far_and_harmful(findings: Findings, choices: CombinedChoices) -> FloatArray:
    """Return what the whole distance says against sources likelier to do harm than good."""
    likelier = np.maximum(2.0 * _wrong_way(findings.pulls) - 1.0, 0.0)
    return np.asarray(_far(findings.look.features.values, choices) * likelier)


def _wrong_way(pulls: Pulls) -> FloatArray:
    """Return how likely each source is to pull the wrong way."""
    return np.asarray(ndtr(pulls.values / np.maximum(pulls.errors, 1e-9)))


def _far(distances: FloatArray, choices: CombinedChoices) -> FloatArray:
    return np.asarray(np.minimum(choices.farness * distances, 1.0))


def _within_limits(values: FloatArray, choices: CombinedChoices) -> FloatArray:
    return np.asarray(np.clip(values, choices.nearest, 1.0))


# In the order of the parts.
WITNESSES = (
    Witness("joint model", "reference"),
    LACKING,
    Witness("source model", "reference"),
    FAR_FEATURES,
)


def combined_discrepancies(
    findings: Findings, know_nothing: float, choices: CombinedChoices
) -> Discrepancies:
    """Values, standard errors and witnesses on the whole reference.

    The witness is whatever says most against a source. Where all sources lie far, features do not
    distinguish one with wrong labels from others, unless they are of another order of magnitude. A
    source's own model adds to the standard error where it speaks, features have none.
    """
    look = findings.look
    parts = np.stack([part[0] for part in _parts(findings, know_nothing, choices)])
    far = WITNESSES.index(FAR_FEATURES)
    harm = _far_and_harmful(findings, choices)[0]
    other_units = look.features.values > choices.other_units
    parts[far] = np.maximum(parts[far], np.where(other_units, harm, 0.0))
    pulled = choices.pulled * findings.pulls.errors[0]
    agreed = choices.missed * know_nothing * look.agreement.missing_errors
    own_model = np.where(parts[2] > 0, choices.failed * look.local.error_b[0], 0.0)
    return Discrepancies(
        combined_values(findings, know_nothing, choices)[0],
        np.hypot(np.hypot(pulled, agreed), own_model),
        look.local.p_values,
        tuple(WITNESSES[k] for k in parts.argmax(axis=0)),
    )
