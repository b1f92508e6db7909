"""Folds whose validation rows come from the reference only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import type_of_target

from sourcewise.core.folds import stratified_folds
from sourcewise.validation import (
    SPLITTER_NEEDS_SOURCES,
    check_n_splits,
    check_reference,
    check_reference_size,
    check_source_names,
    n_rows_of,
)


class ReferenceKFold(BaseCrossValidator):
    """K folds of the reference rows; all untrusted rows stay in every training set.

    An ordinary splitter would also validate on untrusted rows, and so reward a model for agreeing
    with bad labels.

    Parameters
    ----------
    n_splits : int
        Number of folds, at least 2.
    reference : hashable
        Name of the trusted source.
    shuffle : bool
        Whether to deal the reference rows at random.
    random_state : int, RandomState or None

    Examples
    --------
    >>> import numpy as np
    >>> sources = np.array(["gold"] * 4 + ["vendor"] * 3)
    >>> splitter = ReferenceKFold(2, reference="gold", shuffle=False)
    >>> for train, test in splitter.split(np.zeros((7, 1)), sources=sources):
    ...     print(train, test)
    [1 3 4 5 6] [0 2]
    [0 2 4 5 6] [1 3]
    """

    # Both names are asked for, so that `sources` reaches the splitter like the estimator, and
    # `groups` where scikit-learn offers nothing else.
    __metadata_request__split = {"sources": True, "groups": True}

    def __init__(
        self,
        n_splits: int = 5,
        *,
        reference: Any = "reference",
        shuffle: bool = True,
        random_state: Any = 0,
    ):
        self.n_splits = n_splits
        self.reference = reference
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(
        self, X: Any = None, y: Any = None, sources: Any = None, groups: Any = None
    ) -> int:
        """Return the number of folds."""
        return self.n_splits

    def split(
        self, X: Any, y: Any = None, sources: Any = None, groups: Any = None
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield training and validation positions.

        Parameters
        ----------
        X : array or frame of n rows
        y : array of shape (n,), optional
            Class labels are spread evenly over the folds.
        sources : array of shape (n,)
            Each row's source; ``groups`` is another name for it.
        groups : array of shape (n,)
        """
        n_rows = n_rows_of(X)
        named = groups if sources is None else sources
        if named is None:
            raise ValueError(SPLITTER_NEEDS_SOURCES)
        check_n_splits(self.n_splits)
        names, codes = check_source_names(named, n_rows)
        trusted = np.flatnonzero(codes == check_reference(names, self.reference))
        check_reference_size(len(trusted), self.n_splits, self.reference, parameter="n_splits")
        labels = None
        if y is not None and type_of_target(y) in ("binary", "multiclass"):
            labels = np.unique(np.asarray(y)[trusted], return_inverse=True)[1]
        if self.shuffle:
            seed = check_random_state(self.random_state).randint(2**31 - 1)
            folds = stratified_folds(
                labels, len(trusted), self.n_splits, np.random.default_rng(seed)
            )
        else:
            order = np.arange(len(trusted)) if labels is None else np.argsort(labels, kind="stable")
            folds = np.empty(len(trusted), dtype=np.intp)
            folds[order] = np.arange(len(trusted)) % self.n_splits
        for k in range(self.n_splits):
            test = trusted[folds == k]
            yield np.setdiff1d(np.arange(n_rows), test), test
