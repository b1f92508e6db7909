"""Small pools whose sources answer as sites, in this process."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import sourcewise as sw
from sourcewise.engines.flower import FlowerSources, LocalCarrier, Policy, Site


def rows(n_sites=5, m=60, d=4, n_ref=60, classes=2, seed=0, bad=("site-3",)):
    """Features, labels and names; labels of bad sites are shuffled."""
    rng = np.random.default_rng(seed)
    names = np.repeat(["ours", *(f"site-{k}" for k in range(n_sites))], [n_ref] + [m] * n_sites)
    X = rng.normal(size=(len(names), d))
    scores = X @ rng.normal(size=(d, max(classes, 1))) + rng.normal(size=(len(names), 1)) * 0.5
    y = scores[:, 0] if classes == 0 else (scores[:, 0] > 0).astype(int)
    if classes > 2:
        y = scores.argmax(axis=1)
    for name in bad:
        y[names == name] = rng.permutation(y[names == name])
    return X, y, names


def sites_of(X, y, names, policy=None, reference="ours"):
    others = [name for name in dict.fromkeys(names.tolist()) if name != reference]
    return [Site.of_arrays(n, X[names == n], y[names == n], policy or Policy()) for n in others]


def federated(pool, model, carrier=None, **options):
    """Fit to the pool's sources as sites; returns the model and the sources."""
    X, y, names = pool
    own = names == "ours"
    carrier = carrier or LocalCarrier(sites_of(*pool))
    sources = FlowerSources(carrier, X[own], y[own], **options)
    return model.fit_sources(sources), sources


def in_memory(pool, model):
    """Fit with all rows at hand; copies of trusted rows stay in, as sites cannot look for them."""
    X, y, names = pool
    choices = replace(model._choices(), without_copies=False)
    model._choices = lambda: choices
    return model.fit(X, y, sources=names)


def classifier(**options):
    return sw.SourceWeightedClassifier(reference="ours", random_state=0, **options)


def regressor(**options):
    return sw.SourceWeightedRegressor(reference="ours", random_state=0, **options)


def total_variation(first, second):
    assert first.sources_.tolist() == second.sources_.tolist()
    return 0.5 * np.abs(first.source_weights_ - second.source_weights_).sum()
