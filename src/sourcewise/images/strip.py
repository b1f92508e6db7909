"""Small pictures for a page: those on which a source differs most from the reference."""

from __future__ import annotations

import base64
import io
from typing import Any, NamedTuple

import numpy as np

from sourcewise.images.audit_table import PictureTable
from sourcewise.images.reading import PictureError

SIDE, QUALITY, MOST = 72, 80, 8
# Kinds of sources that a card says to have other features; all others are told by their labels.
BY_FEATURES = ("other population", "other units", "columns permuted", "noisy features")


class Thumbnail(NamedTuple):
    """A small picture.

    Attributes
    ----------
    name : str
        Of the picture, in the table.
    label : str
        What the source calls it.
    uri : str
        A data URI: nothing is loaded from anywhere.
    """

    name: str
    label: str
    uri: str


def strips(audit: Any, fitted: Any, training: Any, table: PictureTable) -> dict[str, Any]:
    """Return thumbnails for every source that has a card.

    Where its features differ, the pictures furthest from the trusted ones; where its labels do,
    those whose label the reference's own model finds least likely.
    """
    names = [str(name) for name in training.names]
    features = list(training.preprocessor.get_feature_names_out())
    columns = [features.index(name) for name in table.columns if name in features]
    own = training.X[training.rows(0)]
    alone = fitted.model_.at_trade_off(0.0) if audit.cards else None
    result = {}
    for card in audit.cards:
        if str(card.source) not in names:
            continue
        rows = training.rows(names.index(str(card.source)))
        X, y = training.X[rows], training.y[rows]
        if card.kind in BY_FEATURES:
            unlike = unlikeness(X[:, columns], own[:, columns])
        else:
            unlike = surprise(alone, X, y)
        order = np.argsort(-unlike, kind="stable")
        result[str(card.source)] = _thumbnails(table, X[:, columns], y, order)
    return result


def unlikeness(X: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Mean squared distance from the reference's mean, in its standard deviations."""
    spread = reference.std(axis=0)
    scaled = (X - reference.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return np.asarray((scaled**2).mean(axis=1))


def surprise(model: Any, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """How little a model expects each label: the error for numbers, else 1 - probability."""
    if not hasattr(model, "classes_"):
        return np.asarray(np.abs(model.predict(X) - y))
    place = np.searchsorted(model.classes_, y)
    return np.asarray(1.0 - model.predict_proba(X)[np.arange(len(y)), place])


def _thumbnails(
    table: PictureTable, features: np.ndarray, y: np.ndarray, order: np.ndarray
) -> tuple[Thumbnail, ...]:
    chosen: list[Thumbnail] = []
    for row in order:
        found = table.picture(features[row])
        if found is None:
            continue
        pictures, position = found
        try:
            uri = thumbnail(pictures.read(position, SIDE))
        except PictureError:  # gone since its features were computed
            continue
        chosen.append(Thumbnail(str(pictures.names[position]), str(y[row]), uri))
        if len(chosen) == MOST:
            break
    return tuple(chosen)


def thumbnail(pixels: np.ndarray) -> str:
    """Encode a small picture as a data URI; what a camera wrote beside the pixels is not in it."""
    from PIL import Image

    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "JPEG", quality=QUALITY)
    return "data:image/jpeg;base64," + base64.b64encode(stream.getvalue()).decode()
