"""Corruptions of images, held against their definitions."""

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from sourcewise.corruption import blur, corrupt_sources, dead_pixels, swap_channels
from sourcewise.corruption.images import MATRIX_SIDE
from sourcewise.corruption.sources import IMAGE_KINDS

each_kind = pytest.mark.parametrize("corrupt", IMAGE_KINDS.values(), ids=IMAGE_KINDS)


def images(n=4, height=20, width=33, dtype=np.uint8, seed=0):
    rng = np.random.default_rng(seed)
    made = rng.integers(0, 256, (n, height, width, 3), dtype=np.uint8)
    return made if dtype == np.uint8 else (made / 255).astype(dtype)


def labels(X):
    return np.arange(len(X)) % 2


class TestBlur:
    @pytest.mark.parametrize("sigma", [0.5, 2.0, 6.0, 40.0])
    @pytest.mark.parametrize("dtype, tolerance", [(np.float64, 1e-12), (np.float32, 1e-5)])
    def test_is_scipys_filter_on_the_two_spatial_axes(self, sigma, dtype, tolerance):
        X = images(dtype=dtype)
        done = blur(X, labels(X), sigma=sigma)
        expected = [gaussian_filter(x.astype(np.float64), (sigma, sigma, 0)) for x in X]
        np.testing.assert_allclose(done.X, expected, atol=tolerance)
        assert done.X.dtype == dtype

    def test_rounds_whole_numbers_to_the_nearest(self):
        X = images()
        done = blur(X, labels(X))
        expected = [gaussian_filter(x.astype(np.float64), (6, 6, 0)) for x in X]
        assert done.X.dtype == np.uint8
        assert np.abs(done.X - np.array(expected)).max() <= 0.5 + 1e-4

    @pytest.mark.parametrize("shape", [(MATRIX_SIDE + 1, 5), (5, MATRIX_SIDE + 1), (1, 1), (1, 9)])
    def test_of_all_sizes(self, shape):
        X = images(1, *shape, dtype=np.float64)
        expected = gaussian_filter(X[0], (6, 6, 0))
        np.testing.assert_allclose(blur(X, [0]).X[0], expected, atol=1e-12)

    def test_pure_red_stays_pure_red(self):
        X = np.zeros((1, 30, 30, 3), dtype=np.uint8)
        X[..., 0] = 255
        np.testing.assert_array_equal(blur(X, [0]).X, X)

    def test_keeps_constant_images_and_none_is_none(self):
        X = np.full((2, 17, 9, 3), 0.3, dtype=np.float32)
        np.testing.assert_allclose(blur(X, [0, 1]).X, X, rtol=1e-6)
        noise = images()
        np.testing.assert_array_equal(blur(noise, labels(noise), sigma=0).X, noise)

    def test_channels_do_not_mix(self):
        X = images()
        one = blur(X, labels(X)).X
        X[..., 1] = 0
        two = blur(X, labels(X)).X
        np.testing.assert_array_equal(one[..., [0, 2]], two[..., [0, 2]])
        assert (two[..., 1] == 0).all()


class TestDeadPixels:
    @pytest.mark.parametrize("share", [0.0, 0.1, 0.3, 1.0])
    @pytest.mark.parametrize("dtype, white", [(np.uint8, 255), (np.float32, 1.0)])
    def test_the_share_asked_for_half_black_half_white(self, share, dtype, white):
        X = np.clip(images(dtype=dtype), white / 100, white * 0.99).astype(dtype)
        done = dead_pixels(X, labels(X), share=share, random_state=0).X
        dead = round(share * 20 * 33)
        for before, after in zip(X, done, strict=True):
            black, bright = (after == 0).all(axis=-1), (after == white).all(axis=-1)
            assert (bright.sum(), black.sum()) == (dead // 2, dead - dead // 2)
            kept = ~(black | bright)
            np.testing.assert_array_equal(after[kept], before[kept])

    def test_every_image_has_pixels_of_its_own(self):
        X = np.full((2, 20, 20, 3), 100, dtype=np.uint8)
        one, two = dead_pixels(X, [0, 1], random_state=0).X
        assert (one != two).any()

    def test_white_can_be_told(self):
        X = images(dtype=np.float64) * 255
        with pytest.raises(ValueError, match=r"white is 1, but X holds .* \(image 0\); pass white"):
            dead_pixels(X, labels(X))
        done = dead_pixels(X, labels(X), white=255).X
        assert done.max() == 255
        with pytest.raises(ValueError, match="Black is 0"):
            dead_pixels(-X, labels(X), white=255)


def test_swapping_channels_twice_changes_nothing():
    X = images()
    once = swap_channels(X, labels(X)).X
    np.testing.assert_array_equal(once, X[..., [2, 1, 0]])
    np.testing.assert_array_equal(swap_channels(once, labels(X)).X, X)


@each_kind
@pytest.mark.parametrize(
    "X, sentence",
    [
        (np.zeros((3, 8)), r"images as an array of shape .*got shape \(3, 8\)"),
        (np.zeros((3, 8, 8)), "images as an array"),
        (np.zeros((3, 8, 8, 4)), "images as an array"),
        (np.zeros((3, 0, 8, 3)), "images as an array"),
        (np.zeros((3, 8, 8, 3), dtype=np.int64), "of type int64"),
        ([np.zeros((4, 4, 3)), np.zeros((5, 4, 3)), np.zeros((4, 4, 3))], "different sizes"),
        (np.full((3, 8, 8, 3), np.nan), r"NaN or infinity \(first in image 0\)"),
        (np.zeros((2, 8, 8, 3)), "X has 2 rows and y has 3"),
    ],
)
def test_what_is_not_images_is_refused(corrupt, X, sentence):
    with pytest.raises(ValueError, match=sentence):
        corrupt(X, [0, 1, 0])


@pytest.mark.parametrize(
    "corrupt, option",
    [
        (blur, {"sigma": -1}),
        (blur, {"sigma": np.inf}),
        (blur, {"sigma": "wide"}),
        (dead_pixels, {"share": 1.5}),
        (dead_pixels, {"white": "bright"}),
        (dead_pixels, {"white": 300}),
    ],
)
def test_options_that_make_no_sense_are_named(corrupt, option):
    X = images()
    with pytest.raises(ValueError, match=next(iter(option))):
        corrupt(X, labels(X), **option)


@each_kind
def test_no_image_is_fine(corrupt):
    done = corrupt(np.zeros((0, 8, 8, 3)), [])
    assert done.X.shape == (0, 8, 8, 3) and not done.mask.any()


def test_sources_of_images_with_options():
    X = images(8)
    sources = ["gold", "gold", *"aaabbb"]
    done = corrupt_sources(
        X, labels(X), sources, 2, "dead_pixels", protect="gold", random_state=0, share=1.0
    )
    assert done.mask.tolist() == [False] * 2 + [True] * 6
    assert set(np.unique(done.X[2:])) == {0, 255}
