"""The six corruptions of the animals study, source by source."""

from __future__ import annotations

import numpy as np

from sourcewise.corruption import label_bias, shuffle_features, shuffle_labels
from sourcewise.corruption.contract import choose_rows
from sourcewise.experiments.animals import IMAGE_FILES, AnimalData
from sourcewise.experiments.splits import CORRUPTION

LABEL_CORRUPTIONS = ("label-bias", "shuffled-labels")
FEATURE_CORRUPTIONS = ("shuffled-features",)
CORRUPTIONS = (*LABEL_CORRUPTIONS, *FEATURE_CORRUPTIONS, *IMAGE_FILES)


def corrupt_groups(
    data: AnimalData,
    labels: np.ndarray,
    groups: np.ndarray,
    kind: str,
    p: float,
    seed: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Corrupt a share of the rows of every group.

    Which rows of a group are touched, and how, depends on the seed, the corruption and the
    group's position alone: not on the attribute, nor on how many groups are corrupted.

    Parameters
    ----------
    data : AnimalData
    labels : int array of shape (n_images,)
        Of one attribute.
    groups : int array of shape (n_groups, group_size)
        Row numbers.
    kind : str
        One of `CORRUPTIONS`.
    p : float
        Share of the rows.
    seed : int

    Returns
    -------
    X : array of shape (n_groups, group_size, n_features + 1)
    y : int array of shape (n_groups, group_size)
    mask : bool array of shape (n_groups, group_size)
        Rows that were chosen.
    """
    X, y = data.X[groups], labels[groups]
    mask = np.zeros(groups.shape, dtype=bool)
    entropy = [seed, CORRUPTION, CORRUPTIONS.index(kind)]
    n_features = data.X.shape[1] - 1  # the constant stays where it is
    permutation = np.append(np.random.default_rng(entropy).permutation(n_features), n_features)
    states = np.random.SeedSequence(entropy).generate_state(len(groups))
    for g, rows in enumerate(groups):
        state = int(states[g])
        if kind == "label-bias":
            _, y[g], mask[g] = label_bias(X[g, :, :0], y[g], p=p, label=1, random_state=state)
        elif kind == "shuffled-labels":
            _, y[g], mask[g] = shuffle_labels(X[g, :, :0], y[g], p=p, random_state=state)
        elif kind == "shuffled-features":
            X[g], _, mask[g] = shuffle_features(
                X[g], y[g], p=p, permutation=permutation, random_state=state
            )
        else:
            mask[g], _ = choose_rows(len(rows), p, state)
            X[g, mask[g]] = data.corrupted[kind][rows[mask[g]]]
    return X, y, mask
