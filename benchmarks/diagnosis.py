"""How often the guess at what is wrong with a source is right.

Run with ``python -m benchmarks.diagnosis`` (``--quick`` for an eighth of it). Every pool has 200
trusted rows, one source of each kind, all of the same number of rows, and five clean ones. The
whole audit runs, so a guess is only made about a source that was found to disagree.

Two halves of data sets, chosen before anything was tried: thresholds in `sourcewise.audit` may be
tuned on TUNING; what is printed by default, and published, is REPORTED.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from sourcewise.audit.diagnosis import LEAST_ROWS, Side, diagnose
from sourcewise.audit.expected_errors import held_out_errors
from sourcewise.audit.wording import CANNOT_TELL
from sourcewise.estimators import SourceWeightedClassifier, SourceWeightedRegressor
from sourcewise.report.verdict import verdict
from sourcewise.tables.training import TrainingTable

# Names of made-up worlds (`world`): how columns look, how labels come about.
TUNING = ("even", "skewed")
REPORTED = ("units", "correlated", "counts")
TRUSTED = 200
N_CLEAN = 5
CLASS_KINDS = (
    "flipped labels",
    "shuffled labels",
    "one label for all",
    "two classes swapped",
    "class never used",
    "class relabelled",
    "noisy labels 20",
    "noisy labels 40",
)
NUMBER_KINDS = ("flipped sign", "shuffled labels", "label units", "noisy labels")
COLUMN_KINDS = ("columns permuted", "other units", "noisy features", "other population")


# Of sources that were not found to disagree: a note in the report names them, or nothing does.
NOTED, UNSEEN = "named in a note", "not accused"


def world(name: str, rng: np.random.Generator, truth: dict[str, Any], n: int, shift: float = 0.0):
    """Draw rows: columns, and a score for each output; ``truth`` is drawn once a pool."""
    d = 8
    z = rng.normal(size=(n, d))
    if name == "correlated":
        z = 0.7 * z + 0.7 * rng.normal(size=(n, 1))
    z[:, 0] += shift
    scores = z @ truth["coef"]
    if name == "even":
        X = z
    elif name == "skewed":
        X = np.exp(0.6 * z)
    elif name == "counts":
        X = rng.poisson(np.exp(0.7 * z + np.linspace(0.5, 2.5, d)))
    else:
        X = z * truth["unit"] + 3 * truth["unit"]
    return np.asarray(X, dtype=np.float64), scores


def labels(scores: np.ndarray, task: str, rng: np.random.Generator, cuts: np.ndarray):
    """Numbers, or classes with about a tenth of them on the wrong side of a border."""
    if task == "numbers":
        return 100.0 + 20.0 * (scores[:, 0] + 0.5 * rng.normal(size=len(scores)))
    noisy = scores + 0.35 * rng.normal(size=scores.shape)
    if task == "two":
        return (noisy[:, 0] > cuts[0]).astype(int)
    return noisy.argmax(axis=1)


def spoil(kind: str, X, y, task: str, rng: np.random.Generator):
    """Do to a source what its kind says."""
    k = {"two": 2, "six": 6}.get(task, 0)
    if kind == "flipped labels":
        y = 1 - y
    elif kind == "flipped sign":
        y = 200.0 - y
    elif kind == "shuffled labels":
        y = rng.permutation(y)
    elif kind == "one label for all":
        y = np.full_like(y, int(rng.integers(k)))
    elif kind == "two classes swapped":
        a, b = rng.choice(k, 2, replace=False)
        y = np.where(y == a, b, np.where(y == b, a, y))
    elif kind in ("class never used", "class relabelled"):
        a = int(rng.integers(k))
        others = np.array([c for c in range(k) if c != a])
        to = rng.choice(others, len(y)) if kind == "class never used" else rng.choice(others)
        y = np.where(y == a, to, y)
    elif kind.startswith("noisy labels") and k:
        wrong = rng.random(len(y)) < int(kind[-2:]) / 100
        y = np.where(wrong, (y + rng.integers(1, k, len(y))) % k, y)
    elif kind == "noisy labels":
        y = y + 60.0 * rng.normal(size=len(y))
    elif kind == "label units":
        y = 0.85 * 4.2 * y
    elif kind == "columns permuted":
        X = X[:, np.roll(np.arange(X.shape[1]), 3)]
    elif kind == "other units":
        X = X.copy()
        X[:, 1] *= 25.4
    elif kind == "noisy features":
        X = X + 1.2 * X.std(axis=0) * rng.normal(size=X.shape)
    return X, y


def pool(name: str, task: str, rows: int, seed: int) -> tuple[TrainingTable, list[str]]:
    """Make one table: the reference, a source of each kind, clean ones."""
    rng = np.random.default_rng(seed)
    k = {"two": 1, "six": 6, "numbers": 1}[task]
    truth = {"coef": rng.normal(size=(8, k)), "unit": 10.0 ** rng.uniform(-2, 3, 8)}
    kinds = [*(NUMBER_KINDS if task == "numbers" else CLASS_KINDS), *COLUMN_KINDS]
    if task == "two":
        kinds = [kind for kind in kinds if "class" not in kind]
    elif task == "six":
        kinds.remove("flipped labels")
    kinds += ["clean"] * N_CLEAN
    blocks = []
    for kind in ("reference", *kinds):
        n = TRUSTED if kind == "reference" else rows
        X, scores = world(name, rng, truth, n, 1.5 if kind == "other population" else 0.0)
        y = labels(scores, task, rng, np.zeros(1))
        blocks.append(spoil(kind, X, y, task, rng))
    names = ["reference", *(f"{i} {kind}" for i, kind in enumerate(kinds))]
    return (
        TrainingTable(
            np.concatenate([X for X, _ in blocks]),
            np.concatenate([y for _, y in blocks]),
            names,
            np.array([len(y) for _, y in blocks]),
            None,
            task != "numbers",
            {},
        ),
        kinds,
    )


def judge(training: TrainingTable, kinds: list[str], seed: int) -> list[tuple[str, str, str]]:
    """Run the audit; for each source its kind, what is said, and what would be said if asked."""
    kind = SourceWeightedClassifier if training.classification else SourceWeightedRegressor

    def make() -> Any:
        return kind(reference="reference", random_state=seed)

    model = make().fit(training.X, training.y, sources=training.name_of_row)
    report = model.report()
    found = held_out_errors(training, make, training.name_of_row, seed)
    result = verdict(report)
    accused = {*result.set_aside, *result.doubted}
    classes = model.classes_ if training.classification else None
    look = model.predict if classes is None else model.predict_proba
    own = training.rows(0)
    reference = Side(training.X[own], training.y[own], found.scores)
    features = np.array([f"c{j}" for j in range(training.X.shape[1])])
    told = []
    for i, what in enumerate(kinds, start=1):
        rows = training.rows(i)
        side = Side(training.X[rows], training.y[rows], look(training.X[rows]))
        facts = diagnose(side, reference, features, classes, look)
        said = NOTED if any(repr(training.names[i]) in note for note in report.notes) else UNSEEN
        told.append((what, facts["kind"] if i in accused else said, facts["kind"]))
    return told


def right(what: str, said: str) -> bool:
    """Whether a guess names the kind."""
    return what.rstrip(" 0123456789") == said


def main() -> None:
    """Print tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--tuning", action="store_true", help="the other half of the data")
    parser.add_argument("--rows", type=int, nargs="+", default=[10, 30, 100, 1000])
    parser.add_argument("--tasks", nargs="+", default=["two", "six", "numbers"])
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    seeds = range(1 if given.quick else given.seeds)
    names = TUNING if given.tuning else REPORTED
    everything = []
    for rows in given.rows:
        table: dict[str, Counter[str]] = defaultdict(Counter)
        for task in given.tasks:
            for name in names:
                for seed in seeds:
                    training, kinds = pool(name, task, rows, seed)
                    for what, said, asked in judge(training, kinds, seed):
                        table[what][said] += 1
                        everything.append((rows, task, name, seed, what, said, asked))
        show(rows, table)
    if given.json:
        given.json.write_text(json.dumps(everything))


def show(rows: int, table: dict[str, Counter[str]]) -> None:
    """Print what was said of each kind, and the shares that the bars speak of."""
    print(f"\n{rows} rows a source" + (" (no guess is made)" if rows < LEAST_ROWS else ""))
    good = guesses = silent = 0
    for what, said in table.items():
        listed = ", ".join(f"{number} {kind}" for kind, number in said.most_common())
        print(f"  {what:<22}{listed}")
        for kind, number in said.items():
            silent += number * (kind == CANNOT_TELL and what != "clean")
            if kind in (NOTED, UNSEEN, CANNOT_TELL) or what == "clean":
                continue
            guesses += number
            good += number * right(what, kind)
    clean = table["clean"]
    accused = clean.total() - clean[UNSEEN] - clean[NOTED]
    if guesses:
        print(f"  right where a guess is made: {good} of {guesses} ({good / guesses:.1%})")
        print(f"  cannot tell: {silent} of {guesses + silent} ({silent / (guesses + silent):.1%})")
    print(f"  clean sources accused: {accused} of {clean.total()} ({accused / clean.total():.1%})")
    print(f"  clean sources named in a note: {clean[NOTED]} of {clean.total()}")


if __name__ == "__main__":
    main()
