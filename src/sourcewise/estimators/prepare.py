"""From checked rows to a pool of sources: copies left out, features mapped, rows grouped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_array

from sourcewise import validation
from sourcewise.core.copies import (
    NO_NUMBERS,
    NOT_HERE,
    TWINS,
    Copies,
    CopyRule,
    keep_one,
    more_than_chance,
    relabelled,
)
from sourcewise.core.data import ReferenceRows, SourceData, group_rows
from sourcewise.core.discrepancy.methods import LINEAR
from sourcewise.core.discrepancy.reference_folds import ReferenceFolds, SingleFolds
from sourcewise.core.engine import Engine, OpenSources
from sourcewise.core.family import Family
from sourcewise.core.feature_map import FeatureMap
from sourcewise.core.sparse_span import MOST_ROWS
from sourcewise.core.threads import one_blas_thread
from sourcewise.engines.memory import MemorySources
from sourcewise.estimators.pool import Options, Pool
from sourcewise.estimators.row_rules import RowRules
from sourcewise.estimators.rows import FilledRows, Rows
from sourcewise.estimators.selection import setting_evidence
from sourcewise.estimators.wrapped import EstimatorFamily

JUDGED_TOL = 1e-3  # likelihoods are compared to a whole unit

NO_COPIES = Copies()
# Sources and reference, of grouped rows and the untrusted sources' names.
Place = Callable[[SourceData, list[Any]], tuple[Engine, ReferenceRows]]
Both = tuple[Engine, ReferenceRows]


# -- copies of trusted rows ------------------------------------------------------------------------


def leave_out_copies(rows: Rows, names: list[Any], options: Options) -> tuple[Rows, Copies]:
    """Drop rows that repeat trusted ones, and count them; see `core/copies.py`."""
    trusted = rows.codes == validation.check_reference(names, options.reference)
    if not options.choices.without_copies:
        return rows, Copies()
    if trusted.all():  # nobody has any yet
        return rows, Copies(np.zeros(len(names), dtype=np.intp))
    X = rows.X if options.estimator is None else _numbers_or_none(rows.X)
    if X is None:
        return rows, Copies(unsought=NO_NUMBERS)
    validation.check_reference_magnitude(X[trusted], options.reference, options.columns)
    rule = CopyRule.learn(X[trusted], options.choices)
    if rule is None:
        return rows, Copies(unsought=TWINS)
    copied, same = rule.among(X, ~trusted)
    n, labels, numbers = len(names), None, options.task.numbers
    if rule.distinct:
        labels = relabelled(same, rows.y, rows.y[trusted], rows.codes, n, numbers=numbers)
    copied = keep_one(copied, rows.codes, n)
    counts = np.bincount(rows.codes[copied], minlength=n)
    if labels is not None and not rule.exact:  # equal rows are told where there are many
        others = np.bincount(rows.codes[~copied], minlength=n)
        many = more_than_chance(counts, others, rule.usual, int(trusted.sum()))
        labels[~many, :2] = 0.0
    kept = rows.take(np.flatnonzero(~copied)) if copied.any() else rows
    return kept, Copies(counts, rule.usual, labels=labels)


def _numbers_or_none(X: Any) -> Any:
    """Return rows as numbers, or None where they are something else: text has no distances."""
    try:
        return check_array(X, accept_sparse="csr", dtype=(np.float64, np.float32))
    except (TypeError, ValueError):
        return None


# -- rows in memory --------------------------------------------------------------------------------


def in_memory(data: SourceData, others: list[Any]) -> Both:
    """Leave grouped rows where they are."""
    return MemorySources(data, others), ReferenceRows.of(data)


def prepare(
    rows: Rows,  # without copies of trusted rows
    names: list[Any],  # of all sources, in order
    options: Options,
    place: Place = in_memory,  # puts grouped rows where the sources are to be
    *,
    copies: Copies = NO_COPIES,  # what has been found of these
    known: FeatureMap | None = None,  # of the default learner, if it need not be learnt again
) -> Pool:
    """Put rows into a pool."""
    position = validation.check_reference(names, options.reference)
    others = [name for i, name in enumerate(names) if i != position]
    task, alone = options.task, options.estimator is None

    def grouped(X: Any) -> Both:
        data, _ = group_rows(
            X,
            targets,
            rows.codes,
            reference=position,
            n_classes=task.n_classes,
            sample_weight=rows.sample_weight,
        )
        return place(data, others)

    def of_numbers(X: Any) -> Pool:
        features, numbers = map_features(replace(rows, X=X), names, targets, options, known)
        return make_pool(*grouped(numbers), names, options, features)

    with one_blas_thread(alone):
        targets = task.encode(rows.y, rows.codes, names, position)
        if alone:
            pool = of_numbers(rows.X)
        else:
            family = EstimatorFamily(options, rows.X, rows.y)
            pool = make_pool(
                *grouped(np.arange(len(targets))[:, None]), names, options, None, family
            )
            filled, numbers = as_numbers(rows, names, position, options)
            if numbers is not None:
                linear = replace(of_numbers(numbers), filled=filled, copies=copies)
                pool = replace(pool, linear=linear)
    return replace(pool, rows=rows, copies=copies)


def as_numbers(
    rows: Rows, names: list[Any], position: int, options: Options
) -> tuple[FilledRows | None, Any]:
    """Return rows of a user's own estimator as the default learner can take them, if it can.

    A linear discrepancy needs numbers; otherwise what is missing is filled.
    """
    if options.discrepancy in LINEAR:
        matrix = validation.numeric_matrix(rows.X, options.discrepancy)
        validation.check_finite(matrix, rows.codes, names, options.columns)
        return None, matrix
    if options.discrepancy != "combined":
        return None, None
    filled = FilledRows.learn(rows.X, np.flatnonzero(rows.codes == position))
    return filled, None if filled is None else filled(rows.X)


def make_pool(
    sources: Engine,
    reference: ReferenceRows,
    names: list[Any],
    options: Options,
    features: FeatureMap | None,
    family: Family | None = None,
) -> Pool:
    """Put together what fitting needs; the family is by default that of our own learners."""
    how, own_folds = options.choices, ReferenceFolds
    n_repeats = how.n_repeats
    if family is not None:
        n_repeats = 1
        # The models of all pairs of folds are worth their while where they are cheap.
        own_folds = ReferenceFolds if options.discrepancy == "local" else SingleFolds
    n_folds = options.cv if options.estimator is None else min(options.cv, how.own_folds)
    y = reference.y if reference.n_classes else None
    folds = own_folds.draw(y, len(reference.y), n_folds, n_repeats, options.seed)
    family = family or options.task.family(how)
    return Pool(sources, reference, names, options, features, family, folds)


# -- the map of the features -----------------------------------------------------------------------


def map_features(
    rows: Rows,
    names: list[Any],
    targets: np.ndarray,
    options: Options,
    known: FeatureMap | None,
) -> tuple[FeatureMap, Any]:
    """Learn the map of the features, unless it is known, and apply it to all rows."""
    how, X = options.choices, rows.X
    position = names.index(options.reference)
    if options.discrepancy in LINEAR:
        validation.check_sparse_pairs(
            X,
            np.bincount(rows.codes, minlength=len(names)),
            names,
            position,
            discrepancy=None if how.as_given else options.discrepancy,  # the paper's has no choice
            most=MOST_ROWS,
        )
    if how.as_given:
        validation.check_magnitude(X, rows.codes, names, options.columns)
        features = FeatureMap.as_given(X)
    elif known is not None:
        features = known
    else:
        trusted = rows.codes == position
        validation.check_reference_magnitude(X[trusted], names[position], options.columns)
        features = learn_map(X[trusted], targets[trusted], options)
    if options.discrepancy not in LINEAR:  # whose ridge depends on the number of features
        features = features.for_rows(X)
    return features, features(X)


def learn_map(X: Any, y: np.ndarray, options: Options) -> FeatureMap:
    """Learn the features' map from the reference's rows and their coded targets.

    "auto" standardises columns in different units. Others keep their proportions, unless the
    held-out reference rows are clearly likelier under models of standardised columns: columns that
    were standardised over a whole pool vary among few trusted rows by luck alone. Likelihoods are
    averaged over the regularisation.
    """
    choices, n_classes = options.choices, options.task.n_classes
    found = FeatureMap.from_reference(X, choices, options.scaling)
    if options.scaling != "auto" or found.standard:
        return found
    standard = FeatureMap.from_reference(X, choices, "standard")
    if np.allclose(standard.scale, found.scale):
        return found
    rows = np.random.default_rng(options.seed).permutation(len(y))[: choices.judged_rows]
    if n_classes and np.bincount(y[rows], minlength=n_classes).min() < 2:
        return found
    quick = replace(choices, n_repeats=1, tol=JUDGED_TOL)
    options = replace(
        options, choices=quick, cv=choices.judged_folds, discrepancy="combined", estimator=None
    )

    def evidence(features: FeatureMap) -> float:
        data, _ = group_rows(
            features(X[rows]),
            y[rows],
            np.zeros(len(rows), dtype=np.intp),
            reference=0,
            n_classes=n_classes,
        )
        pool = make_pool(*in_memory(data, []), [options.reference], options, features)
        return float(np.logaddexp.reduce(setting_evidence(pool)))

    likelier = evidence(standard) > evidence(found) + choices.clearly_likelier
    return standard if likelier else found


# -- rows elsewhere --------------------------------------------------------------------------------


def learn_rules(rows: Rows, options: Options, may_travel: bool) -> RowRules:
    """Learn from trusted rows what untrusted ones elsewhere go through."""
    how = options.choices
    if how.as_given:
        features = FeatureMap.as_given(rows.X)
        validation.check_no_constant(not features.constant)
    else:
        validation.check_reference_magnitude(rows.X, options.reference, options.columns)
        targets = options.task.encode(rows.y, rows.codes, [options.reference], 0)
        features = learn_map(rows.X, targets, options)
    seek = how.without_copies and may_travel
    return RowRules(
        options.reference,
        features,
        None if options.columns is None else tuple(options.columns),
        rows.X.shape[1],
        as_given=how.as_given,
        copies=CopyRule.learn(rows.X, how) if seek else None,
        **options.task.rules,
    )


def prepare_elsewhere(
    opened: OpenSources, rows: Rows, rules: RowRules, options: Options, may_travel: bool
) -> Pool:
    """Make a pool of trusted rows, and of sources that only an engine can reach."""
    names, position = list(opened.names), opened.position
    own = rules.reference_rows(rows)
    # Where there is nobody to ask, no engine is asked.
    engine = opened.engine if names else MemorySources(own.as_data(), [])
    names.insert(position, options.reference)
    if rules.copies is not None:
        counts = None if opened.copies is None else np.insert(opened.copies, position, 0)
        copies = Copies(counts, rules.copies.usual)
    elif options.choices.without_copies:
        copies = Copies(unsought=TWINS if may_travel else NOT_HERE)
    else:
        copies = Copies()
    pool = make_pool(engine, own, names, options, rules.features)
    family = pool.family if opened.learner is None else opened.learner(pool.family)
    return replace(pool, family=family, copies=copies)
