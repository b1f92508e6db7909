r"""How much must be wrong with a source before its p-value shows it.

The question is put to the test itself. A made-up source has rows like the reference's, of whose
labels a share :math:`q` is random; its p-value is that of the ``local`` discrepancy, from losses
that the reference's fold models have on rows they have not seen: how often is it below 0.05?
The source's own models have half of the test. Their part is taken by models of the reference's
rows, as many as a source has, with half of the labels exchanged; from :math:`q = 1/2` on their
losses tell ever less, and nothing at :math:`q = 1`. ``benchmarks/coverage`` compares the answer
with what is found.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sourcewise.core.data import FloatArray, IntArray
from sourcewise.core.discrepancy.local import (
    Sample,
    from_cauchy,
    to_cauchy,
    two_sample_p_values,
)
from sourcewise.core.discrepancy.reference_models import ReferenceModels, from_raw

BoolArray = NDArray[np.bool_]

LEAST_DRAWS, MOST_DRAWS, DRAWN_ROWS = 100, 300, 50_000
MOST_ROWS = 2000  # of a source that are drawn; with more, at least as much is found
MOST_EXCHANGES = 8
SHARES = np.linspace(0.05, 1.0, 20)  # of random labels, that are tried


@dataclass(frozen=True)
class LabelTest:
    """What the reference's losses say about finding random labels."""

    right: FloatArray  # (n_repeats, n_rows); losses of rows under models that have not seen them
    # (n_repeats, n_exchanges, n_rows); the same with labels exchanged among the rows, some times
    # anew.
    random: FloatArray
    # The same of models of rows half of whose labels are exchanged: what a spoilt source's own
    # models know. Without repeats where the learner is not ours, whose fits cost too much.
    own_right: FloatArray
    own_random: FloatArray
    folds: IntArray  # (n_repeats, n_rows)
    shares: FloatArray  # (n_rows,); what each row counts
    # Discrepancy of a source all of whose labels are random, and what a discrepancy has for its
    # noise, whatever the labels.
    worth: float
    noise: float
    seed: int

    @classmethod
    def of(cls, reference: ReferenceModels, size: float, seed: int) -> LabelTest:
        """Judge the reference's rows with their own labels and with others'.

        ``size`` is that of a typical source.
        """
        y, shares = reference.rows.y, reference.rows.shares
        rng = np.random.default_rng(seed)
        n_exchanges = int(np.clip(MOST_ROWS // len(y), 1, MOST_EXCHANGES))
        exchanged = [y[rng.permutation(len(y))] for _ in range(n_exchanges)]
        tested = reference.tested

        def judged(predicted: FloatArray) -> tuple[FloatArray, FloatArray]:
            unseen = [_unseen(reference, reference.loss(predicted, z)) for z in (y, *exchanged)]
            return unseen[0], np.stack(unseen[1:], axis=1)

        right, random = judged(reference.predicted[tested])
        own_right, own_random = right[:0], random[:0]
        if reference.family.linear:
            models = _spoilt_models(reference, size, rng)
            own_right, own_random = judged(reference.family.predict(models, reference.rows.X))
        worth = float(np.mean((random - right[:, None]) @ shares))
        folds = reference.folds.folds
        return cls(right, random, own_right, own_random, folds, shares, worth, 0.0, seed)

    def power(
        self, share: float, size: float, level: float, concerned: BoolArray | None = None
    ) -> float:
        """How often a source of so many rows is found, with this share of random labels.

        ``concerned`` says which of the reference's rows are of the kind that the share is one of;
        all others are labelled right. What the source's own models know is then understated, so
        that this is a lower bound.
        """
        rng = np.random.default_rng([self.seed, 1])
        n_rows = min(max(1, round(size)), MOST_ROWS)
        n_draws = int(np.clip(DRAWN_ROWS // n_rows, LEAST_DRAWS, MOST_DRAWS))
        theirs = rng.choice(len(self.shares), (n_draws, n_rows), p=self.shares)
        exchange = rng.integers(self.random.shape[1], size=theirs.shape)
        spoilt = rng.random(theirs.shape) < share
        if concerned is not None:
            spoilt &= concerned[theirs]
        n_folds = int(self.folds.max()) + 1
        tests, own_tests = [], []
        for right, random, fold in zip(self.right, self.random, self.folds, strict=True):
            source = _moments(right[theirs] + spoilt * (random[exchange, theirs] - right[theirs]))
            for k in range(n_folds):
                held_out = _moments(right[None, fold == k])
                tests.append(to_cauchy(two_sample_p_values(source, held_out)))
        told = spoilt * min(2.0 * (1.0 - share), 1.0)
        for right, random in zip(self.own_right, self.own_random, strict=True):
            losses = right[theirs] + told * (random[exchange, theirs] - right[theirs])
            for part in np.array_split(np.arange(n_rows), min(n_folds, n_rows)):
                unseen, all_own = _moments(losses[:, part]), _moments(right[None])
                own_tests.append(to_cauchy(two_sample_p_values(unseen, all_own)))
        together = np.mean(tests, axis=0)
        if n_rows > 1:
            own = np.mean(own_tests, axis=0) if own_tests else to_cauchy(rng.random(n_draws))
            together = 0.5 * (together + own)
        return float(np.mean(from_cauchy(together) < level))

    def detectable_share(
        self, size: float, level: float, power: float, concerned: BoolArray | None = None
    ) -> float:
        """Return the smallest share of random labels found with this power; NaN if none is."""
        low, high = 0, len(SHARES) - 1
        if self.power(1.0, size, level, concerned) < power:
            return float("nan")
        while low < high:
            middle = (low + high) // 2
            if self.power(SHARES[middle], size, level, concerned) >= power:
                high = middle
            else:
                low = middle + 1
        return float(SHARES[low])


def _spoilt_models(reference: ReferenceModels, size: float, rng: np.random.Generator) -> Any:
    """Fit fold models to as many rows as a source has, half of the labels exchanged."""
    y, tested = reference.rows.y.copy(), reference.tested
    some = rng.permutation(len(y))[: len(y) // 2]
    y[some] = y[rng.permutation(some)]
    weights = reference.folds.training_weights(reference.rows.shares)[:, tested]
    left_out = rng.permutation(len(y))[max(round(size), 2) :]
    weights[left_out] = 0.0
    weights[:, ~weights.any(axis=0)] = 1.0  # a fold may have had all of them
    settings = np.full(len(tested), reference.setting)
    family: Any = reference.family
    return family.fit(reference.rows.X, y, weights, settings)


def _unseen(reference: ReferenceModels, losses: FloatArray) -> FloatArray:
    """Return each row's loss under the model that leaves out its fold, repeat by repeat."""
    folds = reference.folds.folds
    first = (folds.max() + 1) * np.arange(len(folds))
    return np.asarray(losses[first[:, None] + folds, np.arange(losses.shape[1])])


def _moments(losses: FloatArray) -> Sample:
    """Moments along the last axis, all rows alike."""
    size = np.full(len(losses), float(losses.shape[1]))
    return from_raw(losses.mean(-1), (losses**2).mean(-1), (losses**3).mean(-1), size)
