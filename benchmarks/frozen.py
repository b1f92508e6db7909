"""Whether a change of the code changes a result: forty small pools, fitted and compared.

``python -m benchmarks.frozen write FILE`` keeps weights, discrepancies, p-values, coefficients,
predictions and the words of the report of each; ``check FILE`` fits them again and says what has
moved. Weights may move by 1e-6, words not at all. The pools are made up here: how good a result is
they do not tell.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import re
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression, Ridge

import sourcewise as sw
from sourcewise import baselines

# What may differ: rounding in another order, never another answer.
TOLERANCES = {"weights": 1e-6, "discrepancies": 1e-6, "p_values": 1e-6, "trade_off": 1e-6}
LOOSE = 1e-4  # of everything else, in units of its largest value
NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")

Found = dict[str, Any]
Pool = tuple[Any, np.ndarray, np.ndarray]


def rows(classes: int, m: int = 70, d: int = 8, sources: int = 9, seed: int = 0) -> Pool:
    """Unequal sources, every third with labels that are bad in its own way."""
    rng = np.random.default_rng(seed)
    counts = [m if k == 0 else max(1, int(m * rng.uniform(0.1, 2.0))) for k in range(sources)]
    names = np.repeat(["gold", *(f"s{k}" for k in range(1, sources))], counts)
    X = rng.normal(size=(len(names), d)) * rng.uniform(0.5, 3.0, d)
    scores = X @ rng.normal(size=(d, max(classes, 1))) + rng.normal(size=(len(names), 1))
    y = scores.argmax(axis=1) if classes > 2 else scores[:, 0]
    if classes == 2:
        y = (y > 0).astype(int)
    for k in range(3, sources, 3):
        mine = names == f"s{k}"
        y[mine] = rng.permutation(y[mine]) if k % 2 else _other(y[mine], classes)
    for label in range(classes):  # the reference knows all of them
        y[label] = label
    return X, y, names


def _other(y: np.ndarray, classes: int) -> np.ndarray:
    return (y + 1) % classes if classes else -y


def model_of(classes: int, **options: Any) -> Any:
    """Make an estimator for classes or numbers."""
    kind = sw.SourceWeightedClassifier if classes else sw.SourceWeightedRegressor
    return kind(reference="gold", random_state=0, **options)


def fitted(classes: int, pool: Pool | None = None, weigh: bool = False, **options: Any) -> Any:
    """Fit to a pool."""
    X, y, names = pool or rows(classes)
    weight = np.random.default_rng(9).uniform(0.0, 3.0, len(y)).round(1) if weigh else None
    return model_of(classes, **options).fit(X, y, sources=names, sample_weight=weight)


def looked_at(model: Any, X: Any) -> Found:
    """Everything about a fitted model that a user can see."""
    linear = getattr(model, "coef_", None)
    report = model.report()
    proba = getattr(model, "predict_proba", None)
    return {
        "weights": model.source_weights_,
        "discrepancies": model.discrepancies_,
        "p_values": [row.p_value for row in report.sources],
        "trade_off": [float(model.trade_off_)],
        **({} if linear is None else {"coefficients": linear, "intercept": model.intercept_}),
        "predictions": proba(X) if proba is not None else model.predict(X),
        "words": str(report),
        "page": page_of(report.to_html),
    }


def page_of(write: Callable[[Path], Any]) -> str:
    """Return the words of a page, without its styles and marks."""
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder, "report.html"))
        page = Path(folder, "report.html").read_text(encoding="utf-8")
    page = re.sub(r"(?s)<(style|script)\b.*?</\1>", " ", page)
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


def audited(classes: int) -> Found:
    """Audit a table by the command, and read its page."""
    from sourcewise.cli.entry import main as command

    X, y, names = rows(classes)
    lines = [
        ",".join([*(f"{x:.4f}" for x in row), str(label), n])
        for row, label, n in zip(X, y, names, strict=True)
    ]
    header = ",".join([*(f"x{j}" for j in range(X.shape[1])), "y", "vendor"])

    def write(path: Path) -> None:
        table = path.with_name("rows.csv")
        table.write_text("\n".join([header, *lines]), encoding="utf-8")
        options = ["--label", "y", "--source", "vendor", "--reference", "gold", "--quiet"]
        if command(["audit", str(table), *options, "-o", str(path)]):
            raise RuntimeError("the audit has failed")

    page = page_of(write)
    page = re.sub(r"(?<=command ).*?(?= seed)", "", page)  # this program's own
    return {"page": page.replace(tempfile.gettempdir(), "")}


def plain(classes: int, sparsely: bool = False, **options: Any) -> Found:
    """Fit dense or sparse rows, and look."""
    X, y, names = rows(classes, d=options.pop("d", 8), m=options.pop("m", 70))
    given = sparse.csr_matrix(np.where(np.abs(X) > 0.7, X, 0.0)) if sparsely else X
    return looked_at(fitted(classes, (given, y, names), **options), given[:50])


def added(classes: int) -> Found:
    """Add a source to a fitted model."""
    X, y, names = rows(classes)
    last = names == "s8"
    model = fitted(classes, (X[~last], y[~last], names[~last]))
    return looked_at(model.add_source(X[last], y[last], "s8"), X[:50])


def moved(classes: int) -> Found:
    """Train a fitted model at another trade-off."""
    return looked_at(fitted(classes).at_trade_off(2.0), rows(classes)[0][:50])


def measured(classes: int, method: str) -> Found:
    """Estimate discrepancies without a model."""
    X, y, names = rows(classes)
    found = sw.estimate_discrepancies(
        X, y, sources=names, reference="gold", method=method, random_state=0
    )
    return {"discrepancies": found.values}


def of_baseline(name: str, classes: int) -> Found:
    """Fit a baseline."""
    X, y, names = rows(classes)
    model = getattr(baselines, name)(reference="gold")
    if name == "Oracle":
        model.set_params(good=["s1", "s2", "s4"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, sources=names)
    return {"predictions": model.predict(X[:200]).astype(float)}


def on_dask(classes: int) -> Found:
    """Fit with Dask, in this process."""
    import pandas
    from distributed import Client

    X, y, names = rows(classes)
    frame = pandas.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    frame["y"], frame["vendor"] = y, names
    quiet = {"processes": False, "n_workers": 1, "threads_per_worker": 1, "dashboard_address": ":0"}
    with tempfile.TemporaryDirectory() as folder, Client(**quiet, set_as_default=False) as client:
        for k, low in enumerate(range(0, len(frame), 80)):
            frame[low : low + 80].to_parquet(Path(folder, f"part-{k}.parquet"))
        sources = sw.engines.DaskSources(folder, label="y", source="vendor", client=client)
        model = model_of(classes).fit_sources(sources)
        columns = list(frame.columns[:-2])
        return looked_at(model, frame[columns][:50])


def on_flower(classes: int, **options: Any) -> Found:
    """Fit to sites, in this process."""
    from sourcewise.engines.flower import FlowerSources, LocalCarrier, Site

    X, y, names = rows(classes)
    others = [name for name in dict.fromkeys(names.tolist()) if name != "gold"]
    sites = [Site.of_arrays(n, X[names == n], y[names == n]) for n in others]
    own = names == "gold"
    sources = FlowerSources(LocalCarrier(sites), X[own], y[own], **options)
    discrepancy = "plug-in" if options.get("mode") == "gradients" else "combined"
    return looked_at(model_of(classes, discrepancy=discrepancy).fit_sources(sources), X[:50])


METHODS = ("combined", "local", "cross-fit", "plug-in")
KINDS = {"classes": 2, "numbers": 0}
BASELINES = ("GeometricMedian", "ComponentMedian", "ProbabilityMedian", "RobustLogistic")

POOLS: dict[str, Callable[[], Found]] = {
    **{f"{c} classes": lambda c=c: plain(c) for c in (2, 3, 10)},
    "50 classes": lambda: plain(50, m=200, d=12),
    "numbers": lambda: plain(0),
    "one column": lambda: plain(2, d=1),
    "wide": lambda: plain(2, d=150),
    "wide numbers": lambda: plain(0, d=150),
    **{f"sparse {k}": lambda c=c: plain(c, sparsely=True) for k, c in KINDS.items()},
    "sparse 10 classes": lambda: plain(10, sparsely=True),
    **{f"weighted {k}": lambda c=c: plain(c, weigh=True) for k, c in KINDS.items()},
    **{f"strict {k}": lambda c=c: plain(c, strict=True) for k, c in KINDS.items()},
    **{
        f"{method} {k}": lambda c=c, m=method: plain(c, discrepancy=m)
        for method in METHODS[1:]
        for k, c in KINDS.items()
    },
    **{f"paper {k}": lambda c=c: plain(c, protocol="paper") for k, c in KINDS.items()},
    "theory": lambda: plain(2, trade_off="theory"),
    "a given trade-off": lambda: plain(2, trade_off=0.7),
    "logistic regression": lambda: plain(2, estimator=LogisticRegression(C=0.5)),
    "ridge": lambda: plain(0, estimator=Ridge(2.0)),
    "boosting": lambda: plain(2, estimator=HistGradientBoostingClassifier(max_iter=20)),
    **{f"added {k}": lambda c=c: added(c) for k, c in KINDS.items()},
    **{f"moved {k}": lambda c=c: moved(c) for k, c in KINDS.items()},
    **{f"measured {m}": lambda m=m: measured(2, m) for m in METHODS},
    **{name: lambda n=name: of_baseline(n, 2) for name in BASELINES},
    **{f"audit of {k}": lambda c=c: audited(c) for k, c in KINDS.items()},
    **{f"Dask {k}": lambda c=c: on_dask(c) for k, c in KINDS.items()},
    **{f"Flower {k}": lambda c=c: on_flower(c) for k, c in KINDS.items()},
    "Flower shared reference": lambda: on_flower(2, mode="shared-reference"),
    "Flower gradients": lambda: on_flower(2, mode="gradients"),
}


@contextmanager
def quietly() -> Iterator[None]:
    """Without the warnings that made-up pools give rise to."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def found_of(name: str) -> Found:
    """Fit a pool; arrays and a text by name."""
    with quietly():
        return {key: np.asarray(value) for key, value in POOLS[name]().items()}


def differences(key: str, before: np.ndarray, now: np.ndarray) -> str:
    """Say how two values differ, if they do so more than they may."""
    if key in ("words", "page"):
        first, second = (NUMBER.sub("#", str(text)).split() for text in (before, now))
        if first == second:
            return ""
        there = next((k for k, (a, b) in enumerate(zip(first, second, strict=False)) if a != b), 0)
        return f"{key}: ...{' '.join(first[there:][:8])} / ...{' '.join(second[there:][:8])}"
    if before.shape != now.shape:
        return f"{key}: shape {before.shape} / {now.shape}"
    both_missing = np.isnan(before) & np.isnan(now)
    moved = float(np.where(both_missing, 0.0, np.abs(before - now)).max(initial=0.0))
    allowed = TOLERANCES.get(key, LOOSE * max(1.0, float(np.nanmax(np.abs(before), initial=0.0))))
    return "" if moved <= allowed else f"{key}: moved by {moved:.1e}, {allowed:.0e} are allowed"


def main() -> int:
    """Write or check."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("action", choices=["write", "check"])
    parser.add_argument("file", type=Path)
    parser.add_argument("--only", default="", help="pools whose names hold this")
    given = parser.parse_args()
    names = [name for name in POOLS if given.only in name]
    if given.action == "write":
        arrays = {f"{n}|{k}": value for n in names for k, value in found_of(n).items()}
        np.savez_compressed(given.file, allow_pickle=False, **arrays)
        print(f"{len(names)} pools written to {given.file}")
        return 0
    kept = np.load(given.file, allow_pickle=False)
    changed = 0
    for name in names:
        now = found_of(name)
        keys = {key.partition("|")[2] for key in kept if key.startswith(f"{name}|")}
        said = [f"{key}: only on one side" for key in sorted(keys ^ set(now))]
        said += [
            differences(key, kept[f"{name}|{key}"], now[key]) for key in sorted(keys & set(now))
        ]
        for line in filter(None, said):
            print(f"{name}: {line}", flush=True)
        changed += any(said)
    print(f"{changed} of {len(names)} pools differ")
    return int(changed > 0)


if __name__ == "__main__":
    sys.exit(main())
