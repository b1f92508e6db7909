"""Any picture becomes red, green and blue, or a sentence."""

import io
import struct
import zlib

import numpy as np
import pytest

pytest.importorskip("PIL")
from PIL import Image  # noqa: E402

from images.made_up_pictures import encoded, pixels  # noqa: E402
from sourcewise.images import PictureError, read_picture  # noqa: E402


@pytest.mark.parametrize("kind", ["PNG", "BMP", "TIFF", "PPM"])
def test_lossless_files_give_back_their_pixels(kind, tmp_path):
    path = tmp_path / "picture"
    path.write_bytes(encoded(pixels(), kind))
    for given in (path, str(path), path.read_bytes()):
        np.testing.assert_array_equal(read_picture(given), pixels())


@pytest.mark.parametrize("kind", ["JPEG", "WEBP", "MPO"])
def test_other_files_nearly_do(kind):
    read = read_picture(encoded(pixels(), kind, quality=95))
    assert read.shape == (24, 32, 3) and read.dtype == np.uint8
    assert np.abs(read.astype(int) - pixels()).mean() < 4


def test_arrays_and_opened_pictures():
    np.testing.assert_array_equal(read_picture(pixels()), pixels())
    np.testing.assert_array_equal(read_picture(Image.fromarray(pixels())), pixels())
    grey = pixels()[..., 0]
    np.testing.assert_array_equal(read_picture(grey), np.repeat(grey[..., None], 3, axis=2))


@pytest.mark.parametrize("mode", ["L", "1", "P", "LA", "RGBA", "CMYK", "YCbCr"])
def test_every_mode_becomes_three_channels(mode):
    kind = "TIFF" if mode in ("CMYK", "YCbCr") else "PNG"
    read = read_picture(encoded(pixels(), kind, mode))
    assert read.shape == (24, 32, 3) and read.dtype == np.uint8


def test_grey_stays_grey_and_sixteen_bits_become_eight():
    grey = pixels()[..., 0]
    sixteen = read_picture(encoded(grey.astype(np.uint16) * 257))
    np.testing.assert_array_equal(sixteen, np.repeat(grey[..., None], 3, axis=2))


def test_what_is_transparent_becomes_white():
    alpha = np.zeros((24, 32, 4), dtype=np.uint8)
    alpha[..., :3], alpha[:12, :, 3] = pixels(), 255
    read = read_picture(encoded(alpha))
    np.testing.assert_array_equal(read[:12], pixels()[:12])
    assert (read[12:] == 255).all()


def test_the_side_that_is_up_is_followed():
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    read = read_picture(encoded(pixels(), exif=exif))
    np.testing.assert_array_equal(read, np.rot90(pixels(), -1))


@pytest.mark.parametrize("shape", [(24, 32), (32, 24), (1, 50), (50, 1), (8, 8), (3, 3)])
def test_a_size_takes_the_square_in_the_middle(shape):
    read = read_picture(pixels(*shape), size=8)
    assert read.shape == (8, 8, 3)
    side = min(shape)
    top, left = (shape[0] - side) // 2, (shape[1] - side) // 2
    middle = pixels(*shape)[top : top + side, left : left + side]
    expected = np.asarray(Image.fromarray(middle).resize((8, 8), Image.Resampling.BICUBIC))
    np.testing.assert_array_equal(read, expected)


def test_a_thin_picture_costs_no_more_than_its_pixels():
    read = read_picture(np.zeros((1, 200_000, 3), dtype=np.uint8), size=224)
    assert read.shape == (224, 224, 3)


def png_of(width, height):
    """Make a small file that says it has so many pixels."""

    def chunk(name, data):
        check = zlib.crc32(name + data)
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", check)

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 1000))
    return b"\x89PNG\r\n\x1a\n" + body + chunk(b"IEND", b"")


@pytest.mark.parametrize("side", [10_000, 100_000])
def test_a_decompression_bomb_is_refused_by_name(side):
    with pytest.raises(PictureError, match=r"bomb\.png would unpack to more pixels than Pillow's"):
        read_picture(png_of(side, side), name="bomb.png")
    assert Image.MAX_IMAGE_PIXELS == 89478485


@pytest.mark.parametrize(
    "content, sentence",
    [
        (b"", "x is empty"),
        (b"not a picture at all", "x is not a picture that can be read"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n", "x is not a picture"),
        (encoded(pixels(200, 200), "JPEG")[:-300], "x is a damaged JPEG picture: .*truncated"),
        (encoded(pixels(200, 200))[:-300], "x is a damaged PNG picture"),
        (encoded(pixels(200, 200), "WEBP")[:-100], "x is "),
        (encoded(Image.new("F", (4, 4)), "TIFF"), "x holds numbers of mode F"),
        (np.zeros((4, 4, 3)), r"x must be an array .* got shape \(4, 4, 3\) of type float64"),
        (np.zeros((4, 4, 2), dtype=np.uint8), r"x must be an array"),
        (np.zeros((0, 4, 3), dtype=np.uint8), r"x must be an array"),
    ],
)
def test_what_is_no_picture_is_named(content, sentence):
    with pytest.raises(PictureError, match=sentence):
        read_picture(content, name="x")


@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM"])
def test_damage_anywhere_is_a_sentence_or_a_picture(kind):
    whole = bytearray(encoded(pixels(), kind))
    rng = np.random.default_rng(0)
    for _ in range(60):
        content = bytearray(whole)
        for place in rng.integers(0, len(content), 4):
            content[place] = rng.integers(256)
        cut = bytes(content[: rng.integers(1, len(content) + 1)])
        try:
            assert read_picture(cut).shape[2] == 3
        except PictureError as error:
            assert str(error).startswith("The picture ")


def test_paths_that_lead_nowhere_are_named(tmp_path):
    with pytest.raises(PictureError, match=r"There is no picture .*gone\.png"):
        read_picture(tmp_path / "gone.png")
    with pytest.raises(PictureError, match="is not a file"):
        read_picture(tmp_path)


def test_animations_give_their_first_frame():
    stream = io.BytesIO()
    frames = [Image.new("RGB", (8, 8), colour) for colour in ("red", "blue")]
    frames[0].save(stream, "GIF", save_all=True, append_images=frames[1:])
    assert read_picture(stream.getvalue())[0, 0].tolist() == [255, 0, 0]
