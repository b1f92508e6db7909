"""What studies, methods and corruptions are called in results, and in tables and figures."""

from __future__ import annotations

PRODUCTS, ALL_PRODUCTS, ANIMALS = "products", "all-products", "animals"
# What settings call the data that the paper used; all else stands in for it.
PUBLISHED = "published"
PAPER, DEFAULT, REFERENCE, ALL_DATA = "paper", "default", "reference only", "all data"

# Of the library's baselines those of the paper, in the order of its tables.
BASELINES = {
    REFERENCE: "Reference only",
    ALL_DATA: "All data",
    "probability median": "Median of probs.",
    "geometric median": "Geom. median",
    "component median": "Comp. median",
    "robust logistic": "Robust loss",
    "source normalized": "Batch norm",
}
METHODS = {PAPER: "Paper's method", **BASELINES, DEFAULT: "Default"}

# In the order of the paper's figure 2.
CORRUPTIONS = {
    "label-bias": "label bias",
    "shuffled-labels": "shuffled labels",
    "shuffled-features": "shuffled features",
    "blur": "blurred images",
    "dead-pixels": "dead pixels",
    "rgb-swap": "RGB channels swapped",
}


def in_order(known: dict[str, str], found: list[str]) -> list[str]:
    """Sort names as the paper does; those it does not have come last."""
    return [*(name for name in known if name in found), *sorted(set(found) - set(known))]
