"""Pictures: reading them, and features from a network (extra ``images``: torch, Pillow)."""

from sourcewise.images.efficientnet import efficientnet_lite0
from sourcewise.images.extractor import FeatureExtractor
from sourcewise.images.features import Features
from sourcewise.images.pca import FeaturePCA
from sourcewise.images.pictures import Pictures, open_pictures
from sourcewise.images.reading import PictureError, read_picture

__all__ = [
    "FeatureExtractor",
    "FeaturePCA",
    "Features",
    "PictureError",
    "Pictures",
    "efficientnet_lite0",
    "open_pictures",
    "read_picture",
]
