"""Folders, tables and archives of pictures: what is found, and what is refused."""

import numpy as np
import pytest

pytest.importorskip("PIL")

from images.made_up_pictures import encoded, pixels, write_folder  # noqa: E402
from sourcewise.images import Pictures, open_pictures  # noqa: E402


def test_a_folder_has_a_subfolder_for_each_class(tmp_path):
    write_folder(tmp_path)
    (tmp_path / "cat" / "notes.txt").write_text("not a picture")
    (tmp_path / ".thumbnails").mkdir()
    (tmp_path / ".thumbnails" / "a.png").write_bytes(b"hidden")
    (tmp_path / "dog" / "deep").mkdir()
    (tmp_path / "dog" / "deep" / "A.JPG").write_bytes(encoded(pixels(), "JPEG"))
    found = open_pictures(tmp_path)
    assert found.names == [
        *(f"cat/{k}.png" for k in range(3)),
        *(f"dog/{k}.png" for k in range(3)),
        "dog/deep/A.JPG",
    ]
    assert found.classes == ["cat"] * 3 + ["dog"] * 4
    np.testing.assert_array_equal(found.read(1), pixels(seed=1))


def test_a_folder_of_pictures_only_has_no_classes(tmp_path):
    (tmp_path / "a.png").write_bytes(encoded(pixels()))
    assert open_pictures(tmp_path).classes is None
    write_folder(tmp_path)
    with pytest.raises(ValueError, match=r"holds pictures beside subfolders .*\(a\.png\)"):
        open_pictures(tmp_path)


def test_a_folder_without_pictures_is_refused(tmp_path):
    with pytest.raises(ValueError, match="hold no pictures"):
        open_pictures(tmp_path)


def table(tmp_path, *paths, column="path"):
    file = tmp_path / "table.csv"
    file.write_text("\n".join([f"{column},what", *(f"{path},dog" for path in paths)]) + "\n")
    return file


def test_a_table_names_paths_below_its_folder(tmp_path):
    write_folder(tmp_path)
    inside = str(tmp_path / "cat" / "1.png")
    file = table(tmp_path, "cat/0.png", inside, "cat/../dog/0.png", "cat/0.png", "cat/gone.png")
    found = open_pictures(file, column="path", label="what")
    assert len(found) == 5 and found.classes == ["dog"] * 5
    np.testing.assert_array_equal(found.read(0), found.read(3))
    np.testing.assert_array_equal(found.read(1), pixels(seed=1))
    np.testing.assert_array_equal(found.read(2), pixels(seed=100))


def test_paths_may_begin_in_another_folder(tmp_path):
    write_folder(tmp_path / "pictures")
    file = table(tmp_path, "cat/0.png")
    found = open_pictures(file, column="path", folder=tmp_path / "pictures")
    np.testing.assert_array_equal(found.read(0), pixels(seed=0))


@pytest.mark.parametrize(
    "path, sentence",
    [
        ("../secret.png", r"Row 1 of .*table\.csv asks for the picture '\.\./secret\.png', which"),
        ("/etc/passwd", "is not below"),
        ("https://example.org/a.png", "nothing is downloaded"),
        ("data:image/png;base64", "nothing is downloaded"),
        ('""', "Row 1 of .* has no picture"),
    ],
)
def test_paths_that_lead_elsewhere_are_refused(tmp_path, path, sentence):
    with pytest.raises(ValueError, match=sentence):
        open_pictures(table(tmp_path, path), column="path")


def test_columns_that_hold_no_paths_are_named(tmp_path):
    file = table(tmp_path, "1", "2")
    with pytest.raises(ValueError, match="Column 'path' of .* does not hold paths but int64"):
        open_pictures(file, column="path")
    with pytest.raises(ValueError, match="no column 'pth'; did you mean 'path'"):
        open_pictures(file, column="pth")
    with pytest.raises(ValueError, match="say with --image which column"):
        open_pictures(file)


def archive(path, contents, **more):
    ends = np.cumsum([0, *map(len, contents)])
    blob = np.frombuffer(b"".join(contents), dtype=np.uint8)
    np.savez(path, **{"blob": blob, "offsets": ends, **more})
    return path


def test_an_archive_of_encoded_bytes(tmp_path):
    contents = [encoded(pixels(seed=k)) for k in range(3)]
    path = archive(tmp_path / "a.npz", contents, y=[1, 0, 1], classes=["cat", "dog"])
    found = open_pictures(path)
    assert found.classes == ["dog", "cat", "dog"]
    np.testing.assert_array_equal(found.read(2), pixels(seed=2))
    assert open_pictures(archive(tmp_path / "b.npz", contents)).classes is None


@pytest.mark.parametrize(
    "change, sentence",
    [
        ({"offsets": np.array([0, 99_999])}, "do not cut its blob"),
        ({"offsets": np.array([5, 0])}, "do not cut its blob"),
        ({"offsets": np.array([0.0, 5.0])}, "do not cut its blob"),
        ({"blob": np.zeros(4)}, "do not cut its blob"),
        ({"y": np.array([0, 1])}, "1 pictures have 2 labels"),
        ({"y": np.array([7]), "classes": np.array(["a"])}, "not among its classes"),
        ({"blob": np.array([{}], dtype=object)}, "cannot be read as arrays"),
    ],
)
def test_an_archive_that_does_not_fit_together_is_refused(tmp_path, change, sentence):
    path = archive(tmp_path / "a.npz", [encoded(pixels())], **change)
    with pytest.raises(ValueError, match=rf"a\.npz is not an archive of pictures: .*{sentence}"):
        open_pictures(path)


def test_other_files_are_no_archives(tmp_path):
    np.savez(tmp_path / "a.npz", other=[1])
    with pytest.raises(ValueError, match="not an archive of pictures"):
        open_pictures(tmp_path / "a.npz")
    (tmp_path / "b.npz").write_bytes(b"PK damaged")
    with pytest.raises(ValueError, match="not an archive of pictures"):
        open_pictures(tmp_path / "b.npz")
    with pytest.raises(ValueError, match="no such file"):
        open_pictures(tmp_path / "gone.npz")


def test_some_of_them_in_another_order():
    found = Pictures(["a", "b", "c"], [pixels(seed=k) for k in range(3)], ["x", "y", "z"])
    some = found.take([2, 0])
    assert some.names == ["c", "a"] and some.classes == ["z", "x"]
    np.testing.assert_array_equal(some.read(0), pixels(seed=2))
