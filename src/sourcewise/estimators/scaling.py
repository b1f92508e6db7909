"""Which scaling of the features the reference's rows speak for, where they look alike."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sourcewise.core.choices import Choices
from sourcewise.core.data import FloatArray, ReferenceRows, group_rows
from sourcewise.core.discrepancy.reference_folds import ReferenceFolds
from sourcewise.core.family import Family
from sourcewise.core.losses import spread
from sourcewise.engines.memory import MemorySources
from sourcewise.estimators.feature_map import FeatureMap
from sourcewise.estimators.pool import Pool
from sourcewise.estimators.selection import setting_evidence
from sourcewise.estimators.task import Task

JUDGED_TOL = 1e-3  # likelihoods are compared to a whole unit


def learn_map(
    scaling: str,
    X: FloatArray,
    y: np.ndarray,
    task: Task,
    *,
    choices: Choices,
    seed: int,
) -> FeatureMap:
    """Learn the features' map from the reference's rows.

    "auto" standardises columns in different units. Others keep their proportions, unless the
    held-out reference rows are clearly likelier under models of standardised columns: columns that
    were standardised over a whole pool vary among few trusted rows by luck alone. Likelihoods are
    averaged over the regularisation.
    """
    found = FeatureMap.from_reference(X, choices, scaling)
    if scaling != "auto" or found.standard:
        return found
    standard = FeatureMap.from_reference(X, choices, "standard")
    if np.allclose(standard.scale, found.scale):
        return found
    rows = np.random.default_rng(seed).permutation(len(y))[: choices.judged_rows]
    if task.n_classes and np.bincount(y[rows], minlength=task.n_classes).min() < 2:
        return found
    quick = replace(choices, n_repeats=1, tol=JUDGED_TOL)
    family = task.family(quick)
    kept, standardised = (
        float(np.logaddexp.reduce(setting_evidence(pool)))
        for pool in (
            _alone(features, features(X[rows]), y[rows], task.n_classes, family, quick, seed)
            for features in (found, standard)
        )
    )
    return standard if standardised > kept + choices.clearly_likelier else found


def _alone(
    features: FeatureMap,
    X: FloatArray,
    y: np.ndarray,
    n_classes: int,
    family: Family,
    choices: Choices,
    seed: int,
) -> Pool:
    """Return a pool of the reference alone."""
    data, _ = group_rows(X, y, np.zeros(len(y), dtype=np.intp), reference=0, n_classes=n_classes)
    reference = ReferenceRows.of(data)
    return Pool(
        sources=MemorySources(data, []),
        reference=reference,
        position=0,
        names=["reference"],
        features=features,
        numbers=None,
        seed=seed,
        choices=choices,
        discrepancy="combined",
        family=family,
        folds=ReferenceFolds.draw(y if n_classes else None, len(y), choices.judged_folds, 1, seed),
        scale=1.0 if n_classes else spread(reference.y, choices.far_off),
    )
