"""Features of pictures: what some layer of a network makes of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from sourcewise.core.folds import named_seed
from sourcewise.corruption.images import blur, dead_pixels, swap_channels
from sourcewise.images.features import (
    SHARD_ROWS,
    Features,
    Shards,
    check_widths,
    concat_features,
    replace_rows,
)
from sourcewise.images.pictures import Pictures
from sourcewise.images.reading import PictureError, not_installed
from sourcewise.progress import counter

NO_LAYER = "The network has no layer {layer!r}; it has {known}."
NO_CORRUPTION = "There is no image corruption {name!r}; choose among {known}."
NOT_MODULE = "The network must be a torch.nn.Module; got {kind}."
NOT_PREPROCESS = "preprocess must be a function that turns a picture into a tensor; got {kind}."
LAYER_SILENT = "The layer {layer!r} took no part in what the network computed."
NOT_TENSOR = "{what} must be one tensor; got {kind}."
NOT_A_PICTURE_TENSOR = (
    "preprocess must return a tensor of shape (channels, height, width); got {shape}."
)
BAD_SIZE = "{name} must be a whole number, at least {least}; got {value!r}."
ROWS_DIFFER = "The network made {found} rows of {expected} pictures."
NOT_FINITE = "{name}: the network's output holds NaN or infinity."

# What the studies call the corruptions of images.
CORRUPTIONS: dict[str, Callable[..., Any]] = {
    "blur": blur,
    "dead-pixels": dead_pixels,
    "rgb-swap": swap_channels,
}
MOST_SHOWN = 12


class FeatureExtractor:
    """Turns pictures into features with any torch network.

    Parameters
    ----------
    module : torch.nn.Module
        It is put into evaluation mode.
    preprocess : callable
        Turns one picture (``PIL.Image.Image``, mode RGB) into a tensor (channels, height, width),
        as the transforms of torchvision do.
    layer : str, optional
        Name of the submodule whose output is taken, flattened; the network's own by default.
    size : int, optional
        Bring pictures to a square of this size before they are corrupted and preprocessed.
    batch_size : int
    name : str, optional
        What records call the network; the name of its class by default.

    Examples
    --------
    Colours, averaged over a picture:

    >>> import numpy as np
    >>> import torch
    >>> def preprocess(picture):
    ...     return torch.from_numpy(np.asarray(picture) / 255.0).permute(2, 0, 1).float()
    >>> network = torch.nn.Sequential(torch.nn.AdaptiveAvgPool2d(1), torch.nn.Flatten())
    >>> red = np.zeros((8, 8, 3), dtype=np.uint8) + np.uint8([255, 0, 0])
    >>> FeatureExtractor(network, preprocess).extract([red]).values
    array([[1., 0., 0.]], dtype=float32)
    """

    def __init__(
        self,
        module: Any,
        preprocess: Callable[[Any], Any],
        *,
        layer: str | None = None,
        size: int | None = None,
        batch_size: int = 32,
        name: str | None = None,
    ):
        torch = _torch()
        if not isinstance(module, torch.nn.Module):
            raise ValueError(NOT_MODULE.format(kind=type(module).__name__))
        if not callable(preprocess):
            raise ValueError(NOT_PREPROCESS.format(kind=type(preprocess).__name__))
        for what, value in (("size", size), ("batch_size", batch_size)):
            whole = isinstance(value, int) and not isinstance(value, bool) and value >= 1
            if not whole and not (what == "size" and value is None):
                raise ValueError(BAD_SIZE.format(name=what, least=1, value=value))
        self.module, self.preprocess = module.eval(), preprocess
        self.layer, self.size, self.batch_size = layer, size, batch_size
        self.name = name or type(module).__name__
        layers = dict(module.named_modules())
        if layer is not None and layer not in layers:
            known = [each for each in layers if each]
            shown = ", ".join(map(repr, known[:MOST_SHOWN])) or "none"
            shown += ", ..." * (len(known) > MOST_SHOWN)
            raise ValueError(NO_LAYER.format(layer=layer, known=shown))
        self._taken = module if layer is None else layers[layer]

    def fingerprint(self) -> str:
        """Short name of the network's weights, its layer and the size of the pictures."""
        digest = hashlib.sha256(f"{self.name} {self.layer} {self.size}".encode())
        function = getattr(self.preprocess, "__qualname__", type(self.preprocess).__qualname__)
        digest.update(function.encode())
        for key, value in sorted(self.module.state_dict().items()):
            digest.update(f"{key} {tuple(value.shape)} {value.dtype}".encode())
            digest.update(value.detach().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()[:16]

    def extract(
        self,
        pictures: Any,
        *,
        corruption: str | Callable[..., Any] | None = None,
        seed: int = 0,
        folder: str | Path | None = None,
    ) -> Features:
        """Return the features of pictures.

        A picture that cannot be read does not stop the others. Torch runs on one thread.

        Parameters
        ----------
        pictures : Pictures, or a sequence of paths, bytes, uint8 arrays or Pillow's images
        corruption : str or callable, optional
            ``"blur"``, ``"dead-pixels"``, ``"rgb-swap"``, or a function with their contract
            (:mod:`sourcewise.corruption`): every picture is corrupted before it is preprocessed.
        seed : int
            Of the corruption; what happens to a picture depends on it and the picture's name
            alone.
        folder : path, optional
            Keep finished parts here as ``.npy`` files; the same call continues after an
            interruption.
        """
        shards = self.shards(pictures, corruption=corruption, seed=seed, folder=folder)
        return concat_features(shards)

    def shards(
        self,
        pictures: Any,
        *,
        corruption: str | Callable[..., Any] | None = None,
        seed: int = 0,
        folder: str | Path | None = None,
        more: Callable[[int], None] | None = None,
    ) -> Iterator[Features]:
        """Yield the features of `SHARD_ROWS` pictures after the other; see :meth:`extract`.

        ``more`` is called with the number of pictures that were done since the last call; by
        default the listener of :mod:`sourcewise.progress` is told.
        """
        pictures, spoil = Pictures.of(pictures), _corruption(corruption)
        kept = None
        if folder is not None:
            named = corruption if isinstance(corruption, str) else getattr(spoil, "__name__", None)
            kept = Shards.open(
                Path(folder),
                {
                    "network": f"{self.name} {self.fingerprint()}",
                    "corruption": named or "none",
                    "seed": str(seed),
                    "pictures": hashlib.sha256("\n".join(pictures.names).encode()).hexdigest(),
                },
            )
        more = more or counter("pictures", len(pictures))
        starts = range(0, max(len(pictures), 1), SHARD_ROWS)
        for shard, start in enumerate(starts):
            rows = range(start, min(start + SHARD_ROWS, len(pictures)))
            if kept is None:
                yield self._compute(pictures, rows, spoil, seed, more)
                continue
            stamps = [pictures.stamp(k) for k in rows]
            before = kept.read(shard, stamps)
            if before is None:
                found = self._compute(pictures, rows, spoil, seed, more)
            else:
                found, again = before
                more(len(rows) - len(again))
                if again:
                    new = self._compute(pictures, [rows[k] for k in again], spoil, seed, more)
                    found = replace_rows(found, again, new)
            if before is None or again:
                kept.write(shard, found, stamps)
            yield found

    def _compute(
        self,
        pictures: Pictures,
        rows: Sequence[int],
        spoil: Callable[..., Any] | None,
        seed: int,
        more: Callable[[int], None],
    ) -> Features:
        """Return features of some rows, and what is wrong with those that have none."""
        blocks: list[np.ndarray | None] = [None] * len(rows)
        problems: dict[int, str] = {}
        for start in range(0, len(rows), self.batch_size):
            batch = range(start, min(start + self.batch_size, len(rows)))
            ready = {}
            for k in batch:
                try:
                    ready[k] = self._tensor(pictures, rows[k], spoil, seed)
                except PictureError as error:
                    problems[k] = str(error)
            for some in _of_one_shape(ready):
                features = self._run([ready[k] for k in some])
                for k, row in zip(some, features, strict=True):
                    if np.isfinite(row).all():
                        blocks[k] = row
                    else:
                        problems[k] = NOT_FINITE.format(name=pictures.names[rows[k]])
            more(len(batch))
        widths = {len(block) for block in blocks if block is not None}
        check_widths(widths)
        values = np.full((len(rows), max(widths, default=0)), np.nan, dtype=np.float32)
        for k, block in enumerate(blocks):
            if block is not None:
                values[k] = block
        return Features(values, problems)

    def _tensor(
        self, pictures: Pictures, k: int, spoil: Callable[..., Any] | None, seed: int
    ) -> Any:
        from PIL import Image

        picture = pictures.read(k, self.size)
        if spoil is not None:
            state = int(np.random.default_rng(named_seed(seed, pictures.names[k])).integers(2**31))
            picture = spoil(picture[None], [0], random_state=state).X[0]
        tensor = self.preprocess(Image.fromarray(picture))
        if not isinstance(tensor, _torch().Tensor):
            raise ValueError(
                NOT_TENSOR.format(what="What preprocess returns", kind=type(tensor).__name__)
            )
        if tensor.ndim != 3:
            raise ValueError(NOT_A_PICTURE_TENSOR.format(shape=tuple(tensor.shape)))
        return tensor

    def _run(self, tensors: list[Any]) -> np.ndarray:
        """Return one row of features for each tensor; all have one shape."""
        torch = _torch()
        caught: list[Any] = []
        hook = self._taken.register_forward_hook(lambda _, __, output: caught.append(output))
        try:
            with one_thread(), torch.inference_mode():
                batch = torch.stack(tensors).contiguous(memory_format=torch.channels_last)
                weights = next(self.module.parameters(), batch)
                self.module(batch.to(weights.device))
        finally:
            hook.remove()
        if not caught:
            raise ValueError(LAYER_SILENT.format(layer=self.layer))
        output = caught[-1]
        if not isinstance(output, torch.Tensor):
            kind = type(output).__name__
            raise ValueError(NOT_TENSOR.format(what="What the layer computes", kind=kind))
        if len(output) != len(tensors):
            raise ValueError(ROWS_DIFFER.format(found=len(output), expected=len(tensors)))
        features: np.ndarray = output.reshape(len(tensors), -1).to(torch.float32).cpu().numpy()
        return features


@contextmanager
def one_thread() -> Iterator[None]:
    """Keep torch to one thread: on few cores more only get in each other's way."""
    torch = _torch()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def corruption_named(name: str) -> str:
    """Return what the studies call a corruption; our functions' names are known too."""
    plain = name.strip().replace("_", "-")
    plain = {"swap-channels": "rgb-swap"}.get(plain, plain)
    if plain not in CORRUPTIONS:
        known = ", ".join(map(repr, CORRUPTIONS))
        raise ValueError(NO_CORRUPTION.format(name=name, known=known))
    return plain


def _corruption(corruption: str | Callable[..., Any] | None) -> Callable[..., Any] | None:
    if corruption is None or callable(corruption):
        return corruption
    return CORRUPTIONS[corruption_named(corruption)]


def _of_one_shape(ready: dict[int, Any]) -> list[list[int]]:
    """Group tensors that can go through the network together."""
    groups: dict[Any, list[int]] = {}
    for k, tensor in ready.items():
        groups.setdefault(tuple(tensor.shape), []).append(k)
    return list(groups.values())


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise ImportError(not_installed(error)) from error
    return torch
