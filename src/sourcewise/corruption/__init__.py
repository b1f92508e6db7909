"""Ways in which a source can be bad, for experiments: pure functions of one source's rows."""

from sourcewise.corruption.contract import Corrupted
from sourcewise.corruption.features import (
    duplicate_rows,
    feature_noise,
    feature_scale,
    shuffle_features,
)
from sourcewise.corruption.images import blur, dead_pixels, swap_channels
from sourcewise.corruption.labels import class_confusion, flip_labels, label_bias, shuffle_labels
from sourcewise.corruption.sources import CorruptedSources, corrupt_sources

__all__ = [
    "Corrupted",
    "CorruptedSources",
    "blur",
    "class_confusion",
    "corrupt_sources",
    "dead_pixels",
    "duplicate_rows",
    "feature_noise",
    "feature_scale",
    "flip_labels",
    "label_bias",
    "shuffle_features",
    "shuffle_labels",
    "swap_channels",
]
