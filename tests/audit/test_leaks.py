from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from sourcewise.audit.leaks import leaks
from sourcewise.tables.request import TableRequest
from sourcewise.tables.training import read_training


def table(task="classes", n=120):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(3 * n, 2))
    score = x[:, 0] + 0.8 * rng.normal(size=3 * n)
    frame = pd.DataFrame({"a": x[:, 0], "b": x[:, 1]})
    frame["y"] = np.array(["no", "yes"])[(score > 0).astype(int)] if task == "classes" else score
    frame["who"] = np.repeat(["gold", "good", "shuffled"], n)
    frame.loc[2 * n :, "y"] = rng.permutation(frame.y[2 * n :].to_numpy())
    return frame


def found(frame):
    return leaks(read_training(TableRequest(frame, "y", "who", "gold")))


@pytest.mark.parametrize("task", ["classes", "numbers"])
def test_honest_columns_are_not_named(task):
    assert found(table(task)) == []


def test_a_copy_of_the_label_is_named():
    frame = table()
    frame["copy"] = frame["y"].map({"no": "rejected", "yes": "accepted"})
    (sentence,) = found(frame)
    assert "Column 'copy' repeats the label in all rows" in sentence
    assert "--drop" in sentence


def test_a_score_that_the_label_was_made_from_is_named():
    frame = table()
    noise = np.random.default_rng(1).uniform(size=len(frame))
    frame["score"] = np.where(frame.y == "yes", 50 + 40 * noise, 10 + 30 * noise)
    (sentence,) = found(frame)
    assert "Column 'score' gives the label away" in sentence


def test_numbers_that_rise_and_fall_with_the_label_are_named():
    frame = table("numbers")
    frame["exponential"] = np.exp(frame["y"])
    frame["twice"] = 2.0 * frame["y"] + 1.0
    named = " ".join(found(frame))
    assert "'exponential' gives the label away" in named
    assert "'twice' repeats the label" in named
