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
from numpy.typing import ArrayLike

from sourcewise.core.complexity import (
    Floats,
    dudley_complexity,
    linear_complexity,
    monte_carlo_complexity,
    vc_complexity,
)
from sourcewise.core.sparse_rows import as_rows, whole_norms
from sourcewise.core.weights import _check_sources, theory_trade_off

Complexity = Literal["linear", "monte-carlo", "vc", "dudley"]


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

    Examples
    --------
    >>> import sourcewise as sw
    >>> bound = sw.generalization_bound([0.5, 0.5], [0.0, 0.1], [100, 100], complexity=0.0)
    >>> round(bound.discrepancy_term, 3), round(bound.deviation_term, 3)
    (0.1, 0.628)
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
            radius = float(np.sqrt(whole_norms(as_rows(X)).max()))
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
