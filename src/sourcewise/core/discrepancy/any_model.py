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
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from sourcewise.core.choices import Choices
from sourcewise.core.data import FloatArray, SourceData
from sourcewise.core.discrepancy.agreement import (
    Agreement,
    AgreementAnswer,
    AgreementMessage,
    AgreementQuestion,
)
from sourcewise.core.discrepancy.local import (
    Sample,
    from_cauchy,
    to_cauchy,
    two_sample_p_values,
)
from sourcewise.core.discrepancy.reference_models import ReferenceModels, from_raw
from sourcewise.core.discrepancy.result import LACKING, Discrepancies
from sourcewise.core.losses import BoundedLoss


@dataclass(frozen=True)
class AnyModelFindings:
    """What the reference's fold models know of some sources.

    Attributes
    ----------
    agreement : Agreement
    p_values : array of shape (n_sources,)
        Against "same distribution as the reference".
    """

    agreement: Agreement
    p_values: FloatArray


@dataclass(frozen=True)
class AnyModelAnswer:
    """Agreement of some sources, and means of powers of their losses, (n_models, n_sources)."""

    agreement: AgreementAnswer
    means: FloatArray
    squares: FloatArray
    cubes: FloatArray
    sizes: FloatArray


@dataclass(frozen=True)
class AnyModelMessage:
    """What a source is told: the reference's fold models."""

    rows_beside: ClassVar[int] = 0

    agreement: AgreementMessage
    loss: BoundedLoss

    def answer(self, sources: SourceData, names: Sequence[Any]) -> AnyModelAnswer:
        """Answer for some sources; they predict once."""
        predicted = self.agreement.family.predict(self.agreement.models, sources.X)
        losses, shares = self.loss(predicted, sources.y), sources.row_shares

        def mean(of_rows: FloatArray) -> FloatArray:
            return np.asarray(np.add.reduceat(of_rows * shares, sources.starts[:-1], axis=-1))

        return AnyModelAnswer(
            self.agreement.answer(sources, names, predicted),
            mean(losses),
            mean(losses**2),
            mean(losses**3),
            sources.sizes,
        )


@dataclass(frozen=True)
class AnyModelQuestion:
    """What models of any kind know of sources: what is sent, and what follows from answers."""

    reference: ReferenceModels
    choices: Choices

    @cached_property
    def _agreement(self) -> AgreementQuestion:
        return AgreementQuestion(self.reference, self.choices)

    @cached_property
    def message(self) -> AnyModelMessage:
        """What has to be sent to the sources."""
        return AnyModelMessage(self._agreement.message, self.reference.loss)

    def judge(self, answer: AnyModelAnswer) -> AnyModelFindings:
        """Compare with the reference's own unseen rows."""
        tested = self.reference.tested
        theirs = from_raw(
            answer.means[tested], answer.squares[tested], answer.cubes[tested], answer.sizes
        )
        ours = Sample(*(values[:, None] for values in self.reference.held_out))
        tests = to_cauchy(two_sample_p_values(theirs, ours)).mean(axis=0)
        return AnyModelFindings(self._agreement.judge(answer.agreement), from_cauchy(tests))


def any_model_values(
    findings: AnyModelFindings, know_nothing: float, choices: Choices
) -> FloatArray:
    """Discrepancies in every set, (n_sets, n_sources): what the agreement lacks."""
    lacking = choices.missed * know_nothing * findings.agreement.missing
    return np.asarray(np.clip(lacking, choices.nearest, 1.0))


def any_model_discrepancies(
    findings: AnyModelFindings, know_nothing: float, choices: Choices
) -> Discrepancies:
    """Values, standard errors and witnesses on the whole reference."""
    values = any_model_values(findings, know_nothing, choices)[0]
    errors = choices.missed * know_nothing * findings.agreement.missing_errors
    return Discrepancies(values, errors, findings.p_values, (LACKING,) * len(values))


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
