"""Fewer features: a PCA learnt on a background set, applied to clean and corrupted ones alike."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.linalg

from sourcewise.archives import load_arrays
from sourcewise.files import write_atomically

N_COMPONENTS = 100  # as in the paper

TOO_FEW = (
    "A PCA to {components} dimensions needs more than {components} pictures of {components} "
    "features or more; the background has {rows} pictures of {features} features."
)
NOT_PCA = "{path} is not a PCA that 'sourcewise images extract --background' has written: {why}."
OTHER_FEATURES = "The PCA takes {expected} features a picture; these have {found}."
OTHER_NETWORK = (
    "The PCA was learnt on features of another network or other sizes of pictures ({theirs}) than "
    "these ({ours}); learn it again with --background."
)
ARRAYS = ("mean", "components", "variances", "made_by")


@dataclass(frozen=True)
class FeaturePCA:
    """The directions in which the features of a background set vary most.

    Attributes
    ----------
    mean : array of shape (n_features,)
    components : array of shape (n_components, n_features)
        Orthonormal; the entry of each that is largest in size is positive.
    variances : array of shape (n_components,)
    made_by : str
        Network that the features came from.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> line = np.outer(rng.normal(size=50), [3.0, 4.0]) + 1.0
    >>> found = FeaturePCA.learn([line[:20], line[20:]], n_components=1)
    >>> found.components.round(6)
    array([[0.6, 0.8]])
    """

    mean: np.ndarray
    components: np.ndarray
    variances: np.ndarray
    made_by: str = ""

    @classmethod
    def learn(
        cls, blocks: Iterable[np.ndarray], n_components: int = N_COMPONENTS, made_by: str = ""
    ) -> FeaturePCA:
        """Learn from blocks of rows; only one of them is in memory at a time.

        Sums of squares and products are all that is kept, so that the result does not depend on how
        rows are cut into blocks.
        """
        n, n_features = 0, 0
        for block in blocks:
            rows = np.asarray(block, dtype=np.float64)
            if not len(rows):
                continue
            if n == 0:
                n_features = rows.shape[1]
                centre = rows.mean(axis=0)  # near the mean: differences lose no digits
                first, second = np.zeros(n_features), np.zeros((n_features, n_features))
            rows = rows - centre
            n += len(rows)
            first += rows.sum(axis=0)
            second += rows.T @ rows
        if min(n - 1, n_features) < n_components:
            raise ValueError(TOO_FEW.format(components=n_components, rows=n, features=n_features))
        covariance = (second - np.outer(first, first) / n) / (n - 1)
        wanted = (n_features - n_components, n_features - 1)
        values, vectors = scipy.linalg.eigh(covariance, subset_by_index=wanted)
        components = vectors.T[::-1]
        largest = np.abs(components).argmax(axis=1)
        signs = np.sign(components[np.arange(n_components), largest])
        return cls(
            centre + first / n,
            np.ascontiguousarray(components * signs[:, None]),
            np.maximum(values[::-1], 0.0),
            made_by,
        )

    def transform(self, features: np.ndarray) -> np.ndarray:
        """Return float32 coordinates; rows of NaN stay so."""
        if features.shape[1] != len(self.mean):
            raise ValueError(
                OTHER_FEATURES.format(expected=len(self.mean), found=features.shape[1])
            )
        return np.asarray((features - self.mean) @ self.components.T, dtype=np.float32)

    def check_made_by(self, made_by: str) -> None:
        """Refuse features of another network."""
        if self.made_by and made_by != self.made_by:
            raise ValueError(OTHER_NETWORK.format(theirs=self.made_by, ours=made_by))

    def content(self) -> bytes:
        """Return what a file holds, in NumPy's format."""
        stream = io.BytesIO()
        np.savez(
            stream,
            mean=self.mean,
            components=self.components,
            variances=self.variances,
            made_by=np.array(self.made_by),
        )
        return stream.getvalue()

    def save(self, path: str | Path) -> None:
        """Write a file, whole or not at all."""
        write_atomically(Path(path), self.content())

    @classmethod
    def load(cls, path: str | Path) -> FeaturePCA:
        """Read a file; nothing in it is run."""
        path = Path(path)
        if not path.is_file():
            raise ValueError(NOT_PCA.format(path=path, why="there is no such file"))
        try:
            mean, components, variances, made_by = load_arrays(path, ARRAYS).values()
        except ValueError as error:
            raise ValueError(NOT_PCA.format(path=path, why=error)) from error
        numbers = (mean, components, variances)
        right = all(each.dtype.kind == "f" and np.isfinite(each).all() for each in numbers)
        right = right and mean.ndim == 1 and components.ndim == 2 and made_by.dtype.kind == "U"
        right = right and made_by.ndim == 0 and min(components.shape) > 0
        if not right or components.shape != (*variances.shape, *mean.shape):
            raise ValueError(NOT_PCA.format(path=path, why="its arrays do not fit together"))
        return cls(mean, components, variances, str(made_by))
