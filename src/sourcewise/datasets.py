"""Real data that needs no download, split into named sources."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.utils import check_random_state

from sourcewise.corruption import flip_labels, label_bias, shuffle_labels

KINDS = {"shuffled": shuffle_labels, "biased": label_bias, "flipped": flip_labels}


@dataclass(frozen=True)
class VendorDigits:
    """Handwritten digits, odd or even, labelled by vendors of mixed quality.

    Attributes
    ----------
    X : array of shape (n_rows, 64)
    y : int array of shape (n_rows,)
        1 for odd, as the row's vendor says.
    vendor : str array of shape (n_rows,)
        ``"gold"`` for the trusted rows.
    X_test, y_test : arrays
        Rows of no vendor, correctly labelled.
    spoiled : dict
        Bad vendors and what is wrong with their labels.

    Examples
    --------
    >>> from sourcewise.datasets import vendor_digits
    >>> sorted(vendor_digits(n_bad=2, kind="flipped").spoiled.values())
    ['flipped', 'flipped']
    """

    X: np.ndarray
    y: np.ndarray
    vendor: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    spoiled: dict[str, str]


def vendor_digits(
    *,
    n_bad: int = 6,
    kind: str = "mixed",
    n_vendors: int = 10,
    rows_per_vendor: int = 120,
    trusted_rows: int = 60,
    random_state: Any = 0,
) -> VendorDigits:
    """Split scikit-learn's digits into trusted rows, vendors and a test set.

    Parameters
    ----------
    n_bad : int
        Vendors whose labels are bad.
    kind : {"mixed", "shuffled", "biased", "flipped"}
        What is wrong with them; "mixed" takes the three in turn.
    n_vendors, rows_per_vendor, trusted_rows : int
    random_state : int, RandomState or None

    Examples
    --------
    >>> digits = vendor_digits(n_bad=2)
    >>> digits.X.shape, len(set(digits.vendor.tolist())), len(digits.spoiled)
    ((1260, 64), 11, 2)
    """
    if kind != "mixed" and kind not in KINDS:
        raise ValueError(f"kind must be 'mixed' or one of {list(KINDS)}; got {kind!r}.")
    if not 0 <= n_bad <= n_vendors:
        raise ValueError(f"n_bad must be between 0 and n_vendors={n_vendors}; got {n_bad}.")
    X, y = load_digits(return_X_y=True)
    n_rows = trusted_rows + n_vendors * rows_per_vendor
    if n_rows >= len(y):
        raise ValueError(f"{n_rows} rows are asked for; the digits have {len(y)}.")
    rng = check_random_state(random_state)
    order = rng.permutation(len(y))
    X, y = X[order], y[order] % 2
    names = [f"vendor-{k + 1:02d}" for k in range(n_vendors)]
    vendor = np.repeat(["gold", *names], [trusted_rows] + [rows_per_vendor] * n_vendors)
    labels = y[:n_rows].copy()
    spoiled = {}
    for k, position in enumerate(rng.permutation(n_vendors)[:n_bad]):
        chosen = list(KINDS)[k % len(KINDS)] if kind == "mixed" else kind
        rows = vendor == names[position]
        labels[rows] = KINDS[chosen](X[:n_rows][rows], labels[rows], random_state=rng).y
        spoiled[names[position]] = chosen
    return VendorDigits(X[:n_rows], labels, vendor, X[n_rows:], y[n_rows:], spoiled)
