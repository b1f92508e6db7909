"""Pictures made on the fly, and a network small enough to be followed by hand."""

from __future__ import annotations

import io

import numpy as np
import pytest

pytest.importorskip("PIL")


def pixels(height=24, width=32, seed=0):
    """Smooth colours, so that JPEG keeps them nearly."""
    rng = np.random.default_rng(seed)
    corners = rng.uniform(0, 255, size=(2, 2, 3))
    rows, columns = np.linspace(0, 1, height)[:, None, None], np.linspace(0, 1, width)[:, None]
    left = corners[0, 0] * (1 - rows) + corners[1, 0] * rows
    right = corners[0, 1] * (1 - rows) + corners[1, 1] * rows
    return np.rint(left * (1 - columns) + right * columns).astype(np.uint8)


def encoded(array, kind="PNG", mode=None, **options):
    from PIL import Image

    image = Image.fromarray(array) if isinstance(array, np.ndarray) else array
    stream = io.BytesIO()
    (image if mode is None else image.convert(mode)).save(stream, format=kind, **options)
    return stream.getvalue()


def write_folder(folder, classes=("cat", "dog"), each=3, height=24, width=32):
    """Write a subfolder of PNG files for each class."""
    for c, name in enumerate(classes):
        (folder / name).mkdir(parents=True)
        for k in range(each):
            content = encoded(pixels(height, width, seed=100 * c + k))
            (folder / name / f"{k}.png").write_bytes(content)
    return folder


def extractor(size=8, **options):
    """Mean and spread of each colour."""
    torch = pytest.importorskip("torch")
    from sourcewise.images import FeatureExtractor

    class Colours(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale = torch.nn.Parameter(torch.full((1,), 1 / 255))
            self.pool = torch.nn.AdaptiveAvgPool2d(1)

        def forward(self, batch):
            batch = batch * self.scale
            return torch.cat([self.pool(batch), batch.std(dim=(2, 3), keepdim=True)], dim=1)

    return FeatureExtractor(Colours(), as_tensor, size=size, **options)


def as_tensor(picture):
    import torch

    return torch.from_numpy(np.asarray(picture, dtype=np.float32)).permute(2, 0, 1)


def colours(array):
    """Compute in numpy what the network does."""
    scaled = array.reshape(-1, 3) / 255
    return np.concatenate([scaled.mean(axis=0), scaled.std(axis=0, ddof=1)])
