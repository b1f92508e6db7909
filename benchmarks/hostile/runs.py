"""One run: a draw, an attack, so many hostile sources of ten; all methods are fitted and judged."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.hostile.attacks import ATTACKS, Attack, stack
from benchmarks.hostile.problems import N_SOURCES, PROBLEMS, Draw, Rows, draw
from sourcewise import SourceWeightedClassifier
from sourcewise.baselines import (
    AgreementFilter,
    AllData,
    FLTrust,
    MixMin,
    ReferenceOnly,
)

REFERENCE = "trusted"
HOSTILE = (0, 1, 3, 6, 9, 10)
TRUSTED = (60, 200)
DEFAULT, STRICT, PAPER, ALONE = "default", "strict", "paper", "reference only"
BASELINES = {
    ALONE: ReferenceOnly,
    "all data": AllData,
    "FLTrust": FLTrust,
    "AgreementFilter": AgreementFilter,
    "MixMin": MixMin,
}


class Run(NamedTuple):
    """What one run is about; its results depend on nothing else."""

    problem: str
    n_trusted: int
    attack: str
    hostile: int
    seed: int


def all_runs(seeds: Iterable[int]) -> list[Run]:
    """List the whole design; without a hostile source all attacks are the same."""
    return [
        Run(problem, n, attack, k, seed)
        for seed in seeds
        for k in HOSTILE
        for attack in (ATTACKS if k else ["none"])
        for problem in PROBLEMS
        for n in TRUSTED
    ]


def sources_of(run: Run, found: Draw) -> tuple[list[Rows], list[str]]:
    """Make the sources of a run, and their names; hostile ones are called so."""
    sources, names = [], []
    for i, clean in enumerate(found.sources):
        if i >= run.hostile:
            sources.append(clean)
            names.append(f"clean {i}")
            continue
        attack = ATTACKS[run.attack]
        for twin in range(attack.copies):
            rng = np.random.default_rng([run.seed, i, twin])
            sources.append(attack.change(clean, found, rng))
            names.append(f"hostile {i}.{twin}")
    return sources, names


def results(run: Run, methods: Iterable[str]) -> Iterator[dict[str, Any]]:
    """Fit and judge methods in one run."""
    found = draw(run.problem, run.n_trusted, run.seed)
    sources, names = sources_of(run, found)
    rows = stack([found.trusted, *sources])
    source = np.repeat([REFERENCE, *names], [len(found.trusted), *map(len, sources)])
    for method in methods:
        model = _model(method, run.seed)
        start = time.process_time()
        try:
            model.fit(rows.X, rows.y, sources=source)
        except ValueError as error:  # a method may refuse what it cannot compute with
            yield {**run._asdict(), "method": method, "refused": str(error)}
            continue
        seconds = time.process_time() - start
        yield {
            **run._asdict(),
            "method": method,
            "cpu_seconds": round(seconds, 3),
            **_judge(model, found, ATTACKS.get(run.attack)),
            **_kept(model, method),
        }


def _model(method: str, seed: int) -> Any:
    options: dict[str, Any] = {"reference": REFERENCE, "random_state": seed}
    if method in BASELINES:
        return BASELINES[method](**options)
    if method == STRICT:
        options["strict"] = True
    return SourceWeightedClassifier(protocol="paper" if method == PAPER else None, **options)


def _judge(model: Any, found: Draw, attack: Attack | None) -> dict[str, float]:
    wrong = model.predict(found.test.X) != found.test.y
    judged = {
        "error": float(wrong.mean()),
        "subgroup_error": float(wrong[found.test.group == 0].mean()),
    }
    if attack is not None and attack.trigger is not None:
        marked = attack.trigger(found.test.take(np.flatnonzero(found.test.y == 0)), found)
        judged["success"] = float((model.predict(marked.X) == 1).mean())
    return judged


def _kept(model: Any, method: str) -> dict[str, Any]:
    names = np.asarray(model.sources_).astype(str)
    hostile = np.char.startswith(names, "hostile")
    kept: dict[str, Any] = {}
    if hasattr(model, "source_weights_"):
        kept["weight"] = float(np.asarray(model.source_weights_)[hostile].sum())
    if method in (DEFAULT, STRICT):
        report = model.report()
        reasons = [row.reason for row, bad in zip(report.sources, hostile, strict=True) if bad]
        kept["reasons"] = {reason: reasons.count(reason) for reason in sorted(set(reasons))}
        kept["copies"] = int(sum(row.copies or 0 for row in report.sources))
        kept["notes"] = list(report.notes)
    return kept


def read(path: Path) -> list[dict[str, Any]]:
    """Read what has been computed; a line that was cut off is computed again."""
    if not path.exists():
        return []
    found = []
    for line in path.read_text().splitlines():
        try:
            found.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return found


def compute_left(runs: list[Run], methods: list[str], path: Path, seconds: float) -> int:
    """Compute what is not there yet, until the processor time is used up; count what is left."""
    done = {(Run(*(row[f] for f in Run._fields)), row["method"]) for row in read(path)}
    path.parent.mkdir(parents=True, exist_ok=True)
    left = [(run, [m for m in methods if (run, m) not in done]) for run in runs]
    left = [(run, wanted) for run, wanted in left if wanted]
    with path.open("a") as file:
        for k, (run, wanted) in enumerate(left):
            if time.process_time() > seconds:
                return len(left) - k
            for row in results(run, wanted):
                file.write(json.dumps(row) + "\n")
            file.flush()
            print(f"\r{k + 1} of {len(left)} runs", end="", flush=True)
    return 0


__all__ = ["DEFAULT", "HOSTILE", "N_SOURCES", "Run", "all_runs", "compute_left", "read", "results"]
