"""From what a user names to a study: its data, sizes and repeats."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from sourcewise.archives import load_arrays
from sourcewise.experiments.animal_study import AnimalStudy
from sourcewise.experiments.animals import (
    IMAGE_FILES,
    AnimalData,
    attribute_names,
    own_names,
    read_animals,
)
from sourcewise.experiments.grid import Only
from sourcewise.experiments.names import ALL_PRODUCTS, ANIMALS, METHODS, PRODUCTS, PUBLISHED
from sourcewise.experiments.product_studies import BookStudy, EveryProductStudy
from sourcewise.experiments.products import (
    PER_CLASS,
    Product,
    listed_products,
    read_all,
    read_listed,
    with_constant,
)
from sourcewise.experiments.study import Study

STUDIES: dict[str, type[Study]] = {
    PRODUCTS: BookStudy,
    ALL_PRODUCTS: EveryProductStudy,
    ANIMALS: AnimalStudy,
}
GROUP_SIZE = {"awa1": 400}
N_PRODUCTS = 957
# What settings call a folder with attributes, or with groups, that are not the paper's.
OWN = "a folder of its own"

NO_SUCH_DATA = (
    "There is no folder {data}, and no data of that name for {study}; give a folder in the "
    "published format, or one of {names}."
)
NO_GROUPS = "The study {study} has no groups; --groups and --rows are for animals."
NO_SUCH_METHOD = "There is no method {method!r}; choose among {known}."


def make_study(
    study: str,
    data: str,
    *,
    folder: Path | None = None,
    repeats: int | None = None,
    seed: int = 0,
    methods: tuple[str, ...] = tuple(METHODS),
    only: Only | None = None,
    groups: int | None = None,
    group_size: int | None = None,
) -> Study:
    """Read the data and set up a study; files that no wanted run needs are not read.

    ``data`` is a folder in the published format, or the name of stand-in data, which are in
    ``folder``. Of the animals study there are so many ``groups``, the reference among them. All
    numbers are the paper's by default.
    """
    for method in methods:
        if method not in METHODS:
            raise ValueError(NO_SUCH_METHOD.format(method=method, known=", ".join(METHODS)))
    stand_ins = ("awa1" if study == ANIMALS else "fdu-mtl", "synthetic")
    name = data if data in stand_ins else PUBLISHED  # ./awa1 is the folder of that name
    if name == PUBLISHED and not Path(data).is_dir():
        names = ", ".join(stand_ins)
        raise ValueError(NO_SUCH_DATA.format(data=data, study=study, names=names))
    options: dict[str, Any] = {"seed": seed, "methods": methods}
    if repeats is not None:
        options["repeats"] = repeats
    told = name
    if study == ANIMALS:
        options |= _groups(name, groups, group_size)
        if name == PUBLISHED and (groups or group_size or own_names(Path(data))):
            told = OWN
    elif groups is not None or group_size is not None:
        raise ValueError(NO_GROUPS.format(study=study))
    return STUDIES[study](_read(study, name, Path(data), folder, only or Only()), told, **options)


def _groups(name: str, groups: int | None, group_size: int | None) -> dict[str, Any]:
    """Return the sizes that are not the paper's."""
    options: dict[str, Any] = {}
    if group_size is not None or name in GROUP_SIZE:
        options["group_size"] = group_size or GROUP_SIZE[name]
    if groups is not None:
        # Any number of the other groups can be corrupted; --only takes some of the numbers.
        options |= {"n_groups": groups, "corrupted_sources": tuple(range(groups))}
    return options


def _read(study: str, name: str, published: Path, folder: Path | None, only: Only) -> Any:
    if name == "awa1":
        return read_awa1(folder)
    if name == "fdu-mtl":
        return read_fdu_mtl(folder)
    if study == ANIMALS:
        wanted = tuple(kind for kind in IMAGE_FILES if only.takes("corruption", kind))
        return make_animals() if name == "synthetic" else read_animals(published, wanted)
    if name == "synthetic":
        return make_products(N_PRODUCTS - 40 if study == ALL_PRODUCTS else 0)
    return read_listed(published) if study == PRODUCTS else read_all(published)


# -- data in the place of the published ones: other real data, or made on the fly -------------


VARIABLE = "SOURCEWISE_DATA"
PLACES = ("../shared/data", "data")
FILES = {"awa1": "awa1/awa1_hellinger_pca100.npz", "fdu-mtl": "fdu-mtl/lsa100.npz"}
# Domains of FDU-MTL in which something is read, watched or heard: the stand-in for books.
MEDIA = ("MR", "books", "dvd", "imdb", "magazines", "music", "video")

NOT_FOUND = (
    "The data {name} are not there: {file} is in none of the folders {tried}; give the folder with "
    f"--folder, or set {VARIABLE}."
)
NOT_ARCHIVE = "{path} cannot be read as the data {name}: {why}."
MISSING_ARRAY = "{path} has no array {array!r}; it is not the data {name}."


def read_awa1(folder: Path | None = None) -> AnimalData:
    """Animals with Attributes 1: 30,475 images by 100 features, the paper's 85 attributes."""
    arrays = _arrays("awa1", folder, ("X", "y", "attributes"))
    return AnimalData(
        with_constant(arrays["X"]),
        arrays["attributes"][arrays["y"]].astype(np.uint8),
        attribute_names(),
    )


def read_fdu_mtl(folder: Path | None = None) -> list[Product]:
    """Read FDU-MTL reviews: a domain's 2,000 become three products of 600, half of them positive.

    Domains of media stand for books, the others for non-books.
    """
    arrays = _arrays("fdu-mtl", folder, ("X", "y", "domain", "names"))
    products = []
    for code, name in enumerate(arrays["names"].tolist()):
        mine = arrays["domain"] == code
        by_label = [np.flatnonzero(mine & (arrays["y"] == label)) for label in (0, 1)]
        for part in range(min(len(rows) for rows in by_label) // PER_CLASS):
            some = slice(part * PER_CLASS, (part + 1) * PER_CLASS)
            rows = np.sort(np.concatenate([rows[some] for rows in by_label]))
            products.append(
                Product(
                    f"{name}-{part + 1}",
                    "book" if name in MEDIA else "non-book",
                    with_constant(arrays["X"][rows]),
                    arrays["y"][rows].astype(np.intp),
                )
            )
    return products


def make_animals(n_images: int = 37322, n_features: int = 100) -> AnimalData:
    """Made-up features of fifty classes with the paper's shapes; corrupted images lose detail."""
    rng = np.random.default_rng([0, 1])
    names = attribute_names()
    spectrum = np.arange(1, n_features + 1) ** -0.75
    centres = rng.normal(size=(50, n_features)) * spectrum
    traits = rng.uniform(size=(50, len(names))) < rng.uniform(0.1, 0.6, size=len(names))
    animal = rng.integers(50, size=n_images)
    X = centres[animal] + 1.5 * rng.normal(size=(n_images, n_features)) * spectrum
    corrupted = {}
    for k, name in enumerate(IMAGE_FILES):
        mixing = np.eye(n_features) + 0.05 * rng.normal(size=(n_features, n_features))
        noise = rng.normal(size=X.shape) * spectrum
        corrupted[name] = with_constant((0.4 + 0.2 * k) * X @ mixing + 0.5 * noise)
    return AnimalData(with_constant(X), traits[animal].astype(np.uint8), names, corrupted)


def make_products(n_others: int = 0, n_features: int = 25) -> list[Product]:
    """Made-up reviews of the paper's forty products, and of others: books agree with each other."""
    rng = np.random.default_rng([0, 2])
    spectrum = np.arange(1, n_features + 1) ** -0.5
    shared = {kind: rng.normal(size=n_features) for kind in ("book", "non-book")}
    named = [(name, kind) for name, (kind, _) in sorted(listed_products().items())]
    kinds = ("book", "non-book")
    named += [(f"made-up-{k:04d}", kinds[k % 2]) for k in range(n_others)]
    products = []
    for name, kind in named:
        taste = shared[kind] + 0.5 * rng.normal(size=n_features)
        y = np.repeat([0, 1], PER_CLASS)
        sides = np.where(y == 1, 0.35, -0.35)[:, None] * np.sign(taste) * spectrum
        X = sides + rng.normal(size=(len(y), n_features)) * spectrum
        products.append(Product(name, kind, with_constant(X), y))
    return products


def _arrays(name: str, folder: Path | None, wanted: tuple[str, ...]) -> dict[str, Any]:
    path = _find(name, folder)
    try:
        arrays = load_arrays(path, (), optional=wanted)
    except ValueError as error:
        raise ValueError(NOT_ARCHIVE.format(path=path, name=name, why=error)) from error
    for array in wanted:
        if array not in arrays:
            raise ValueError(MISSING_ARRAY.format(path=path, array=array, name=name))
    return arrays


def _find(name: str, folder: Path | None) -> Path:
    """Find the file in the folder given, the one of the environment, or the usual places."""
    usual = [os.environ.get(VARIABLE), *PLACES]
    tried = [folder] if folder is not None else [Path(place) for place in usual if place]
    for place in tried:
        for candidate in (place / FILES[name], place / Path(FILES[name]).name):
            if candidate.is_file():
                return candidate
    raise ValueError(
        NOT_FOUND.format(name=name, file=FILES[name], tried=", ".join(map(str, tried)))
    )
