"""Any scikit-learn estimator as a family of models."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from sklearn import config_context
from sklearn.base import clone
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed

from sourcewise.core.family import SourceRuns, WeightedProblems


class ConstantModel:
    """Predicts one class: what an estimator is replaced by when its rows show no other."""

    def __init__(self, code: int):
        self.code = code


class EstimatorFamily:
    """Fits clones of an estimator, one for each weighting, in parallel.

    The ``X`` that the core hands around is a column of row numbers, and its ``y`` are class codes
    or standardised targets; the estimator itself sees the rows and labels as the user gave them,
    so frames with strings, class weights by label or a loss for positive targets all work.

    Parameters
    ----------
    estimator : scikit-learn estimator that takes sample_weight
    rows : array, frame or list
        The rows themselves.
    labels : array of shape (n_rows,)
    n_jobs : int or None
    seed : int
        For an estimator whose own random_state is not set, so that results do not depend on
        ``n_jobs``.
    classes : array, optional
        Sorted labels, in the order of the core's codes; None for regression.
    centre, scale : float
        The core's targets are ``(label - centre) / scale``.
    """

    def __init__(
        self,
        estimator: Any,
        rows: Any,
        labels: np.ndarray,
        n_jobs: int | None,
        seed: int,
        *,
        classes: np.ndarray | None = None,
        centre: float = 0.0,
        scale: float = 1.0,
    ):
        self.estimator = estimator
        self.rows = rows
        self.labels = labels
        self.n_jobs = n_jobs
        self.seed = seed
        self.classes = classes
        self.centre = centre
        self.scale = scale
        self.settings = np.array([np.nan])

    @property
    def linear(self) -> bool:
        """Models of any kind: nothing is known of them but their predictions."""
        return False

    @property
    def names_only(self) -> bool:
        """Whether it is a classifier without probabilities."""
        return self.classes is not None and not hasattr(self.estimator, "predict_proba")

    def fit(self, X: Any, y: Any, row_weights: Any, settings: Any) -> list[Any]:
        """Fit one clone for each column of weights; rows of weight zero are left out."""
        return self._run((X[:, 0], y, column) for column in row_weights.T)

    def fit_folds(self, runs: SourceRuns, fold: Any, n_folds: Any, setting: float) -> list[Any]:
        """Fit, for every source, one clone without each fold."""
        return self._run(
            (runs.X[rows, 0], runs.y[rows], np.where(fold[rows] == f, 0.0, runs.weights[rows]))
            for rows, k in zip(map(runs.rows, range(len(n_folds))), n_folds, strict=True)
            for f in range(k)
        )

    def fit_grid(
        self,
        problems: WeightedProblems,
        settings: Any,
        start: Any = None,
        on_fit: Callable[[int], None] | None = None,
    ) -> list[Any]:
        """Fit all weightings; there is one setting, the estimator as it is."""
        sources: Any = problems.sources  # an estimator of the user's own needs rows in memory
        data = sources.data
        return self._run(
            ((data.X[:, 0], data.y, problems.row_weights(data, p)) for p in range(len(problems))),
            on_fit,
        )

    def _run(
        self,
        jobs: Iterable[tuple[Any, Any, Any]],
        on_fit: Callable[[int], None] | None = None,
    ) -> list[Any]:
        fitted = Parallel(n_jobs=self.n_jobs, return_as="generator")(
            delayed(self._fit_one)(numbers[weight > 0], y[weight > 0], weight[weight > 0])
            for numbers, y, weight in jobs
        )
        models = []
        for model in fitted:
            models.append(model)
            if on_fit is not None:
                on_fit(1)
        return models

    def _fit_one(self, numbers: Any, y: Any, weight: Any) -> Any:
        if self.classes is not None and (y == y[0]).all():
            return ConstantModel(int(y[0]))
        return fit_weighted(
            self.estimator,
            _safe_indexing(self.rows, numbers),
            self.labels[numbers],
            weight,
            self.seed,
        )

    def predict(self, models: list[Any], X: Any) -> np.ndarray:
        """Probabilities (n_models, n_rows, n_classes) or predictions (n_models, n_rows)."""
        rows = _safe_indexing(self.rows, X[:, 0])
        if self.classes is None:
            predictions = np.stack([np.asarray(m.predict(rows), dtype=np.float64) for m in models])
            return (predictions - self.centre) / self.scale
        return np.stack([self._probabilities(model, rows, len(X)) for model in models])

    def _probabilities(self, model: Any, rows: Any, n_rows: int) -> np.ndarray:
        assert self.classes is not None
        result = np.zeros((n_rows, len(self.classes)))
        if isinstance(model, ConstantModel):
            result[:, model.code] = 1.0
        elif hasattr(model, "predict_proba"):
            result[:, np.searchsorted(self.classes, model.classes_)] = model.predict_proba(rows)
        else:
            codes = np.searchsorted(self.classes, model.predict(rows))
            result[np.arange(n_rows), codes] = 1.0
        return result

    def predict_each(self, models: list[Any], which: np.ndarray, X: Any) -> np.ndarray:
        """Predict every row by its own model."""
        n_columns = () if self.classes is None else (len(self.classes),)
        result = np.empty((len(which), *n_columns))
        for k in np.unique(which):
            result[which == k] = self.predict([models[k]], X[which == k])[0]
        return result


def fit_weighted(estimator: Any, X: Any, y: Any, weight: Any, seed: int) -> Any:
    """Fit a clone with sample weights, which in a pipeline go to its last step."""
    model = clone(estimator)
    unset = {
        name: seed % (2**31)
        for name, value in model.get_params().items()
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    }
    model.set_params(**unset)
    path, step = [], model
    while hasattr(step, "steps"):
        path.append(step.steps[-1][0])
        step = step.steps[-1][1]
    # Under metadata routing a scaler that has not said whether it wants the weights would be an
    # error; addressing the last step by its path needs no such answers.
    with config_context(enable_metadata_routing=False):
        return model.fit(X, y, **{"__".join([*path, "sample_weight"]): weight})
