"""Discrepancies of a pool's sources, for the whole reference and without each fold of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from sourcewise.core.data import SourceData
from sourcewise.core.discrepancy import Discrepancies
from sourcewise.core.discrepancy.agreement import find_agreement
from sourcewise.core.discrepancy.combined import Findings, judge, judged_discrepancies
from sourcewise.core.discrepancy.cross_fit import cross_fit_discrepancies
from sourcewise.core.discrepancy.features import feature_distances
from sourcewise.core.discrepancy.local import TwoSided, local_discrepancies
from sourcewise.core.discrepancy.local_exchange import (
    ReferenceEvidence,
    SourceEvidence,
    compare,
    fit_fold_models,
    reference_evidence,
    source_evidence,
)
from sourcewise.core.discrepancy.moments import Moments, source_moments
from sourcewise.core.discrepancy.plug_in import plug_in_discrepancies
from sourcewise.core.discrepancy.pull import find_pulls
from sourcewise.core.family import kept_shares
from sourcewise.core.folds import named_seed
from sourcewise.core.row_space import in_row_space
from sourcewise.estimators.pool import Pool, know_nothing_loss
from sourcewise.progress import report_progress

N_PERMUTATIONS = 199
PORTION_ROWS = 50_000
WORST_VARIANCE = 0.25  # of any loss between 0 and 1


@dataclass(frozen=True)
class Measured:
    """What has been measured, in source order.

    Attributes
    ----------
    result : Discrepancies
        On the whole reference.
    without_fold : array of shape (n_validation_folds, n_sources)
        Values measured without each validation fold; no rows where no fold was asked for.
    reference_variance : float
        Variance of a reference row's loss, for questions about the reference's size.
    reference_gain : float
        By how much the reference's own model beats knowing nothing, in mean loss.
    sides : tuple of TwoSided
        For "local": the differences behind the values, on the whole reference and without each
        validation fold.
    """

    result: Discrepancies
    without_fold: np.ndarray
    reference_variance: float
    reference_gain: float
    sides: tuple[TwoSided, ...] = ()

    def append(self, other: Measured) -> Measured:
        """Add sources that were measured later."""
        if not len(other.result.values):
            return self
        return replace(
            self,
            result=self.result.append(other.result),
            without_fold=np.concatenate([self.without_fold, other.without_fold], axis=1),
            sides=tuple(
                mine.append(new) for mine, new in zip(self.sides, other.sides, strict=True)
            ),
        )


def measure(
    pool: Pool,
    asked: Sequence[int],
    *,
    setting: float,
    with_folds: bool,
    permute: bool = True,
) -> Measured:
    """Measure the sources at positions ``asked``, the reference not among them.

    Without ``permute``, p-values that need permutations are NaN.
    """
    if not asked:
        n_sets = len(pool.folds.held_out) if with_folds else 0
        return Measured(
            Discrepancies.of_reference(0), np.zeros((n_sets, 0)), WORST_VARIANCE, np.nan
        )
    if pool.discrepancy == "local":
        return _measure_local(pool, asked, setting)
    return _measure_linear(pool, asked, with_folds, N_PERMUTATIONS if permute else 0)


def _measure_local(pool: Pool, asked: Sequence[int], setting: float) -> Measured:
    data, loss, trusted = pool.data, pool.bounded_loss, pool.trusted
    shares = data.row_shares[data.rows(data.reference)]
    reference = reference_evidence(*trusted, shares, pool.folds, pool.family, loss, setting)
    evidence = None
    for some in _portions(asked, data.row_counts):
        part = source_evidence(
            data,
            some,
            [named_seed(pool.seed, pool.names[i]) for i in some],
            reference,
            trusted,
            pool.folds.n_folds,
            pool.family,
            loss,
            setting,
        )
        evidence = part if evidence is None else evidence.append(part)
        report_progress("discrepancies", len(evidence.sizes), len(asked))
    assert evidence is not None  # some source was asked
    return from_evidence(pool, reference, evidence)


def from_evidence(pool: Pool, reference: ReferenceEvidence, evidence: SourceEvidence) -> Measured:
    """Turn what reference and sources have told each other into discrepancies."""
    shares = pool.data.row_shares[pool.data.rows(pool.data.reference)]
    sides = tuple(compare(reference, evidence, s) for s in range(1 + len(pool.folds.held_out)))
    own = reference.losses[0]
    return Measured(
        local_discrepancies(sides[0], evidence.p_values),
        np.stack([without.values for without in sides[1:]]),
        float(own.var(ddof=1)),
        float(know_nothing_loss(pool, pool.bounded_loss) - own @ shares),
        sides,
    )


def look_again(pool: Pool, measured: Measured, setting: float) -> Measured:
    """Judge the sources once more, by what they do to the reference and by all that they lack.

    That takes many fits, so it is left to the default learners.
    """
    asked = [i for i in range(pool.data.n_sources) if i != pool.data.reference]
    family = pool.family
    if not (pool.protocol.second_look and measured.sides and asked):
        return measured
    if not pool.is_linear:
        return measured
    X, y = pool.trusted
    shares = pool.data.row_shares[pool.data.rows(pool.data.reference)]
    alone = fit_fold_models(X, y, shares, pool.folds, family, setting)
    findings = Findings(
        measured.sides,
        find_pulls(pool.data, asked, pool.folds, family, alone, pool.bounded_loss, setting),
        find_agreement(pool.data, asked, pool.folds, family, alone),
        feature_distances(pool.data, asked),
        know_nothing_loss(pool, pool.bounded_loss),
    )
    return replace(
        measured,
        result=judged_discrepancies(findings, measured.result.p_values),
        without_fold=np.stack([judge(findings, s) for s in range(1, len(measured.sides))]),
    )


def _portions(asked: Sequence[int], row_counts: np.ndarray) -> Iterator[Sequence[int]]:
    """Split a large number of rows into portions, so that progress can be told in between."""
    start, rows = 0, 0
    for k, source in enumerate(asked):
        rows += int(row_counts[source])
        if rows >= PORTION_ROWS or k == len(asked) - 1:
            yield asked[start : k + 1]
            start, rows = k + 1, 0


def _measure_linear(
    pool: Pool, asked: Sequence[int], with_folds: bool, n_permutations: int
) -> Measured:
    assert pool.numeric is not None
    positions = [pool.numeric.reference, *asked]
    data = pool.numeric.select(positions)
    seeds = np.array([named_seed(pool.seed, pool.names[i]) for i in positions])
    trusted = data.rows(0)
    plug_in = pool.discrepancy == "plug-in"
    given = data
    if plug_in:
        data = in_row_space(data)
    moments = source_moments(data) if plug_in else None

    def find(rows: SourceData, known: Moments | None, n_permutations: int) -> Discrepancies:
        if plug_in:
            return plug_in_discrepancies(
                rows,
                n_permutations=n_permutations,
                source_seeds=seeds,
                moments=known,
                tested=given,
            )
        return cross_fit_discrepancies(
            rows,
            n_folds=pool.folds.n_folds,
            n_permutations=n_permutations,
            seed=pool.seed,
            source_seeds=seeds,
        )

    without_fold = []
    for held_out in pool.folds.held_out if with_folds else []:
        shares = data.row_shares.copy()
        shares[trusted] = kept_shares(shares[trusted], held_out)
        rows = replace(data, row_shares=shares)
        known = None if moments is None else _with_reference_of(moments, rows)
        without_fold.append(find(rows, known, 0).values[1:])
    found = find(data, moments, n_permutations)
    return Measured(
        found.select(range(1, len(positions))),
        np.array(without_fold).reshape(-1, len(asked)),
        reference_variance=WORST_VARIANCE,
        # What a coin loses on it.
        reference_gain=0.5 if pool.data.n_classes else 0.25,
    )


def _with_reference_of(moments: Moments, rows: SourceData) -> Moments:
    """Moments of rows of which only the reference's shares have changed."""
    fresh = source_moments(rows.select([0]))
    return Moments(
        *(
            np.concatenate([getattr(fresh, f.name), getattr(moments, f.name)[1:]])
            for f in fields(Moments)
        )
    )
