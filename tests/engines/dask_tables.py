"""Tables of sources in Parquet files, laid out in many ways."""

from __future__ import annotations

import numpy as np
import pandas
from test_invariance import unequal

import sourcewise as sw

REFERENCE = "s9"


def table(kind):
    """Rows of a kind as one frame; three classes besides those that `unequal` knows."""
    X, y, source, _, weight = unequal("two classes" if kind == "three classes" else kind)
    if kind == "three classes":
        y = y + (X[:, 0] > 1.0)
    frame = pandas.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    frame["y"] = np.array(["no", "yes", "both"])[y] if kind == "three classes" else y
    frame["vendor"] = source
    if weight is not None:
        weight[::11] = 0.0
        frame["weight"] = weight
    return frame


def features(frame):
    return frame.drop(columns=["y", "vendor", "weight"], errors="ignore")


def estimator(kind, **options):
    make = sw.SourceWeightedRegressor if kind == "regression" else sw.SourceWeightedClassifier
    return make(reference=REFERENCE, random_state=0, **options)


def in_memory(kind, frame, **options):
    return estimator(kind, **options).fit(
        features(frame),
        frame["y"].to_numpy(),
        sources=frame["vendor"].to_numpy(),
        sample_weight=frame["weight"].to_numpy() if "weight" in frame else None,
    )


def one_file(frame, folder):
    frame.to_parquet(folder / "all.parquet")
    return frame


def cut_anywhere(frame, folder):
    """Twelve files, most sources in more than one, unpadded numbers, some in folders."""
    for k, low in enumerate(range(0, len(frame), 70)):
        place = folder / ("rest" if k > 8 else ".")
        place.mkdir(exist_ok=True)
        frame[low : low + 70].to_parquet(place / f"part.{k}.parquet", row_group_size=33)
    return frame


def in_order_of_time(frame, folder):
    """Every file has rows of every source."""
    order = np.random.default_rng(4).permutation(len(frame))
    frame = frame.iloc[order]
    for k, rows in enumerate(np.array_split(np.arange(len(frame)), 5)):
        frame.iloc[rows].to_parquet(folder / f"day-{k}.parquet")
    return frame


def one_source_a_folder(frame, folder):
    """Let folders name the sources; the order of files is that of numbers, not of letters."""
    for name, rows in frame.groupby("vendor", sort=False):
        (folder / f"vendor={name}").mkdir()
        rows.drop(columns="vendor").to_parquet(folder / f"vendor={name}" / "0.parquet")
    return frame


LAYOUTS = [one_file, cut_anywhere, in_order_of_time, one_source_a_folder]
