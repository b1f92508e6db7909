"""How much must be wrong in one region before the test of regions shows it."""

from __future__ import annotations

import numpy as np

from sourcewise.core.closer_look import LEAST_ROWS, RegionLosses, region_test
from sourcewise.core.data import FloatArray, IntArray

DRAWS = 100
MOST_ROWS = 200  # of a source in a region that are drawn; with more, at least as much is found
SHARES = np.linspace(0.2, 1.0, 9)  # of wrong labels, that are tried
POWER = 0.8


def detectable_in_regions(
    right: FloatArray, wrong: FloatArray, own: IntArray, rows: IntArray, level: float, seed: int
) -> FloatArray:
    """Return the smallest share of wrong labels found in each region alone; infinite if none is.

    A made-up source has rows like the reference's in each region, a share of them labelled wrong;
    the p-value is that of the test itself.

    Parameters
    ----------
    right, wrong : arrays of shape (n_rows,)
        Losses of the reference's rows under models that have not seen them, with their own labels
        and with wrong ones.
    own : int array of shape (n_rows,)
        Region of each.
    rows : int array of shape (n_regions,)
        Rows that a typical source has there.
    level : float
        Of one source's test, for all regions together.
    seed : int
    """
    n_regions = len(rows)
    enough = (rows >= LEAST_ROWS) & (np.bincount(own, minlength=n_regions) >= LEAST_ROWS)
    least = np.full(n_regions, np.inf)
    for region in np.flatnonzero(enough).tolist():
        rng = np.random.default_rng([seed, region])
        here = np.flatnonzero(own == region)
        n = min(int(rows[region]), MOST_ROWS)
        theirs = rng.choice(here, (DRAWS, n))
        spoilt = rng.random((DRAWS, n)) < SHARES[:, None, None]
        losses = np.where(spoilt, wrong[theirs], right[theirs]).reshape(-1, n)
        source = RegionLosses(
            np.full((len(losses), 1), float(n)),
            *((losses**k).sum(axis=1, keepdims=True) for k in (1, 2, 3)),
        )
        known = right[here]
        reference = RegionLosses.of(known, np.zeros(len(here), dtype=np.intp), (1,))
        found = region_test(source, reference)[1] < level / int(enough.sum())
        seen = np.flatnonzero(found.reshape(len(SHARES), DRAWS).mean(axis=1) >= POWER)
        if len(seen):
            least[region] = SHARES[seen[0]]
    return least
