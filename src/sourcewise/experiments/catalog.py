"""From what a user names to a study: its data, sizes and repeats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sourcewise.experiments.animal_study import AnimalStudy
from sourcewise.experiments.animals import IMAGE_FILES, own_names, read_animals
from sourcewise.experiments.grid import Only
from sourcewise.experiments.names import ALL_PRODUCTS, ANIMALS, METHODS, PRODUCTS, PUBLISHED
from sourcewise.experiments.product_studies import BookStudy, EveryProductStudy
from sourcewise.experiments.products import read_all, read_listed
from sourcewise.experiments.stand_ins import (
    make_animals,
    make_products,
    read_awa1,
    read_fdu_mtl,
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
    groups, group_size : int, optional
        Of the animals study: how many groups there are, the reference among them, and rows of each;
        the paper's by default.
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
