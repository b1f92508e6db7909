"""Who sees which rows in a repeat; a split depends on the repeat's seed alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sourcewise.experiments.products import PER_CLASS, Product

# What a repeat's seed is drawn upon for.
SPLIT, CORRUPTION = 0, 1


def repeat_seed(seed: int, repeat: int) -> int:
    """Seed of one repeat, from the experiment's."""
    return int(np.random.SeedSequence([seed, repeat]).generate_state(1)[0])


@dataclass(frozen=True)
class GroupSplit:
    """Rows dealt into groups of equal size; what is left is for testing."""

    groups: np.ndarray  # of shape (n_groups, group_size); row numbers; group 0 is the reference
    test: np.ndarray
    # Of shape (n_groups - 1,); groups in the order in which they are corrupted: the sources
    # corrupted for a small n are among those for a larger one.
    order: np.ndarray


def split_groups(n_rows: int, n_groups: int, group_size: int, seed: int) -> GroupSplit:
    """Deal rows into groups."""
    rng = np.random.default_rng([seed, SPLIT])
    dealt = rng.permutation(n_rows)
    used = n_groups * group_size
    return GroupSplit(
        dealt[:used].reshape(n_groups, group_size),
        dealt[used:],
        1 + rng.permutation(n_groups - 1),
    )


@dataclass(frozen=True)
class ProductSplit:
    """One product to learn about, and what others provide."""

    target: int  # position of the target product
    # Rows of the target.
    reference: np.ndarray
    test: np.ndarray
    # Of shape (n_sources,); positions of the books and non-books to draw on, in order: n non-books
    # are the first n.
    books: np.ndarray
    others: np.ndarray
    # Of shape (n_products, rows_per_source); rows that each product provides as a source.
    rows: np.ndarray


def split_target(
    y: np.ndarray, n_reference: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw 300 reviews of each label; some are the reference, the others for testing."""
    drawn = [rng.permutation(np.flatnonzero(y == label))[:PER_CLASS] for label in (0, 1)]
    rows = rng.permutation(np.concatenate(drawn))
    return rows[:n_reference], rows[n_reference:]


def split_books(
    products: Sequence[Product], n_sources: int, n_rows: int, seed: int
) -> ProductSplit:
    """Draw a book as the target, other books and non-books as sources (section 4.2)."""
    rng = np.random.default_rng([seed, SPLIT])
    books = rng.permutation([k for k, each in enumerate(products) if each.kind == "book"])
    others = rng.permutation([k for k, each in enumerate(products) if each.kind != "book"])
    target = int(books[0])
    reference, test = split_target(products[target].y, n_rows, rng)
    rows = np.stack([rng.permutation(len(each.y))[:n_rows] for each in products])
    return ProductSplit(target, reference, test, books[1 : 1 + n_sources], others[:n_sources], rows)


def split_each(products: Sequence[Product], n_rows: int, seed: int) -> list[ProductSplit]:
    """Make every product the target once; as a source it provides its reference rows."""
    rng = np.random.default_rng([seed, SPLIT])
    parts = [split_target(each.y, n_rows, rng) for each in products]
    rows = np.stack([reference for reference, _ in parts])
    everyone = np.arange(len(products))
    nobody = np.array([], dtype=np.intp)
    return [
        ProductSplit(k, reference, test, np.delete(everyone, k), nobody, rows)
        for k, (reference, test) in enumerate(parts)
    ]
