"""Model files to pass on: skops inside, checked before anything in them is built.

A model file is a zip archive as skops writes it, plus one member of ours, ``sourcewise.json``, with
the number of the format and the versions that wrote it. Loading reads the file once and then asks,
in this order: is it a zip archive whose members are stored as they are (nothing can expand), is the
format one we know, is building it cheap (``archives.py``), is every type in it one we or the caller
trust. Only then is an object built, and checked whole (``loaded.py``) before it is returned.
"""

from __future__ import annotations

import importlib
import io
import json
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from zipfile import ZIP_STORED, ZipFile

import sklearn
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from sourcewise.archives import check_proportion, only_stores, store_within
from sourcewise.extras import import_extra
from sourcewise.files import destination, write_atomically
from sourcewise.loaded import check_loaded
from sourcewise.state import Portable, is_ours, restored

FORMAT = 2
HEADER = "sourcewise.json"
HEADER_LIMIT = 10_000

# The public classes that a file may name; all else of ours is in it as parts (`state.RECORDS`). A
# name not listed here or by skops is refused.
TRUSTED_TYPES = (
    "sourcewise.baselines.agreement_filter.AgreementFilter",
    "sourcewise.baselines.all_data.AllData",
    "sourcewise.baselines.component_median.ComponentMedian",
    "sourcewise.baselines.fltrust.FLTrust",
    "sourcewise.baselines.geometric_median.GeometricMedian",
    "sourcewise.baselines.mixmin.MixMin",
    "sourcewise.baselines.oracle.Oracle",
    "sourcewise.baselines.pairwise_filter.PairwiseFilter",
    "sourcewise.baselines.probability_median.ProbabilityMedian",
    "sourcewise.baselines.reference_only.ReferenceOnly",
    "sourcewise.baselines.robust_logistic.RobustLogistic",
    "sourcewise.baselines.source_normalized.SourceNormalized",
    "sourcewise.estimators.classifier.SourceWeightedClassifier",
    "sourcewise.estimators.regressor.SourceWeightedRegressor",
    "sourcewise.tables.model.TableModel",
)

SKOPS_MISSING = "Saving and loading models needs skops: {how}."
NOT_AN_ESTIMATOR = (
    "save takes a fitted sourcewise estimator, or a Pipeline with one in it; got {kind}."
)
NOT_FITTED = "This {kind} is not fitted yet, so there is nothing to save; call fit first."
NOT_SAVEABLE = "This {kind} cannot be saved, because skops cannot store a part of it: {error}"
NOT_IMPORTABLE = (
    "This {kind} cannot be saved, because it holds what no other program could import (a lambda, "
    "or something defined inside a function): {names}; define it at the top of a module."
)
IS_FOLDER = "{path} is a folder; give the path of a model file."
NO_FILE = "There is no model file {path}."
NOT_A_MODEL = "{path} is not a model file that sourcewise.save wrote; nothing was loaded from it."
DAMAGED = "{path} is damaged or cut short; copy or save it again."
NEWER_FORMAT = (
    "{path} was written by sourcewise {theirs} in format {format}, and this is sourcewise {ours}, "
    "which reads formats up to {known}; upgrade sourcewise to load it."
)
OLDER_FORMAT = (
    "{path} was written by sourcewise {theirs} in format {format}, which only versions before the "
    "first release read; fit the model and save it again."
)
UNKNOWN_TYPES = (
    "{path} holds types that sourcewise does not trust by itself: {names}; nothing was loaded; if "
    "you trust them and the maker of the file, pass trusted=[{names}]."
)
NOT_INSTALLED = "{path} needs something that is not installed here: {error}."
OTHER_VERSIONS = (
    "{path} was written with {theirs} and cannot be read with {ours}; install the versions that "
    "wrote it."
)
BAD_TRUSTED = "trusted must be a list of types or of their full names; got {value!r}."


def save(model: Any, path: str | os.PathLike[str], *, include_data: bool = False) -> None:
    """Write a fitted model to a file that :func:`load` reads, whole or not at all.

    Model files are passed on, so the training rows that a model keeps for ``add_source`` are left
    out unless ``include_data`` is set. What remains are the parameters, the sources' names, sizes,
    weights and discrepancies, and the learner. A learner that is itself made of training rows (a
    support vector machine, nearest neighbours, a Gaussian process) still holds those.

    Metadata requests (``set_fit_request``) concern fitting only and are not stored.

    Parameters
    ----------
    model : fitted sourcewise estimator, or fitted Pipeline with one in it
        It is left as it is.
    path : path
        ``.skops`` by convention. An existing file is replaced.
    include_data : bool
        Keep the training rows, so that sources can be added after loading.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> import sourcewise as sw
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 3))
    >>> vendor = np.repeat(["gold", "other"], [100, 200])
    >>> model = sw.SourceWeightedClassifier(reference="gold", random_state=0)
    >>> model = model.fit(X, X[:, 0] > 0, sources=vendor)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     sw.save(model, Path(folder, "model.skops"))
    ...     loaded = sw.load(Path(folder, "model.skops"))
    >>> bool((loaded.predict(X) == model.predict(X)).all())
    True
    """
    skops = _skops()
    path = Path(path)
    _check_model(model)
    if path.is_dir():
        raise ValueError(IS_FOLDER.format(path=path))
    destination(path)
    kind = type(model).__name__
    portable = Portable(include_data)(model)
    try:
        buffer = io.BytesIO(store_within(skops.dumps(portable, compression=ZIP_STORED)))
    except Exception as error:  # whatever a foreign object raises when it is taken apart
        raise ValueError(NOT_SAVEABLE.format(kind=kind, error=error)) from error
    lost = [name for name in _foreign_types(buffer.getvalue(), ()) if not _importable(name)]
    if lost:
        raise ValueError(NOT_IMPORTABLE.format(kind=kind, names=_listed(lost)))
    with ZipFile(buffer, "a", compression=ZIP_STORED) as archive:
        archive.writestr(HEADER, json.dumps({"format": FORMAT, **_versions()}))
    write_atomically(path, buffer.getvalue())


def load(path: str | os.PathLike[str], *, trusted: Iterable[str | type] = ()) -> Any:
    """Read a model that :func:`save` wrote, without running code from the file.

    Only types known to be harmless are built: ours (``sourcewise.persistence.TRUSTED_TYPES``) and
    those that skops trusts (numpy, scikit-learn). Others are refused by name. skops leaves
    scikit-learn's trees to you, because a forged tree can crash ``predict``: a forest of your own
    is loaded with ``trusted=["sklearn.tree._tree.Tree"]``.

    Parameters
    ----------
    path : path
    trusted : list of str or type
        Further types that you trust; the error message gives their names.

    Returns
    -------
    model : sourcewise estimator or Pipeline

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import sourcewise as sw
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "model.skops")
    ...     _ = path.write_bytes(b"not a model")
    ...     sw.load(path)
    Traceback (most recent call last):
    ValueError: ...model.skops is not a model file that sourcewise.save wrote; nothing was loaded...
    """
    skops = _skops()
    names = _trusted_names(trusted)
    path = Path(path)
    content = _read(path)
    versions = _check_archive(content, path)
    with _explained(path, versions):
        check_proportion(content)
        unknown = _foreign_types(content, names)
    if unknown:
        raise ValueError(UNKNOWN_TYPES.format(path=path, names=_listed(unknown)))
    with _explained(path, versions):
        model = restored(skops.loads(content, trusted=[*TRUSTED_TYPES, *names]))
        ours = _ours_in(model)
        for part in ours:
            check_loaded(part)
    if not ours:
        raise ValueError(NOT_A_MODEL.format(path=path))
    return model


# -- what is saved ---------------------------------------------------------------------------


def _ours_in(model: Any) -> list[Any]:
    """Return the sourcewise estimators that a model is, or has as steps."""
    if isinstance(model, Pipeline):
        return [ours for _, step in model.steps for ours in _ours_in(step)]
    return [model] if is_ours(model) else []


def _check_model(model: Any) -> None:
    ours = _ours_in(model)
    if not ours:
        kind = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        raise ValueError(NOT_AN_ESTIMATOR.format(kind=kind))
    for part in [model, *ours]:
        try:
            check_is_fitted(part)
        except NotFittedError:
            raise ValueError(NOT_FITTED.format(kind=type(part).__name__)) from None


def _importable(name: str) -> bool:
    module, _, attribute = name.rpartition(".")
    try:
        return hasattr(importlib.import_module(module), attribute)
    except (ImportError, ValueError):
        # "package.module.Class.method": skops reports a bound method by its class.
        return bool(module) and _importable(module)


# -- what is loaded --------------------------------------------------------------------------


@contextmanager
def _explained(path: Path, versions: dict[str, str]) -> Iterator[None]:
    """Turn what a damaged or forged file makes a parser raise, which can be anything, into words.

    The archive's checksums are good by the time skops reads it, so if other versions wrote it that
    is the likelier cause.
    """
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        gone = isinstance(error, AttributeError) and isinstance(error.obj, ModuleType)
        if gone or isinstance(error, ImportError):
            message = NOT_INSTALLED.format(path=path, error=error)
        elif versions != _versions():
            theirs, ours = (_listed_versions(v) for v in (versions, _versions()))
            message = OTHER_VERSIONS.format(path=path, theirs=theirs, ours=ours)
        else:
            message = DAMAGED.format(path=path)
        raise ValueError(message) from error


def _read(path: Path) -> bytes:
    if path.is_dir():
        raise ValueError(IS_FOLDER.format(path=path))
    if path.exists() and not path.is_file():  # a device may have no end
        raise ValueError(NOT_A_MODEL.format(path=path))
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(NO_FILE.format(path=path)) from None


def _check_archive(content: bytes, path: Path) -> dict[str, str]:
    """Versions that wrote the file; refuse what we did not write or a later format.

    skops has not been asked anything yet.
    """
    try:
        archive = ZipFile(io.BytesIO(content))
    except Exception:  # BadZipFile as a rule, others for odd directories
        cut_short = content.startswith(b"PK\x03\x04")
        raise ValueError((DAMAGED if cut_short else NOT_A_MODEL).format(path=path)) from None
    with archive:
        members = archive.infolist()
        header_size = max((m.file_size for m in members if m.filename == HEADER), default=None)
        # save stores members as they are. Whatever expands, or is counted twice, is a zip bomb.
        if header_size is None or not only_stores(archive, len(content)):
            raise ValueError(NOT_A_MODEL.format(path=path))
        header: Any = None
        with _explained(path, _versions()):
            if header_size <= HEADER_LIMIT:
                header = json.loads(archive.read(HEADER))
            intact = archive.testzip() is None
    if not _is_header(header):
        raise ValueError(NOT_A_MODEL.format(path=path))
    if header["format"] < FORMAT:
        theirs, number = header["sourcewise"], header["format"]
        raise ValueError(OLDER_FORMAT.format(path=path, theirs=theirs, format=number))
    if header["format"] > FORMAT:
        theirs, ours, number = header["sourcewise"], _versions()["sourcewise"], header["format"]
        raise ValueError(
            NEWER_FORMAT.format(path=path, theirs=theirs, format=number, ours=ours, known=FORMAT)
        )
    if not intact:
        raise ValueError(DAMAGED.format(path=path))
    return {name: header[name] for name in _versions()}


def _is_header(header: Any) -> bool:
    if not isinstance(header, dict):
        return False
    number = header.get("format")
    # Text from the file becomes part of a sentence on a user's terminal.
    return (
        type(number) is int
        and number >= 1
        and all(
            isinstance(version := header.get(name), str)
            and re.fullmatch(r"[0-9A-Za-z.+!_-]{1,40}", version)
            for name in _versions()
        )
    )


def _foreign_types(content: bytes, trusted: Iterable[str]) -> list[str]:
    """Types in the file that neither skops nor we nor the caller trust; builds and imports none."""
    found = _skops().get_untrusted_types(data=content)
    return sorted(set(found) - set(TRUSTED_TYPES) - set(trusted))


def _trusted_names(trusted: Iterable[str | type]) -> list[str]:
    try:
        items = [trusted] if isinstance(trusted, str | type) else list(trusted)
    except TypeError:
        raise ValueError(BAD_TRUSTED.format(value=trusted)) from None
    for item in items:
        if not isinstance(item, str | type):
            raise ValueError(BAD_TRUSTED.format(value=item))
    return [i if isinstance(i, str) else f"{i.__module__}.{i.__name__}" for i in items]


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names))


def _listed_versions(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _versions() -> dict[str, str]:
    import skops

    from sourcewise import __version__  # the package imports this module before it has a version

    return {
        "sourcewise": __version__,
        "scikit-learn": sklearn.__version__,
        "skops": skops.__version__,
    }


def _skops() -> Any:
    return import_extra("skops.io", "save", SKOPS_MISSING)
