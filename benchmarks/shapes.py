"""Synthetic pools in the shapes that costs are measured on, and the units they are told in."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse
from sklearn.linear_model import RidgeCV

from sourcewise import ReferenceKFold
from sourcewise.experiments.estimate import unit_seconds

# sources, rows each, columns with the constant one, sources with shuffled labels
SHAPES = {
    "animals 60 x 500 x 101": (60, 500, 101, 20),
    "products 11 x 100 x 26": (11, 100, 26, 4),
    "products 957 x 100 x 26": (957, 100, 26, 300),
}
DECAY = 0.75  # of the features' standard deviations, as a power of their rank


class Pool(NamedTuple):
    """Rows of several sources; source 0 is the reference.

    Attributes
    ----------
    X : array or csr matrix
    y, sources : arrays
    weights : array or None
        Of the rows.
    """

    X: Any
    y: np.ndarray
    sources: np.ndarray
    weights: np.ndarray | None = None

    @property
    def nbytes(self) -> int:
        """Size of the features in memory."""
        if scipy.sparse.issparse(self.X):
            return sum(part.nbytes for part in (self.X.data, self.X.indices, self.X.indptr))
        return int(self.X.nbytes)


def make_pool(
    n_sources: int,
    rows: int,
    columns: int,
    n_bad: int,
    *,
    seed: int = 0,
    dtype: Any = np.float64,
    decay: float = DECAY,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features with the decaying spectrum of embeddings, noisy labels, some of them shuffled.

    The last column is constant. Source 0 is the reference. Without ``decay`` all features vary
    alike: scikit-learn's solver then needs far fewer steps, and the unit is small.
    """
    rng = np.random.default_rng(seed)
    n = n_sources * rows
    X, score = _rows_and_scores(rng, n, columns, 1, decay, dtype)
    y = (score[:, 0] + 0.5 * rng.logistic(size=n) > 0).astype(np.intp)
    sources = np.repeat(np.arange(n_sources), rows)
    shuffle_some(rng, y, sources, n_bad)
    return X, y, sources


def _rows_and_scores(
    rng: np.random.Generator,
    n: int,
    columns: int,
    n_scores: int,
    decay: float = DECAY,
    dtype: Any = np.float64,
) -> tuple[np.ndarray, np.ndarray]:
    """Features, the last one constant, and linear scores of them with a variance of one."""
    d = columns - 1
    spectrum = np.arange(1, d + 1) ** -decay
    X = np.empty((n, columns), dtype=dtype)
    X[:, :d] = rng.normal(size=(n, d)) * spectrum
    X[:, d] = 1.0
    scores = X[:, :d] @ (rng.normal(size=(n_scores, d)) / spectrum**0.5).T
    return X, scores / scores.std(axis=0)


def shuffle_some(rng: np.random.Generator, y: np.ndarray, sources: np.ndarray, n_bad: int) -> None:
    """Shuffle the labels of sources 1 to ``n_bad``, in place."""
    for bad in range(1, n_bad + 1):
        mine = sources == bad
        y[mine] = rng.permutation(y[mine])


def class_pool(
    n_sources: int, rows: int, columns: int, n_classes: int, n_bad: int, *, seed: int = 0
) -> Pool:
    """Several classes, each with a linear score of its own; some sources' labels are shuffled.

    All features vary alike.
    """
    rng = np.random.default_rng(seed)
    n = n_sources * rows
    X, scores = _rows_and_scores(rng, n, columns, n_classes, decay=0.0)
    y = np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)
    sources = np.repeat(np.arange(n_sources), rows)
    shuffle_some(rng, y, sources, n_bad)
    return Pool(X, y, sources)


def regression_pool(n_sources: int, rows: int, columns: int, n_bad: int, *, seed: int = 0) -> Pool:
    """Real targets with noise; those of some sources are shuffled."""
    rng = np.random.default_rng(seed)
    n = n_sources * rows
    X, score = _rows_and_scores(rng, n, columns, 1)
    y = score[:, 0] + 0.5 * rng.normal(size=n)
    sources = np.repeat(np.arange(n_sources), rows)
    shuffle_some(rng, y, sources, n_bad)
    return Pool(X, y, sources)


def uneven_pool(
    n_sources: int, least: int, most: int, columns: int, n_bad: int, *, seed: int = 0
) -> Pool:
    """Make sources of ``least`` to ``most`` rows, evenly spaced in logarithm, in random order.

    The reference has the middle size.
    """
    rng = np.random.default_rng(seed)
    sizes = np.geomspace(least, most, n_sources).round().astype(int)
    middle = n_sources // 2
    sizes = np.append(sizes[middle], rng.permutation(np.delete(sizes, middle)))
    sources = np.repeat(np.arange(n_sources), sizes)
    X, score = _rows_and_scores(rng, len(sources), columns, 1)
    y = (score[:, 0] + 0.5 * rng.logistic(size=len(sources)) > 0).astype(np.intp)
    shuffle_some(rng, y, sources, n_bad)
    return Pool(X, y, sources)


def weighted_pool(n_sources: int, rows: int, columns: int, n_bad: int) -> Pool:
    """Two classes, and rows with weights from a half to two."""
    X, y, sources = make_pool(n_sources, rows, columns, n_bad)
    return Pool(X, y, sources, np.random.default_rng(1).uniform(0.5, 2.0, size=len(y)))


def crowd_pool(
    n_workers: int, rows: int, columns: int, n_classes: int, *, n_images: int = 2000, seed: int = 0
) -> Pool:
    """Image embeddings labelled by a crowd: every worker labels some of the same images.

    A worker is right with a probability between .2 and .95 of its own, and says any other class
    otherwise. The reference has images of its own, which experts have labelled.
    """
    rng = np.random.default_rng(seed)
    X, scores = _rows_and_scores(rng, n_images + rows, columns, n_classes)
    truth = np.argmax(3.0 * scores + rng.gumbel(size=scores.shape), axis=1)
    chosen, labels = [n_images + np.arange(rows)], [truth[n_images:]]
    for skill in rng.uniform(0.2, 0.95, size=n_workers):
        mine = rng.choice(n_images, size=rows, replace=rows > n_images)
        other = (truth[mine] + rng.integers(1, n_classes, size=rows)) % n_classes
        chosen.append(mine)
        labels.append(np.where(rng.random(rows) < skill, truth[mine], other))
    sources = np.repeat(np.arange(n_workers + 1), rows)
    return Pool(X[np.concatenate(chosen)], np.concatenate(labels), sources)


def text_pool(
    n_sources: int, rows: int, n_words: int, words_each: int, n_bad: int, *, seed: int = 0
) -> Pool:
    """Made-up text: sparse rows of so many different words each, with Zipf's frequencies.

    Every word is a little likelier under one label than under the other. Values are weighted by
    rarity, rows have length one, nothing is constant.
    """
    rng = np.random.default_rng(seed)
    frequency = 1.0 / (10.0 + np.arange(n_words))
    tilt = 0.5 * rng.normal(size=n_words)
    y = rng.integers(0, 2, size=n_sources * rows)
    log_odds = np.log(frequency) + np.stack([-tilt, tilt])
    words = np.concatenate(
        [_draw_words(rng, log_odds[part], words_each) for part in y.reshape(n_sources, rows)]
    )
    seen = np.bincount(words.ravel(), minlength=n_words)
    values = np.log(1.0 + len(y) / (1.0 + seen))[words] * (1.0 + rng.poisson(0.3, words.shape))
    values /= np.linalg.norm(values, axis=1, keepdims=True)
    starts = words_each * np.arange(len(y) + 1)
    X = scipy.sparse.csr_matrix((values.ravel(), words.ravel(), starts), (len(y), n_words))
    X.sort_indices()
    sources = np.repeat(np.arange(n_sources), rows)
    shuffle_some(rng, y, sources, n_bad)
    return Pool(X, y, sources)


def _draw_words(rng: np.random.Generator, log_odds: np.ndarray, each: int) -> np.ndarray:
    """Different words for every row, by their odds: the largest after adding Gumbel noise."""
    noisy = log_odds + rng.gumbel(size=log_odds.shape)
    return np.argpartition(-noisy, each - 1, axis=1)[:, :each]


def cpu_seconds(call: Callable[[], Any]) -> float:
    """CPU time of one call, all threads of this process."""
    start = time.process_time()
    call()
    return time.process_time() - start


def unit(X: Any, y: np.ndarray, sources: np.ndarray, weights: Any = None) -> float:
    """CPU seconds of the unit U: one `LogisticRegressionCV` on the same arrays."""
    return unit_seconds(X, y, sources, weights)


def ridge_unit(X: Any, y: np.ndarray, sources: np.ndarray, weights: Any = None) -> float:
    """CPU seconds of what U is to regression: one `RidgeCV` on the same arrays.

    Ten penalties, and five folds that hold out reference rows only.
    """
    folds = list(ReferenceKFold(5, reference=0).split(X, y, sources=sources))
    model = RidgeCV(alphas=np.logspace(-4, 4, 10), cv=folds, fit_intercept=False)
    return cpu_seconds(lambda: model.fit(X, y, sample_weight=weights))
