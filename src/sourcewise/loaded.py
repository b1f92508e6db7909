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

from sourcewise.portable import is_ours
from sourcewise.tables.dates import ORDERS
from sourcewise.tables.text import BUCKETS

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


def check_loaded(model: Any) -> None:
    """Raise an error, of any kind, unless a model of ours is sound and can predict."""
    check_is_fitted(model)
    for part in _parts(model, set()):
        if is_dataclass(part):
            _check_fields(part)
        if scipy.sparse.issparse(part):
            _check_sparse(part)
    _require(set(model.get_params(deep=False)) <= set(vars(model)))
    if hasattr(model, "preprocessor_"):
        _check_table_model(model)
        return
    _check_attributes(model)
    if getattr(model, "estimator", None) is None:  # others may want rows of another kind
        _require(hasattr(model, "coef_") or hasattr(model, "local_coef_"))
        _try(model, np.zeros((2, model.n_features_in_)))
    if getattr(model, "_training", None) is None and hasattr(model, "report"):
        str(model.report())


def _require(holds: Any) -> None:
    if not holds:
        raise ValueError("The model's parts do not fit together.")


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


def _check_fields(part: Any) -> None:
    """Fields of a dataclass hold what their annotations say."""
    hints = get_type_hints(type(part))
    for field in fields(part):
        _require(field.name in vars(part) and _is_a(vars(part)[field.name], hints[field.name]))


def _is_a(value: Any, hint: Any) -> bool:
    if hint is Any or hint is None or hint is type(None):
        return hint is Any or value is None
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_is_a(value, one) for one in arguments)
    if origin is Literal:
        return value in arguments
    if origin is tuple:
        return isinstance(value, tuple) and _are(value, arguments)
    if origin in (list, AnySequence):
        return isinstance(value, list | tuple) and all(_is_a(v, arguments[0]) for v in value)
    if origin is Callable or hint is Callable:
        return callable(value)
    kind = origin or hint
    if kind is float:
        return isinstance(value, float | int | np.number) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int | np.integer) and not isinstance(value, bool)
    if kind is bool:
        return isinstance(value, bool | np.bool_)
    if kind is np.ndarray:
        return isinstance(value, np.ndarray) and (not arguments or value.dtype.kind in "fiub")
    return (
        not isinstance(kind, type) or getattr(kind, "_is_protocol", False) or _is_one(value, kind)
    )


def _is_one(value: Any, kind: type) -> bool:
    return isinstance(value, kind)


def _are(values: tuple[Any, ...], hints: tuple[Any, ...]) -> bool:
    if len(hints) == 2 and hints[1] is Ellipsis:
        return all(_is_a(value, hints[0]) for value in values)
    return len(values) == len(hints) and all(map(_is_a, values, hints))


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
        _require(isinstance(classes, np.ndarray) and classes.ndim == 1 and len(classes) > 0)
        _require(len(np.unique(classes)) == len(classes))
        sizes["k"] = 1 if len(classes) == 2 else len(classes)
    if hasattr(model, "n_features_in_"):
        _require(_is_a(model.n_features_in_, int))
        sizes["d"] = int(model.n_features_in_)
    for name, shape in _shapes(model).items():
        if hasattr(model, name):
            _check_array(name, getattr(model, name), shape, sizes)
    for name in ("trade_off_", "cutoff_", "C_"):
        if hasattr(model, name):
            _require(_is_a(getattr(model, name), float) and not getattr(model, name) < 0)
    for name in model.sources_.tolist():
        hash(name)
    if getattr(model, "copies_", None) is not None:
        _check_array("copies_", model.copies_, ("n",), sizes)
        _require((model.copies_ >= 0).all())
    labels = getattr(model, "_copies_labels", None)
    if labels is not None:
        _require(_is_a(labels, np.ndarray) and labels.shape == (sizes["n"], 3))
        _require(labels.dtype.kind == "f" and np.isfinite(labels[:, :2]).all())
    for name in ("_seen", "_column_words"):
        _require(all(isinstance(text, str) for text in getattr(model, name, None) or ()))
    _check_weights(model)
    names = getattr(model, "feature_names_in_", ())
    _require(all(isinstance(name, str) for name in names))


def _shapes(model: Any) -> dict[str, tuple[str, ...]]:
    classifies = hasattr(model, "classes_")
    coefficients = ("k", "d") if classifies else ("d",)
    return {**SHAPES, "coef_": coefficients, "intercept_": ("k",) if classifies else ()}


def _check_array(name: str, value: Any, shape: tuple[str, ...], sizes: dict[str, int]) -> None:
    array = np.asarray(value)
    _require(array.ndim == len(shape) and (isinstance(value, np.ndarray) or not shape))
    for axis, length in zip(shape, array.shape, strict=True):
        _require(sizes.setdefault(axis, length) == length)
    if name in WITHOUT_NUMBERS:
        return
    _require(array.dtype.kind in "fiu")
    sound = ~np.isnan(array) if name in MAY_BE_INFINITE else np.isfinite(array)
    _require(sound.all())


def _check_weights(model: Any) -> None:
    n = len(model.sources_)
    _require(_is_a(model.reference_index_, int) and 0 <= model.reference_index_ < n)
    if hasattr(model, "source_weights_"):
        weights = model.source_weights_
        _require((weights >= 0.0).all() and abs(weights.sum() - 1.0) < TOTAL_ERROR)
    if hasattr(model, "selection_"):
        chosen = model.selection_
        grid = len(chosen.trade_offs), len(chosen.settings)
        _require(chosen.losses.shape == grid and chosen.mixture.shape == grid)
        _require(abs(chosen.mixture.sum() - 1.0) < TOTAL_ERROR)
        found = model._discrepancies
        _require(found.values.shape == found.standard_errors.shape == found.p_values.shape == (n,))
        _require(len(found.witnesses) == n)
        _require((model.source_sizes_ > 0).all() and (model.source_rows_ > 0).all())
    training = getattr(model, "_training", None)
    if training is not None:
        _check_rows(training.rows, n)


def _check_rows(rows: Any, n_sources: int) -> None:
    n_rows = len(rows.y)
    _require(rows.codes.shape == (n_rows,) and rows.codes.dtype.kind in "iu")
    _require(n_rows > 0 and rows.codes.min() >= 0 and rows.codes.max() < n_sources)
    _require((rows.X.shape[0] if hasattr(rows.X, "shape") else len(rows.X)) == n_rows)
    _require(rows.sample_weight is None or rows.sample_weight.shape == (n_rows,))


def _try(model: Any, X: Any) -> None:
    """Predict for made-up rows."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # made-up rows have no column names
        predicted = model.predict(X)
        probabilities = model.predict_proba(X) if hasattr(model, "predict_proba") else None
    _require(predicted.shape == (len(X),))
    if probabilities is not None:
        _require(probabilities.shape == (len(X), len(model.classes_)))
        _require(np.isfinite(probabilities).all())


def _check_table_model(model: Any) -> None:
    """Check a model that takes raw tables, and predict for a made-up row."""
    import pyarrow as pa

    _require(isinstance(model.label, str) and isinstance(model.source, str))
    _require(is_ours(model.model_) and not hasattr(model.model_, "preprocessor_"))
    check_loaded(model.model_)
    codes = model._row_codes
    if codes is not None:
        _require(isinstance(codes, np.ndarray) and codes.dtype.kind == "i" and codes.ndim == 1)
        _require(len(codes) and codes.min() >= -1 and codes.max() < len(model.model_.sources_))
    preprocessor = model.preprocessor_
    for names in (preprocessor.categories, preprocessor.text, preprocessor.numbers):
        _require(_is_a(names, AnySequence[str]))
    _require(preprocessor.dtype_ in ("float32", "float64"))
    rules = preprocessor.rules_
    for rule in rules:
        _require(rule.buckets == (BUCKETS if rule.kind == "text" else 0))
        _require(np.isfinite(rule.unit) and rule.unit > 0 and rule.order in ("", *ORDERS))
    _require(len(preprocessor.rarities_) == sum(rule.kind == "text" for rule in rules))
    for rarities in preprocessor.rarities_:
        _require(isinstance(rarities, np.ndarray) and rarities.shape == (BUCKETS,))
        _require(rarities.dtype.kind == "f" and np.isfinite(rarities).all())
    _require(preprocessor.n_features_out_ == model.model_.n_features_in_)
    made_up: dict[str, Any] = {"number": 0.0, "boolean": True, "date": dt.date(1970, 1, 1)}
    columns = {rule.name: [made_up.get(rule.kind, "")] for rule in rules}
    _require(len(columns) == len(rules))
    model.predict(pa.table(columns))
    if model.is_classifier:
        model.predict_proba(pa.table(columns))
