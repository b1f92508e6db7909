"""Columns to know of before any result: those that give the label away, and those of one value."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
from scipy import stats

from sourcewise.audit.label_kinds import centred_correlation
from sourcewise.core.sparse_rows import column_extremes
from sourcewise.tables.training import TrainingTable

# A column that alone is wrong for a smaller share of rows than this gives the label away.
SLIP = 0.01
CANDIDATES = 20
LEAST_TRUSTED = 30
MOST_DISTINCT = 50
MONOTONE = 0.999
SENTENCE = (
    "Column {name!r} {what}. If it was made from the label, the results are worth nothing: leave "
    "it out with --drop."
)
# Of columns that never vary among the trusted rows.
CONSTANT = (
    "{columns} one value in all of your trusted rows and others in the sources: {it} ignored "
    "(but by --protocol paper), since your reference cannot tell what {meaning}."
)
MOST_NAMED = 4


def leaks(training: TrainingTable) -> list[str]:
    """Return a sentence for each column that gives the label away, and one on constant columns."""
    m = int(training.counts[0])
    if m < LEAST_TRUSTED:
        return constants(training)
    blocks = _blocks(training)
    strength = np.array([_strength(training, where) for _, where in blocks])
    found = []
    for k in np.argsort(-strength, kind="stable")[:CANDIDATES].tolist():
        name, where = blocks[k]
        tell = _tells_class if training.classification else _tells_number
        what = tell(_dense(training.X, where), training.y, m)
        if what:
            found.append(SENTENCE.format(name=name, what=what))
    return [*found, *constants(training)]


def constants(training: TrainingTable) -> list[str]:
    """Name the columns that never vary in the reference, and do elsewhere."""
    m = int(training.counts[0])
    low, high = _extremes(training.X[:m])
    everywhere = _extremes(training.X)
    odd = (low == high) & (everywhere[0] < everywhere[1])
    names = [name for name, where in _blocks(training) if _only(odd, low == high, where)]
    if not names:
        return []
    listed = ", ".join(map(repr, names[:MOST_NAMED]))
    if len(names) > MOST_NAMED:
        listed += f" and {len(names) - MOST_NAMED} more"
    one = len(names) == 1
    return [
        CONSTANT.format(
            columns=f"{'Column' if one else 'Columns'} {listed} {'has' if one else 'have'}",
            it="it is" if one else "they are",
            meaning="it means" if one else "they mean",
        )
    ]


def _extremes(X: Any) -> tuple[np.ndarray, np.ndarray]:
    return column_extremes(X) if scipy.sparse.issparse(X) else (X.min(axis=0), X.max(axis=0))


def _only(odd: np.ndarray, constant: np.ndarray, where: slice) -> bool:
    """Whether a raw column has nothing but constant features, one of which varies elsewhere."""
    return bool(constant[where].all() and odd[where].any())


def _blocks(training: TrainingTable) -> list[tuple[str, slice]]:
    """Raw columns, and where their numbers are; free text has none of a meaning of its own."""
    found, position = [], 0
    for rule in training.preprocessor.rules_:
        if rule.kind in ("left out", "text"):
            continue
        found.append((rule.name, slice(position, position + rule.width)))
        position += rule.width
    return found


def _dense(X: Any, columns: slice) -> np.ndarray:
    block = X[:, columns]
    return np.asarray(block.toarray() if scipy.sparse.issparse(block) else block, dtype=np.float64)


def _strength(training: TrainingTable, where: slice) -> float:
    """Share of the labels' variance among trusted rows that one column explains on its own."""
    m = int(training.counts[0])
    X, y = _dense(training.X[:m], where), training.y[:m]
    if not training.classification:
        return max(abs(centred_correlation(X[:, j], y)) for j in range(X.shape[1]))
    groups = [X[y == c] for c in np.unique(y)]
    between = sum(len(g) * (g.mean(axis=0) - X.mean(axis=0)) ** 2 for g in groups)
    total = ((X - X.mean(axis=0)) ** 2).sum(axis=0)
    return float(np.max(np.divide(between, total, out=np.zeros_like(total), where=total > 0)))


def _tells_class(X: np.ndarray, y: np.ndarray, m: int) -> str:
    """Whether values go with labels, one to one or by thresholds, on trusted rows and elsewhere."""
    from sklearn.tree import DecisionTreeClassifier

    n_classes = len(np.unique(y[:m]))
    values, codes = np.unique(X, axis=0, return_inverse=True)
    codes = codes.ravel()
    distinct = len(np.unique(codes[:m]))
    if distinct == n_classes and len(values) <= MOST_DISTINCT and _one_to_one(codes[:m], y[:m]):
        said = np.empty(len(values), dtype=y.dtype)
        said[codes[:m]] = y[:m]
        known = np.isin(codes, codes[:m])
        everywhere = np.mean(said[codes[known]] == y[known])
        where = "in all rows" if everywhere >= 1 - SLIP else "in all of your trusted rows"
        return f"repeats the label {where}"
    tree = DecisionTreeClassifier(max_leaf_nodes=max(2 * n_classes, 4), random_state=0)
    tree.fit(X[:m], y[:m])
    own = float(np.mean(tree.predict(X[:m]) != y[:m]))
    others = float(np.mean(tree.predict(X[m:]) != y[m:])) if len(y) > m else 1.0
    if own <= SLIP and others <= SLIP:
        return f"gives the label away: alone it is right for {1 - others:.1%} of all other rows"
    return ""


def _one_to_one(codes: np.ndarray, y: np.ndarray) -> bool:
    pairs = {(c, label) for c, label in zip(codes.tolist(), y.tolist(), strict=True)}
    return len(pairs) == len({c for c, _ in pairs}) == len({label for _, label in pairs})


def _tells_number(X: np.ndarray, y: np.ndarray, m: int) -> str:
    for j in range(X.shape[1]):
        x = X[:, j]
        if np.ptp(x[:m]) == 0:
            continue
        if abs(centred_correlation(x[:m], y[:m])) > 1 - 1e-9:
            return "repeats the label in all of your trusted rows"
        own = abs(stats.spearmanr(x[:m], y[:m]).statistic)
        if own > MONOTONE and abs(stats.spearmanr(x[m:], y[m:]).statistic) > MONOTONE:
            return "gives the label away: it rises and falls with it in all rows"
    return ""
