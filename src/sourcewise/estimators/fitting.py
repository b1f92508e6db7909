"""One fit of an estimator of the user's own: with row weights, and told the rows' sources."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import scipy.sparse
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.utils.metaestimators import available_if

from sourcewise.validation import n_rows_of

SOURCE_COLUMN = "source_{number}"  # name of a column that tells a source from others
# Parameters that say something of every column, and what they say of those beside them.
OF_COLUMNS = {"monotonic_cst": 0, "monotone_constraints": 0, "categorical_features": False}


def fit_weighted(estimator: Any, X: Any, y: Any, weight: Any, seed: int) -> Any:
    """Fit a clone with sample weights, which in a pipeline go to its last step.

    Without weights all rows count alike.
    """
    model = seeded_clone(estimator, seed)
    steps = _steps(model)
    with config_context(enable_metadata_routing=False):
        if is_boosting(steps[-1]):
            Z = make_pipeline(*steps[:-1]).fit_transform(X, y) if steps[:-1] else X
            _fit_last(steps[-1], Z, y, weight)
            return model
        if weight is None:
            return model.fit(X, y)
        # Under metadata routing a scaler that has not said whether it wants the weights would be
        # an error; addressing the last step by its path needs no such answers.
        return model.fit(X, y, **{"__".join([*_path(model), "sample_weight"]): weight})


def unfitted_clone(estimator: Any) -> Any:
    """Return a clone, also of those that copy lists they are given, as CatBoost does.

    scikit-learn's `clone` refuses these, and does so for whatever they are a part of.
    """
    try:
        return clone(estimator)
    except RuntimeError:
        return copy.deepcopy(estimator)


def seeded_clone(estimator: Any, seed: int) -> Any:
    """Return a clone whose random states are all set."""
    model = unfitted_clone(estimator)
    unset = {
        name: seed % (2**31)
        for name, value in model.get_params().items()
        if value is None and (name == "random_state" or name.endswith("__random_state"))
    }
    return model.set_params(**unset)


def _path(model: Any) -> list[str]:
    path = []
    while hasattr(model, "steps"):
        name, model = model.steps[-1]
        path.append(name)
    return path


def _steps(model: Any) -> list[Any]:
    """Return the steps of (nested) pipelines in order; an estimator is a single step."""
    steps = []
    while hasattr(model, "steps"):
        steps += [step for _, step in model.steps[:-1] if step not in (None, "passthrough")]
        model = model.steps[-1][1]
    return [*steps, model]


def _fit_last(learner: Any, Z: Any, y: Any, weight: Any) -> None:
    """Fit an unfitted estimator that is no pipeline."""
    if is_boosting(learner) and weight is not None:
        if np.allclose(weight, weight[0]):
            weight = None
        else:
            Z = with_coarse_values(Z, learner.max_bins)
    if weight is None:
        learner.fit(Z, y)
    else:
        learner.fit(Z, y, sample_weight=weight)


def resample(weight: np.ndarray, seed: int) -> np.ndarray:
    """Draw rows in proportion to their weights, as many as the weights sum to.

    Draws are evenly spaced: a row of weight 2.3 is drawn two or three times.
    """
    n = max(int(round(weight.sum())), 1)
    upto = np.cumsum(weight) * (n / weight.sum())
    drawn = np.searchsorted(upto, np.arange(n) + np.random.default_rng(seed).random(), side="right")
    return np.asarray(np.minimum(drawn, len(weight) - 1))


# What a learner aims at besides the class or the mean itself, by names of its parameters.
OTHER_AIMS = ("class_weight", "class_weights", "auto_class_weights", "scale_pos_weight", "quantile")
OTHER_LOSSES = ("quantile", "absolute", "mae", "l1", "poisson", "gamma", "tweedie", "mape")


def aims_as_default(estimator: Any) -> bool:
    """Whether a learner asks for what ours does: likely classes as they are, or means.

    Where classes are weighted, or medians or positive numbers are wanted, an average with our
    learner would be neither.
    """
    parameters = _steps(estimator)[-1].get_params(deep=False)
    if any(parameters.get(name) not in (None, 1, "None") for name in OTHER_AIMS):
        return False
    losses = [str(parameters.get(k)).lower() for k in ("loss", "criterion", "objective")]
    return not any(other in loss for other in OTHER_LOSSES for loss in losses)


# -- what a fitted classifier says -----------------------------------------------------------------


class ConstantModel:
    """Predicts one class: what an estimator is replaced by when its rows show no other."""

    def __init__(self, code: int):
        self.code = code


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


# -- sources by name -------------------------------------------------------------------------------


def told_columns(codes: np.ndarray, n_sources: int, reference: int) -> np.ndarray:
    """Return what tells each row's source: that it is not the reference, and which one it is."""
    others = np.delete(np.eye(n_sources), reference, axis=1)
    return np.asarray(np.column_stack([others.sum(axis=1), others])[codes])


class ToldSources(BaseEstimator):
    """An estimator that was told where each row came from, and predicts for the reference's.

    Behind fitted transformers in ``front``, the last ``n_columns`` of the ``learner`` say which
    source a row is from; all zeros are the reference.
    """

    def __init__(self, front: Any, learner: Any, n_columns: int):
        self.front = front
        self.learner = learner
        self.n_columns = n_columns

    @property
    def classes_(self) -> np.ndarray:
        """Sorted labels of a classifier."""
        return np.asarray(self.learner.classes_)

    def _rows(self, X: Any) -> Any:
        Z = X if self.front is None else self.front.transform(X)
        return beside(Z, np.zeros((n_rows_of(Z), self.n_columns)))

    def predict(self, X: Any) -> np.ndarray:
        """Predict as for rows of the reference."""
        return np.asarray(self.learner.predict(self._rows(X)))

    @available_if(lambda self: hasattr(self.learner, "predict_proba"))  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> np.ndarray:
        """Probability of each class, as for rows of the reference."""
        return np.asarray(self.learner.predict_proba(self._rows(X)))


def fit_told(estimator: Any, X: Any, y: Any, weight: Any, told: np.ndarray, seed: int) -> Any:
    """Fit a clone to rows beside columns ``told`` about their sources.

    In a pipeline the columns come after the transformers. Where rows have no columns, as texts, or
    the estimator takes no more of them, it is not told.
    """
    steps = _steps(seeded_clone(estimator, seed))
    front = make_pipeline(*steps[:-1]) if steps[:-1] else None
    with config_context(enable_metadata_routing=False):
        Z = X if front is None else front.fit_transform(X, y)
        joined = beside(Z, told)
        if joined is None:
            return fit_weighted(estimator, X, y, weight, seed)
        try:
            n_more = told.shape[1]
            n_columns = joined.shape[1] - n_more
            steps[-1].set_params(**_of_more_columns(steps[-1], n_columns, n_more))
            _fit_last(steps[-1], joined, y, weight)
        except Exception:
            # A network may take just so many columns. Whatever else is wrong is so without them.
            return fit_weighted(estimator, X, y, weight, seed)
    return ToldSources(front, steps[-1], told.shape[1])


def _of_more_columns(learner: Any, n_columns: int, n_more: int) -> dict[str, Any]:
    """Return parameters of a learner that say something of every column, with some more columns.

    What names columns, or numbers some of them, holds as it is.
    """
    parameters, extended = learner.get_params(deep=False), {}
    for name, nothing in OF_COLUMNS.items():
        value = parameters.get(name)
        if not isinstance(value, list | tuple | np.ndarray) or len(value) != n_columns:
            continue
        if all(isinstance(each, np.bool_ | bool) == isinstance(nothing, bool) for each in value):
            more = [*value, *[nothing] * n_more]
            extended[name] = tuple(more) if isinstance(value, tuple) else more
    return extended


def beside(X: Any, columns: np.ndarray) -> Any:
    """Put columns of numbers behind those of ``X``, or return None where it has none."""
    if scipy.sparse.issparse(X):
        return scipy.sparse.hstack([X, scipy.sparse.csr_array(columns)], format="csr")
    if hasattr(X, "columns"):
        names = _free_names(X, columns.shape[1])
        if hasattr(X, "with_columns"):  # polars
            return X.with_columns(**dict(zip(names, columns.T, strict=True)))
        return X.assign(**dict(zip(names, columns.T, strict=True)))
    if getattr(X, "ndim", 0) != 2:
        return None
    return np.column_stack([X, columns.astype(X.dtype) if X.dtype.kind == "f" else columns])


def _free_names(X: Any, n: int) -> list[str]:
    taken = {str(name) for name in X.columns}
    pattern = SOURCE_COLUMN
    while any(pattern.format(number=k) in taken for k in range(n)):
        pattern = f"_{pattern}"
    return [pattern.format(number=k) for k in range(n)]


# -- boosting on histograms ------------------------------------------------------------------------
#
# With row weights, scikit-learn 1.9 cuts columns of more than `max_bins` values at weighted
# quantiles, one search for each bin and column, which takes about twenty times as long as all else
# in a fit to a thousand rows. Columns of fewer values are cut between them at once. So columns are
# made as coarse as boosting would make them anyway, at quantiles of the rows, before it sees them.


def is_boosting(estimator: Any) -> bool:
    """Whether this is scikit-learn's boosting on histograms."""
    return isinstance(estimator, HistGradientBoostingClassifier | HistGradientBoostingRegressor)


def with_coarse_values(X: Any, max_bins: int) -> Any:
    """Give every column of numbers at most so many values: the means of its bins.

    Columns that are no numbers are left as they are, and so is what is missing.
    """
    if isinstance(X, np.ndarray) and X.dtype.kind == "f":
        return np.column_stack([coarse(column, max_bins) for column in X.T])
    if hasattr(X, "iloc") and hasattr(X, "assign"):
        numbers = X.select_dtypes(include="floating")
        return X.assign(**{n: coarse(numbers[n].to_numpy(), max_bins) for n in numbers})
    return X


def coarse(values: np.ndarray, max_bins: int) -> np.ndarray:
    """Replace the values of a column by the means of at most ``max_bins`` bins."""
    known = np.isfinite(values)
    if len(np.unique(values[known])) <= max_bins:
        return values
    shares = np.linspace(0.0, 100.0, max_bins + 1)[1:-1]
    cuts = np.unique(np.percentile(values[known], shares, method="averaged_inverted_cdf"))
    rows = np.searchsorted(cuts, values[known])
    means = np.bincount(rows, values[known], minlength=len(cuts) + 1)
    counts = np.bincount(rows, minlength=len(cuts) + 1)
    found = values.copy()
    found[known] = (means / np.maximum(counts, 1))[rows]
    return found
