"""Every check of user input, and every sentence a user can get for it."""

from __future__ import annotations

import numbers
import warnings
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.base import is_classifier, is_regressor
from sklearn.utils import check_array
from sklearn.utils.metadata_routing import get_routing_for_object
from sklearn.utils.validation import (
    _check_sample_weight,
    _num_samples,
    has_fit_parameter,
)

from sourcewise.core.discrepancy.methods import DISCREPANCIES
from sourcewise.core.sparse_rows import canonical

REFERENCE_MISSING = (
    "The reference {reference!r} is not among the sources{hint}; pass reference=<one of the names "
    "in sources>."
)
BAD_REFERENCE = "reference must be the name of one source; got the array {value!r}."
REFERENCE_TOO_SMALL = (
    "The reference {reference!r} has {rows} rows (n_samples={rows}), fewer than the {folds} folds "
    "of {parameter}={folds}; add trusted rows or lower {parameter}."
)
REFERENCE_SINGLE_CLASS = (
    "The reference {reference!r} has only one class ({label!r}), so nothing can be judged against "
    "it; add trusted rows of at least one other class."
)
LABEL_UNSEEN = (
    "Source {source!r} has the label {label!r}, which the reference {reference!r} never shows; add "
    "trusted rows with that label or drop its rows."
)
SOURCE_UNNAMED = "Row {row} has no source name (it is {value!r}); name every row's source."
SOURCES_NOT_GIVEN = (
    "No sources were given, so every row counts as one of the reference {reference!r}; pass "
    "sources= to fit, in cross-validation by params= with scikit-learn's metadata routing enabled."
)
SOURCES_SHAPE = "sources must name every row's source: a list or array of {rows} names; got {got}."
SOURCE_UNHASHABLE = (
    "Row {row} has the source {value!r}, which cannot be a name; use texts, numbers or tuples."
)
SOURCE_UNKNOWN = "The model has no source {source!r}; name one of model.sources_ for every row."
SOURCES_WANTED = "row_weights takes the name of every row's source, one a row; got {got}."
SOURCE_EMPTY = (
    "Source {source!r} has no rows of positive sample weight; drop it or check sample_weight."
)
SOURCE_NO_ROWS = "Source {source!r} has no rows; leave it out or check how its rows were chosen."
SOURCE_KNOWN = (
    "Source {source!r} is already part of the model; choose another name or fit again with its "
    "rows replaced."
)
SOURCE_COLUMNS = "Source {source!r} has {problem}; give it the columns the model was fitted with."
NOT_FINITE = (
    "Source {source!r} has {what} in column {column!r} ({count} rows); remove or impute them."
)
TOO_LARGE = (
    "Source {source!r} has {value:.3g} in column {column!r}; protocol='paper' takes features as "
    "they are and cannot compute with numbers beyond {limit:.0e}: replace it or drop those rows."
)
REFERENCE_TOO_LARGE = (
    "The reference {source!r} has {value:.3g} in column {column!r}; numbers beyond {limit:.0e} "
    "cannot be computed with: replace it or drop those rows."
)
LABEL_NOT_FINITE = "Source {source!r} has {what} in the labels; drop those rows."
LABEL_NOT_NUMBER = (
    "Source {source!r} has the label {label!r}, which is not a number; correct it or use "
    "SourceWeightedClassifier for classes."
)
LABELS_AS_OBJECTS = (
    "Unknown label type: the labels are Python objects of the type {kinds}, of which classes "
    "cannot be made; make them all text (y.astype(str)) or all whole numbers (y.astype(int))."
)
LABELS_MISSING = "This {model} estimator requires y to be passed, but the target y is None."
LENGTHS_DIFFER = "X has {rows} rows and {what} has {length}; give one for each row."
WEIGHTS_ALL_ZERO = "All sample weights are zero; give at least the reference rows some weight."
WEIGHT_NEGATIVE = "Sample weights must not be negative; the smallest is {value}."
NO_SAMPLE_WEIGHT = (
    "{estimator} does not take sample_weight in fit, so source weights would be ignored; use an "
    "estimator that does (LogisticRegression, HistGradientBoostingClassifier, ...), pass "
    "via='resample' to have rows drawn by weight, or leave estimator=None."
)
PARTS_WITHOUT_WEIGHT = (
    "{estimator} hands no sample_weight to its parts, so source weights would be ignored; pass one "
    "of the parts as estimator, a {estimator} of models of ours with one part each, or "
    "via='resample' to have rows drawn by weight."
)
SEARCH_WITHIN = (
    "{estimator} would choose by rows of all sources, bad ones too; put it around the model "
    "instead: {estimator}({model}(...), cv=ReferenceKFold(...)), with parameters named "
    "'estimator__...'."
)
LABELS_NOT_NUMBERED = (
    "{estimator} takes the labels 0, 1, ... only, and these are {labels}; number them, "
    "y = numpy.unique(y, return_inverse=True)[1], and look names up in what unique returns first."
)
NEEDS_NUMBERS = (
    "discrepancy={discrepancy!r} compares rows of numbers, which X is not ({problem}); use "
    "discrepancy='local' or turn the columns into numbers."
)
SPARSE_PAIR = (
    "{option} compares at most {most} sparse rows of a source and the reference together, and "
    "source {source!r} makes that {rows}; {instead}, or pass X.toarray() where columns are few."
)
COMPLEX_FEATURES = "X holds complex numbers; pass real ones."
BROKEN_SPARSE = "X is a broken sparse matrix ({problem}); make it again from rows and columns."
SPARSE_VECTOR = (
    "{what} is a sparse matrix; pass one value a row, as {what}.toarray().ravel() gives."
)
SPARSE_SOURCE = (
    "Source {source!r} comes as sparse rows, and the model was fitted to an array; pass "
    "X.toarray(), or fit again with all rows sparse."
)
NOT_A_TRADE_OFF = "A model is trained at a trade-off that is not negative; got {value!r}."
BAD_TRADE_OFF = "trade_off must be 'cv', 'theory' or a number that is not negative; got {value!r}."
BAD_DISCREPANCY = "discrepancy must be one of {known}; got {value!r}."
BAD_VIA = "via must be 'weights' or 'resample'; got {value!r}."
WHOLE_NUMBERS = (
    "The targets are whole numbers, {found} different ones, and are taken for classes; "
    "task='regression' takes them for quantities, task='classification' silences this."
)
BAD_SCALING = "scaling must be 'auto', 'standard' or 'keep'; got {value!r}."
BAD_PROTOCOL = "protocol must be None or 'paper'; got {value!r}."
BAD_STRICT = "strict must be True or False; got {value!r}."
BAD_CV = "cv must be a whole number of folds, at least 3; got {value!r}."
BAD_SPLITS = "n_splits must be a whole number of folds, at least 2; got {value!r}."
SPLITTER_NEEDS_SOURCES = (
    "ReferenceKFold needs each row's source: pass sources=, or groups= where there is no sources."
)
NO_DATA_KEPT = (
    "The model keeps no training data (keep_data=False, or it was saved without), so a source "
    "cannot be added to it; fit again with all sources, the new one included."
)
NO_DATA_FOR_TRADE_OFF = (
    "The model keeps no training data (keep_data=False, or it was saved without), so it cannot be "
    "trained at another trade-off; fit again with trade_off=<the number>."
)
ROWS_ELSEWHERE = (
    "fit_sources trains the default learner only, because {estimator} would need all rows in one "
    "place; leave estimator=None, and train it where the rows are on the weights that are found."
)
CONSTANT_COLUMN = (
    "protocol='paper' cannot tell whether a column that is constant in the reference is so in rows "
    "elsewhere; drop the column."
)
NO_ADDING_ELSEWHERE = (
    "This model was fitted to sources elsewhere (fit_sources), so one cannot be added by its rows; "
    "put it beside the other sources and call fit_sources again."
)
ESTIMATOR_CLASS = "estimator must be an instance: pass {estimator}(), not the class {estimator}."
NOT_AN_ESTIMATOR = "estimator must be None or a scikit-learn estimator; got {value!r}."
REGRESSOR_WANTED = "{estimator} is not a regressor; use SourceWeightedClassifier for classes."
CLASSIFIER_WANTED = "{estimator} is not a classifier; use SourceWeightedRegressor for numbers."


def _is_trade_off(value: Any) -> bool:
    real = isinstance(value, numbers.Real) and not isinstance(value, bool)
    return real and bool(value >= 0)


def check_trade_off(value: Any) -> None:
    """Check a lambda that must be a number."""
    if not _is_trade_off(value):
        raise ValueError(NOT_A_TRADE_OFF.format(value=value))


def check_options(model: Any) -> None:
    """Check parameters of an estimator of ours that are not scikit-learn's own."""
    if not _is_one_of(model.discrepancy, DISCREPANCIES):
        known = ", ".join(map(repr, DISCREPANCIES))
        raise ValueError(BAD_DISCREPANCY.format(known=known, value=model.discrepancy))
    if not _is_trade_off(model.trade_off) and not _is_one_of(model.trade_off, ("cv", "theory")):
        raise ValueError(BAD_TRADE_OFF.format(value=model.trade_off))
    if model.protocol not in (None, "paper"):
        raise ValueError(BAD_PROTOCOL.format(value=model.protocol))
    if not _is_one_of(model.scaling, ("auto", "standard", "keep")):
        raise ValueError(BAD_SCALING.format(value=model.scaling))
    if not _is_whole(model.cv, at_least=3):
        raise ValueError(BAD_CV.format(value=model.cv))
    if not isinstance(model.strict, bool | np.bool_):
        raise ValueError(BAD_STRICT.format(value=model.strict))


def _is_one_of(value: Any, texts: Iterable[str]) -> bool:
    return isinstance(value, str) and value in texts


def check_n_splits(n_splits: Any) -> None:
    """Check the splitter's number of folds."""
    if not _is_whole(n_splits, at_least=2):
        raise ValueError(BAD_SPLITS.format(value=n_splits))


def _is_whole(value: Any, *, at_least: int) -> bool:
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    return whole and value >= at_least


def check_learner(estimator: Any, *, classifier: bool, via: Any = "weights") -> None:
    """Refuse an estimator of the wrong kind, or one that would ignore the weights."""
    if via not in ("weights", "resample"):
        raise ValueError(BAD_VIA.format(value=via))
    if isinstance(estimator, type):
        raise ValueError(ESTIMATOR_CLASS.format(estimator=estimator.__name__))
    if not hasattr(estimator, "fit"):
        raise ValueError(NOT_AN_ESTIMATOR.format(value=estimator))
    name = type(estimator).__name__
    if classifier and not is_classifier(estimator):
        raise ValueError(CLASSIFIER_WANTED.format(estimator=name))
    if not classifier and not is_regressor(estimator):
        raise ValueError(REGRESSOR_WANTED.format(estimator=name))
    last = final_step(estimator)
    if type(last).__name__.endswith("SearchCV"):
        raise ValueError(
            SEARCH_WITHIN.format(
                estimator=type(last).__name__,
                model="SourceWeightedClassifier" if classifier else "SourceWeightedRegressor",
            )
        )
    if via == "weights" and not takes_sample_weight(last):
        parts = type(last).__name__.startswith(("Voting", "Stacking"))
        sentence = PARTS_WITHOUT_WEIGHT if parts else NO_SAMPLE_WEIGHT
        raise ValueError(sentence.format(estimator=type(last).__name__))


def check_numbered(estimator: Any, classes: np.ndarray) -> None:
    """Refuse labels other than 0, 1, ... for an estimator that takes no others."""
    last = final_step(estimator)
    numbered = classes.dtype.kind in "iu" and (classes == np.arange(len(classes))).all()
    if type(last).__module__.startswith("xgboost.") and not numbered:
        raise ValueError(
            LABELS_NOT_NUMBERED.format(
                estimator=type(last).__name__, labels=", ".join(map(repr, classes.tolist()[:5]))
            )
        )


def check_own_learner(estimator: Any) -> None:
    """Refuse an estimator that needs all rows in one place."""
    if estimator is not None:
        raise ValueError(ROWS_ELSEWHERE.format(estimator=type(estimator).__name__))


def check_no_constant(found: bool) -> None:
    """Refuse a constant column under a protocol that adds one unless all rows have one."""
    if found:
        raise ValueError(CONSTANT_COLUMN)


def final_step(estimator: Any) -> Any:
    """Return the estimator at the end of (nested) pipelines."""
    while hasattr(estimator, "steps"):
        estimator = estimator.steps[-1][1]
    return estimator


def takes_sample_weight(estimator: Any) -> bool:
    """Whether ``fit`` has a sample_weight, by signature or by metadata request."""
    if has_fit_parameter(estimator, "sample_weight"):
        return True
    try:
        return "sample_weight" in get_routing_for_object(estimator).fit.requests
    except AttributeError:
        return False


def check_source_names(sources: Any, n_rows: int) -> tuple[list[Any], np.ndarray]:
    """Names in order of first appearance, and each row's position among them."""
    if scipy.sparse.issparse(sources):
        raise ValueError(SPARSE_VECTOR.format(what="sources"))
    values = _plain_array(sources)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values.ravel()
    if values.ndim != 1:
        got = repr(sources) if values.ndim == 0 else f"an array of shape {values.shape}"
        raise ValueError(SOURCES_SHAPE.format(rows=n_rows, got=got))
    if len(values) != n_rows:
        raise ValueError(LENGTHS_DIFFER.format(rows=n_rows, what="sources", length=len(values)))
    if values.dtype.kind in "iub":
        names, first, codes = np.unique(values, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty(len(order), dtype=np.intp)
        rank[order] = np.arange(len(order))
        return names[order].tolist(), rank[codes]
    table: dict[Any, int] = {}
    try:
        codes = np.fromiter((table.setdefault(v, len(table)) for v in values.tolist()), np.intp)
    except TypeError:
        for row, value in enumerate(values.tolist()):
            check_hashable(value, row)
        raise
    # Elements of an object array may be numpy's own strings and numbers.
    table = {v.item() if isinstance(v, np.generic) else v: k for v, k in table.items()}
    for name, position in table.items():
        if _is_missing(name) or name == "":
            row = int(np.flatnonzero(codes == position)[0])
            raise ValueError(SOURCE_UNNAMED.format(row=row, value=name))
    return list(table), codes


def check_source_positions(sources: Any, names: list[Any]) -> np.ndarray:
    """Position of each row's source among the names of a fitted model, from names or positions."""
    values = _plain_array(sources).tolist()
    position = {name: k for k, name in enumerate(names)}
    unknown = [value for value in values if value not in position]
    if not unknown:
        return np.array([position[value] for value in values], dtype=np.intp)
    if all(_is_whole(value, at_least=0) and value < len(names) for value in values):
        return np.array(values, dtype=np.intp)
    raise ValueError(SOURCE_UNKNOWN.format(source=unknown[0]))


def check_known_sources(sources: Any, names: list[Any]) -> np.ndarray:
    """Position of each row's source among the names of a fitted model, from names."""
    values = _plain_array(sources)
    if values.ndim != 1:
        raise ValueError(SOURCES_WANTED.format(got=repr(sources)[:60]))
    position = {name: k for k, name in enumerate(names)}
    try:
        return np.array([position[value] for value in values.tolist()], dtype=np.intp)
    except (KeyError, TypeError):
        unknown = next(v for v in values.tolist() if not _is_known(v, position))
        raise ValueError(SOURCE_UNKNOWN.format(source=unknown)) from None


def _is_known(value: Any, position: dict[Any, int]) -> bool:
    try:
        return value in position
    except TypeError:
        return False


def _plain_array(sources: Any) -> np.ndarray:
    if hasattr(sources, "to_numpy"):
        return np.asarray(sources.to_numpy())
    if isinstance(sources, (list, tuple)):
        # By default numpy would turn ["a", nan] into ["a", "nan"], ["a", 1] into strings, and
        # tuples, which are names like others, into rows of a table.
        return np.fromiter(sources, dtype=object, count=len(sources))
    return np.asarray(sources)


def check_hashable(name: Any, row: int) -> None:
    """Check that a source's name can be a key: a text, a number, a tuple of those."""
    try:
        hash(name)
    except TypeError as error:
        raise ValueError(SOURCE_UNHASHABLE.format(row=row, value=name)) from error


def _is_missing(value: Any) -> bool:
    # pandas.NA is compared by name: it is neither equal nor unequal to anything.
    return value is None or type(value).__name__ == "NAType" or bool(value != value)


def warn_without_sources(reference: Any) -> None:
    """Warn that there is no source but the reference, unless its name is the default."""
    if reference != "reference":
        warnings.warn(SOURCES_NOT_GIVEN.format(reference=reference), UserWarning, stacklevel=4)


def warn_of_whole_numbers(y: Any) -> None:
    """Warn that whole numbers are taken for classes, which they may not be."""
    values = np.asarray(y)
    if values.dtype.kind in "iuf":
        found = len(np.unique(values))
        warnings.warn(WHOLE_NUMBERS.format(found=found), UserWarning, stacklevel=4)


def check_reference(names: list[Any], reference: Any) -> int:
    """Position of the reference among the names."""
    if isinstance(reference, np.ndarray):
        raise ValueError(BAD_REFERENCE.format(value=reference))
    for position, name in enumerate(names):
        if name == reference:
            return position
    by_text = {str(name): name for name in names}
    close = get_close_matches(str(reference), list(by_text), n=1)
    hint = f" (did you mean {by_text[close[0]]!r}?)" if close else ""
    raise ValueError(REFERENCE_MISSING.format(reference=reference, hint=hint))


def check_reference_size(n_rows: int, cv: int, reference: Any, *, parameter: str = "cv") -> None:
    """Check that the reference has a row for each fold; ``parameter`` names their number."""
    if n_rows < cv:
        raise ValueError(
            REFERENCE_TOO_SMALL.format(
                reference=reference, rows=n_rows, folds=cv, parameter=parameter
            )
        )


def check_finite(X: Any, codes: np.ndarray, names: list[Any], columns: Any) -> None:
    """Name the source and the column of the first NaN or infinity."""
    values = stored_values(X)
    with np.errstate(over="ignore", invalid="ignore"):
        if np.isfinite(values.sum(dtype=np.float64)):
            return
    bad = ~np.isfinite(values)
    if not bad.any():
        return
    rows, at = _places(X, bad)
    what = "NaN" if np.isnan(X[rows[0], at[0]]) else "infinity"
    same = (codes[rows] == codes[rows[0]]) & (at == at[0])
    raise ValueError(
        NOT_FINITE.format(
            source=names[codes[rows[0]]],
            what=what,
            column=column_name(columns, int(at[0])),
            count=int(same.sum()),
        )
    )


def stored_values(X: Any) -> np.ndarray:
    """All numbers of an array, or those of a csr matrix that are stored."""
    return np.asarray(X.data if scipy.sparse.issparse(X) else X)


def _places(X: Any, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of some stored values, row by row."""
    if not scipy.sparse.issparse(X):
        rows, at = np.nonzero(chosen)
        return rows, at
    entries = np.flatnonzero(chosen)
    return np.searchsorted(X.indptr, entries, side="right") - 1, X.indices[entries]


def check_reference_magnitude(X: Any, name: Any, columns: Any) -> None:
    """Name the column of the first trusted number that is too large to be squared and summed."""
    codes = np.zeros(X.shape[0], dtype=np.intp)
    check_magnitude(X, codes, [name], columns, limit=1e150, message=REFERENCE_TOO_LARGE)


def check_magnitude(
    X: Any,
    codes: np.ndarray,
    names: list[Any],
    columns: Any,
    limit: float = 1e15,
    message: str = TOO_LARGE,
) -> None:
    """Name the source and the column of the first number too large to be squared and summed."""
    # The limit may be too large for single precision.
    large = np.abs(stored_values(X)) > np.float64(limit)
    if large.any():
        row, column = (found[0] for found in _places(X, large))
        raise ValueError(
            message.format(
                source=names[codes[row]],
                value=float(X[row, column]),
                column=column_name(columns, int(column)),
                limit=limit,
            )
        )


def column_name(columns: Any, position: int) -> Any:
    """Name of a column, or its position where columns have no names."""
    return position if columns is None else str(columns[position])


def check_sample_weight(
    sample_weight: Any, X: Any, codes: np.ndarray, names: list[Any]
) -> np.ndarray | None:
    """Row weights, none negative, some positive in every source."""
    if sample_weight is None:
        return None
    if scipy.sparse.issparse(sample_weight):
        raise ValueError(SPARSE_VECTOR.format(what="sample_weight"))
    if not np.any(np.asarray(sample_weight)):
        raise ValueError(WEIGHTS_ALL_ZERO)
    weight: np.ndarray = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if (weight < 0).any():
        raise ValueError(WEIGHT_NEGATIVE.format(value=weight.min()))
    mass = np.bincount(codes, weight, minlength=len(names))
    if (mass == 0).any():
        raise ValueError(SOURCE_EMPTY.format(source=names[int(np.flatnonzero(mass == 0)[0])]))
    return weight


def check_labels_known(
    y: np.ndarray, classes: np.ndarray, codes: np.ndarray, names: list[Any], reference: int
) -> np.ndarray:
    """Class codes of all labels; every label must occur in the reference."""
    if len(classes) < 2:
        raise ValueError(
            REFERENCE_SINGLE_CLASS.format(reference=names[reference], label=classes.tolist()[0])
        )
    position = np.searchsorted(classes, y)
    position = np.minimum(position, len(classes) - 1)
    unseen = classes[position] != y
    if unseen.any():
        row = int(np.flatnonzero(unseen)[0])
        raise ValueError(
            LABEL_UNSEEN.format(
                source=names[codes[row]], label=y[[row]].tolist()[0], reference=names[reference]
            )
        )
    return position


def check_targets_given(y: Any, model: str) -> None:
    """Labels are not optional, and not sparse."""
    if y is None:
        raise ValueError(LABELS_MISSING.format(model=model))
    if scipy.sparse.issparse(y):
        raise ValueError(SPARSE_VECTOR.format(what="y"))


def check_same_length(X: Any, y: np.ndarray) -> None:
    """As many labels as rows."""
    if len(y) != n_rows_of(X):
        raise ValueError(LENGTHS_DIFFER.format(rows=n_rows_of(X), what="y", length=len(y)))


def check_targets(
    y: np.ndarray, codes: np.ndarray, names: list[Any], *, numbers: bool
) -> np.ndarray:
    """Labels, none of them missing; as ``numbers``, none infinite either."""
    if y.dtype.kind not in "fiub":
        missing = np.array([_is_missing(label) for label in y.tolist()])
        if missing.any():
            source = names[codes[int(np.flatnonzero(missing)[0])]]
            raise ValueError(LABEL_NOT_FINITE.format(source=source, what="missing values"))
        if numbers:
            y = _as_numbers(y, codes, names)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        row = int(np.flatnonzero(~np.isfinite(y))[0])
        what = "NaN" if np.isnan(y[row]) else "infinity"
        raise ValueError(LABEL_NOT_FINITE.format(source=names[codes[row]], what=what))
    return y


def check_classes(y: np.ndarray) -> None:
    """Labels in an array of objects have to be text, so that they can be sorted."""
    if y.dtype == object and not all(isinstance(label, str) for label in y.tolist()):
        kinds = " and ".join(sorted({type(label).__name__ for label in y.tolist()}))
        raise ValueError(LABELS_AS_OBJECTS.format(kinds=kinds))


def _as_numbers(y: np.ndarray, codes: np.ndarray, names: list[Any]) -> np.ndarray:
    result = np.empty(len(y))
    for row, label in enumerate(y.tolist()):
        try:
            result[row] = float(label)
        except (TypeError, ValueError) as error:
            raise ValueError(
                LABEL_NOT_NUMBER.format(source=names[codes[row]], label=label)
            ) from error
    return result


def check_new_source(names: list[Any], name: Any, X: Any) -> None:
    """Check that a source to be added is new and named, and has rows."""
    check_hashable(name, 0)
    if _is_missing(name) or name == "":
        raise ValueError(SOURCE_UNNAMED.format(row=0, value=name))
    if name in names:
        raise ValueError(SOURCE_KNOWN.format(source=name))
    if n_rows_of(X) == 0:
        raise ValueError(SOURCE_NO_ROWS.format(source=name))


def check_source_columns(
    X: Any, name: Any, *, like: Any, n_features: int | None, columns: Any
) -> None:
    """Check that a source has the model's columns and can be put below its rows ``like``."""
    problem = _other_columns(X, like, n_features, columns)
    if problem is not None:
        raise ValueError(SOURCE_COLUMNS.format(source=name, problem=problem))


def check_same_kind(X: Any, name: Any, *, like: Any) -> None:
    """Check that checked rows of a source can be put below the model's: sparse ones not any."""
    if scipy.sparse.issparse(X) and isinstance(like, np.ndarray):
        raise ValueError(SPARSE_SOURCE.format(source=name))


def check_sparse_pairs(
    X: Any,
    counts: np.ndarray,
    names: list[Any],
    reference: int,
    *,
    discrepancy: str | None,
    most: int,
) -> None:
    """Check that a linear discrepancy can compare every source's sparse rows with the reference.

    ``discrepancy`` is None where the paper's protocol has chosen it.
    """
    if not scipy.sparse.issparse(X) or len(counts) < 2:
        return
    together = counts + counts[reference]
    together[reference] = 0
    largest = int(together.argmax())
    if together[largest] > most:
        raise ValueError(
            SPARSE_PAIR.format(
                option=f"discrepancy={discrepancy!r}" if discrepancy else "protocol='paper'",
                instead="use discrepancy='combined' or 'local'" if discrepancy else "leave it out",
                most=most,
                source=names[largest],
                rows=int(together[largest]),
            )
        )


def _other_columns(X: Any, like: Any, n_features: int | None, columns: Any) -> str | None:
    given = [str(c) for c in X.columns] if hasattr(X, "columns") else None
    if given is not None and columns is not None and given != list(columns):
        missing = [c for c in columns if c not in given]
        extra = [c for c in given if c not in list(columns)]
        parts = [f"no column {missing[0]!r}"] if missing else []
        parts += [f"an unknown column {extra[0]!r}"] if extra else []
        return " and ".join(parts) or "its columns in another order"
    shape: tuple[int, ...] = np.shape(X) if isinstance(X, list) else X.shape
    if n_features is not None and (len(shape) < 2 or shape[1] != n_features):
        return f"{shape[1] if len(shape) > 1 else 1} columns instead of {n_features}"
    if hasattr(like, "columns") and type(X) is not type(like):
        return f"rows of type {type(X).__name__} instead of {_full_name(like)}"
    return None


def _full_name(container: Any) -> str:
    kind = type(container)
    return f"{kind.__module__.partition('.')[0]}.{kind.__name__}"


def numeric_matrix(X: Any, discrepancy: str) -> Any:
    """Array or csr matrix of floats; NaN and infinity are left for :func:`check_finite`."""
    try:
        matrix = check_array(
            X, accept_sparse="csr", dtype=(np.float64, np.float32), ensure_all_finite=False
        )
    except (TypeError, ValueError) as error:
        problem = str(error).splitlines()[0].rstrip(".")
        raise ValueError(NEEDS_NUMBERS.format(discrepancy=discrepancy, problem=problem)) from error
    return sound_rows(matrix)


def check_real(X: Any) -> None:
    """Refuse a sparse matrix of complex numbers; of arrays scikit-learn says so in a sentence."""
    if scipy.sparse.issparse(X) and X.dtype.kind == "c":
        raise ValueError(COMPLEX_FEATURES)


def sound_rows(X: Any) -> Any:
    """Return arrays as they are, and sparse rows as floats, sorted and without duplicates.

    Of frames of truth values scikit-learn makes a sparse matrix of truth values.
    """
    if not scipy.sparse.issparse(X):
        return X
    try:
        X.check_format(full_check=True)
    except ValueError as error:
        problem = str(error).splitlines()[0].rstrip(".")
        raise ValueError(BROKEN_SPARSE.format(problem=problem)) from error
    return canonical(X if X.dtype.kind == "f" else X.astype(np.float64))


def indexable_rows(X: Any) -> Any:
    """Rows for an estimator of the user's own, as they are but in a container to choose from."""
    if scipy.sparse.issparse(X):
        return X.tocsr()
    return X if hasattr(X, "shape") or isinstance(X, list) else np.asarray(X)


def n_rows_of(X: Any) -> int:
    """Rows of an array, frame or list."""
    return int(_num_samples(X))
