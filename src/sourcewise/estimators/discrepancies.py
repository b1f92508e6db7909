"""Discrepancies by themselves, for those who train elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils.multiclass import type_of_target

from sourcewise import validation
from sourcewise.core.discrepancy import Witness
from sourcewise.core.threads import one_blas_thread
from sourcewise.estimators.base import SourceWeightedBase
from sourcewise.estimators.classifier import SourceWeightedClassifier
from sourcewise.estimators.method import measure_sources
from sourcewise.estimators.regressor import SourceWeightedRegressor


@dataclass(frozen=True)
class SourceDiscrepancies:
    """How far every source lies from the reference; as an array, the values.

    Attributes
    ----------
    sources : list
        Names, in order of first appearance.
    values, standard_errors, p_values : arrays of shape (n_sources,)
        0, 0 and 1 for the reference.
    witnesses : tuple of Witness
        Which hypothesis showed the difference, and on which side it did worse.
    sizes : array of shape (n_sources,)
        Effective rows, as :func:`sourcewise.solve_weights` wants them.
    task : {"classification", "regression"}
        What the targets were taken for.

    Examples
    --------
    >>> import sourcewise as sw
    >>> from sourcewise.datasets import vendor_digits
    >>> digits = vendor_digits()
    >>> found = sw.estimate_discrepancies(
    ...     digits.X, digits.y, sources=digits.vendor, reference="gold", random_state=0
    ... )
    >>> far = [name for name, value in zip(found.sources, found.values) if value > 0.1]
    >>> sorted(far) == sorted(digits.spoiled)
    True
    """

    sources: list[Any]
    values: np.ndarray
    standard_errors: np.ndarray
    p_values: np.ndarray
    witnesses: tuple[Witness, ...]
    sizes: np.ndarray
    task: str

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """Return the values."""
        return np.array(self.values, dtype=dtype)

    def __len__(self) -> int:
        """Return the number of sources."""
        return len(self.sources)


def estimate_discrepancies(
    X: Any,
    y: Any,
    *,
    sources: Any,
    reference: Any = "reference",
    method: str = "combined",
    estimator: Any = None,
    task: str = "auto",
    scaling: str = "auto",
    sample_weight: Any = None,
    cv: int = 5,
    n_jobs: int | None = None,
    random_state: Any = None,
) -> SourceDiscrepancies:
    r"""Estimate how far each source lies from the reference.

    The discrepancy is :math:`d_i = \sup_h |\epsilon_i(h) - \epsilon_T(h)|`, the largest
    difference between a hypothesis' loss on source and on reference. The methods differ in the
    hypotheses and in how they are judged:

    - ``"combined"``: what the default of :class:`SourceWeightedClassifier` goes by: by how much the
      source pulls the reference's model away, how well that model knows the source's labels, and
      how far its features lie; with an ``estimator``, how well its own models of the reference know
      the labels, too (docs/method.md).
    - ``"local"``: the reference's model and the source's own model, each judged on rows it has not
      seen, by a bounded smooth loss. Any number of classes, regression, any estimator.
    - ``"plug-in"`` (the paper's): the linear model that best tells flipped source labels from the
      reference's, judged on the rows it was fitted to, by the error rate. More than two classes:
      one against the rest, the maximum. Regression: squared loss over norm-bounded linear models,
      the exact supremum. Biased upwards by about ``sqrt(n_features / rows)``.
    - ``"cross-fit"``: the same model judged on held-out folds of both sides.

    The values are the ``discrepancies_`` of an estimator with ``discrepancy`` set to the same name.
    The last two use linear models with an intercept of the features as the default learner sees
    them, centred and scaled by the reference. In regression, losses are in units of the variance of
    the reference's targets.

    Parameters
    ----------
    X : array, sparse matrix or frame of shape (n_rows, n_features)
    y : array of shape (n_rows,)
    sources : array of shape (n_rows,)
        Name of each row's source.
    reference : hashable, default "reference"
        Name of the trusted source.
    method : {"combined", "local", "cross-fit", "plug-in"}
    estimator : scikit-learn estimator that takes sample_weight, optional
        Learner of the local models; ours by default.
    task : {"auto", "classification", "regression"}
        "auto": real numbers that are not whole mean regression; of whole numbers, three or more
        different ones, a warning says that they are taken for classes.
    scaling : {"auto", "standard", "keep"}
        Of the features that our learner sees, as in :class:`SourceWeightedClassifier`.
    sample_weight : array of shape (n_rows,), optional
    cv : int
        Folds.
    n_jobs : int, optional
        Parallel fits of ``estimator``.
    random_state : int, RandomState or None

    Returns
    -------
    SourceDiscrepancies

    Examples
    --------
    >>> import numpy as np
    >>> import sourcewise as sw
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 3))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> y[300:] = 1 - y[300:]
    >>> who = np.repeat(["gold", "ann", "bob"], [100, 200, 200])
    >>> found = sw.estimate_discrepancies(X, y, sources=who, reference="gold", random_state=0)
    >>> found.sources, found.values.round(1).tolist()
    (['gold', 'ann', 'bob'], [0.0, 0.0, 0.4])
    >>> sw.solve_weights(found, found.sizes, trade_off=sw.theory_trade_off()).round(2).tolist()
    [0.34, 0.66, 0.0]
    """
    model = _model_for(task, y)(
        estimator=estimator,
        reference=reference,
        discrepancy=method,
        scaling=scaling,
        cv=cv,
        n_jobs=n_jobs,
        random_state=random_state,
    )
    pool = model._prepare(X, y, sources, sample_weight)
    with one_blas_thread(estimator is None):
        measured, *_ = measure_sources(pool)
    found = measured.result.with_reference(pool.position)
    return SourceDiscrepancies(
        pool.names,
        found.values,
        found.standard_errors,
        found.p_values,
        found.witnesses,
        pool.sizes,
        "regression" if model._kind.numbers else "classification",
    )


def _model_for(task: str, y: Any) -> type[SourceWeightedBase]:
    if task not in ("auto", "classification", "regression"):
        raise ValueError(f"task must be 'auto', 'classification' or 'regression'; got {task!r}.")
    if task == "auto":
        kind = "unknown" if y is None else type_of_target(y)
        task = "regression" if kind.startswith("continuous") else "classification"
        if kind == "multiclass":
            validation.warn_of_whole_numbers(y)
    return SourceWeightedRegressor if task == "regression" else SourceWeightedClassifier
