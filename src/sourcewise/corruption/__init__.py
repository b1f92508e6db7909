"""Ways in which a source can be bad, for experiments: pure functions of one source's rows."""

from sourcewise.corruption.contract import Corrupted
from sourcewise.corruption.labels import flip_labels, label_bias, shuffle_labels

__all__ = ["Corrupted", "flip_labels", "label_bias", "shuffle_labels"]
