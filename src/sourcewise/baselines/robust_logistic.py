"""Logistic regression with a loss that outliers cannot dominate."""

from __future__ import annotations

from typing import Any

import numpy as np

from sourcewise.baselines.base import Baseline, with_shared_entries
from sourcewise.baselines.shared_fits import SharedFits, constant_penalty
from sourcewise.core.family import given_problems
from sourcewise.core.fold_logistic import fit_logistic_folds
from sourcewise.core.robust import THRESHOLD, minimise_robust
from sourcewise.core.row_space import RowSpace
from sourcewise.core.sparse_span import MOST_ROWS

AUTHORS_PENALTIES = 2.0 ** np.arange(-5, 5)  # l, on the mean loss
TOL = 1e-9
SEARCH_TOL = 1e-6  # for the choice of C, in single precision


@with_shared_entries
class RobustLogistic(Baseline):
    r"""Logistic regression on all rows with Pregibon's resistant loss.

    Assumes that bad rows are outliers, of large loss under the right model:

    .. math:: \min_w \sum_j \rho(\ell(x_j^\top w, y_j)) + \frac{1}{2C} \lVert w \rVert^2,
              \quad \rho(\ell) = \ell \text{ if } \ell \le c,
              \quad 2 \sqrt{c \ell} - c \text{ otherwise}

    with :math:`c = 1.345^2` (Pregibon 1982, "Resistant fits for some commonly used logistic models
    with medical applications"). C is chosen by cross-validation on the reference. The objective is
    not convex: for every C it is minimised to convergence from zero, from the ordinary logistic
    regression and from the reference's own model, and the lowest is taken; folds start there.
    Sources play no part but for the reference. Several classes: :math:`\ell` is the multinomial
    log-loss.

    It fails where bad rows are many or agree with each other: a consistent majority is no outlier.

    Parameters
    ----------
    threshold : float
        :math:`c`.
    %(reference)s
    %(cv)s
    protocol : None or "paper"
        None: features centred and scaled by the reference, C from 1e-3 to 1e2 by log-loss.
        "paper": features as given with a penalised constant, the l above by error rate.
    %(random_state)s

    Attributes
    ----------
    %(sources_)s
    %(trained)s
    objective_ : float
        What the final model attains.

    Examples
    --------
    >>> from sourcewise.baselines import RobustLogistic
    %(noise)s
    >>> model = RobustLogistic(reference="gold", random_state=0).fit(X, y, sources=vendor)
    >>> bool(model.score(X[:400], y[:400]) > 0.9)
    True
    """

    def __init__(
        self,
        *,
        threshold: float = THRESHOLD,
        reference: Any = "reference",
        cv: int = 5,
        protocol: str | None = None,
        random_state: Any = None,
    ):
        super().__init__(reference=reference, cv=cv, protocol=protocol, random_state=random_state)
        self.threshold = threshold

    _most_sparse_rows = MOST_ROWS  # it works in the span of all rows

    def _check_parameters(self, names: list[Any]) -> None:
        if not self.threshold > 0:
            raise ValueError(f"threshold must be positive; got {self.threshold!r}.")

    def _fit(self, work: SharedFits) -> None:
        # Neither the loss nor the penalty depends on the basis.
        space = RowSpace.of(work.pool.data.X)
        pool = work.pool
        work = SharedFits(pool.with_features(space.X))
        settings = self._settings(work)
        best, model, self.objective_ = train_robust(work, settings, self.threshold)
        self.C_ = float(settings[best])
        self._set_linear(work, space.back(model))

    def _settings(self, work: SharedFits) -> np.ndarray:
        if not work.pool.choices.as_given:
            return work.pool.family.settings
        # Mean loss + l |w|^2, times the number of rows: 1 / (2 C) = l n.
        return np.sort(1.0 / (2.0 * AUTHORS_PENALTIES * work.sizes[0].sum()))


def train_robust(
    work: SharedFits,
    settings: np.ndarray,
    threshold: float,
    search_tol: float = SEARCH_TOL,
    tol: float = TOL,
) -> tuple[int, np.ndarray, float]:
    """Choose a regularisation in single precision, then polish all its starts in full.

    Returns its position among the settings, the model of all rows and its objective.
    """
    data, n, n_folds = work.pool.data, len(settings), len(work.held_out)
    d, every = data.X.shape[1], np.arange(n)
    penalty = constant_penalty(d, penalise=work.pool.choices.as_given)
    # Weights of the rows: all count the same, without each validation fold as well.
    problems = given_problems(
        work.pool.sources,
        data,
        work.by_size(np.ones(data.n_sources)),
        work.sizes.sum(axis=1),
        work.held_out,
        np.arange(-1, n_folds),
    )
    patterns = np.stack([problems.row_weights(data, p) for p in range(len(problems))], axis=1)
    X, y = data.X.astype(np.float32, copy=False), data.y

    def ordinary(rows: slice) -> np.ndarray:
        return fit_logistic_folds(
            X[rows],
            y[rows],
            np.repeat(patterns[rows, :1], n, axis=1),
            settings,
            n_classes=data.n_classes,
            penalty=penalty,
            tol=search_tol,
        )

    def fit(
        X: np.ndarray, pattern: np.ndarray, which: np.ndarray, start: np.ndarray, tol: float
    ) -> tuple[np.ndarray, np.ndarray]:
        weights, C = patterns[:, pattern], settings[which]
        return minimise_robust(
            X, y, weights, C, start, penalty=penalty, threshold=threshold, tol=tol
        )

    plain = ordinary(slice(None))
    starts = np.concatenate([np.zeros_like(plain), plain, ordinary(data.rows(data.reference))])
    which = np.tile(every, 3)
    found, objective = fit(X, np.zeros(3 * n, dtype=np.intp), which, starts, search_tol)
    lowest = found[objective.reshape(3, n).argmin(axis=0) * n + every]
    by_fold, which = 1 + np.repeat(np.arange(n_folds), n), np.tile(every, n_folds)
    fold_models, _ = fit(X, by_fold, which, np.tile(lowest, (n_folds, 1, 1)), search_tol)
    best, _ = work.choose(fold_models.reshape(n_folds, n, *fold_models.shape[1:]))
    last, which = np.zeros(3, dtype=np.intp), np.full(3, best)
    final, objective = fit(data.X, last, which, found[best::n], tol)
    return best, final[objective.argmin()], float(objective.min())
