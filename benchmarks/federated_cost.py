"""What a federated fit costs: rounds, bytes and seconds, by mode and by the number of sites.

    python -m benchmarks.federated_cost [--sites 10 100 1000] [--rows 100] [--features 20]
                                        [--json PATH]

Sites, a third of them with shuffled labels, answer in this process, one after the other, so that
seconds are those of all sites and the server together, on one thread, two minutes for the whole
table. Over Flower a round takes some 8 seconds more, whatever is asked (``sourcewise federated
demo``).
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from sourcewise import SourceWeightedClassifier
from sourcewise.engines.flower import FlowerSources, LocalCarrier, Site

ROWS, FEATURES, TRUSTED = 100, 20, 200
MODES: dict[str, dict[str, Any]] = {
    "models-only": {},
    "shared-reference": {},
    "gradients": {"discrepancy": "plug-in"},
}


def draw(
    n_sites: int, n_rows: int = ROWS, n_features: int = FEATURES, seed: int = 0
) -> tuple[list[Site], np.ndarray, np.ndarray]:
    """Return sites, a third of them with shuffled labels, and the reference's rows."""
    rng = np.random.default_rng(seed)
    w = rng.normal(size=n_features)

    def rows(n: int) -> tuple[np.ndarray, np.ndarray]:
        X = rng.normal(size=(n, n_features))
        return X, (X @ w + rng.normal(size=n) > 0).astype(int)

    sites = []
    for k in range(n_sites):
        X, y = rows(n_rows)
        y = rng.permutation(y) if k % 3 == 0 else y
        sites.append(Site.of_arrays(f"site-{k:04d}", X, y))
    return sites, *rows(TRUSTED)


def measure(
    n_sites: int, mode: str, n_rows: int = ROWS, n_features: int = FEATURES
) -> dict[str, Any]:
    """Fit once."""
    sites, X, y = draw(n_sites, n_rows, n_features)
    sources = FlowerSources(LocalCarrier(sites), X, y, mode=mode)
    model = SourceWeightedClassifier(
        reference="ours", random_state=0, keep_data=False, **MODES[mode]
    )
    begin = time.process_time()
    model.fit_sources(sources)
    facts = sources.facts
    return {
        "sites": n_sites,
        "mode": mode,
        "rounds": len(facts.rounds),
        "down": facts.bytes_down / n_sites,
        "up": facts.bytes_up / n_sites,
        "answering": facts.seconds,
        "cpu": time.process_time() - begin,
    }


def main() -> None:
    """Print a Markdown table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--sites", type=int, nargs="+", default=[10, 100, 1000])
    parser.add_argument("--rows", type=int, default=ROWS, help="of a site")
    parser.add_argument("--features", type=int, default=FEATURES)
    parser.add_argument("--json", type=Path, metavar="PATH", help="also write the figures here")
    given = parser.parse_args()
    print("| sites | mode | rounds | down, a site | up, a site | CPU seconds, all |")
    print("| --- | --- | --- | --- | --- | --- |")
    found = []
    for n_sites in given.sites:
        for mode in MODES:
            made = measure(n_sites, mode, given.rows, given.features)
            found.append(made)
            print(
                f"| {n_sites:,} | {mode} | {made['rounds']} | {made['down'] / 1e3:.0f} kB | "
                f"{made['up'] / 1e3:.0f} kB | {made['cpu']:.1f} |",
                flush=True,
            )
    if given.json:
        given.json.write_text(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
