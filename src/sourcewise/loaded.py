"""A model from a file is checked whole before anybody gets it.

A file can hold the right types with the wrong content: a vector of the wrong length, a NaN, a text
where a number belongs. What is wrong is found here, not in the middle of a prediction.
"""

from __future__ import annotations

import datetime as dt
import types
import warnings
from collections.abc import Callable, Iterator
from collections.abc import Sequence as AnySequence
from dataclasses import fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np
import scipy.sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sourcewise.core.copies import Copies
from sourcewise.core.discrepancy.methods import DISCREPANCIES, LINEAR_PART, OWN_PART
from sourcewise.estimators.fitting import ToldSources
from sourcewise.state import is_ours
from sourcewise.tables.values import BUCKETS, ORDERS

# Shapes of fitted attributes: sources n, features d, outputs k (1 for two classes).
SHAPES: dict[str, tuple[str, ...]] = {
    "sources_": ("n",),
    "source_weights_": ("n",),
    "discrepancies_": ("n",),
    "source_sizes_": ("n",),
    "source_rows_": ("n",),
    "feature_range_": ("two", "d"),
    "feature_names_in_": ("d",),
    "local_coef_": ("models", "k", "d"),
    "local_intercept_": ("models", "k"),
}
WITHOUT_NUMBERS = ("sources_", "feature_names_in_")
MAY_BE_INFINITE = ("feature_range_",)
TOTAL_ERROR = 1e-6
LARGEST = 1e100  # trade-offs beyond would overflow


def require(holds: Any) -> None:
    """Raise an error unless this holds."""
    if not holds:
        raise ValueError("The model's parts do not fit together.")


def check_loaded(model: Any) -> None:
    """Raise an error, of any kind, unless a model of ours is sound and can predict."""
    check_is_fitted(model)
    for part in _parts(model, set()):
        if is_dataclass(part) or is_ours(part):
            check_fields(part)
        if isinstance(part, BaseEstimator):
            part.get_params(deep=False)  # asks for each
        if scipy.sparse.issparse(part):
            _check_sparse(part)
    require(set(model.get_params(deep=False)) <= set(vars(model)))
    if hasattr(model, "preprocessor_"):
        _check_table_model(model)
        return
    _check_attributes(model)
    learners = _learners(model)
    for learner in learners:
        if type(learner).__module__.startswith("sklearn.") and not _is_made_of_others(learner):
            check_is_fitted(learner)  # others need not follow its convention
    if getattr(model, "estimator", None) is None:
        require(hasattr(model, "coef_") or hasattr(model, "local_coef_"))
    if all(map(_takes_numbers, learners)):  # others may want rows of another kind
        _try(model, np.zeros((2, model.n_features_in_)))
    if hasattr(model, "report"):
        str(model.report())


# -- types ---------------------------------------------------------------------------------------


def _parts(value: Any, seen: set[int]) -> Iterator[Any]:
    """All that a model is made of, each once."""
    if id(value) in seen:
        return
    seen.add(id(value))
    yield value
    if isinstance(value, dict):
        inside: Any = value.values()
    elif isinstance(value, list | tuple):
        inside = value
    elif isinstance(value, BaseEstimator) or is_dataclass(value):
        inside = vars(value).values()
    else:
        return
    for part in inside:
        yield from _parts(part, seen)


def check_fields(part: Any) -> None:
    """Fields of a record, and attributes that a class of ours declares, are what they should be."""
    hints = get_type_hints(type(part))
    names = [field.name for field in fields(part)] if is_dataclass(part) else vars(part).keys()
    for name in names & hints.keys():
        require(name in vars(part) and _is_a(vars(part)[name], hints[name]))


NUMBERS: dict[Any, Any] = {
    float: (float, int, np.number),
    int: (int, np.integer),
    bool: (bool, np.bool_),
}


def _is_a(value: Any, hint: Any) -> bool:
    kind, inside = get_origin(hint) or hint, get_args(hint)
    if hint is Any or hint is None:
        return hint is Any or value is None
    if kind in (Union, types.UnionType):
        return any(_is_a(value, one) for one in inside)
    if kind is Literal:
        return value in inside
    if kind is tuple and inside and inside[-1] is not Ellipsis:
        right = isinstance(value, tuple) and len(value) == len(inside)
        return right and all(map(_is_a, value, inside))
    if kind in (tuple, list, AnySequence) and inside:
        kinds = tuple if kind is tuple else (list, tuple)
        return isinstance(value, kinds) and all(_is_a(each, inside[0]) for each in value)
    if kind is Callable:
        return callable(value)
    if kind in NUMBERS:
        return isinstance(value, NUMBERS[kind]) and (kind is bool or not isinstance(value, bool))
    if kind is np.ndarray:
        return isinstance(value, kind) and (not inside or value.dtype.kind in "fiub")
    if not isinstance(kind, type) or getattr(kind, "_is_protocol", False):
        return True
    return isinstance(value, kind)


def _check_sparse(matrix: Any) -> None:
    """Refuse indices beyond the end, which would be followed into memory of others."""
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)
    else:
        matrix.tocsr().check_format(full_check=True)


# -- our estimators ------------------------------------------------------------------------------


def _check_attributes(model: Any) -> None:
    sizes = {"two": 2, "n": len(model.sources_)}
    classes = getattr(model, "classes_", None)
    if classes is not None:
        require(isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes) > 0)
        require(len(np.unique(classes)) == len(classes))
        sizes["k"] = 1 if len(classes) == 2 else len(classes)
        require(np.array_equal(model._task.labels, classes))
        require(model._task.counts.shape == classes.shape)
    else:
        require(np.isfinite(model._task.centre) and 0.0 < model._task.scale < np.inf)
    if hasattr(model, "n_features_in_"):
        sizes["d"] = int(model.n_features_in_)
    for name, shape in _shapes(model).items():
        if hasattr(model, name):
            _check_array(name, getattr(model, name), shape, sizes)
    for name in ("trade_off_", "cutoff_", "C_"):
        if hasattr(model, name):
            value = getattr(model, name)
            require(0 <= value <= LARGEST or value == np.inf)
    for name in model.sources_.tolist():
        hash(name)
    copies = getattr(model, "_copies", Copies())
    if copies.counts is not None:
        _check_array("copies_", copies.counts, ("n",), sizes)
        require((copies.counts >= 0).all())
    if copies.labels is not None:
        require(copies.labels.shape == (sizes["n"], 3) and copies.labels.dtype.kind == "f")
        require(np.isfinite(copies.labels[:, :2]).all())
    _check_weights(model)
    names = getattr(model, "feature_names_in_", ())
    require(all(isinstance(name, str) for name in names))


def _shapes(model: Any) -> dict[str, tuple[str, ...]]:
    classifies = hasattr(model, "classes_")
    coefficients = ("k", "d") if classifies else ("d",)
    return {**SHAPES, "coef_": coefficients, "intercept_": ("k",) if classifies else ()}


def _check_array(name: str, value: Any, shape: tuple[str, ...], sizes: dict[str, int]) -> None:
    array = np.asarray(value)
    require(array.ndim == len(shape) and (isinstance(value, np.ndarray) or not shape))
    for axis, length in zip(shape, array.shape, strict=True):
        require(sizes.setdefault(axis, length) == length)
    if name in WITHOUT_NUMBERS:
        return
    require(array.dtype.kind in "fiu")
    sound = ~np.isnan(array) if name in MAY_BE_INFINITE else np.isfinite(array)
    require(sound.all())


def _check_weights(model: Any) -> None:
    n = len(model.sources_)
    require(0 <= model.reference_index_ < n)
    if hasattr(model, "source_weights_"):
        weights = model.source_weights_
        require((weights >= 0.0).all() and abs(weights.sum() - 1.0) < TOTAL_ERROR)
    if hasattr(model, "selection_"):
        chosen = model.selection_
        grid = len(chosen.trade_offs), len(chosen.settings)
        require(chosen.losses.shape == grid and chosen.mixture.shape == grid)
        require(abs(chosen.mixture.sum() - 1.0) < TOTAL_ERROR)
        _check_measured(model._measured, n - 1)
        require((model.source_sizes_ > 0).all() and (model.source_rows_ > 0).all())
    training = getattr(model, "_training", None)
    if training is not None:
        require(model.reference == model.sources_.tolist()[model.reference_index_])
        _check_training(training, model._measured, model._options().discrepancy, n)
        require(not hasattr(model, "classes_") or np.isin(training.rows.y, model.classes_).all())
        if model.estimator is None:  # which takes numbers
            X = training.rows.X
            require(X.ndim == 2 and X.shape[1] == model.n_features_in_)
            require(np.isfinite(X.data if scipy.sparse.issparse(X) else X).all())
        model._check_options()


def _learners(model: Any) -> list[Any]:
    """Fitted learners that a model around an estimator of the user's own asks."""
    if getattr(model, "estimator", None) is None:
        return []
    fitted = getattr(model, "estimator_", None)
    members = getattr(fitted, "members", None)
    if members is None:
        return [fitted]
    require(all(np.isfinite(member.share) for member in members))
    return [member.model for member in members]


def _is_made_of_others(learner: BaseEstimator) -> bool:
    values = learner.get_params(deep=False).values()
    return any(isinstance(value, BaseEstimator | list | tuple) for value in values)


def _takes_numbers(learner: Any) -> bool:
    """Whether it can be tried on made-up rows of numbers."""
    if isinstance(learner, ToldSources):
        return learner.front is None and _takes_numbers(learner.learner)
    return is_ours(learner) or type(learner).__module__.startswith("sklearn.linear_model.")


def _try(model: Any, X: Any) -> None:
    """Predict for made-up rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # made-up rows have no column names
        predicted = model.predict(X)
        probabilities = model.predict_proba(X) if hasattr(model, "predict_proba") else None
    require(predicted.shape == (len(X),))
    if probabilities is not None:
        require(probabilities.shape == (len(X), len(model.classes_)))
        require(np.isfinite(probabilities).all())


def _check_table_model(model: Any) -> None:
    """Check a model that takes raw tables, and predict for a made-up row."""
    import pyarrow as pa

    require(isinstance(model.label, str) and isinstance(model.source, str))
    require(is_ours(model.model_) and not hasattr(model.model_, "preprocessor_"))
    check_loaded(model.model_)
    codes = model._row_codes
    if codes is not None:
        require(isinstance(codes, np.ndarray) and codes.dtype.kind == "i" and codes.ndim == 1)
        require(len(codes) and codes.min() >= -1 and codes.max() < len(model.model_.sources_))
    preprocessor = model.preprocessor_
    for names in (preprocessor.categories, preprocessor.text, preprocessor.numbers):
        require(_is_a(names, AnySequence[str]))
    require(preprocessor.dtype_ in ("float32", "float64"))
    rules = preprocessor.rules_
    for rule in rules:
        require(rule.buckets == (BUCKETS if rule.kind == "text" else 0))
        require(np.isfinite(rule.unit) and rule.unit > 0 and rule.order in ("", *ORDERS))
    require(len(preprocessor.rarities_) == sum(rule.kind == "text" for rule in rules))
    for rarities in preprocessor.rarities_:
        require(isinstance(rarities, np.ndarray) and rarities.shape == (BUCKETS,))
        require(rarities.dtype.kind == "f" and np.isfinite(rarities).all())
    require(preprocessor.n_features_out_ == model.model_.n_features_in_)
    made_up: dict[str, Any] = {"number": 0.0, "boolean": True, "date": dt.date(1970, 1, 1)}
    columns = {rule.name: [made_up.get(rule.kind, "")] for rule in rules}
    require(len(columns) == len(rules))
    model.predict(pa.table(columns))
    if model.is_classifier:
        model.predict_proba(pa.table(columns))


# -- what is kept of the training, for `add_source` and for the report ---------------------------


def _check_training(training: Any, measured: Any, discrepancy: str, n_sources: int) -> None:
    """Require rows and findings of so many sources, the reference included."""
    _check_rows(training.rows, n_sources)
    if training.findings is not None:  # there may be the reference alone
        _check_findings(training.findings, discrepancy, measured, n_sources - 1)


def _check_label_test(test: Any) -> None:
    """Require losses of the same rows throughout."""
    if test is None:
        return
    repeats, n_rows = np.shape(test.right)
    exchanges = np.shape(test.random)[1]
    own = len(test.own_right)
    shapes = {
        "random": (repeats, exchanges, n_rows),
        "own_right": (own, n_rows),
        "own_random": (own, exchanges, n_rows),
        "folds": (repeats, n_rows),
        "shares": (n_rows,),
    }
    require(repeats and exchanges)
    for name, shape in {**shapes, "right": (repeats, n_rows)}.items():
        array = getattr(test, name)
        require(array.shape == shape and np.isfinite(array).all())
    require(test.folds.dtype.kind in "iu" and test.folds.min() >= 0)
    require(test.folds.max() < n_rows and (test.shares >= 0.0).all())
    require(abs(test.shares.sum() - 1.0) < TOTAL_ERROR)


def _check_measured(measured: Any, n_sources: int) -> None:
    """Require measurements of so many sources, of the default learner's part too."""
    found = measured.result
    values = found.values, found.standard_errors, found.p_values
    require(all(array.shape == (n_sources,) for array in values))
    require(len(found.witnesses) == n_sources)
    require(all((array >= 0.0).all() for array in (*values[:2], measured.without_fold)))
    require((np.isnan(found.p_values) | ((found.p_values >= 0.0) & (found.p_values <= 1.0))).all())
    require(measured.without_fold.ndim == 2 and measured.without_fold.shape[1] == n_sources)
    _check_label_test(measured.label_test)
    if measured.linear is not None:
        _check_measured(measured.linear, n_sources)


def _check_findings(found: Any, discrepancy: str, measured: Any, n_sources: int) -> None:
    """Require what this discrepancy finds out about so many sources, by each of its learners.

    Sources are along the last axis, sets of trusted rows along the first of several.
    """
    if LINEAR_PART in found:
        require(found.keys() == {LINEAR_PART, OWN_PART})
        _check_findings(found[LINEAR_PART], discrepancy, measured.linear, n_sources)
        found = found[OWN_PART]
    method = DISCREPANCIES[discrepancy]
    require(any(found.keys() == set(names) for names in method.findings))
    for name, part in found.items():
        require(isinstance(part, np.ndarray) and part.dtype.kind in "fiub")
        require(part.ndim and part.shape[-1] == n_sources)
        by_set = part.ndim > 1 and name not in method.not_by_set
        require(not by_set or len(part) == 1 + len(measured.without_fold))
        require(name in method.may_be_unknown or np.isfinite(part).all())


def _check_rows(rows: Any, n_sources: int) -> None:
    n_rows = len(rows.y)
    require(rows.codes.shape == (n_rows,) and rows.codes.dtype.kind in "iu")
    require(n_rows > 0 and rows.codes.min() >= 0 and rows.codes.max() < n_sources)
    require(np.bincount(rows.codes, minlength=n_sources).all())
    require((rows.X.shape[0] if hasattr(rows.X, "shape") else len(rows.X)) == n_rows)
    weight = rows.sample_weight
    require(weight is None or (weight.shape == (n_rows,) and weight.dtype.kind in "fiu"))
    require(weight is None or (np.isfinite(weight).all() and (weight > 0.0).all()))
