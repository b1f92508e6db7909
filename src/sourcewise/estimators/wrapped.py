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
from sourcewise.estimators.fitting import (
    ConstantModel,
    class_probabilities,
    fit_told,
    fit_weighted,
    resample,
)
from sourcewise.estimators.pool import Options
from sourcewise.estimators.task import Numbers
from sourcewise.progress import FITS, report_progress

DIGITS = 9  # of weights, by which fits are recognised


@dataclass(frozen=True)
class Job:
    """One fit to some rows."""

    numbers: Any  # of the rows
    y: Any
    weights: Any
    told: Any = None  # about the rows' sources, (n_rows, n_columns)

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
    """

    linear = False  # nothing is known of models of any kind but their predictions

    def __init__(self, options: Options, rows: Any, labels: np.ndarray):
        self.options, self.task, self.estimator = options, options.task, options.estimator
        self.rows, self.labels = rows, labels
        self.settings = np.array([np.nan])
        # Fits to the same rows with the same weights, as of the reference alone, are done once.
        self._known: dict[bytes, Any] = {}
        self._most_fits = 0

    def __getstate__(self) -> dict[str, Any]:
        """Go to other processes without the models: they grow in number while jobs are sent."""
        return {**vars(self), "_known": {}}

    @property
    def names_only(self) -> bool:
        """Whether it is a classifier without probabilities."""
        return not self.task.numbers and not hasattr(self.estimator, "predict_proba")

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
        fitted = Parallel(n_jobs=self.options.n_jobs, return_as="generator")(
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
        if not self.task.numbers and (job.y == job.y[0]).all():
            return ConstantModel(int(job.y[0]))
        rows, labels = _safe_indexing(self.rows, job.numbers), self.labels[job.numbers]
        weights, told, seed = job.weights, job.told, self.options.seed
        if self.options.via == "resample":
            drawn = resample(weights, seed)
            rows, labels, weights = _safe_indexing(rows, drawn), labels[drawn], None
            told = None if told is None else told[drawn]
        if told is None:
            return fit_weighted(self.estimator, rows, labels, weights, seed)
        return fit_told(self.estimator, rows, labels, weights, told, seed)

    def predict(self, models: list[Any], X: Any) -> np.ndarray:
        """Probabilities (n_models, n_rows, n_classes) or predictions (n_models, n_rows)."""
        rows = _safe_indexing(self.rows, X[:, 0])
        if isinstance(self.task, Numbers):
            return np.stack([self.task.coded(model.predict(rows)) for model in models])
        labels = self.task.labels
        return np.stack([class_probabilities(model, rows, len(X), labels) for model in models])

    def predict_each(self, models: list[Any], which: np.ndarray, X: Any) -> np.ndarray:
        """Predict every row by its own model."""
        n_classes = self.task.n_classes
        result = np.empty((len(which), n_classes) if n_classes else len(which))
        for k in np.unique(which):
            result[which == k] = self.predict([models[k]], X[which == k])[0]
        return result
