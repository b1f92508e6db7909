"""What a forged file of arrays or a picture costs, in proportion to its size."""

from __future__ import annotations

import tracemalloc
import zipfile

import numpy as np
import pytest
from benchmarks.faults import npy

from sourcewise.archives import EXPANDS, EXPANDS_TOO_MUCH, NO_ARRAY
from sourcewise.experiments import animals
from sourcewise.images import FeaturePCA, read_picture
from sourcewise.images.features import Shards
from sourcewise.images.pictures import open_pictures
from sourcewise.images.reading import ANY_PIXELS, PIXELS_A_BYTE, PictureError

MOST = 8_000_000  # bytes


@pytest.fixture(autouse=True)
def little_memory():
    tracemalloc.start()
    yield
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MOST


def bomb(path, names, size):
    """Write an archive of zeros, a thousandth of what it unpacks to."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in names:
            with archive.open(f"{name}.npy", "w") as member:
                member.write(npy(np.zeros(0))[:-1].replace(b"(0,)", f"({size // 8},)".encode()))
                for _ in range(size // 1_000_000):
                    member.write(bytes(1_000_000))
    return path


@pytest.mark.parametrize("read", [FeaturePCA.load, open_pictures])
def test_an_archive_that_unpacks_to_much_more_is_not_unpacked(read, tmp_path):
    names = ("mean", "components", "variances", "made_by", "blob", "offsets")
    path = bomb(tmp_path / "a.npz", names, 30_000_000)
    with pytest.raises(ValueError, match=EXPANDS_TOO_MUCH.format(factor=EXPANDS)):
        read(path)


def claiming(shape):
    """Return an array's file with a header that claims more than follows."""
    content = npy(np.zeros((2, 2), dtype=np.float32))
    old = b"(2, 2), }" + b" " * 40
    assert old in content
    return content.replace(old, f"{shape}, }}".encode().ljust(len(old)))


@pytest.mark.parametrize("shape", ["(100000, 100000)", "(0, 10000000000)", "(-1, 4)"])
def test_a_header_that_claims_more_is_refused(shape, tmp_path):
    (tmp_path / animals.FEATURES).write_bytes(claiming(shape))
    with pytest.raises(ValueError, match=rf"{animals.FEATURES} (is not.*{NO_ARRAY}|must hold)"):
        animals.read_animals(tmp_path)
    (tmp_path / "00000.npy").write_bytes(claiming(shape))
    (tmp_path / "00000.json").write_text('{"problems": {}, "stamps": ["a"]}')
    assert Shards(tmp_path).read(0, ["a"]) is None


def test_a_small_picture_of_very_many_pixels_is_refused(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    side = int(ANY_PIXELS**0.5) + 1
    Image.new("1", (side, side)).save(tmp_path / "blank.png")
    assert (tmp_path / "blank.png").stat().st_size * PIXELS_A_BYTE < side * side
    with pytest.raises(PictureError, match="blank.png would unpack to 25,010,001 pixels"):
        read_picture(tmp_path / "blank.png")
