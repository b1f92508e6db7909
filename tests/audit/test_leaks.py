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


@pytest.mark.parametrize("text", [(), ("note",)])
def test_columns_that_only_vary_outside_the_reference_are_named(text):
    frame = table()
    n = len(frame) // 3
    frame["flag"] = np.arange(3 * n) >= 2 * n
    frame["colour"] = np.where(np.arange(3 * n) % 2 + (np.arange(3 * n) < n) > 0, "red", "blue")
    frame["same"] = 1.0
    frame["note"] = [f"words of row {i % 7}" for i in range(3 * n)]
    given = TableRequest(frame, "y", "who", "gold", text=text, drop=() if text else ("note",))
    (sentence,) = leaks(read_training(given))
    assert sentence.startswith("Columns 'flag', 'colour' have one value in all of your")
    del frame["flag"]
    (sentence,) = leaks(read_training(given))
    assert sentence.startswith("Column 'colour' has one value")
    assert "it is ignored" in sentence and "what it means" in sentence


def test_they_are_named_beside_few_trusted_rows_too():
    frame = table(n=20)
    frame["flag"] = np.arange(60) >= 40
    assert len(found(frame)) == 1
