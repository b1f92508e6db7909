from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

import sourcewise as sw


def frame(n=80, seed=0):
    rng = np.random.default_rng(seed)
    size = rng.normal(size=3 * n)
    return pd.DataFrame(
        {
            "size": size,
            "colour": rng.choice(["red", "blue"], 3 * n),
            "note": [f"{'fine' if s > 0 else 'torn'} item number {k}" for k, s in enumerate(size)],
            "big": np.where(size > 0, "yes", "no"),
            "who": np.repeat(["gold", "a", "b"], n),
        }
    )


def model(**how):
    return sw.TableModel("big", "who", "gold", **{"trade_off": "theory", "drop": ["note"], **how})


@pytest.fixture(scope="module")
def fitted():
    return model().fit(frame())


@pytest.mark.parametrize("scaling", ["standard", "keep"])
def test_the_scaling_that_is_asked_for_is_used(scaling):
    assert model(scaling=scaling).fit(frame()).model_.scaling_ == scaling


@pytest.mark.parametrize("kind", ["polars", "pyarrow", "csv", "parquet"])
def test_the_container_does_not_matter(fitted, kind, tmp_path):
    data = frame()
    path = tmp_path / f"data.{kind}"
    if kind == "csv":
        data.to_csv(path, index=False)
    elif kind == "parquet":
        data.to_parquet(path)
    given = {"polars": pl.from_pandas, "pyarrow": pa.Table.from_pandas}.get(kind, lambda _: path)
    table = given(data)
    other = model().fit(table)
    assert np.allclose(other.source_weights_, fitted.source_weights_, atol=1e-12)
    assert (other.predict(table) == fitted.predict(data)).all()
    assert np.allclose(other.row_weights(table), fitted.row_weights())


def test_row_weights_follow_the_table_and_average_one():
    data = frame().sample(frac=1.0, random_state=1).reset_index(drop=True)
    data.loc[5, "big"] = None
    made = model(skip_bad_rows=True).fit(data)
    weights = made.row_weights()
    assert weights[5] == 0.0
    assert np.delete(weights, 5).mean() == pytest.approx(1.0)
    rows = made.model_.source_rows_ + made.model_.copies_
    per_row = dict(zip(made.sources_, made.source_weights_ / rows, strict=True))
    expected = data.who.map(per_row) * rows.sum()
    assert np.allclose(np.delete(weights, 5), np.delete(expected.to_numpy(), 5))


def test_a_table_of_trusted_rows_of_their_own(tmp_path):
    data = frame()
    trusted = data[data.who == "gold"].drop(columns="who")
    made = model().fit(data[data.who != "gold"], reference_table=trusted)
    assert made.sources_.tolist() == ["gold", "a", "b"]
    assert len(made.row_weights()) == len(data)


def test_text_decides_what_numbers_cannot():
    data = frame()
    data["size"] = 0.0
    data.loc[::2, "size"] = 1.0
    made = model(drop=(), text="note").fit(data)
    assert made.predict(frame(seed=5)).tolist() == frame(seed=5).big.tolist()


def test_saved_and_loaded(fitted, tmp_path):
    sw.save(fitted, tmp_path / "m.skops")
    loaded = sw.load(tmp_path / "m.skops")
    data = frame()
    assert (loaded.predict(data) == fitted.predict(data)).all()
    assert np.array_equal(loaded.row_weights(data), fitted.row_weights())
    with pytest.raises(ValueError, match="does not keep which source"):
        loaded.row_weights()
    sw.save(fitted, tmp_path / "all.skops", include_data=True)
    assert np.array_equal(sw.load(tmp_path / "all.skops").row_weights(), fitted.row_weights())


def test_saved_with_text_and_skipped_rows(tmp_path):
    data = frame()
    data.loc[200, "big"] = "perhaps"
    made = model(drop=(), text=["note"], skip_bad_rows=True).fit(data)
    sw.save(made, tmp_path / "m.skops")
    loaded = sw.load(tmp_path / "m.skops")
    assert (loaded.predict(data) == made.predict(data)).all()
    assert loaded.skipped_ == made.skipped_
    assert b"torn item" not in (tmp_path / "m.skops").read_bytes()


def test_an_estimator_of_ones_own_and_clone():
    made = clone(model(estimator=LogisticRegression(), trade_off=4.0))
    assert made.fit(frame()).predict(frame()).tolist() == frame().big.tolist()


def test_regression_is_found_out():
    data = frame()
    data["big"] = 2.0 * data["size"] + 0.1
    made = model().fit(data)
    assert not made.is_classifier
    assert np.corrcoef(made.predict(data), data["big"])[0, 1] > 0.99


def test_report(fitted):
    assert {row.source for row in fitted.report().sources} == {"gold", "a", "b"}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"label": "bigg"}, "no column 'bigg'; did you mean 'big'"),
        ({"drop": ["big"]}, "'big' holds the labels; it cannot be left out"),
        ({"text": ["who"]}, "'who' holds the sources; it cannot be a feature"),
        ({"text": ["size2"]}, "did you mean 'size'"),
        ({"source": "big"}, "cannot hold both"),
    ],
)
def test_mistakes(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        model().set_params(**change).fit(frame())


def test_a_column_in_use_is_never_proposed():
    data = frame().rename(columns={"big": "vendors"})
    with pytest.raises(ValueError) as caught:
        sw.TableModel("vendors", "vendor", "gold").fit(data.rename(columns={"who": "w"}))
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize("given", [np.zeros((3, 2)), 7, {"a": [1]}])
def test_no_table(given):
    with pytest.raises(ValueError, match="path, or a frame"):
        model().fit(given)


def test_names_that_are_no_text():
    with pytest.raises(ValueError, match="column named 3"):
        model().fit(frame().rename(columns={"size": 3}))


def test_objects_of_several_kinds_are_read_as_a_file_would_be():
    data = frame()
    data["size"] = data["size"].astype(object)
    data.loc[100, "size"] = "large"
    with pytest.raises(ValueError, match="mixes numbers and text"):
        model().fit(data)
    assert model(skip_bad_rows=True).fit(data).skipped_[0].first == 101


def test_unfitted_is_not_saved(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        sw.save(model(), tmp_path / "m.skops")
