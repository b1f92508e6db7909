r"""Theorem 1 of the paper, term by term.

With probability at least :math:`1 - \delta` the model :math:`\hat h_\alpha` trained with weights
:math:`\alpha` satisfies

.. math::

    \epsilon_T(\hat h_\alpha) \le \epsilon_T(h_T^*) + 4 \sum_i \alpha_i R_i(H)
    + 2 \sum_i \alpha_i d_i
    + 6 \sqrt{\frac{\log(4 / \delta) M^2}{2}} \sqrt{\sum_i \frac{\alpha_i^2}{m_i}} .
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import quad

from sourcewise.core.weights import _check_sources, theory_trade_off

Floats = NDArray[np.float64]
Complexity = Literal["linear", "monte-carlo", "vc", "dudley"]

# Signs drawn at a time; 4 million float64 are 32 MB.
_SIGNS_AT_ONCE = 4_000_000


@dataclass(frozen=True, eq=False)
class GeneralizationBound:
    r"""How much worse than the best possible model the weighted model can be.

    Attributes
    ----------
    discrepancy_term : float
        :math:`2 \sum_i \alpha_i d_i`: the price of data from elsewhere.
    complexity_term : float
        :math:`4 \sum_i \alpha_i R_i(H)`: the price of a rich class of models.
    deviation_term : float
        :math:`6 \sqrt{\log(4/\delta) M^2 / 2} \sqrt{\sum_i \alpha_i^2 / m_i}`: the price of few
        data.
    complexities : array of shape (n_sources,)
        :math:`R_i(H)`.
    complexity_method : str
        How they were obtained.
    delta : float
        The bound may fail with this probability.
    loss_bound : float
        :math:`M`, the largest value of the loss.
    """

    discrepancy_term: float
    complexity_term: float
    deviation_term: float
    complexities: Floats
    complexity_method: str
    delta: float
    loss_bound: float

    @property
    def total(self) -> float:
        r"""Bound on :math:`\epsilon_T(\hat h_\alpha) - \epsilon_T(h_T^*)`, the excess loss."""
        return self.discrepancy_term + self.complexity_term + self.deviation_term

    @property
    def vacuous(self) -> bool:
        """Whether the bound exceeds what any model can lose, and so says nothing."""
        return self.total >= self.loss_bound

    def __str__(self) -> str:
        """Print the terms as a table of at most 80 columns."""
        rows = [
            ("discrepancy", "2 sum a_i d_i", self.discrepancy_term),
            ("complexity", "4 sum a_i R_i", self.complexity_term),
            ("deviation", "6 sqrt(log(4/delta) M^2/2) sqrt(sum a_i^2/m_i)", self.deviation_term),
            ("total", "excess loss over the best model of the class", self.total),
        ]
        lines = [f"Theorem 1, with probability at least {1 - self.delta:.6g}:"]
        lines += [f"  {name:<13}{formula:<49}{value:>12.5g}" for name, formula, value in rows]
        lines.append(f"R_i: {self.complexity_method}.")
        lines.append("The d_i are estimates plugged in: their own sampling error is not included.")
        if self.vacuous:
            lines.append(f"No loss exceeds M = {self.loss_bound:.6g}: this bound says nothing yet.")
        return "\n".join(lines)


def generalization_bound(
    weights: ArrayLike,
    discrepancies: ArrayLike,
    sizes: ArrayLike,
    *,
    complexity: Complexity | ArrayLike = "linear",
    delta: float = 0.05,
    loss_bound: float = 1.0,
    lipschitz: float = 1.0,
    norm_bound: float = 1.0,
    radius: float | None = None,
    X: ArrayLike | None = None,
    sources: ArrayLike | None = None,
    n_draws: int = 200,
    random_state: int | np.random.Generator | None = None,
    vc_dimension: float | None = None,
    log_covering_number: Callable[[float], float] | None = None,
    diameter: float | None = None,
) -> GeneralizationBound:
    r"""Evaluate Theorem 1, term by term.

    Parameters
    ----------
    weights, discrepancies, sizes : array-like of shape (n_sources,)
        :math:`\alpha_i`, :math:`d_i` and :math:`m_i`, in the same order.
    complexity : {"linear", "monte-carlo", "vc", "dudley"}, float or array-like, default="linear"
        Where :math:`R_i(H)` comes from: a name below, or the numbers themselves (of the loss
        class, one for all sources or one a source).

        - ``"linear"``: `linear_complexity`; needs `radius`, or `X` to take it from.
        - ``"monte-carlo"``: `monte_carlo_complexity`; needs `X` and `sources`.
        - ``"vc"``: `vc_complexity`; needs `vc_dimension`.
        - ``"dudley"``: `dudley_complexity`; needs `log_covering_number` and `diameter`.
    delta : float, default=0.05
        :math:`\delta`: the bound may fail with this probability.
    loss_bound : float, default=1.0
        :math:`M`: the largest value the loss can take.
    lipschitz : float, default=1.0
        How fast the loss changes with the prediction. Theorem 1 asks for the complexity of the
        losses, which is at most this constant times that of the predictions (Talagrand's
        contraction; Shalev-Shwartz and Ben-David 2014, Lemma 26.9). It is 1 for the logistic
        loss and 1/2 for the 0/1 loss of classifiers with values -1 and 1. Numbers passed as
        `complexity` are used as they are.
    norm_bound : float, default=1.0
        :math:`B`: linear models have coefficients of Euclidean norm at most this.
    radius : float, optional
        :math:`D`: rows have Euclidean norm at most this.
    X : array-like of shape (n_rows, n_features), optional
        Features of all sources.
    sources : int array-like of shape (n_rows,), optional
        Position in `weights` of each row's source.
    n_draws : int, default=200
        Draws of random signs.
    random_state : int, Generator or None, default=None
        Where the signs come from.
    vc_dimension : float, optional
        Vapnik-Chervonenkis dimension of the class.
    log_covering_number : callable, optional
        :math:`t \mapsto \log N(H, t)`.
    diameter : float, optional
        Largest distance between two models of the class.

    Returns
    -------
    GeneralizationBound

    Notes
    -----
    The theorem is about the true discrepancies, and the best loss :math:`\epsilon_T(h_T^*)` is
    unknown: the total is an excess over it, and estimated :math:`d_i` carry their own error.

    With equal complexities, `solve_weights` at `theory_trade_off` gives the smallest total that
    any weights can have.

    Examples
    --------
    >>> from sourcewise.core.weights import solve_weights, theory_trade_off
    >>> d, m = [0.0, 0.02, 0.5], [1_000, 50_000, 100_000]
    >>> bound = generalization_bound(solve_weights(d, m, theory_trade_off()), d, m, radius=1.0)
    >>> print(bound)
    Theorem 1, with probability at least 0.95:
      discrepancy  2 sum a_i d_i                                        0.038426
      complexity   4 sum a_i R_i                                        0.022163
      deviation    6 sqrt(log(4/delta) M^2/2) sqrt(sum a_i^2/m_i)       0.039724
      total        excess loss over the best model of the class          0.10031
    R_i: linear class, L B D / sqrt(m_i) with L = 1, B = 1, D = 1.
    The d_i are estimates plugged in: their own sampling error is not included.
    """
    d, m = _check_sources(discrepancies, sizes)
    alpha = np.asarray(weights, dtype=np.float64)
    if alpha.shape != d.shape:
        raise ValueError(f"There are {len(d)} sources but weights of shape {alpha.shape}.")
    if not (alpha.min() >= 0 and abs(alpha.sum() - 1) <= 1e-6):
        raise ValueError("Weights must not be negative and must sum to 1.")
    for name, value in (
        ("lipschitz", lipschitz),
        ("norm_bound", norm_bound),
        ("radius", radius),
        ("n_draws", n_draws),
    ):
        if value is not None and not 0 < value < math.inf:
            raise ValueError(f"{name} must be positive and finite; got {value}.")

    if not isinstance(complexity, str):
        complexities = np.asarray(complexity, dtype=np.float64)
        if complexities.shape not in ((), d.shape) or not (complexities >= 0).all():
            raise ValueError(
                "complexity must be a name, one number, or one number a source, none negative."
            )
        method = "given by the caller"
    elif complexity == "linear":
        if radius is None:
            if X is None:
                raise ValueError("complexity='linear' needs the radius of the rows, or X.")
            radius = float(np.linalg.norm(np.asarray(X, dtype=np.float64), axis=1).max())
        complexities = lipschitz * linear_complexity(m, norm_bound=norm_bound, radius=radius)
        method = (
            "linear class, L B D / sqrt(m_i) with "
            f"L = {lipschitz:.4g}, B = {norm_bound:.4g}, D = {radius:.4g}"
        )
    elif complexity == "monte-carlo":
        if X is None or sources is None:
            raise ValueError("complexity='monte-carlo' needs the rows: pass X and sources.")
        complexities = lipschitz * monte_carlo_complexity(
            X,
            sources,
            len(d),
            norm_bound=norm_bound,
            n_draws=n_draws,
            random_state=random_state,
        )
        method = (
            f"linear class, {n_draws} Monte-Carlo draws, L = {lipschitz:.4g}, B = {norm_bound:.4g}"
        )
    elif complexity == "vc":
        if vc_dimension is None:
            raise ValueError("complexity='vc' needs vc_dimension.")
        complexities = lipschitz * vc_complexity(m, vc_dimension=vc_dimension)
        method = (
            f"L sqrt(2 VC log(e m_i / VC) / m_i) with L = {lipschitz:.4g}, VC = {vc_dimension:.6g}"
        )
    elif complexity == "dudley":
        if log_covering_number is None or diameter is None:
            raise ValueError("complexity='dudley' needs log_covering_number and diameter.")
        complexities = lipschitz * dudley_complexity(m, log_covering_number, diameter=diameter)
        method = f"Dudley's integral, 12 L / sqrt(m_i) times its value, L = {lipschitz:.4g}"
    else:
        raise ValueError(
            "complexity must be 'linear', 'monte-carlo', 'vc', 'dudley' or numbers; "
            f"got {complexity!r}."
        )
    complexities = np.array(np.broadcast_to(complexities, d.shape))
    return GeneralizationBound(
        discrepancy_term=2.0 * float(alpha @ d),
        complexity_term=4.0 * float(alpha @ complexities),
        deviation_term=2.0
        * theory_trade_off(delta, loss_bound)
        * math.sqrt(float(alpha @ (alpha / m))),
        complexities=complexities,
        complexity_method=method,
        delta=delta,
        loss_bound=loss_bound,
    )


def linear_complexity(sizes: ArrayLike, *, norm_bound: float = 1.0, radius: float = 1.0) -> Floats:
    r"""Linear models with :math:`\|w\| \le B` on rows with :math:`\|x\| \le D`.

    :math:`R_i \le B D / \sqrt{m_i}` (Shalev-Shwartz and Ben-David 2014, Lemma 26.10).

    Examples
    --------
    >>> linear_complexity([100, 400], norm_bound=2.0, radius=3.0)
    array([0.6, 0.3])
    """
    return np.asarray(norm_bound * radius / np.sqrt(np.asarray(sizes, dtype=np.float64)))


def monte_carlo_complexity(
    X: ArrayLike,
    sources: ArrayLike,
    n_sources: int,
    *,
    norm_bound: float = 1.0,
    n_draws: int = 200,
    random_state: int | np.random.Generator | None = None,
) -> Floats:
    r"""Linear models with :math:`\|w\| \le B` on the rows at hand.

    By the Cauchy-Schwarz inequality the supremum is known,
    :math:`R_i = (B / m_i) \, E_\sigma \| \sum_j \sigma_j x_j \|`; only the mean over the signs
    :math:`\sigma` is simulated. It is capped at :math:`(B / m_i) \sqrt{\sum_j \|x_j\|^2}`, which
    Jensen's inequality proves never to be below it.

    Parameters
    ----------
    X : array-like of shape (n_rows, n_features)
        Features of all sources.
    sources : int array-like of shape (n_rows,)
        Position of each row's source, ``0 .. n_sources - 1``.
    n_sources : int
        Number of sources.
    norm_bound : float, default=1.0
        :math:`B`.
    n_draws : int, default=200
        Draws of random signs.
    random_state : int, Generator or None, default=None
        Where the signs come from.

    Returns
    -------
    array of shape (n_sources,)

    Examples
    --------
    >>> X = np.eye(4)
    >>> monte_carlo_complexity(X, [0, 0, 0, 0], 1, random_state=0)
    array([0.5])
    """
    rows = np.asarray(X, dtype=np.float64)
    owner = np.asarray(sources)
    if rows.ndim != 2 or owner.shape != (len(rows),):
        raise ValueError("sources must name the position of the source of every row of X.")
    counts = np.bincount(owner, minlength=n_sources)
    if len(counts) > n_sources or (counts == 0).any():
        raise ValueError(f"Every one of the {n_sources} sources needs rows in X, and no other.")
    rng = np.random.default_rng(random_state)
    order = np.argsort(owner, kind="stable")
    chunk = max(1, _SIGNS_AT_ONCE // n_draws)
    found = np.empty(n_sources)
    for source, own in enumerate(np.split(order, np.cumsum(counts)[:-1])):
        sums = np.zeros((n_draws, rows.shape[1]))
        energy = 0.0
        for begin in range(0, len(own), chunk):
            part = rows[own[begin : begin + chunk]]
            sums += (2.0 * rng.integers(0, 2, (n_draws, len(part))) - 1.0) @ part
            energy += float(np.vdot(part, part))
        simulated = float(np.linalg.norm(sums, axis=1).mean())
        found[source] = norm_bound / len(own) * min(simulated, math.sqrt(energy))
    return found


def vc_complexity(
    sizes: ArrayLike, *, vc_dimension: float, constant: float | None = None
) -> Floats:
    r"""Classifiers with values -1 and 1 and a finite VC dimension :math:`h`.

    :math:`R_i \le C \sqrt{h / m_i}`. By default :math:`C = \sqrt{2 \log(e m_i / h)}`, which
    Massart's and Sauer's lemmas prove (Shalev-Shwartz and Ben-David 2014, Lemmas 26.8 and 6.10);
    no such class has a complexity above 1, which is the value where this is larger. Pass
    `constant` for a number free of :math:`m_i`, which chaining provides (the paper's appendix,
    after Bousquet et al. 2004).

    Examples
    --------
    >>> vc_complexity([1_000, 100_000], vc_dimension=10).round(3)
    array([0.335, 0.045])
    """
    m = np.asarray(sizes, dtype=np.float64)
    if not 0 < vc_dimension < math.inf:
        raise ValueError(f"vc_dimension must be positive and finite; got {vc_dimension}.")
    if constant is not None:
        return np.asarray(constant * np.sqrt(vc_dimension / m))
    ratio = np.maximum(m / vc_dimension, 1.0)
    return np.asarray(np.minimum(np.sqrt(2.0 * (1.0 + np.log(ratio)) / ratio), 1.0))


def dudley_complexity(
    sizes: ArrayLike, log_covering_number: Callable[[float], float], *, diameter: float
) -> Floats:
    r"""Any class whose covering numbers are known, by Dudley's integral.

    :math:`R_i \le \frac{12}{\sqrt{m_i}} \int_0^{D} \sqrt{\log N(H, t)} \, dt`, where
    :math:`N(H, t)` models are enough to have one within :math:`t` of every model in the metric
    :math:`\sqrt{\frac{1}{m} \sum_j (h(x_j) - h'(x_j))^2}` and :math:`D` is the diameter of the
    class in it. The constant 12 is that of Shalev-Shwartz and Ben-David 2014, Lemma 27.4, for
    this metric. In the paper's, the share :math:`s` of rows on which two classifiers with values
    -1 and 1 disagree, :math:`t = 2 \sqrt{s}`.

    Parameters
    ----------
    sizes : array-like of shape (n_sources,)
        :math:`m_i`.
    log_covering_number : callable
        :math:`t \mapsto \log N(H, t)`; the logarithm, since :math:`N` itself overflows.
    diameter : float
        :math:`D`, where the integral ends.

    Returns
    -------
    array of shape (n_sources,)

    Examples
    --------
    A ball of radius 1 in three dimensions has :math:`N(t) \le (3 / t)^3`:

    >>> dudley_complexity([10_000], lambda t: 3 * np.log(3 / t), diameter=2.0).round(3)
    array([0.468])
    """
    if not 0 < diameter < math.inf:
        raise ValueError(f"diameter must be positive and finite; got {diameter}.")

    # t = D u^2 flattens the singularity at 0 that every infinite class has.
    def integrand(u: float) -> float:
        return 2.0 * diameter * u * math.sqrt(max(log_covering_number(diameter * u * u), 0.0))

    # With full_output a failure comes back as a message instead of a warning.
    value, error, *details = quad(integrand, 0.0, 1.0, limit=200, full_output=1)
    if len(details) > 1 or not math.isfinite(value):
        raise ValueError(
            "Dudley's integral did not converge: the covering number grows too fast near 0."
        )
    return np.asarray(12.0 * (value + error) / np.sqrt(np.asarray(sizes, dtype=np.float64)))
