"""What a cap of so many times the trusted rows costs and saves where all are honest.

    python -m benchmarks.size_cap [--seeds 12]

Sites of one distribution, or of models that differ by nature; 10 features, 60 trusted rows. The
seeds are for choosing: no published figure is of them.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.liars import FEATURES, draw_rows
from sourcewise import SourceWeightedClassifier
from sourcewise.engines.flower import FlowerSources, LocalCarrier, Site

CAPS = (1.0, 2.0, 4.0, 10.0, None)
FIRST, TRUSTED = 2000, 60
SIZES = {"9 x 1000": [1000] * 9, "3 x 2000": [2000] * 3, "3000 and 8 x 100": [3000] + [100] * 8}


def errors(seed: int, sizes: list[int], apart: float) -> list[float]:
    """Return errors under every cap in one draw."""
    rng = np.random.default_rng([seed, 7])
    w = 2.0 * rng.normal(size=FEATURES) / FEATURES**0.5
    ours, test = draw_rows(rng, w, TRUSTED), draw_rows(rng, w, 8000)
    parts = [draw_rows(rng, w + apart * rng.normal(size=FEATURES), m) for m in sizes]
    sites = [Site.of_arrays(f"site-{k}", *part) for k, part in enumerate(parts)]
    found = []
    for cap in CAPS:
        sources = FlowerSources(LocalCarrier(sites), *ours, size_cap=cap)
        model = SourceWeightedClassifier(reference="ours", random_state=0, keep_data=False)
        model.fit_sources(sources)
        found.append(float(np.mean(model.predict(test[0]) != test[1])))
    return found


def main() -> None:
    """Print errors, less that without a cap."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=12)
    seeds = range(FIRST, FIRST + parser.parse_args().seeds)
    print("| sites | by nature | " + " | ".join(f"{cap}" for cap in CAPS[:-1]) + " | error |")
    print("|" + " --- |" * (2 + len(CAPS)), flush=True)
    for name, sizes in SIZES.items():
        for apart in (0.0, 0.4):
            found = np.array([errors(seed, sizes, apart) for seed in seeds])
            off = found[:, :-1] - found[:, -1:]
            ses = off.std(axis=0, ddof=1) / len(off) ** 0.5
            cells = [f"{d:+.4f} ± {e:.4f}" for d, e in zip(off.mean(axis=0), ses, strict=True)]
            alike = "different" if apart else "alike"
            print(f"| {name} | {alike} | {' | '.join(cells)} | {found[:, -1].mean():.3f} |")


if __name__ == "__main__":
    main()
