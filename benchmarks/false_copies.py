"""How often an honest site is put out as a copy of another one, and how often a real copy is.

    python -m benchmarks.false_copies [--seeds 200]

One federation a seed, in this process: three to nine honest sites of 25 to 1000 rows, 2 to 30
columns (numbers, yes or no, or both), classes or numbers as labels, 60 or 100 trusted rows. In
every second one 30 sites of six rows with wrong labels stand beside them. One honest site is there
a second time under another name. The bar: one federation of 200 loses an honest site as a copy.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np

from sourcewise import SourceWeightedClassifier, SourceWeightedRegressor
from sourcewise.engines.flower import FlowerSources, LocalCarrier, Policy, Site
from sourcewise.engines.flower.copies import COPY_OF_SITE

COPY = COPY_OF_SITE.partition("{")[0]
REFERENCE, TWIN, TINY = "ours", "twin", "tiny"
N_TINY, TINY_ROWS = 30, 6
COLUMNS = ("numbers", "yes or no", "both")


@dataclass(frozen=True)
class Federation:
    """One draw of everybody's rows, and what it is of."""

    shape: str
    n_classes: int
    parts: dict[str, tuple[np.ndarray, np.ndarray]]

    @classmethod
    def of(cls, seed: int) -> Federation:
        """Draw a shape, then rows of one distribution for all; the tiny sites have wrong labels."""
        rng = np.random.default_rng([seed, 35])
        trusted, rows = int(rng.choice([60, 100])), int(rng.choice([25, 150, 1000]))
        n_honest, d = int(rng.integers(3, 10)), int(rng.choice([2, 5, 10, 30]))
        columns, n_classes = str(rng.choice(COLUMNS)), int(rng.choice([0, 2, 3]))
        sizes = {REFERENCE: trusted, **{f"site-{k}": rows for k in range(n_honest)}}
        if seed % 2:
            sizes |= {f"{TINY}-{k}": TINY_ROWS for k in range(N_TINY)}
        w = 2.0 * rng.normal(size=(d, max(n_classes, 1))) / d**0.5
        parts = {}
        for name, m in sizes.items():
            X = rng.normal(size=(m, d))
            coarse = {"numbers": 0, "yes or no": d, "both": d // 2}[columns]
            X[:, :coarse] = X[:, :coarse] > 0
            scores = X @ w + rng.logistic(size=(m, w.shape[1]))
            y = scores[:, 0]
            if n_classes:
                y = scores.argmax(axis=1) if n_classes > 2 else (y > np.median(X @ w)).astype(int)
            if name.startswith(TINY):
                y = (y + 1) % n_classes if n_classes else -y
            parts[name] = X, y
        parts[TWIN] = parts["site-0"]
        shape = (
            f"{n_honest} x {rows}, {trusted} trusted, {d} {columns}, {n_classes or 'no'} classes"
        )
        return cls(shape, n_classes, parts)

    def left_out(self) -> dict[str, str]:
        """Fit, and say who was left out."""
        policy = Policy(least_rows=1)
        sites = [Site.of_arrays(n, *p, policy) for n, p in self.parts.items() if n != REFERENCE]
        sources = FlowerSources(LocalCarrier(sites), *self.parts[REFERENCE])
        kind = SourceWeightedClassifier if self.n_classes else SourceWeightedRegressor
        model = kind(reference=REFERENCE, trade_off="theory", random_state=0, keep_data=False)
        model.fit_sources(sources)
        return sources.facts.left_out


def main() -> None:
    """Print each federation in which something was amiss, and how many there were."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0, help="first seed (0)")
    given = parser.parse_args()
    counts = dict.fromkeys(("lost an honest site as a copy", "found", "lost one otherwise"), 0)
    for seed in range(given.first, given.first + given.seeds):
        federation = Federation.of(seed)
        honest = {n: w for n, w in federation.left_out().items() if not n.startswith(TINY)}
        same = [n for n in ("site-0", TWIN) if n in honest]
        as_copies = [n for n, why in honest.items() if why.startswith(COPY) and n not in same]
        otherwise = [n for n, why in honest.items() if not why.startswith(COPY)]
        for name, so in zip(counts, (as_copies, same, otherwise), strict=True):
            counts[name] += bool(so)
        if as_copies or otherwise or len(same) != 1:
            print(f"seed {seed} ({federation.shape}): {honest or 'nobody left out'}", flush=True)
    lost, found, otherwise_lost = counts.values()
    print(f"Of {given.seeds} federations {lost} lost an honest site as a copy of another, ")
    print(f"{otherwise_lost} for other reasons; the real copy was found in {found}.")


if __name__ == "__main__":
    main()
