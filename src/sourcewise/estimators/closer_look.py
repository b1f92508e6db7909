"""A closer look at what a mean loss hardly shows, for the notes of the report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from sourcewise.core.closer_look import (
    LEAST_ROWS,
    RegionLosses,
    region_test,
    scatter_test,
    unchecked_regions,
)
from sourcewise.core.data import SourceData
from sourcewise.core.folds import named_seed
from sourcewise.core.region_power import detectable_in_regions
from sourcewise.core.sparse_rows import SparseRows
from sourcewise.estimators.adequacy import PartPower
from sourcewise.estimators.pool import Pool

# Trusted rows for a region, and regions at most.
ROWS_A_REGION, MOST_REGIONS = 15, 12
# Rows of a source that are looked at, of all of them, and numbers in these; with fewer rows of each
# source than the last there is no look.
MOST_ROWS, MOST_IN_ALL, MOST_ENTRIES, FEWEST = 1000, 200_000, 20_000_000, 20
# Columns of sparse rows that regions are found in: those that most trusted rows use.
MOST_COLUMNS = 100
# Rows that regions are found by.
SAMPLE = 1000
# Of the tests, for the whole report: to be mentioned at all, and with `strict=True`.
CLEAR, STRICT = 0.01, 0.05
# A region is worth a warning if so large a share more of the rows is wrong there, and no more than
# so large a one elsewhere: what is wrong everywhere is no matter of a region.
WORSE, BESIDE = 0.2, 0.1
# A number is far off if the model misses so large a share of the trusted ones by less.
USUAL = 0.8

# Features that a region differs by from the rest, and whether each is high there.
Columns = tuple[tuple[int, bool], ...]


@dataclass(frozen=True)
class Suspicion:
    """A region in which a source goes against the reference."""

    source: int
    columns: Columns  # by which the region differs most from the rest
    # Share of wrong rows of the source there, of the reference there, of the source elsewhere.
    here: float
    own: float
    elsewhere: float


@dataclass(frozen=True)
class Seen:
    """The same in words, and what could have been seen in a class or a region."""

    said: tuple[str, ...] = ()
    parts: tuple[PartPower, ...] = ()


@dataclass(frozen=True)
class CloserLook:
    """What was seen."""

    regions: list[Suspicion]
    # (source, ratio): whose numbers scatter so many times as much as the reference's.
    scattered: list[tuple[int, float]]
    # (share of the sources' rows, trusted rows, columns): regions with too few trusted rows.
    unchecked: list[tuple[float, int, Columns]]
    # (trusted rows, smallest share of wrong labels that is found, columns) of each region; infinite
    # where not even all are found.
    power: list[tuple[int, float, Columns]] = field(default_factory=list)


def look_closer(
    pool: Pool, setting: float, quiet: Sequence[int], strict: bool = False
) -> CloserLook:
    """Look at the sources by fold models of the reference, whose regularisation is ``setting``.

    Nothing was found against those at the positions ``quiet``: of others it is no news that their
    numbers scatter, nor that rows which count for little lie where no trusted row does. A row of
    a source is looked at by a model that has not seen one of the folds, drawn at random, as each
    trusted row is.
    """
    data, folds = pool.data, pool.folds
    k, fold = folds.n_folds, folds.folds[0]
    weights = np.where(fold[:, None] == np.arange(k), 0.0, pool.reference.shares[:, None])
    weights = weights / np.sum(pool.reference.shares**2)
    models = pool.family.fit(pool.reference.X, pool.reference.y, weights, np.full(k, setting))
    others = [i for i in range(pool.n_sources) if i != pool.position]
    rows, of_row = _some_rows(data, others, pool)
    if not len(rows):
        return CloserLook([], [], [])
    which = np.random.default_rng(pool.options.seed).permutation(np.resize(fold, len(rows)))
    family: Any = pool.family
    said = family.predict_each(models, which, data.X[rows])
    own_said = family.predict_each(models, fold, pool.reference.X)
    level = STRICT if strict else CLEAR
    scattered = []
    losses, own_losses = (
        pool.bounded_loss(said, data.y[rows]),
        pool.bounded_loss(own_said, pool.reference.y),
    )
    if pool.n_classes:
        wrong = said.argmax(axis=1) != data.y[rows]
        own_wrong = own_said.argmax(axis=1) != pool.reference.y
    else:
        rest, own_rest = data.y[rows] - said, pool.reference.y - own_said
        far = np.quantile(np.abs(own_rest), USUAL)
        wrong, own_wrong = np.abs(rest) > far, np.abs(own_rest) > far
        for i in quiet:
            ratio, p = scatter_test(rest[of_row == i], own_rest)
            if p < level / len(others):
                scattered.append((i, ratio))
    found = Regions.find(pool, rows, of_row)
    if found is None:
        return CloserLook([], scattered, [])
    noted = [i for i, _ in scattered]
    suspicions = _suspicions(
        found, others, of_row, (losses, own_losses), (wrong, own_wrong), level / len(others)
    )
    return CloserLook(
        [one for one in suspicions if one.source not in noted],
        scattered,
        found.unchecked(of_row, quiet),
        found.power(
            of_row, others, own_losses, _wrong_losses(pool, own_said), level, pool.options.seed
        ),
    )


def _wrong_losses(pool: Pool, said: np.ndarray) -> np.ndarray:
    """Losses of the trusted rows were they labelled wrongly: as another class, or row."""
    y, rng = pool.reference.y, np.random.default_rng(pool.options.seed)
    if pool.n_classes:
        wrong = (y + rng.integers(1, max(pool.n_classes, 2), len(y))) % pool.n_classes
    else:
        wrong = rng.permutation(y)
    return np.asarray(pool.bounded_loss(said, wrong))


def _some_rows(data: SourceData, sources: list[int], pool: Pool) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the sources, not too many of each, and their sources."""
    width = MOST_COLUMNS if isinstance(data.X, SparseRows) else data.X.shape[1]
    in_all = min(MOST_IN_ALL, MOST_ENTRIES // width)
    most = min(in_all // max(len(sources), 1), MOST_ROWS)
    if most < FEWEST:
        return np.arange(0), np.arange(0)
    chosen = []
    for i in sources:
        rows = np.arange(data.starts[i], data.starts[i + 1])
        if len(rows) > most:
            rng = np.random.default_rng(named_seed(pool.options.seed, pool.names[i]))
            rows = np.sort(rng.choice(rows, most, replace=False))
        chosen.append(rows)
    of_row = np.repeat(sources, [len(rows) for rows in chosen])
    return np.concatenate([np.arange(0), *chosen]), of_row


@dataclass(frozen=True)
class Regions:
    """Regions of the features, found by k-means among trusted and other rows alike."""

    # Region of each trusted row, and of each row of the sources.
    own: np.ndarray
    others: np.ndarray
    columns: list[Columns]

    @classmethod
    def find(cls, pool: Pool, rows: np.ndarray, of_row: np.ndarray) -> Regions | None:
        """Find them; None where there are too few rows to speak of any."""
        n = min(len(pool.reference.y) // ROWS_A_REGION, MOST_REGIONS)
        if n < 2 or not len(rows):
            return None
        used = _columns(pool.reference.X)
        own, others = _features(pool.reference.X, used), _features(pool.data.X[rows], used)
        # No source can draw the borders by values that no trusted row comes near.
        others = np.clip(others, own.min(axis=0), own.max(axis=0))
        rng = np.random.default_rng(pool.options.seed)
        half = min(SAMPLE // 2, len(own))
        drawn = rng.choice(len(own), half, replace=False)
        chance = 1.0 / np.bincount(of_row)[of_row]
        beside = rng.choice(len(rows), min(half, len(rows)), replace=False, p=chance / chance.sum())
        sample = np.concatenate([own[drawn], others[beside]])
        search = KMeans(n, n_init=2, random_state=pool.options.seed, max_iter=50).fit(sample)
        centres = search.cluster_centers_
        spread = sample.std(axis=0)
        off = (centres - sample.mean(axis=0)) / np.where(spread > 0, spread, np.inf)
        if pool.features is not None and pool.features.kept is not None:
            used = pool.features.kept[used]
        columns = []
        for line in off:
            most = np.argsort(-np.abs(line), kind="stable")[:2]
            columns.append(tuple((int(used[j]), bool(line[j] > 0)) for j in most))
        return cls(search.predict(own), search.predict(others), columns)

    def unchecked(
        self, of_row: np.ndarray, sources: Sequence[int]
    ) -> list[tuple[float, int, Columns]]:
        """Regions with too few trusted rows, for these sources."""
        if not len(sources):
            return []
        own, counts = self._counts(of_row, sources)
        shares = np.mean(counts / np.maximum(counts.sum(axis=1, keepdims=True), 1), axis=0)
        few = unchecked_regions(shares, own, LEAST_ROWS, CLEAR)
        return [(float(shares[r]), int(own[r]), self.columns[r]) for r in few]

    def power(
        self,
        of_row: np.ndarray,
        sources: list[int],
        right: np.ndarray,
        wrong: np.ndarray,
        level: float,
        seed: int,
    ) -> list[tuple[int, float, Columns]]:
        """Which share of wrong labels is found in each region, in a typical source."""
        own, counts = self._counts(of_row, sources)
        typical = np.median(counts, axis=0).astype(np.intp)
        shares = detectable_in_regions(right, wrong, self.own, typical, level / len(sources), seed)
        return [(int(own[r]), float(shares[r]), self.columns[r]) for r in range(len(own))]

    def _counts(self, of_row: np.ndarray, sources: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
        """Trusted rows in each region, and those of each source."""
        n = len(self.columns)
        counts = [np.bincount(self.others[of_row == i], minlength=n) for i in sources]
        return np.bincount(self.own, minlength=n), np.array(counts)


def _suspicions(
    regions: Regions,
    sources: list[int],
    of_row: np.ndarray,
    losses: tuple[np.ndarray, np.ndarray],  # of the sources' rows, and of the reference's
    wrong: tuple[np.ndarray, np.ndarray],  # likewise
    level: float,
) -> list[Suspicion]:
    """Find sources that go against the reference in one region, and much less elsewhere."""
    shape = len(sources), len(regions.columns)
    cell = np.searchsorted(sources, of_row) * shape[1] + regions.others

    def by_region(values: tuple[np.ndarray, np.ndarray]) -> tuple[RegionLosses, RegionLosses]:
        return (
            RegionLosses.of(values[0].astype(np.float64), cell, shape),
            RegionLosses.of(values[1].astype(np.float64), regions.own, shape[1:]),
        )

    region, p_values = region_test(*by_region(losses))
    theirs, own = by_region(wrong)
    found = []
    for s in np.flatnonzero(p_values < level).tolist():
        at = np.arange(shape[1]) == region[s]
        here, elsewhere = (_share(theirs.total[s, w], theirs.rows[s, w]) for w in (at, ~at))
        own_here, own_elsewhere = (_share(own.total[w], own.rows[w]) for w in (at, ~at))
        if here - own_here > WORSE and elsewhere - own_elsewhere < BESIDE:
            columns = regions.columns[region[s]]
            found.append(
                Suspicion(sources[s], columns, float(here), float(own_here), float(elsewhere))
            )
    return found


def _share(total: np.ndarray, rows: np.ndarray) -> float:
    """Return a mean over regions; NaN, which is larger and smaller than nothing, of no rows."""
    n = float(rows.sum())
    return float(total.sum()) / n if n else np.nan


def _columns(X: Any) -> np.ndarray:
    """Choose the columns that regions are found in."""
    d = X.shape[1] - 1
    if not isinstance(X, SparseRows) or d <= MOST_COLUMNS:
        return np.arange(d)
    uses = np.bincount(X.features.indices, minlength=d)
    return np.sort(np.argsort(-uses, kind="stable")[:MOST_COLUMNS])


def _features(X: Any, columns: np.ndarray) -> np.ndarray:
    """Return some columns of mapped rows."""
    if isinstance(X, SparseRows):
        return np.asarray(X.features[:, columns].toarray())
    return np.asarray(X[:, columns])
