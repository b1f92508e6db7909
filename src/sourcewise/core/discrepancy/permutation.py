"""Exact tests of "this source is distributed as the reference", by reshuffling membership."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sourcewise.core.data import FloatArray, IntArray, ReferenceRows, SourceData
from sourcewise.core.discrepancy.findings import Findings, concat_findings
from sourcewise.core.discrepancy.moments import (
    SourceRows,
    counted_rows,
    ridge_solution,
    source_rows,
    weighted_moments,
)
from sourcewise.core.engine import Arrays, Message, Question
from sourcewise.core.folds import named_seed
from sourcewise.core.row_space import RowSpace
from sourcewise.core.sparse_rows import SparseRows, stack_rows
from sourcewise.core.sparse_span import pivoted_cholesky

# Entries of one rows-by-permutations array; 32 MB in double precision.
_BLOCK_ENTRIES = 2**22

COLUMNS = 512  # of sparse rows that are made dense at a time

# A permutation that undoes another differs by rounding only and has to count as a tie.
_TIE = 1e-9

# Statistics of a block of memberships: one row a criterion (the later ones break ties of the
# earlier), one column a membership.
Statistic = Callable[[FloatArray], FloatArray]


@dataclass(frozen=True)
class PooledRows:
    """Rows of a source followed by those of the reference."""

    X: FloatArray  # (n_rows, n_features)
    targets: FloatArray  # (n_rows, n_targets)
    # (n_rows,); weight of a row, whichever side it is put on: 1, or with sample weights the share
    # times the number of rows of the source it came from.
    weights: FloatArray
    in_source: NDArray[np.bool_]  # (n_rows,)


def pool(source: SourceRows, reference: SourceRows) -> PooledRows:
    """Put the rows of both sides together."""
    sides = (source, reference)
    return PooledRows(
        stack_rows([side.X for side in sides]),
        np.concatenate([side.targets for side in sides]),
        np.concatenate([side.shares * len(side.shares) for side in sides]),
        np.repeat([True, False], [len(side.shares) for side in sides]),
    )


def in_own_span(pooled: PooledRows) -> PooledRows:
    """Return the same rows in fewer coordinates, if there are more features than rows.

    Sparse rows come out as an array, however many features there are.
    """
    return replace(pooled, X=RowSpace.of(pooled.X).X)


def source_generator(purpose: int, seed: int, name: object) -> np.random.Generator:
    """One random stream a source that no other source can disturb.

    ``purpose`` keeps streams for different uses apart.
    """
    return np.random.default_rng([purpose, seed, named_seed(seed, name)])


class Comparable(NamedTuple):
    """Rows of both sides, groups of rows within which membership is permuted, and a statistic."""

    rows: PooledRows
    groups: Sequence[IntArray]
    statistic: Statistic


def permutation_question(
    reference: ReferenceRows,
    compare: Callable[..., Comparable],
    options: dict[str, Any],
    n_permutations: int,
    seed: int,
) -> Question:
    """Ask for p-values by permutation: they need the rows of both sides in one place.

    ``compare`` gets ready to compare one source with the reference, with these options.
    """
    rows = counted_rows(reference.X, reference.y, reference.shares, reference.n_classes)
    sent = {
        "reference": rows,
        "compare": compare,
        "n_permutations": n_permutations,
        "seed": seed,
        "options": options,
    }
    return Question(Message(answer_permuted, sent, len(rows.shares)), as_answered, {})


def as_answered(answer: Arrays) -> Findings:
    """Return findings that the sources have made themselves."""
    return answer


def answer_permuted(
    sources: SourceData,
    names: Sequence[Any],
    *,
    reference: SourceRows,
    compare: Callable[..., Comparable],
    n_permutations: int,
    seed: int,
    options: dict[str, Any],
) -> Arrays:
    """Test some sources, one after the other; NaN without permutations."""
    if n_permutations == 0:
        return {"p_values": np.full(sources.n_sources, np.nan)}
    found = []
    for i, name in enumerate(names):
        rows, groups, statistic = compare(
            source_rows(sources, i), reference, sources.n_classes, name, **options
        )
        rng = source_generator(0, seed, name)
        found.append(permutation_p_value(statistic, rows.in_source, groups, n_permutations, rng))
    return {"p_values": np.array(found)}


def own_span_question(
    asking: Callable[..., Question], reference: ReferenceRows, options: dict[str, Any]
) -> Question:
    """Ask a linear discrepancy of sparse rows, each source in the span of its own rows.

    And of the reference's. The separating models are combinations of the rows they are fitted to,
    so that nothing is lost. But coordinates in a span mean something only where its rows are: the
    reference's rows travel to the source, and both are compared there. ``asking`` makes the
    question of the reference's rows in coordinates.
    """
    sent = {"asking": asking, "reference": reference, "options": options}
    return Question(Message(answer_in_own_span, sent, len(reference.y)), as_answered, {})


def answer_in_own_span(
    sources: SourceData,
    names: Sequence[Any],
    *,
    asking: Callable[..., Question],
    reference: ReferenceRows,
    options: dict[str, Any],
) -> Arrays:
    """Ask every source by itself, in coordinates."""
    parts, n = [], len(reference.y)
    for i, name in enumerate(names):
        source = sources.some(i, i + 1)
        space = RowSpace.of(stack_rows([reference.X, source.X]))
        question = asking(reference.with_features(space.X[:n]), **options)
        answer = question.message.answer(source.with_features(space.X[n:]), [name])
        parts.append(question.judge(answer))
    return concat_findings(parts)


def ask_here(data: SourceData, question: Question, names: Sequence[Any] | None = None) -> Any:
    """Ask a question of all untrusted sources of a pool at once.

    Random numbers of a source depend on its name, by default its position.
    """
    untrusted, names = data.untrusted, names_of(data, names)
    message = question.message
    return question.judge(
        message.answer(data.select(untrusted.tolist()), [names[i] for i in untrusted])
    )


def names_of(data: SourceData, names: Sequence[Any] | None) -> Sequence[Any]:
    """One name for each source, the reference included; by default its position."""
    if names is None:
        return range(data.n_sources)
    if len(names) != data.n_sources:
        raise ValueError(f"There are {data.n_sources} sources but {len(names)} names.")
    return names


def permutation_p_value(
    statistic: Statistic,
    in_source: NDArray[np.bool_],
    groups: Sequence[IntArray],
    n_permutations: int,
    rng: np.random.Generator,
) -> float:
    r"""Compare the observed membership with random ones of the same sizes.

    .. math:: p = \frac{1 + \#\{b : S_b \ge S_{obs}\}}{B + 1}

    Rows stay whole; only which side they belong to is drawn anew, within each group of rows. If
    the rows of a group are exchangeable the observed membership is one among equals, so
    :math:`P(p \le u) \le u` for every sample size, dimension and statistic.

    Parameters
    ----------
    statistic : callable
        Maps memberships of shape (n_rows, n) (1 in the source, 0 in the reference) to an array
        of shape (n_criteria, n), large when the sides differ; must treat all rows alike.
    in_source : bool array of shape (n_rows,)
    groups : sequence of int arrays
        Partition of the rows.
    n_permutations : int
        0 gives NaN.
    rng : numpy Generator
    """
    if n_permutations == 0:
        return float("nan")
    observed = statistic(in_source.astype(np.float64)[:, None])[:, 0]
    n_rows = len(in_source)
    block = max(1, _BLOCK_ENTRIES // n_rows)
    n_at_least = 0
    for first in range(0, n_permutations, block):
        n = min(block, n_permutations - first)
        members = np.empty((n_rows, n))
        for rows in groups:
            members[rows] = rng.permuted(np.tile(in_source[rows], (n, 1)), axis=1).T
        n_at_least += int(np.count_nonzero(_at_least(statistic(members), observed)))
    return (1 + n_at_least) / (n_permutations + 1)


def _at_least(drawn: FloatArray, observed: FloatArray) -> NDArray[np.bool_]:
    """Lexicographic ``drawn >= observed``, column by column."""
    result = np.ones(drawn.shape[1], dtype=np.bool_)
    for values, value in zip(drawn[::-1], observed[::-1], strict=True):
        tolerance = _TIE * max(abs(value), 1e-4)
        result = (values > value + tolerance) | ((values >= value - tolerance) & result)
    return result


def separation_statistic(
    pooled: PooledRows,
    *,
    ridge: float,
    parts: Sequence[IntArray],
    part_weights: FloatArray,
    held_out: bool,
) -> Statistic:
    r"""Difference of 0/1 losses at the separating model, for many memberships at once.

    The separating model is :math:`w = (2 G + \rho I)^{-1} (b_T - b_i)` with the Gram matrix
    :math:`G` of both sides pooled, which no permutation changes: all permuted models are one
    matrix product and their losses a second one. The statistic is
    :math:`\epsilon_i(w) - \epsilon_T(w)`, the largest over classes. It takes few different
    values, and only one where the rows can be separated perfectly, so that ties are broken by
    the same difference of mean margins :math:`t\,x^\top w`.

    Parameters
    ----------
    pooled : PooledRows
        With targets of plus and minus one. Weights are normalised to sum to 1 on each side.
    ridge : float
    parts : sequence of int arrays
        Partition of the rows: the losses of a part are means over its own rows.
    part_weights : array of shape (n_parts,)
        How the differences of the parts are averaged; a part of weight zero is not evaluated.
    held_out : bool
        Whether the model that a part is judged by is fitted without it.
    """
    X, targets, weights = pooled.X, pooled.targets, pooled.weights
    n_parts = len(parts)
    moments = [weighted_moments(X[p], targets[p], weights[p]) for p in parts]
    grams = np.stack([gram for gram, _ in moments])
    crosses = np.stack([cross for _, cross in moments])
    masses = np.array([weights[p].sum() for p in parts])
    # Sums over the other parts rather than differences: an empty side has to have mass zero.
    fitted_on = ~np.eye(n_parts, dtype=np.bool_) | (not held_out)
    fits = np.stack([_share(2.0 * grams[k].sum(axis=0), masses[k].sum()) for k in fitted_on])
    inverses = ridge_solution(fits, np.broadcast_to(np.eye(X.shape[1]), fits.shape), ridge)
    evaluated = [k for k in range(n_parts) if part_weights[k] > 0.0]

    def statistic(members: FloatArray) -> FloatArray:
        in_source = [weights[p][:, None] * members[p] for p in parts]
        in_reference = [weights[p][:, None] * (1.0 - members[p]) for p in parts]
        source_mass = np.stack([s.sum(axis=0) for s in in_source])
        reference_mass = np.stack([r.sum(axis=0) for r in in_reference])
        best = np.full((2, members.shape[1]), -np.inf)
        for c in range(targets.shape[1]):
            source_cross = np.stack(
                [X[p].T @ (targets[p, c, None] * s) for p, s in zip(parts, in_source, strict=True)]
            )
            reference_cross = crosses[:, :, c, None] - source_cross
            totals = np.zeros_like(best)
            for k in evaluated:
                others, rows = fitted_on[k], parts[k]
                direction = _mean(reference_cross[others], reference_mass[others])
                direction -= _mean(source_cross[others], source_mass[others])
                margins = (X[rows] @ (inverses[k] @ direction)) * targets[rows, c, None]
                contrast = _share(in_source[k], source_mass[k])
                contrast -= _share(in_reference[k], reference_mass[k])
                totals[0] += part_weights[k] * np.sum(contrast, axis=0, where=margins < 0.0)
                totals[1] -= part_weights[k] * np.einsum("jb,jb->b", contrast, margins)
            best = np.maximum(best, totals)
        return best

    return statistic


def _mean(sums: FloatArray, masses: FloatArray) -> FloatArray:
    return _share(sums.sum(axis=0), masses.sum(axis=0))


def _share(part: FloatArray, mass: FloatArray | np.floating) -> FloatArray:
    """Normalise by a mass that is zero only where there is nothing to normalise."""
    return np.asarray(part / np.where(mass > 0.0, mass, 1.0))


def moment_statistic(pooled: PooledRows) -> Statistic:
    r"""Ridge-regularised Hotelling distance between target moments, for real targets.

    With the target :math:`u` standardised over both sides, each row has the moments
    :math:`\phi = (u\,x, u, u^2)`, standardised in turn, and the statistic is
    :math:`\Delta^\top (S + 0.1 I)^{-1} \Delta` with :math:`\Delta` the difference of mean
    :math:`\phi` and :math:`S` its pooled correlation matrix: the first block sees shuffled and
    flipped targets, the second a shift, the third a change of scale. No permutation changes
    :math:`S`, which spares the eigenvalue problem per permutation that the discrepancy itself
    would ask for.
    """
    weights = pooled.weights
    shares = weights / weights.sum()
    u = _standardised(pooled.targets, shares)
    # Once standardised, any basis gives the same statistic.
    if isinstance(pooled.X, SparseRows):
        phi = _sparse_moments_in_span(pooled.X, u, shares)
    else:
        phi = RowSpace.of(_standardised(np.hstack([u * pooled.X, u, u**2]), shares)).X
    correlation, _ = weighted_moments(phi, u, shares)
    inverse = ridge_solution(correlation[None], np.eye(phi.shape[1])[None], 0.1)[0]

    def statistic(members: FloatArray) -> FloatArray:
        source = weights[:, None] * members
        reference = weights[:, None] - source
        contrast = _share(source, source.sum(axis=0)) - _share(reference, reference.sum(axis=0))
        delta = phi.T @ contrast
        return np.asarray(np.sum(delta * (inverse @ delta), axis=0, keepdims=True))

    return statistic


def _sparse_moments_in_span(X: SparseRows, u: FloatArray, shares: FloatArray) -> FloatArray:
    """Coordinates of standardised moments ``(u x, u, u^2)``, from some features at a time.

    Each feature has a unit of its own, so that all of them have to be looked at. The last
    coordinate is zero: `RowSpace` and those who use it keep a column for a constant.
    """
    gram = np.zeros((len(X), len(X)))
    by_column = X.features.tocsc()
    for low in range(0, by_column.shape[1], COLUMNS):
        some = slice(low, low + COLUMNS)
        phi = _standardised(u * (by_column[:, some].toarray() - X.shift[some]), shares)
        gram += phi @ phi.T
    phi = _standardised(np.hstack([u * X.last[:, None], u, u**2]), shares)
    lower, order, rank = pivoted_cholesky(gram + phi @ phi.T)
    coordinates = np.zeros((len(X), rank + 1))
    coordinates[order, :-1] = lower
    return coordinates


def _standardised(columns: FloatArray, shares: FloatArray) -> FloatArray:
    centred = columns - shares @ columns
    deviation = np.sqrt(shares @ centred**2)
    # A constant column is rounding noise after centring; it must not be blown up to unit size.
    live = deviation > 1e-9 * np.sqrt(shares @ columns**2)
    return np.asarray(np.where(live, centred / np.where(live, deviation, 1.0), 0.0))
