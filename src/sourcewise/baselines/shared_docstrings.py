"""What the docstrings of several baselines say in the same words, written once."""

from __future__ import annotations

import re
from textwrap import indent
from typing import TypeVar

Class = TypeVar("Class", bound=type)

ENTRIES = {
    # -- parameters ------------------------------------------------------------------------------
    "reference": """\
reference : hashable, default "reference"
    Name of the trusted source.""",
    "cv": """\
cv : int
    Folds of the reference, at least 3; C is chosen on them.""",
    "protocol": """\
protocol : None or "paper"
    None: features centred and scaled by the reference, C from 1e-3 to 1e2 by log-loss.
    "paper": features as given with a penalised constant, C from 1e-4 to 1e4 by error rate.""",
    "random_state": """\
random_state : int, RandomState or None
    Splits rows into folds.""",
    "local_C": """\
C : float or "cv"
    Inverse regularisation of the local models; "cv" takes the best for the reference alone.""",
    # Where nothing is cross-validated.
    "fixed_C": """\
C : float
    Inverse regularisation of the local models; 100 in the authors' experiments.""",
    "unused_cv": """\
cv : int
    Folds of the reference, at least 3; not used, but every baseline takes it.""",
    "protocol_of_features": """\
protocol : None or "paper"
    None: features centred and scaled by the reference. "paper": features as given with a
    penalised constant.""",
    "unused_random_state": """\
random_state : int, RandomState or None
    Not used, but every baseline takes it.""",
    # -- attributes ------------------------------------------------------------------------------
    "classes_": """\
classes_ : array of shape (n_classes,)
    The reference's labels.""",
    "sources_": """\
sources_ : array of shape (n_sources,)
    Names, in order of first appearance.""",
    "coef_": """\
coef_, intercept_
    In the units of ``X``.""",
    "C_": """\
C_ : float
    The regularisation chosen.""",
    # -- the method ------------------------------------------------------------------------------
    "local_models": """\
The local models are logistic regressions on one source each, with one fixed C (the authors'
choice); the reference's own is one of them, and a source that shows one class only has the
constant model of log-odds 1 for that class, whatever the features.""",
}


def with_shared_entries(cls: Class) -> Class:
    """Replace each line ``%(name)s`` in the docstring of a class by the entry of that name.

    Examples
    --------
    >>> @with_shared_entries
    ... class Method:
    ...     '''A method.
    ...
    ...     Attributes
    ...     ----------
    ...     %(C_)s
    ...     '''
    >>> help(Method)
    Help on class Method ...
     |  Attributes
     |  ----------
     |  C_ : float
     |      The regularisation chosen.
     ...
    """

    def entry(line: re.Match[str]) -> str:
        return indent(ENTRIES[line["name"]], line["margin"])

    if cls.__doc__ is not None:  # python -OO drops docstrings
        cls.__doc__ = re.sub(r"^(?P<margin> *)%\((?P<name>\w+)\)s$", entry, cls.__doc__, flags=re.M)
    return cls
