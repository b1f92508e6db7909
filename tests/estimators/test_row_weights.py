from __future__ import annotations

import re
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.tree import DecisionTreeClassifier

import sourcewise as sw
from sourcewise.baselines import AllData

RNG = np.random.default_rng(0)
SOURCES = RNG.permutation(np.repeat(["gold", "a", "b"], [60, 90, 150]))
X = RNG.normal(size=(300, 3))
Y = (X[:, 0] > 0).astype(int)


def model(**how):
    return sw.SourceWeightedClassifier(
        **{"reference": "gold", "trade_off": "theory", "random_state": 0, **how}
    )


@pytest.fixture(scope="module")
def fitted():
    return model().fit(X, Y, sources=SOURCES)


class TestRowWeights:
    def test_mean_one_and_the_sources_shares(self, fitted):
        weights = fitted.row_weights(SOURCES)
        assert weights.mean() == pytest.approx(1.0)
        for name, share in zip(fitted.sources_, fitted.source_weights_, strict=True):
            assert weights[name == SOURCES].sum() / 300 == pytest.approx(share)

    def test_mean_one_with_copies_of_trusted_rows_too(self):
        rng = np.random.default_rng(0)
        rows = rng.normal(size=(300, 6))
        copied = np.flatnonzero(SOURCES == "a")[:30]
        rows[copied] = rows[np.flatnonzero(SOURCES == "gold")[:30]]
        found = model().fit(rows, Y, sources=SOURCES)
        assert found.copies_.sum() >= 30
        weights = found.row_weights(SOURCES)
        assert weights.mean() == pytest.approx(1.0, abs=1e-12)
        for name, share in zip(found.sources_, found.source_weights_, strict=True):
            assert weights[name == SOURCES].sum() / 300 == pytest.approx(share)

    def test_any_rows_in_any_container(self, fitted):
        some = SOURCES[:7]
        expected = fitted.row_weights(SOURCES)[:7]
        for given in (some.tolist(), pd.Series(some), pl.Series(some)):
            assert np.array_equal(fitted.row_weights(given), expected)

    @pytest.mark.parametrize("given", [["nobody"], [["a"]], ["a", None], [0]])
    def test_unknown_names(self, fitted, given):
        with pytest.raises(ValueError, match="no source|name of every row"):
            fitted.row_weights(given)

    def test_a_trainer_weighted_so_is_ours(self, fitted):
        # Same weights up to a factor, hence the same model where nothing is penalised.
        own = model(estimator=LogisticRegression(C=1e6, tol=1e-10)).fit(X, Y, sources=SOURCES)
        other = LogisticRegression(C=1e6, tol=1e-10)
        other.fit(X, Y, sample_weight=own.row_weights(SOURCES))
        assert (other.predict(X) == own.predict(X)).all()


class TestSourcesAsAColumn:
    def frame(self):
        return pd.DataFrame(X, columns=list("uvw")).assign(vendor=SOURCES)

    @pytest.mark.parametrize("kind", [lambda f: f, pl.from_pandas])
    def test_it_is_no_feature(self, fitted, kind):
        frame = kind(self.frame())
        found = model().fit(frame, Y, sources="vendor")
        assert found.feature_names_in_.tolist() == list("uvw")
        assert np.array_equal(found.coef_, fitted.coef_)
        assert np.array_equal(found.predict(frame), fitted.predict(X))
        assert np.array_equal(found.row_weights(frame), fitted.row_weights(SOURCES))
        plain = kind(self.frame().drop(columns="vendor"))
        assert np.array_equal(found.predict(plain), fitted.predict(X))

    def test_a_source_can_be_added_from_a_frame_with_the_column(self):
        found = model().fit(self.frame(), Y, sources="vendor")
        new = self.frame().head(40).assign(vendor="new")
        assert "new" in found.add_source(new, Y[:40], "new").sources_

    def test_fitting_again_forgets_it(self):
        found = model().fit(self.frame(), Y, sources="vendor").fit(X, Y, sources=SOURCES)
        assert not hasattr(found, "source_column_")

    def test_baselines_take_it_too(self):
        found = AllData(reference="gold").fit(self.frame(), Y, sources="vendor")
        assert found.feature_names_in_.tolist() == list("uvw")

    @pytest.mark.parametrize(
        ("X", "name", "sentence"),
        [(X, "vendor", "no frame with columns"), (None, "vendr", "did you mean 'vendor'")],
    )
    def test_mistakes(self, X, name, sentence):
        with pytest.raises(ValueError, match=sentence):
            model().fit(self.frame() if X is None else X, Y, sources=name)


class TestDecisionFunction:
    def test_its_sign_is_the_prediction(self, fitted):
        scores = fitted.decision_function(X)
        assert scores.shape == (300,)
        assert ((scores > 0) == (fitted.predict(X) == 1)).all()

    def test_several_classes(self):
        y = np.digitize(X[:, 0], [-0.5, 0.5])
        found = model().fit(X, y, sources=SOURCES)
        scores = found.decision_function(X)
        assert scores.shape == (300, 3)
        assert np.array_equal(scores.argmax(axis=1), found.predict(X))

    def test_an_estimator_of_ones_own(self):
        found = model(estimator=RidgeClassifier(), trade_off=4.0).fit(X, Y, sources=SOURCES)
        assert np.array_equal(found.decision_function(X), found.estimator_.decision_function(X))
        tree = model(estimator=DecisionTreeClassifier())
        assert not hasattr(tree, "decision_function")


class TestVerbose:
    def test_bars_on_standard_error(self, capsys):
        model(verbose=True).fit(X, Y, sources=SOURCES)
        shown = capsys.readouterr()
        assert "Comparing sources" in shown.err
        assert shown.out == ""

    def test_fits_of_an_estimator_of_ones_own_are_counted(self, capsys):
        model(estimator=RidgeClassifier(), trade_off=4.0, verbose=True).fit(X, Y, sources=SOURCES)
        assert re.search(r"^\d+ fits ", capsys.readouterr().err, re.MULTILINE)

    def test_what_to_install(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "rich.console", None)
        monkeypatch.delitem(sys.modules, "sourcewise.progress", raising=False)
        with pytest.raises(ImportError, match="verbose=True shows progress bars"):
            model(verbose=True).fit(X, Y, sources=SOURCES)
