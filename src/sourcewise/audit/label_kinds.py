"""What was done to a source's labels: a few explicit kinds, compared by their likelihoods.

Of classes: of each row a model that has not learnt from this source says how likely each class is.
A kind is a table of confusion M: a row of class a gets the label b with probability M[a, b], and so
the label b has probability sum_a p(a) M[a, b]. Parameters cost half the logarithm of the rows each
(Schwarz 1978), and choosing among k such tables costs log k.

Of numbers: such a model predicts f. On the reference's rows labels lie around it with the scale s
(Student's t with four degrees of freedom: a few far ones are no proof).

And whether labels follow the source's own columns, by the same rule as the model's or by another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import stats
from scipy.optimize import linear_sum_assignment
from scipy.special import gammaln

NOISE = (0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 0.6, 0.7)
# Beside another mistake, as much noise as careful people make.
SLIPS = (0.0, 0.03, 0.08)
SHARES = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
LEAST = 0.01
ROUNDS = 60
FREEDOM = 4.0
# Units that differ by less than this would be no units.
LEAST_FACTOR = 1.1
MOST_ROWS = 1500
PENALTIES = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


@dataclass(frozen=True)
class Hypothesis:
    """One kind, fitted."""

    kind: str
    fit: float  # log-likelihood, less what its parameters cost
    classes: tuple[int, ...] = ()  # which it is about
    amount: float = 0.0  # share of the rows that it changed, or by how much it changed numbers


def calibrated(held_out: np.ndarray, y: np.ndarray, new: np.ndarray) -> np.ndarray:
    """Make probabilities as sure as held-out rows of known classes ``y`` allow."""
    best, chosen = -np.inf, (1.0, 0.05)
    for heat in (0.7, 1.0, 1.4, 2.0, 3.0):
        for doubt in (0.01, 0.03, 0.06, 0.1, 0.2):
            p = _tempered(held_out, heat, doubt)
            found = float(np.log(p[np.arange(len(y)), y]).sum())
            if found > best:
                best, chosen = found, (heat, doubt)
    return _tempered(new, *chosen)


def _tempered(p: np.ndarray, heat: float, doubt: float) -> np.ndarray:
    raised = np.maximum(p, 1e-9) ** (1.0 / heat)
    raised /= raised.sum(axis=1, keepdims=True)
    return np.asarray((1.0 - doubt) * raised + doubt / p.shape[1])


def hypotheses(p: np.ndarray, y: np.ndarray, usual: np.ndarray) -> list[Hypothesis]:
    """All kinds, fitted to labels ``y``; ``usual`` counts the reference's labels of each class."""
    n, k = p.shape
    each = 0.5 * np.log(max(n, 2))
    found = [Hypothesis("clean", _fit(p, y, np.eye(k)))]
    found.append(_best("noisy labels", p, y, _noises(k), each))
    own = np.bincount(y, minlength=k) / n
    found.append(Hypothesis("shuffled labels", _like_the_reference(y, usual)))
    constant = np.maximum(own, LEAST / k)
    free = _fit(p, y, np.tile(constant / constant.sum(), (k, 1))) - (k - 1) * each
    found.append(Hypothesis("labels unrelated", free))
    found.append(_best("label bias", p, y, _biases(k), each + np.log(k)))
    found += _permutations(p, y, each)
    found += _missing_classes(p, y, own, each)
    return found


def _like_the_reference(y: np.ndarray, usual: np.ndarray) -> float:
    """Log-likelihood of labels drawn as the reference's were, whose shares its rows only estimate.

    By the Dirichlet-multinomial distribution: a table of confusion with the reference's own shares
    would take the chance in these for a difference.
    """
    prior = usual + 1.0
    both = prior + np.bincount(y, minlength=len(usual))
    fit = (gammaln(both) - gammaln(prior)).sum() + gammaln(prior.sum()) - gammaln(both.sum())
    return float(fit)


def saturated(p: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    """Fit any table of confusion, by expectation and maximisation."""
    n, k = p.shape
    table = 0.7 * np.eye(k) + 0.3 / k
    ones = np.eye(k)[y]
    for _ in range(ROUNDS):
        joint = p * table[:, y].T
        joint /= joint.sum(axis=1, keepdims=True)
        counts = joint.T @ ones + 0.1
        table = counts / counts.sum(axis=1, keepdims=True)
    return _fit(p, y, table) - 0.5 * k * (k - 1) * np.log(max(n, 2)), table


def _fit(p: np.ndarray, y: np.ndarray, table: np.ndarray) -> float:
    return float(np.log(np.maximum((p * table[:, y].T).sum(axis=1), LEAST / p.shape[1])).sum())


def _noise(k: int, share: float) -> np.ndarray:
    return np.asarray((1.0 - share) * np.eye(k) + share / max(k - 1, 1) * (1.0 - np.eye(k)))


def _noises(k: int) -> Iterator[tuple[float, tuple[int, ...], np.ndarray]]:
    """Noise that leaves something of the labels: beyond that, they might as well be shuffled."""
    for share in NOISE:
        if share <= 0.85 * (k - 1) / k:
            yield share, (), _noise(k, share)


def _biases(k: int) -> Iterator[tuple[float, tuple[int, ...], np.ndarray]]:
    for towards in range(k):
        for share in SHARES:
            table = (1.0 - share) * np.eye(k)
            table[:, towards] += share
            yield share, (towards,), table


def _best(
    kind: str,
    p: np.ndarray,
    y: np.ndarray,
    tables: Iterator[tuple[float, tuple[int, ...], np.ndarray]],
    price: float,
) -> Hypothesis:
    fits = [(_fit(p, y, table), share, classes) for share, classes, table in tables]
    fit, share, classes = max(fits)
    return Hypothesis(kind, fit - price, classes, share)


def _permutations(p: np.ndarray, y: np.ndarray, each: float) -> list[Hypothesis]:
    """Classes exchanged in pairs, or more of them at once."""
    k = p.shape[1]

    def tables(
        orders: list[tuple[int, ...]],
    ) -> Iterator[tuple[float, tuple[int, ...], np.ndarray]]:
        for order in orders:
            moved = tuple(int(i) for i in np.flatnonzero(np.array(order) != np.arange(k)))
            for slip in SLIPS:
                yield slip, moved, np.eye(k)[list(order)] @ _noise(k, slip)

    pairs = []
    for a, b in combinations(range(k), 2):
        order = list(range(k))
        order[a], order[b] = b, a
        pairs.append(tuple(order))
    if k == 2:
        return [_best("flipped labels", p, y, tables(pairs), each)]
    found = [_best("two classes swapped", p, y, tables(pairs), each + np.log(len(pairs)))]
    counts = p.T @ np.eye(k)[y]
    best = tuple(int(i) for i in linear_sum_assignment(-counts)[1])
    if sum(i != j for i, j in enumerate(best)) > 2:
        many = float(np.log(np.arange(1, k + 1)).sum())
        found.append(_best("classes permuted", p, y, tables([best]), each + many))
    return found


def _missing_classes(
    p: np.ndarray, y: np.ndarray, own: np.ndarray, each: float
) -> list[Hypothesis]:
    """One label for all rows, a class that is never used, and one that gets another's name."""
    n, k = p.shape
    found = []
    top = int(own.argmax())
    if own[top] >= 0.95:
        table = np.full((k, k), (1.0 - own[top]) / max(k - 1, 1))
        table[:, top] = own[top]
        found.append(
            Hypothesis("one label for all", _fit(p, y, table) - np.log(k), (top,), float(own[top]))
        )
    if k == 2:
        return found
    pairs, alone = [], []
    for a in np.flatnonzero(own <= 0.01).tolist():
        spread = np.eye(k)
        spread[a] = (1.0 - np.eye(k)[a]) / (k - 1)
        alone += [(slip, (a,), spread @ _noise(k, slip)) for slip in SLIPS]
        for b in range(k):
            if b != a:
                table = np.eye(k)
                table[a] = np.eye(k)[b]
                pairs += [(slip, (a, b), table @ _noise(k, slip)) for slip in SLIPS]
    if alone:
        found.append(_best("class never used", p, y, iter(alone), each + np.log(k)))
        found.append(_best("class relabelled", p, y, iter(pairs), each + np.log(k * (k - 1))))
    return found


# -- numbers ----------------------------------------------------------------------------------


def number_hypotheses(
    f: np.ndarray, y: np.ndarray, scale: float, reference: np.ndarray
) -> list[Hypothesis]:
    """All kinds, fitted to labels ``y``; ``reference`` are the reference's labels."""
    n = len(y)
    each = 0.5 * np.log(max(n, 2))
    found = [Hypothesis("clean", _fit_t(y - f, scale))]
    own = max(spread_around(y - f), scale)
    found.append(Hypothesis("noisy labels", _fit_t(y - f, own) - each, amount=own / scale))
    turned = max(_fit_t(y + f, scale), _fit_t(y + f - float(np.median(y + f)), scale) - each)
    found.append(Hypothesis("flipped sign", turned - np.log(2)))
    shift = float(np.median(y - f))
    found.append(Hypothesis("label shift", _fit_t(y - f - shift, scale) - each, amount=shift))
    factor = _factor(f, y)
    multiplied = _fit_t(y - factor * f, abs(factor) * scale) - each
    found.append(Hypothesis("label units", multiplied, amount=factor))
    slope, constant = _line(f, y)
    affine = _fit_t(y - constant - slope * f, max(abs(slope), 1e-12) * scale) - 2 * each
    if slope > 0 and not 1 / LEAST_FACTOR < slope < LEAST_FACTOR:
        found.append(Hypothesis("label units", affine, amount=slope))
    usual, middle = np.median(reference), np.median(y)
    found.append(Hypothesis("shuffled labels", _fit_t(y - usual, spread_around(reference - usual))))
    free = _fit_t(y - middle, spread_around(y - middle)) - 2 * each
    found.append(Hypothesis("labels unrelated", free))
    return found


def number_saturated(f: np.ndarray, y: np.ndarray) -> float:
    """Fit any line with any spread around it."""
    n = len(y)
    slope, constant = _line(f, y)
    rest = y - constant - slope * f
    return float(_fit_t(rest, spread_around(rest)) - 1.5 * np.log(max(n, 2)))


def _fit_t(rest: np.ndarray, scale: float) -> float:
    return float(stats.t.logpdf(rest, FREEDOM, scale=max(scale, 1e-300)).sum())


def _line(f: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Slope and constant of labels over predictions."""
    slope, constant = np.polyfit(f, y, 1) if np.ptp(f) > 0 else (0.0, np.mean(y))
    return float(slope), float(constant)


def spread_around(rest: np.ndarray) -> float:
    """Scale of Student's t around zero, by fixed-point iteration of its likelihood equation."""
    squares = np.asarray(rest, dtype=np.float64) ** 2
    variance = float(np.median(squares)) or float(squares.mean()) or 1e-300
    for _ in range(50):
        variance = float(np.mean((FREEDOM + 1) * squares / (FREEDOM + squares / variance)))
        if variance <= 0:
            return 1e-150
    return float(np.sqrt(variance))


def _factor(f: np.ndarray, y: np.ndarray) -> float:
    """How many times as large labels are, by their sizes: most robust where noise scales too."""
    good = np.abs(f) > 0.2 * np.median(np.abs(f))
    factor = float(np.median(y[good] / f[good])) if good.any() else 1.0
    return factor if factor > 0 else 1.0


# -- the source's own rule --------------------------------------------------------------------


@dataclass(frozen=True)
class OwnRule:
    """How well rows of a source predict its other rows."""

    correlation: float  # of labels with what ridge regression on the other rows says
    likeness: float  # of that with what the model says
    rows: int

    @property
    def sureness(self) -> float:
        """Distance from no correlation, in standard errors."""
        r = min(max(self.correlation, -0.999), 0.999)
        return float(np.arctanh(r) * np.sqrt(self.rows))


def own_rule(X: np.ndarray, targets: np.ndarray, scores: np.ndarray) -> OwnRule:
    """Compare labels, what the source's other rows say, and the model's ``scores``.

    ``targets`` and ``scores`` are (rows, outputs).
    """
    n = len(X)
    if n > MOST_ROWS:
        chosen = np.random.default_rng(0).choice(n, MOST_ROWS, replace=False)
        X, targets, scores = X[chosen], targets[chosen], scores[chosen]
        n = MOST_ROWS
    said = _left_out(X, targets - targets.mean(axis=0))
    return OwnRule(
        correlation(said, targets - targets.mean(axis=0)),
        correlation(said, scores - scores.mean(axis=0)),
        n,
    )


def _left_out(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Ridge regression's predictions for each row from the others, penalty by the same rows."""
    Z = X - X.mean(axis=0)
    sd = Z.std(axis=0)
    Z = Z[:, sd > 0] / sd[sd > 0]
    if Z.shape[1] == 0:
        return np.zeros_like(Y)
    U, s, _ = np.linalg.svd(np.clip(Z, -5, 5), full_matrices=False)
    best, chosen = np.inf, np.zeros_like(Y)
    for penalty in PENALTIES:
        share = s**2 / (s**2 + penalty * len(X))
        fitted = (U * share) @ (U.T @ Y)
        leverage = np.minimum((U**2 * share).sum(axis=1) + 1.0 / len(X), 0.99)
        out = (fitted - leverage[:, None] * Y) / (1.0 - leverage[:, None])
        error = float(((Y - out) ** 2).mean())
        if error < best:
            best, chosen = error, out
    return chosen


def correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Correlation of all numbers of two arrays around zero."""
    size = float(np.sqrt((a**2).sum() * (b**2).sum()))
    return float((a * b).sum()) / size if size > 0 else 0.0


def centred_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Correlation of two columns of numbers."""
    return correlation(a - a.mean(), b - b.mean())
