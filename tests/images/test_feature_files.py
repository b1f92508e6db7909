"""From pictures to the file set of the animals study."""

import csv
import json

import numpy as np
import pytest

pytest.importorskip("torch")

from images.made_up_pictures import encoded, extractor, pixels, write_folder  # noqa: E402
from sourcewise.experiments.animals import IMAGE_FILES, read_animals  # noqa: E402
from sourcewise.images import FeaturePCA, Pictures, open_pictures  # noqa: E402
from sourcewise.images.feature_files import (  # noqa: E402
    ClassAttributes,  # noqa: E402
    Extraction,
    write_features,
)

ALL = tuple(IMAGE_FILES)


@pytest.fixture
def pictures(tmp_path):
    return open_pictures(write_folder(tmp_path / "pictures", each=6))


def background():
    return Pictures.of([pixels(seed=k) for k in range(500, 520)])


def lines(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_the_files_are_those_that_the_study_reads(tmp_path, pictures):
    folder = tmp_path / "features"
    wanted = Extraction(extractor(), pictures, ALL, background=background(), n_components=4)
    assert write_features(wanted, folder) == {}
    data = read_animals(folder)
    assert data.X.shape == (12, 5) and (data.X[:, -1] == 1).all()
    assert data.attributes == ("cat", "dog")
    assert data.labels.tolist() == [[1, 0]] * 6 + [[0, 1]] * 6
    pca = FeaturePCA.load(folder / "pca.npz")
    clean = extractor().extract(pictures).values
    np.testing.assert_allclose(data.X[:, :-1], pca.transform(clean), atol=1e-5)
    for kind in ALL:
        spoilt = extractor().extract(pictures, corruption=kind).values
        np.testing.assert_allclose(data.corrupted[kind][:, :-1], pca.transform(spoilt), atol=1e-5)
    listed = lines(folder / "pictures.csv")
    assert [each["picture"] for each in listed] == list(pictures.names)
    assert [each["class"] for each in listed] == list(pictures.classes)
    record = json.loads((folder / "extraction.json").read_text())
    assert record["pictures"] == 12 and record["corruptions"] == list(ALL)


def test_the_pca_is_learnt_on_the_background_alone(tmp_path, pictures):
    for name, some in (("all", pictures), ("few", pictures.take(range(4)))):
        wanted = Extraction(extractor(), some, background=background(), n_components=3)
        write_features(wanted, tmp_path / name)
    one, two = (FeaturePCA.load(tmp_path / name / "pca.npz") for name in ("all", "few"))
    np.testing.assert_array_equal(one.components, two.components)
    again = Extraction(extractor(), pictures, pca=one)
    write_features(again, tmp_path / "again")
    for name in ("all_features.npy", "pca.npz"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "all" / name).read_bytes()
    with pytest.raises(ValueError, match="another network"):
        write_features(Extraction(extractor(size=9), pictures, pca=one), tmp_path / "other")


def test_the_papers_attributes_need_no_names(tmp_path, pictures):
    from sourcewise.experiments.animals import attribute_names

    values = np.arange(170).reshape(2, 85).astype(np.uint8) % 2
    known = ClassAttributes(tmp_path, ["dog", "cat"], list(attribute_names()), values)
    write_features(Extraction(extractor(), pictures, attributes=known), tmp_path / "features")
    assert not (tmp_path / "features" / "attributes.txt").exists()
    np.testing.assert_array_equal(
        read_animals(tmp_path / "features", ()).labels, values[[1] * 6 + [0] * 6]
    )


def test_bad_pictures_are_refused_by_name_or_left_out_of_every_file(tmp_path, pictures):
    pictures.content[3].write_bytes(b"")
    pictures.content[7].unlink()
    folder = tmp_path / "features"
    wanted = Extraction(extractor(), pictures, ALL)
    with pytest.raises(ValueError, match=r"2 of 12 pictures cannot be used.*cat/3\.png is empty"):
        write_features(wanted, folder)
    assert [path.name for path in folder.iterdir()] == ["shards"]
    left_out = write_features(Extraction(extractor(), pictures, ALL, skip_bad=True), folder)
    assert list(left_out) == [3, 7]
    kept = [k for k in range(12) if k not in (3, 7)]
    assert [each["picture"] for each in lines(folder / "pictures.csv")] == [
        pictures.names[k] for k in kept
    ]
    assert lines(folder / "left-out.csv")[1] == {
        "picture": "dog/1.png",
        "problem": "There is no picture dog/1.png.",
    }
    expected = extractor().extract(pictures.take(kept)).values
    data = read_animals(folder)
    np.testing.assert_allclose(data.X[:, :-1], expected, rtol=1e-5)
    assert all(len(X) == 10 for X in data.corrupted.values())


def test_nothing_is_written_if_no_picture_can_be_used(tmp_path):
    pictures = Pictures.of([b"", b"x"])
    with pytest.raises(ValueError, match="None of the 2 pictures can be used.*Picture 0 is empty"):
        write_features(Extraction(extractor(), pictures, skip_bad=True), tmp_path / "features")


def test_the_folder_holds_what_the_last_call_asked_for(tmp_path, pictures):
    folder = tmp_path / "features"
    write_features(Extraction(extractor(), pictures, ALL, background(), n_components=2), folder)
    unlabelled = Pictures(pictures.names, pictures.content)
    write_features(Extraction(extractor(), unlabelled, ("blur",)), folder)
    files = sorted(path.name for path in folder.iterdir() if path.is_file())
    assert files == [
        "all_features.npy",
        "all_features_blured_6.npy",
        "extraction.json",
        "pictures.csv",
    ]


def test_classes_that_nothing_is_known_of_are_found_before_any_work(tmp_path, pictures):
    known = ClassAttributes(tmp_path / "table.csv", ["cat"], ["furry"], np.ones((1, 1), np.uint8))
    with pytest.raises(ValueError, match="class 'dog' of the picture dog/0.png"):
        write_features(Extraction(extractor(), pictures, attributes=known), tmp_path / "features")
    assert not (tmp_path / "features").exists()


def test_a_background_with_bad_pictures_still_gives_a_pca(tmp_path, pictures):
    content = [*background().content, b"", encoded(pixels(), "JPEG")[:50]]
    wanted = Extraction(extractor(), pictures, background=Pictures.of(content), n_components=2)
    write_features(wanted, tmp_path / "features")
    plain = Extraction(extractor(), pictures, background=background(), n_components=2)
    write_features(plain, tmp_path / "plain")
    one, two = (tmp_path / name / "pca.npz" for name in ("features", "plain"))
    np.testing.assert_array_equal(FeaturePCA.load(one).mean, FeaturePCA.load(two).mean)
