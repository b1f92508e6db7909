"""What a data owner allows, in a file of the owner's own that no server can change."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from sourcewise.engines.flower.questions import QUESTIONS

BAD_FILE = "{path} is not a site file: {why}."
NO_SITE_FILE = "There is no site file {path}; `sourcewise federated init` writes one to begin with."
UNKNOWN_ENTRY = "{path} has the entry {name!r}, which means nothing; there are {known}."
WRONG_ENTRY = "{path}: {name!r} must be {what}; it is {value!r}."
UNKNOWN_QUESTION = "{path} allows the question {name!r}, which does not exist; there are {known}."

LEAST_ROWS = 20
REPEATS = 20
MOST_RULES = 5
LEAST_GROUP = 5
MOST_BYTES = 256_000_000  # of one question
LEDGER = ".jsonl"  # ending of a ledger that the site file does not name


@dataclass(frozen=True)
class Policy:
    """What is answered, and how.

    Attributes
    ----------
    questions : tuple of str
        Names of the questions that are answered; all others are refused.
    least_rows : int
        Nothing is answered from fewer rows.
    clip : float
        Largest Euclidean norm of any array that is returned; 0 for none.
    noise : float
        Standard deviation of Gaussian noise that is added to every number returned, drawn anew for
        every question; 0 for none. Counts of rows are told as they are.
    log : path, optional
        The ledger: a line of JSON for each question, with what became of it.
    most_bytes : int
        Larger questions are not looked at.
    repeats : int
        How often the same question is answered once more in other runs. In the same run it gets
        the answer that it has got before.
    most_questions : int
        How often rows are ever looked at, for all questions in all runs; 0 for no limit.
    most_rules : int
        In how many ways rows are ever read: by which columns, categories, classes and scales.
    least_group : int
        What fewer rows than these have, and no others, is not seen in any column; a site file
        asks for 5 unless it says otherwise.

    Examples
    --------
    >>> from sourcewise.engines.flower import Policy
    >>> careful = Policy(questions=("describe", "look"), least_rows=50, noise=0.01)
    >>> "pull" in careful.questions
    False
    """

    questions: tuple[str, ...] = tuple(QUESTIONS)
    least_rows: int = LEAST_ROWS
    clip: float = 0.0
    noise: float = 0.0
    log: Path | None = None
    most_bytes: int = MOST_BYTES
    repeats: int = REPEATS
    most_questions: int = 0
    most_rules: int = MOST_RULES
    least_group: int = 0


@dataclass(frozen=True)
class SiteFile:
    """Who a site is, where its table is, and what is allowed.

    Attributes
    ----------
    name : str
    data : path
        CSV or Parquet.
    columns : dict
        Names of the site's columns where they differ: from the server's name to the site's.
    policy : Policy
    features : tuple of str, optional
        The only columns, by the server's names, that a server may name as features.
    label : str, optional
        The only one that it may name as the label.

    Examples
    --------
    >>> from pathlib import Path
    >>> from sourcewise.engines.flower import Site, SiteFile
    >>> file = SiteFile("north", Path("north.csv"), columns={"age": "age_at_admission"})
    >>> Site.of_file(file).name
    'north'
    """

    name: str
    data: Path
    columns: Mapping[str, str] = field(default_factory=dict)
    policy: Policy = Policy()
    features: tuple[str, ...] | None = None
    label: str | None = None


_TOP = {
    "name": str,
    "data": str,
    "columns": dict,
    "policy": dict,
    "features": list,
    "label": str,
}
_POLICY = {
    "questions": list,
    "least_rows": int,
    "clip": float,
    "noise": float,
    "log": str,
    "most_bytes": int,
    "repeats": int,
    "most_questions": int,
    "most_rules": int,
    "least_group": int,
}
_WHAT = {str: "a text", dict: "a table", list: "a list of texts", int: "a whole number"}


def read_site_file(path: Path) -> SiteFile:
    r"""Read and check a site's file; paths in it are relative to it.

    Parameters
    ----------
    path : Path
        Of a file in TOML, as ``sourcewise federated init`` writes it.

    Returns
    -------
    SiteFile

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from sourcewise.engines.flower import read_site_file
    >>> text = "name = 'north'\ndata = 'rows.csv'\n[policy]\nleast_rows = 50\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder, "site.toml")
    ...     size = path.write_text(text, encoding="utf-8")
    ...     file = read_site_file(path)
    >>> file.name, file.data.name, file.policy.least_rows
    ('north', 'rows.csv', 50)
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(NO_SITE_FILE.format(path=path)) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(BAD_FILE.format(path=path, why=str(error).rstrip("."))) from error
    _check_entries(path, content, _TOP)
    for name in ("name", "data"):
        if not content.get(name):
            raise ValueError(BAD_FILE.format(path=path, why=f"it has no {name!r}"))
    policy = content.get("policy", {})
    _check_entries(path, policy, _POLICY)
    for name in policy.get("questions", []):
        if name not in QUESTIONS:
            known = ", ".join(QUESTIONS)
            raise ValueError(UNKNOWN_QUESTION.format(path=path, name=name, known=known))
    here = path.parent
    given = {name: value for name, value in policy.items() if name not in ("log", "questions")}
    given.setdefault("least_group", LEAST_GROUP)
    allowed = replace(
        Policy(**given),
        questions=tuple(policy.get("questions", QUESTIONS)),
        log=here / policy["log"] if "log" in policy else path.with_suffix(LEDGER),
    )
    columns = {str(name): str(value) for name, value in content.get("columns", {}).items()}
    features = content.get("features")
    return SiteFile(
        content["name"],
        here / content["data"],
        columns,
        allowed,
        None if features is None else tuple(map(str, features)),
        content.get("label"),
    )


def _check_entries(path: Path, found: Mapping[str, Any], known: Mapping[str, type]) -> None:
    for name, value in found.items():
        if name not in known:
            raise ValueError(UNKNOWN_ENTRY.format(path=path, name=name, known=", ".join(known)))
        wanted = known[name]
        fits = isinstance(value, wanted) and not isinstance(value, bool)
        if wanted is float:
            fits = isinstance(value, int | float) and not isinstance(value, bool)
        if wanted in (int, float) and fits:
            fits = 0 <= value < float("inf")
        if not fits:
            what = _WHAT.get(wanted, "a number")
            what += ", not negative" if wanted in (int, float) else ""
            raise ValueError(WRONG_ENTRY.format(path=path, name=name, what=what, value=value))


def protect(arrays: Mapping[str, np.ndarray], policy: Policy) -> dict[str, np.ndarray]:
    """Clip arrays and add noise, as the policy says; whole numbers, which count, are left alone."""
    rng = np.random.default_rng()  # from the system: nobody may know it
    found = {}
    for name, value in arrays.items():
        if value.dtype.kind == "f":
            norm = float(np.linalg.norm(value))
            if policy.clip and norm > policy.clip:
                value = value * (policy.clip / norm)
            if policy.noise:
                value = value + rng.normal(scale=policy.noise, size=value.shape)
        found[name] = value
    return found
