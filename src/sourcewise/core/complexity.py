"""Rademacher complexities of a source's rows, from what is known of the hypotheses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import quad

from sourcewise.core.sparse_rows import as_rows, whole_norms

Floats = NDArray[np.float64]

# Signs drawn at a time; 4 million float64 are 32 MB.
_SIGNS_AT_ONCE = 4_000_000


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
    X: Any,
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
    X : array-like or sparse matrix of shape (n_rows, n_features)
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
    rows = as_rows(X)
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
            signs = 2.0 * rng.integers(0, 2, (n_draws, len(part))) - 1.0
            sums += (part.T @ signs.T).T
            energy += float(whole_norms(part).sum())
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
