"""Published files: what is read, and what is refused by name."""

import hashlib
import json

import numpy as np
import pytest

from sourcewise.experiments.animals import IMAGE_FILES, attribute_names, read_animals
from sourcewise.experiments.catalog import make_animals, make_study, read_awa1, read_fdu_mtl
from sourcewise.experiments.products import listed_products, read_all, read_listed


def write_product(path, n_rows=6, n_columns=26, label=None):
    rng = np.random.default_rng(0)
    lines = []
    for k in range(n_rows):
        values = [f"{v:.4f}" for v in rng.normal(size=n_columns - 1)]
        lines.append(" ".join([*values, str(k % 2 if label is None else label)]))
    path.write_text("\n".join(lines) + "\n")


@pytest.fixture
def reviews(tmp_path):
    for name in ("A1", "B2"):
        write_product(tmp_path / f"{name}.txt")
    return tmp_path


def test_the_first_study_lists_twenty_books_and_twenty_others():
    kinds = [kind for kind, _ in listed_products().values()]
    assert (kinds.count("book"), kinds.count("non-book")) == (20, 20)


def test_reviews_are_read_with_a_constant_column_at_the_end(reviews):
    first, second = read_all(reviews)
    assert (first.name, second.name) == ("A1", "B2")
    assert first.X.shape == (6, 26) and (first.X[:, -1] == 1).all()
    assert first.y.tolist() == [0, 1, 0, 1, 0, 1]


def test_malformed_reviews_are_refused_with_file_and_line(reviews):
    path = reviews / "B2.txt"
    write_product(path, n_columns=25)
    with pytest.raises(ValueError, match=r"B2\.txt, line 1 has 25 columns; reviews have 26"):
        read_all(reviews)
    write_product(path, label=2)
    with pytest.raises(ValueError, match=r"B2\.txt, line 1: the label is 2; labels must be 0 or 1"):
        read_all(reviews)
    path.write_text(path.read_text().replace(" ", " x", 1))
    with pytest.raises(ValueError, match=r"B2\.txt, line 1: 'x.*' is not a number"):
        read_all(reviews)
    path.write_text(" ".join(["nan"] * 25 + ["1"]))
    with pytest.raises(ValueError, match=r"B2\.txt, line 1 holds NaN or infinity"):
        read_all(reviews)


def test_a_missing_product_is_named(reviews):
    with pytest.raises(ValueError, match=r"0002247399\.txt is missing"):
        read_listed(reviews)
    with pytest.raises(ValueError, match="no folder"):
        read_listed(reviews / "nowhere")


def test_too_few_reviews_are_refused(reviews):
    with pytest.raises(ValueError, match="Product A1 has 3 negative and 3 positive reviews"):
        make_study("all-products", str(reviews))


@pytest.fixture
def features(tmp_path):
    data = make_animals(n_images=300, n_features=8)
    order = np.roll(np.arange(9), 1)  # the published files need not have the constant last
    np.save(tmp_path / "all_features.npy", data.X[:, order])
    np.save(tmp_path / "all_labels.npy", data.labels)
    for name, file in IMAGE_FILES.items():
        np.save(tmp_path / file, data.corrupted[name][:, order])
    return tmp_path, data


def test_feature_files_are_read_row_by_row_with_the_constant_last(features):
    folder, data = features
    read = read_animals(folder)
    assert np.array_equal(read.X, data.X)
    assert np.array_equal(read.labels, data.labels)
    assert read.attributes == attribute_names() and len(read.attributes) == 85
    for name in IMAGE_FILES:
        assert np.array_equal(read.corrupted[name], data.corrupted[name])


@pytest.mark.parametrize(
    ("file", "change", "message"),
    [
        ("all_labels.npy", lambda a: a[:-1], r"all_labels\.npy has 299 rows .* 300"),
        ("all_labels.npy", lambda a: a[:, :84], r"all_labels\.npy has 84 columns"),
        ("all_labels.npy", lambda a: a + 1, r"all_labels\.npy, row \d+, .*labels must be 0 or 1"),
        ("all_features.npy", lambda a: a[:, 1:], r"all_features\.npy must have a constant column"),
        ("all_features.npy", lambda a: a[0], r"all_features\.npy must hold a table"),
        ("all_features.npy", lambda a: a * np.nan, r"all_features\.npy holds NaN or infinity"),
        ("all_features_RGB_0.npy", lambda a: a[:-1], r"all_features_RGB_0\.npy has shape"),
        (
            "all_features_blured_6.npy",
            lambda a: np.random.default_rng(0).permutation(a),
            r"all_features_blured_6\.npy does not follow all_features\.npy row by row",
        ),
    ],
)
def test_malformed_feature_files_are_refused_by_name(features, file, change, message):
    folder, _ = features
    path = folder / file
    np.save(path, change(np.load(path)))
    with pytest.raises(ValueError, match=message):
        read_animals(folder)


def test_a_record_of_how_files_were_made_stands_in_for_the_comparison_of_rows(features):
    folder, _ = features
    path, clean = folder / "all_features_blured_6.npy", folder / "all_features.npy"
    np.save(path, np.random.default_rng(0).permutation(np.load(path)))

    def record(**files):
        (folder / "extraction.json").write_text(json.dumps({"files": files}))

    def checksum(file):
        return hashlib.sha256(file.read_bytes()).hexdigest()

    record(**{clean.name: checksum(clean), path.name: checksum(path)})
    assert len(read_animals(folder).corrupted) == 3
    for files in ({clean.name: checksum(clean)}, {clean.name: "", path.name: checksum(path)}):
        record(**files)
        with pytest.raises(ValueError, match="does not follow"):
            read_animals(folder)
    (folder / "extraction.json").write_text("[1]")
    with pytest.raises(ValueError, match="does not follow"):
        read_animals(folder)


def test_attributes_may_have_names_of_their_own(features):
    folder, data = features
    np.save(folder / "all_labels.npy", data.labels[:, :2])
    with pytest.raises(ValueError, match=r"all_labels\.npy has 2 columns; there are 85"):
        read_animals(folder)
    (folder / "attributes.txt").write_text("animal\nred\n")
    assert read_animals(folder).attributes == ("animal", "red")
    for text in ("animal\nanimal\n", "\n"):
        (folder / "attributes.txt").write_text(text)
        with pytest.raises(ValueError, match=r"attributes\.txt must hold a name for each column"):
            read_animals(folder)


def test_a_missing_or_unsafe_feature_file_is_refused_by_name(features):
    folder, _ = features
    path = folder / "all_features_pixels_30.npy"
    path.write_bytes(b"not an array")
    with pytest.raises(ValueError, match=r"all_features_pixels_30\.npy is not a NumPy array"):
        read_animals(folder)
    np.save(path, np.array([{"a": 1}], dtype=object))  # loading it would run code
    with pytest.raises(ValueError, match=r"all_features_pixels_30\.npy is not a NumPy array"):
        read_animals(folder)
    path.unlink()
    with pytest.raises(ValueError, match=r"all_features_pixels_30\.npy is missing"):
        read_animals(folder)
    assert set(read_animals(folder, ("blur",)).corrupted) == {"blur"}


def test_stand_ins_that_are_not_there_say_where_they_were_looked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCEWISE_DATA", "elsewhere")
    with pytest.raises(ValueError, match=r"awa1.*elsewhere.*--folder"):
        read_awa1()
    with pytest.raises(ValueError, match=f"fdu-mtl.*{tmp_path.name}"):
        read_fdu_mtl(tmp_path)


def test_stand_ins_are_read_from_their_archives(tmp_path):
    rng = np.random.default_rng(0)
    traits = rng.integers(0, 2, size=(50, 85), dtype=np.uint8)
    y = rng.integers(0, 50, size=40).astype(np.uint8)
    X = rng.normal(size=(40, 3)).astype(np.float32)
    np.savez(tmp_path / "awa1_hellinger_pca100.npz", X=X, y=y, attributes=traits)
    animals = read_awa1(tmp_path)
    assert np.array_equal(animals.X[:, :-1], X) and np.array_equal(animals.labels, traits[y])

    y = np.tile([0, 1], 1300).astype(np.int8)
    domain = np.repeat([0, 1], 1300).astype(np.int8)
    X = np.arange(2600, dtype=np.float32)[:, None]
    names = np.array(["books", "camera"])
    np.savez(tmp_path / "lsa100.npz", X=X, y=y, domain=domain, names=names)
    products = read_fdu_mtl(tmp_path)
    assert [(p.name, p.kind) for p in products] == [
        ("books-1", "book"),
        ("books-2", "book"),
        ("camera-1", "non-book"),
        ("camera-2", "non-book"),
    ]
    rows = np.concatenate([p.X[:, 0] for p in products])
    assert len(set(rows)) == 2400
    assert [int(p.y.sum()) for p in products] == [300] * 4
    np.savez(tmp_path / "lsa100.npz", X=X)
    with pytest.raises(ValueError, match=r"lsa100\.npz has no array 'y'"):
        read_fdu_mtl(tmp_path)


def test_unknown_data_and_methods_are_refused(tmp_path):
    with pytest.raises(ValueError, match="no folder nowhere.*awa1, synthetic"):
        make_study("animals", "nowhere")
    with pytest.raises(ValueError, match="no method 'magic'; choose among paper"):
        make_study("animals", "synthetic", methods=("magic",))
