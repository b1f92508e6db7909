"""From what a user names to a study: its data, sizes and repeats."""

from __future__ import annotations

from pathlib import Path

from sourcewise.experiments.animal_study import AnimalStudy
from sourcewise.experiments.animals import IMAGE_FILES, read_animals
from sourcewise.experiments.grid import Only
from sourcewise.experiments.names import METHODS, PUBLISHED
from sourcewise.experiments.product_studies import BookStudy, EveryProductStudy
from sourcewise.experiments.products import read_all, read_listed
from sourcewise.experiments.stand_ins import (
    make_animals,
    make_products,
    read_awa1,
    read_fdu_mtl,
)
from sourcewise.experiments.study import Study

STUDIES = ("products", "all-products", "animals")
REPEATS = {"products": 1000, "all-products": 1, "animals": 100}
STAND_INS = {
    "products": ("fdu-mtl", "synthetic"),
    "all-products": ("fdu-mtl", "synthetic"),
    "animals": ("awa1", "synthetic"),
}
GROUP_SIZE = {"awa1": 400}
N_PRODUCTS = 957

NO_SUCH_DATA = (
    "There is no folder {data}, and no data of that name for {study}; give a folder in the "
    "published format, or one of {names}."
)
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
) -> Study:
    """Read the data and set up a study.

    Parameters
    ----------
    study : str
        One of `STUDIES`.
    data : str
        A folder in the published format, or the name of stand-in data.
    folder : Path, optional
        Where stand-in data are.
    repeats : int, optional
        The paper's number by default.
    seed : int
    methods : tuple of str
    only : Only, optional
        Files that no wanted run needs are not read.
    """
    check_methods(methods)
    stand_in = data in STAND_INS[study]  # ./awa1 is the folder of that name
    if not stand_in and not Path(data).is_dir():
        raise ValueError(
            NO_SUCH_DATA.format(data=data, study=study, names=", ".join(STAND_INS[study]))
        )
    repeats = REPEATS[study] if repeats is None else repeats
    name = data if stand_in else PUBLISHED
    options = {"repeats": repeats, "seed": seed, "methods": methods}
    if study == "animals":
        wanted = tuple(
            kind for kind in IMAGE_FILES if only is None or only.takes("corruption", kind)
        )
        if name == "awa1":
            animals = read_awa1(folder)
        elif name == "synthetic":
            animals = make_animals()
        else:
            animals = read_animals(Path(data), wanted)
        return AnimalStudy(animals, name, group_size=GROUP_SIZE.get(name, 500), **options)
    if name == "fdu-mtl":
        products = read_fdu_mtl(folder)
    elif name == "synthetic":
        products = make_products(N_PRODUCTS - 40 if study == "all-products" else 0)
    elif study == "products":
        products = read_listed(Path(data))
    else:
        products = read_all(Path(data))
    if study == "products":
        return BookStudy(products, name, **options)
    return EveryProductStudy(products, name, **options)


def check_methods(methods: tuple[str, ...]) -> None:
    """Refuse names that no method has."""
    for method in methods:
        if method not in METHODS:
            raise ValueError(NO_SUCH_METHOD.format(method=method, known=", ".join(METHODS)))
