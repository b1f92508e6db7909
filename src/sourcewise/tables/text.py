"""Free text to sparse numbers: words and pairs of words, hashed, weighed by how rare they are.

Which column a word goes to is a fixed function of the word, and what it counts for is learnt from
the reference's rows alone, so that no source can bend either.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from sklearn.preprocessing import normalize

BUCKETS = 2**16


def hashed_words(values: Any) -> Any:
    """Count the words and pairs of words of texts: a csr matrix with ``BUCKETS`` columns."""
    return _vectorizer().transform(["" if v is None else v for v in values.to_pylist()]).tocsr()


def rarity(values: Any) -> np.ndarray:
    """Learn from trusted texts what each bucket counts: log((1 + n) / (1 + rows with it)) + 1."""
    counts = hashed_words(values)
    rows_with = np.bincount(counts.indices, minlength=BUCKETS)
    return np.asarray(np.log((1.0 + counts.shape[0]) / (1.0 + rows_with)) + 1.0)


def text_features(values: Any, rarities: np.ndarray, dtype: Any) -> Any:
    """Weigh hashed words: logarithms of counts times rarity, each row of length 1."""
    counts = hashed_words(values)
    counts.data = (1.0 + np.log(counts.data)) * rarities[counts.indices]
    return scipy.sparse.csr_array(normalize(counts, copy=False).astype(dtype))


def words_of_buckets(values: Any) -> dict[int, str]:
    """Name the buckets that trusted texts use, each by its most frequent word or pair."""
    analyze = _vectorizer().build_analyzer()
    seen: dict[str, int] = {}
    for text in values.to_pylist():
        for word in set(analyze(text or "")):
            seen[word] = seen.get(word, 0) + 1
    return _buckets(sorted(seen, key=lambda word: (seen[word], word)))


def _buckets(words: list[str]) -> dict[int, str]:
    if not words:
        return {}
    from sklearn.feature_extraction.text import HashingVectorizer

    one_each = HashingVectorizer(
        analyzer=lambda word: [word], n_features=BUCKETS, alternate_sign=False, norm=None
    )
    found = one_each.transform(words).tocsr().indices
    return {int(bucket): word for bucket, word in zip(found, words, strict=True)}


def _vectorizer() -> Any:
    # Slow to import, and few tables have text.
    from sklearn.feature_extraction.text import HashingVectorizer

    return HashingVectorizer(
        ngram_range=(1, 2), n_features=BUCKETS, alternate_sign=False, norm=None, dtype=np.float64
    )
