"""Any scikit-learn estimator as a family of models."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing
from sklearn.utils.parallel import Parallel, delayed

from sourcewise.core.family import SourceRuns, WeightedProblems
from sourcewise.estimators.fitting import fit_told, fit_weighted, resample
from sourcewise.progress import FITS, report_progress

DIGITS = 9  # of weights, by which fits are recognised


class ConstantModel:
    """Predicts one class: what an estimator is replaced by when its rows show no other."""

    def __init__(self, code: int):
        self.code = code


@dataclass(frozen=True)
class Job:
    """One fit.

    Attributes
    ----------
    numbers : int array of shape (n_rows,)
        Of the rows.
    y : array of shape (n_rows,)
    weights : array of shape (n_rows,)
    told : array of shape (n_rows, n_columns), optional
        What the estimator is told about the rows' sources.
    """

    numbers: Any
    y: Any
    weights: Any
    told: Any = None

    def without_weightless(self) -> Job:
        """Leave out rows of weight zero."""
        kept = self.weights > 0
        told = None if self.told is None else self.told[kept]
        return Job(self.numbers[kept], self.y[kept], self.weights[kept], told)

    @cached_property
    def key(self) -> bytes:
        """The same for the same fit, but for rounding."""
        parts = [self.numbers, np.round(self.weights, DIGITS)]
        parts += [] if self.told is None else [self.told]
        return sha256(b"|".join(np.ascontiguousarray(part).tobytes() for part in parts)).digest()


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
    via : {"weights", "resample"}
        Whether rows are weighted or drawn by their weights.
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
        via: str = "weights",
        classes: np.ndarray | None = None,
        centre: float = 0.0,
        scale: float = 1.0,
    ):
        self.estimator = estimator
        self.rows = rows
        self.labels = labels
        self.n_jobs = n_jobs
        self.seed = seed
        self.via = via
        self.classes = classes
        self.centre = centre
        self.scale = scale
        self.settings = np.array([np.nan])
        # Fits to the same rows with the same weights, as of the reference alone, are done once.
        self._known: dict[bytes, Any] = {}
        self._most_fits = 0

    def __getstate__(self) -> dict[str, Any]:
        """Go to other processes without the models: they grow in number while jobs are sent."""
        return {**vars(self), "_known": {}}

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
        return self.fit_all(Job(X[:, 0], y, column) for column in row_weights.T)

    def fit_folds(self, runs: SourceRuns, fold: Any, n_folds: Any, setting: float) -> list[Any]:
        """Fit, for every source, one clone without each fold."""
        return self.fit_all(
            Job(runs.X[rows, 0], runs.y[rows], np.where(fold[rows] == f, 0.0, runs.weights[rows]))
            for rows, k in zip(map(runs.rows, range(len(n_folds))), n_folds, strict=True)
            for f in range(k)
        )

    def fit_grid(
        self,
        problems: WeightedProblems,
        settings: Any,
        on_fit: Callable[[int], None] | None = None,
    ) -> list[Any]:
        """Fit all weightings; there is one setting, the estimator as it is."""
        sources: Any = problems.sources  # an estimator of the user's own needs rows in memory
        data = sources.data
        weightings = (problems.row_weights(data, p) for p in range(len(problems)))
        return self.fit_all((Job(data.X[:, 0], data.y, row) for row in weightings), on_fit)

    def fit_all(
        self, jobs: Iterable[Job], on_fit: Callable[[int], None] | None = None
    ) -> list[Any]:
        """Fit one clone for each job."""
        jobs = [job.without_weightless() for job in jobs]
        new = {job.key: job for job in jobs if job.key not in self._known}
        fitted = Parallel(n_jobs=self.n_jobs, return_as="generator")(
            delayed(self._fit_one)(job) for job in new.values()
        )
        for key, model in zip(new, fitted, strict=True):
            self._known[key] = model
            report_progress(FITS, len(self._known), self._most_fits)
            if on_fit is not None:
                on_fit(1)
        if on_fit is not None:
            on_fit(len(jobs) - len(new))
        return [self._known[job.key] for job in jobs]

    def expect_fits(self, most: int) -> None:
        """Tell whoever waits how many fits there will be at most; 0 means that nobody knows."""
        self._most_fits = most
        report_progress(FITS, 0, most)

    def expect_no_more_fits(self) -> None:
        """Tell whoever waits that these were all, and forget them: the pool may be kept."""
        report_progress(FITS, len(self._known), len(self._known))
        self._known.clear()

    def _fit_one(self, job: Job) -> Any:
        if self.classes is not None and (job.y == job.y[0]).all():
            return ConstantModel(int(job.y[0]))
        rows, labels = _safe_indexing(self.rows, job.numbers), self.labels[job.numbers]
        weights, told = job.weights, job.told
        if self.via == "resample":
            drawn = resample(weights, self.seed)
            rows, labels, weights = _safe_indexing(rows, drawn), labels[drawn], None
            told = None if told is None else told[drawn]
        if told is None:
            return fit_weighted(self.estimator, rows, labels, weights, self.seed)
        return fit_told(self.estimator, rows, labels, weights, told, self.seed)

    def predict(self, models: list[Any], X: Any) -> np.ndarray:
        """Probabilities (n_models, n_rows, n_classes) or predictions (n_models, n_rows)."""
        rows = _safe_indexing(self.rows, X[:, 0])
        if self.classes is None:
            predictions = np.stack([np.asarray(m.predict(rows), dtype=np.float64) for m in models])
            return (predictions - self.centre) / self.scale
        return np.stack([class_probabilities(m, rows, len(X), self.classes) for m in models])

    def predict_each(self, models: list[Any], which: np.ndarray, X: Any) -> np.ndarray:
        """Predict every row by its own model."""
        n_columns = () if self.classes is None else (len(self.classes),)
        result = np.empty((len(which), *n_columns))
        for k in np.unique(which):
            result[which == k] = self.predict([models[k]], X[which == k])[0]
        return result


def class_probabilities(model: Any, rows: Any, n_rows: int, classes: np.ndarray) -> np.ndarray:
    """Probabilities of all classes; of a model that only names one, 1 for that."""
    result = np.zeros((n_rows, len(classes)))
    if isinstance(model, ConstantModel):
        result[:, model.code] = 1.0
    elif hasattr(model, "predict_proba"):
        result[:, np.searchsorted(classes, model.classes_)] = model.predict_proba(rows)
    else:
        result[np.arange(n_rows), np.searchsorted(classes, model.predict(rows))] = 1.0
    return result
