"""A PCA from sums, held against scikit-learn's on the whole."""

import numpy as np
import pytest
from sklearn.decomposition import PCA

from sourcewise.images.pca import FeaturePCA


def rows(n=80, d=12, seed=0):
    rng = np.random.default_rng(seed)
    return (1000 + rng.normal(size=(n, d)) * np.arange(1, d + 1)).astype(np.float32)


def test_is_scikit_learns_whatever_the_blocks():
    X = rows()
    expected = PCA(5, svd_solver="full").fit(X.astype(np.float64))
    for cuts in ([], [1], [40], [7, 7, 50, 79]):
        found = FeaturePCA.learn(np.split(X, cuts), 5)
        signs = np.sign((found.components * expected.components_).sum(axis=1))
        components = expected.components_ * signs[:, None]
        np.testing.assert_allclose(found.components, components, atol=1e-7)
        np.testing.assert_allclose(found.variances, expected.explained_variance_, rtol=1e-8)
        new = rows(seed=1)
        theirs = expected.transform(new.astype(np.float64)) * signs
        np.testing.assert_allclose(found.transform(new), theirs, atol=1e-3)


def test_signs_are_fixed():
    found = FeaturePCA.learn([rows()], 12)
    largest = np.abs(found.components).argmax(axis=1)
    assert (found.components[np.arange(12), largest] > 0).all()


def test_missing_rows_stay_missing():
    X = rows()
    found = FeaturePCA.learn([X], 3)
    X[4] = np.nan
    assert np.isnan(found.transform(X)).all(axis=1).tolist() == [k == 4 for k in range(80)]


@pytest.mark.parametrize("n, d, k", [(5, 12, 5), (80, 4, 5), (0, 4, 1)])
def test_too_few_pictures_are_refused(n, d, k):
    with pytest.raises(ValueError, match=f"A PCA to {k} dimensions needs more than {k} pictures"):
        FeaturePCA.learn([rows(n, d)], k)


def test_a_file_gives_back_what_it_was_made_of(tmp_path):
    found = FeaturePCA.learn([rows()], 3, "network")
    found.save(tmp_path / "pca.npz")
    read = FeaturePCA.load(tmp_path / "pca.npz")
    for name in ("mean", "components", "variances"):
        np.testing.assert_array_equal(getattr(read, name), getattr(found, name))
    read.check_made_by("network")
    with pytest.raises(ValueError, match=r"another network .* \(network\) than these \(other\)"):
        read.check_made_by("other")
    with pytest.raises(ValueError, match="takes 12 features a picture; these have 7"):
        read.transform(rows(d=7))


@pytest.mark.parametrize(
    "change, sentence",
    [
        ({"components": np.zeros((3, 5))}, "do not fit together"),
        ({"mean": np.full(12, np.nan)}, "do not fit together"),
        ({"variances": np.array([{}] * 3, dtype=object)}, "cannot be read as arrays"),
        ({"made_by": None}, "the array .made_by. is missing"),
    ],
)
def test_other_files_are_refused(tmp_path, change, sentence):
    path = tmp_path / "pca.npz"
    FeaturePCA.learn([rows()], 3, "network").save(path)
    arrays = dict(np.load(path)) | change
    np.savez(path, **{name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(ValueError, match=rf"pca\.npz is not a PCA.*{sentence}"):
        FeaturePCA.load(path)
    path.write_bytes(b"something else")
    with pytest.raises(ValueError, match="is not a PCA"):
        FeaturePCA.load(path)
    with pytest.raises(ValueError, match="no such file"):
        FeaturePCA.load(tmp_path / "gone.npz")
