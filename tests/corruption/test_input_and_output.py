"""What every corruption promises of its input and its output."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse

from sourcewise import corruption
from sourcewise.corruption.sources import IMAGE_KINDS, KINDS

X = np.random.default_rng(0).normal(size=(12, 3))
Y = np.arange(12) % 2
TABLE_KINDS = {name: corrupt for name, corrupt in KINDS.items() if name not in IMAGE_KINDS}


@pytest.mark.parametrize("corrupt", TABLE_KINDS.values(), ids=TABLE_KINDS)
class TestEveryCorruption:
    @pytest.mark.parametrize(
        "X, y, more, sentence",
        [
            (X, Y[:5], {}, "X has 12 rows and y has 5"),
            (X, X, {}, "one label a row"),
            (X, None, {}, "one label a row"),
            (scipy.sparse.csr_matrix(X), Y, {}, "sparse"),
            (X, Y, {"p": "half"}, "p is the share of rows"),
            (X, Y, {"p": None}, "p is the share of rows"),
            (X, Y, {"p": 1.5}, "p is the share of rows"),
        ],
    )
    def test_bad_input_gets_a_sentence(self, corrupt, X, y, more, sentence):
        with pytest.raises(ValueError, match=sentence):
            corrupt(X, y, **more)

    def test_a_frame_comes_back_as_a_frame(self, corrupt):
        frame = pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(12) + 100)
        frame["count"] = np.arange(12)
        before = frame.copy()
        done = corrupt(frame, pd.Series(Y), random_state=0)
        assert isinstance(done.X, pd.DataFrame)
        assert list(done.X.columns) == ["a", "b", "c", "count"]
        assert list(done.X.index) == list(frame.index)
        pd.testing.assert_frame_equal(frame, before)
        plain = corrupt(frame.to_numpy(), Y, random_state=0)
        np.testing.assert_array_equal(done.X.to_numpy(), plain.X)

    def test_a_frame_of_polars_does_too(self, corrupt):
        polars = pytest.importorskip("polars")
        done = corrupt(polars.DataFrame(X, schema=["a", "b", "c"]), Y, random_state=0)
        assert done.X.columns == ["a", "b", "c"]
        np.testing.assert_array_equal(done.X.to_numpy(), corrupt(X, Y, random_state=0).X)


def test_columns_that_are_not_touched_keep_their_type():
    frame = pd.DataFrame({"text": ["a", "b"] * 6, "number": X[:, 0], "whole": np.arange(12)})
    done = corruption.flip_labels(frame, Y).X
    pd.testing.assert_frame_equal(done, frame)
    with pytest.raises(ValueError, match="Column 'text' of X does not hold numbers"):
        corruption.feature_noise(frame, Y)


def test_sources_of_a_frame_come_back_as_a_frame():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    done = corruption.corrupt_sources(frame, Y, ["u"] * 6 + ["v"] * 6, 1, "shuffle_features")
    assert list(done.X.columns) == ["a", "b", "c"]


@pytest.mark.parametrize("corrupt", [corruption.flip_labels, corruption.class_confusion])
def test_only_known_classes_are_exchanged(corrupt):
    with pytest.raises(ValueError, match="The label 2 is not among classes"):
        corrupt(X, Y + 1, classes=[0, 1])
    with pytest.raises(ValueError, match="y holds real numbers"):
        corrupt(X, X[:, 0])


def test_a_flipped_label_is_not_cut_short():
    flipped = corruption.flip_labels(X[:2], ["a", "b"], classes=["a", "b", "long"]).y
    assert flipped.tolist() == ["b", "long"]


@pytest.mark.parametrize(
    "y, label",
    [
        (Y, 1.5),
        (Y.astype(bool), 2),
        (Y.astype(np.int8), 300),
        (np.array(["a", "b"] * 6), "longer"),
        (Y.astype(np.float32), 0.1),
    ],
)
def test_a_biased_label_is_the_one_asked_for(y, label):
    biased = corruption.label_bias(X, y, label=label, p=0.5, random_state=0)
    assert (biased.y[biased.mask] == label).all()
    np.testing.assert_array_equal(biased.y[~biased.mask], y[~biased.mask])


def test_a_biased_label_that_fits_leaves_the_type_alone():
    assert corruption.label_bias(X, Y.astype(np.int8), label=1).y.dtype == np.int8


@pytest.mark.parametrize("label", ["x", [1, 2]])
def test_a_label_of_another_kind_is_refused(label):
    with pytest.raises(ValueError, match="label"):
        corruption.label_bias(X, Y, label=label)


@pytest.mark.parametrize(
    "name, option",
    [
        ("shuffle_features", {"permutation": 2}),
        ("feature_noise", {"scale": "a"}),
        ("feature_scale", {"factor": "a"}),
        ("feature_scale", {"factor": [1.0, 2.0]}),
        ("duplicate_rows", {"n_distinct": 1.5}),
        ("duplicate_rows", {"n_distinct": "a"}),
    ],
)
def test_options_that_make_no_sense_are_named(name, option):
    with pytest.raises(ValueError, match=next(iter(option))):
        KINDS[name](X, Y, **option)


def test_pools_check_how_many_and_which_options():
    given = X, Y, ["u"] * 6 + ["v"] * 6
    with pytest.raises(ValueError, match="n must be between 0 and 2"):
        corruption.corrupt_sources(*given, "one", "flip_labels")
    with pytest.raises(ValueError, match="flip_labels has no option 'label'; it has 'classes'"):
        corruption.corrupt_sources(*given, 1, "flip_labels", label=1)
