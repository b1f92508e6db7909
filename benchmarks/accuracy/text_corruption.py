"""What the corruptions come to for sparse rows of words, which stay sparse."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from benchmarks.accuracy.data import REFERENCE, Draw
from sourcewise.corruption import corrupt_sources
from sourcewise.corruption.contract import Corrupted, choose_rows

REPLACED = 0.5  # share of a row's words, as noise


def corrupt_text(
    draw: Draw, n_bad: int, kind: str, p: float, seed: int
) -> tuple[Any, np.ndarray, list[str]]:
    """Corrupt some sources; returns features, labels, and the bad sources' names.

    Labels are corrupted as ever. Words are shuffled by one permutation of the vocabulary, and noise
    puts other words, drawn by their frequency, in the place of every second one.
    """
    changes = {"shuffle_features": shuffle_words, "feature_noise": replace_words}.get(kind)
    done = corrupt_sources(
        np.zeros((len(draw.y), 1)),  # labels do not depend on the features
        draw.y,
        draw.sources,
        n_bad,
        kind if changes is None else _only_choose,
        p,
        protect=REFERENCE,
        random_state=seed,
    )
    if changes is None:
        return draw.X, done.y, done.corrupted
    return changes(draw.X, done.mask, np.random.default_rng(seed)), done.y, done.corrupted


def _only_choose(X: Any, y: Any, *, p: float = 1.0, random_state: Any = None) -> Corrupted:
    """Choose rows and leave them as they are."""
    return Corrupted(X, y, choose_rows(len(y), p, random_state)[0])


def shuffle_words(X: Any, rows: np.ndarray, rng: np.random.Generator) -> Any:
    """Rename the words of some rows by one permutation of all."""
    name = rng.permutation(X.shape[1])
    return _with_words(X, _entries_of(X, rows), lambda words: name[words])


def replace_words(X: Any, rows: np.ndarray, rng: np.random.Generator) -> Any:
    """Put other words in the place of every second word of some rows, as bad hearing would."""
    hit = _entries_of(X, rows) & (rng.random(X.nnz) < REPLACED)
    return _with_words(X, hit, lambda words: rng.choice(X.indices, size=len(words)))


def _entries_of(X: Any, rows: np.ndarray) -> np.ndarray:
    """Mark the entries of some rows."""
    return np.repeat(rows, np.diff(X.indptr))


def _with_words(X: Any, entries: np.ndarray, other: Any) -> Any:
    """Return a copy in which some entries belong to other words."""
    words = X.indices.copy()
    words[entries] = other(words[entries])
    done = scipy.sparse.csr_matrix((X.data.copy(), words, X.indptr.copy()), shape=X.shape)
    done.sum_duplicates()
    return done
