"""What each class has: the files that come with the pictures, or a table."""

import numpy as np
import pytest

from sourcewise.images.feature_files import find_attributes, of_pictures, one_each, read_attributes


def published(folder):
    (folder / "classes.txt").write_text("    1\tgrizzly+bear\n    2\tseal\n")
    (folder / "predicates.txt").write_text("    1\tblack\n    2\tswims\n    3\tbig\n")
    (folder / "predicate-matrix-binary.txt").write_text("1 0 1\n1 1 0\n")


def test_the_published_files_are_found_beside_the_pictures(tmp_path):
    pictures = tmp_path / "JPEGImages"
    pictures.mkdir()
    assert find_attributes(pictures) is None
    published(tmp_path)
    found = find_attributes(pictures)
    assert found.classes == ["grizzly+bear", "seal"]
    assert found.attributes == ["black", "swims", "big"]
    values = of_pictures(found, ["seal", "grizzly+bear", "seal"], ["a", "b", "c"])
    assert values.tolist() == [[1, 1, 0], [1, 0, 1], [1, 1, 0]] and values.dtype == np.uint8
    with pytest.raises(ValueError, match="class 'cat' of the picture b is not in"):
        of_pictures(found, ["seal", "cat"], ["a", "b"])


@pytest.mark.parametrize(
    "name, text, sentence",
    [
        ("predicate-matrix-binary.txt", "1 0 1\n", "must hold 0 and 1, 2 rows of 3"),
        ("predicate-matrix-binary.txt", "1 0 1\n1 0 2\n", "must hold 0 and 1"),
        ("classes.txt", "grizzly+bear\nseal\n", r"classes\.txt, line 1: expected a number"),
        ("classes.txt", "1 seal\n2 seal\n", "lists the class 'seal' twice"),
    ],
)
def test_files_that_do_not_fit_are_named(tmp_path, name, text, sentence):
    published(tmp_path)
    (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=sentence):
        read_attributes(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(ValueError, match=rf"{name} is missing"):
        read_attributes(tmp_path)


def test_a_table_of_classes(tmp_path):
    path = tmp_path / "animals.csv"
    path.write_text("class,animal,flies\ncat,1,0\nairplane,0,1\n")
    found = read_attributes(path)
    assert (found.classes, found.attributes) == (["cat", "airplane"], ["animal", "flies"])
    assert found.values.tolist() == [[1, 0], [0, 1]]
    for text, sentence in [
        ("class,animal\ncat,2\n", "column 'animal' is something else"),
        ("class,animal\ncat,yes\n", "column 'animal' is something else"),
        ("class,animal\ncat,\n", "column 'animal' is something else"),
        ("class\ncat\n", "a column of classes and then columns of 0 and 1"),
        ("class,animal\ncat,1\ncat,0\n", "lists the class 'cat' twice"),
    ]:
        path.write_text(text)
        with pytest.raises(ValueError, match=sentence):
            read_attributes(path)


def test_without_either_every_class_is_an_attribute():
    names, values = one_each(["dog", "cat", "dog"])
    assert names == ["cat", "dog"] and values.tolist() == [[0, 1], [1, 0], [0, 1]]
