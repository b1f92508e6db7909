"""Corrupting some sources of a pool."""

from __future__ import annotations

import inspect
import numbers
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from sourcewise.core.folds import named_seed
from sourcewise.corruption.contract import Corrupted, check_rows, like
from sourcewise.corruption.features import (
    draw_permutation,
    duplicate_rows,
    feature_noise,
    feature_scale,
    shuffle_features,
)
from sourcewise.corruption.images import blur, dead_pixels, swap_channels
from sourcewise.corruption.labels import class_confusion, flip_labels, label_bias, shuffle_labels
from sourcewise.validation import check_reference, check_source_names, n_rows_of

# Those that take images, and all.
IMAGE_KINDS: dict[str, Callable[..., Corrupted]] = {
    each.__name__: each for each in (blur, dead_pixels, swap_channels)
}
KINDS: dict[str, Callable[..., Corrupted]] = {
    each.__name__: each
    for each in (
        label_bias,
        shuffle_labels,
        shuffle_features,
        flip_labels,
        class_confusion,
        feature_noise,
        feature_scale,
        duplicate_rows,
    )
} | IMAGE_KINDS


class CorruptedSources(NamedTuple):
    """Copies of all rows after some sources were corrupted.

    Attributes
    ----------
    X, y : arrays
        Copies, rows in the order given; the input is never changed.
    mask : bool array of shape (n_rows,)
        Rows that were chosen for corruption.
    corrupted : list
        Names of the sources that were, in order of first appearance.

    Examples
    --------
    >>> from sourcewise.corruption import corrupt_sources
    >>> names = ["gold", "gold", "a", "a", "b", "b"]
    >>> found = corrupt_sources(
    ...     [[k] for k in range(6)], [0, 1] * 3, names, 1, "flip_labels", protect="gold"
    ... )
    >>> len(found.corrupted), int(found.mask.sum())
    (1, 2)
    """

    X: Any
    y: np.ndarray
    mask: np.ndarray
    corrupted: list[Any]


def corrupt_sources(
    X: Any,
    y: Any,
    sources: Any,
    n: int,
    kind: str | Callable[..., Corrupted],
    p: float = 1.0,
    *,
    protect: Any = None,
    random_state: Any = None,
    **options: Any,
) -> CorruptedSources:
    """Corrupt ``n`` sources, chosen at random, never the protected ones.

    What corrupted sources have in common is chosen once for all of them: the feature permutation,
    the labels that there are (so that a source of one class can be flipped), the label of a bias.
    Which rows of a source are touched depends on its name and the seed alone. With the same seed
    the sources chosen for a smaller ``n`` are among those for a larger one.

    Parameters
    ----------
    X, y : arrays of n_rows rows
        X may also hold images, (n_rows, height, width, 3).
    sources : array of shape (n_rows,)
        Name of each row's source.
    n : int
        How many sources to corrupt.
    kind : str or callable
        Name of a corruption, or a function ``f(X, y, *, p, random_state)`` that returns
        :class:`Corrupted`; it gets ``classes``, ``label`` or ``permutation`` too if it names them.
    p : float
        Share of a corrupted source's rows to touch.
    protect : hashable or list, optional
        Sources that stay as they are: usually the reference.
    random_state : int, RandomState or None
    **options
        For the corruption.

    Examples
    --------
    >>> import numpy as np
    >>> sources = np.repeat(["gold", "a", "b"], 2)
    >>> result = corrupt_sources(
    ...     np.zeros((6, 1)), [0, 1] * 3, sources, 2, "flip_labels", protect="gold", random_state=0
    ... )
    >>> result.y.tolist(), result.corrupted
    ([0, 1, 1, 0, 1, 0], ['a', 'b'])
    """
    corrupt = _corruption(kind)
    given = X
    X, y = check_rows(X, y)
    names, codes = check_source_names(sources, n_rows_of(X))
    protected = {check_reference(names, name) for name in _listed(protect)}
    free = [i for i in range(len(names)) if i not in protected]
    whole = isinstance(n, numbers.Integral) and not isinstance(n, bool)
    if not whole or not 0 <= n <= len(free):
        raise ValueError(
            f"n must be between 0 and {len(free)}, the unprotected sources; got {n!r}."
        )
    _check_options(corrupt, options)
    rng = check_random_state(random_state)
    seed = int(rng.randint(2**31 - 1))
    chosen = sorted(rng.permutation(free)[:n].tolist())
    shared = _shared(corrupt, X, y, rng, options)
    mask = np.zeros(len(y), dtype=bool)
    changes = {}
    for i in chosen:
        rows = np.flatnonzero(codes == i)
        own = int(np.random.SeedSequence(named_seed(seed, names[i])).generate_state(1)[0])
        changes[i] = rows, corrupt(X[rows], y[rows], p=p, random_state=own, **shared)
    for rows, done in changes.values():
        # Noise in whole numbers makes fractions, a longer label needs a longer string.
        X = X.astype(np.result_type(X, done.X), copy=False)
        y = y.astype(np.result_type(y, done.y), copy=False)
        X[rows], y[rows], mask[rows] = done
    return CorruptedSources(like(given, X), y, mask, [names[i] for i in chosen])


def _corruption(kind: str | Callable[..., Corrupted]) -> Callable[..., Corrupted]:
    if callable(kind):
        return kind
    if kind not in KINDS:
        raise ValueError(
            f"There is no corruption {kind!r}; choose among {', '.join(map(repr, KINDS))}, or pass "
            "a function."
        )
    return KINDS[kind]


def _check_options(corrupt: Callable[..., Corrupted], options: dict[str, Any]) -> None:
    parameters = inspect.signature(corrupt).parameters
    if any(each.kind is each.VAR_KEYWORD for each in parameters.values()):
        return
    for name in options:
        if name not in parameters:
            known = [each for each in parameters if each not in ("X", "y", "p", "random_state")]
            raise ValueError(
                f"{corrupt.__name__} has no option {name!r}; it has "
                f"{', '.join(map(repr, known)) or 'none'}."
            )


def _listed(protect: Any) -> list[Any]:
    if protect is None:
        return []
    # A name may itself be a tuple.
    return list(protect) if isinstance(protect, list | set | np.ndarray) else [protect]


def _shared(
    corrupt: Callable[..., Corrupted],
    X: np.ndarray,
    y: np.ndarray,
    rng: Any,
    options: dict[str, Any],
) -> dict[str, Any]:
    """Options, completed by what all corrupted sources have in common."""
    classes = np.unique(y)
    common = {"classes": classes, "label": classes[-1] if len(classes) else None}
    if X.ndim == 2:
        common["permutation"] = draw_permutation(X.shape[1], rng)
    parameters = inspect.signature(corrupt).parameters
    return {**{name: value for name, value in common.items() if name in parameters}, **options}
