"""Sources that keep their rows, behind Flower: what ``fit_sources`` takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from sourcewise.core.choices import STRICT
from sourcewise.core.data import SourceData
from sourcewise.core.engine import OpenSources, TrustedRows
from sourcewise.core.weights import counted_sizes
from sourcewise.engines.flower.carriers import Carrier, GridCarrier
from sourcewise.engines.flower.engine import SHARED_REFERENCE, FlowerEngine
from sourcewise.engines.flower.session import TOO_LATE, Round, Session
from sourcewise.engines.flower.setup import Setup, TableRules
from sourcewise.estimators.row_rules import RowRules

# What the sites are told, and how discrepancies come about by that.
MODES = {
    "models-only": "approximate: the pull is found with each site's loss to second order around "
    "its joint model (exact for regression), all else in the discrepancies is exact",
    SHARED_REFERENCE: "discrepancies are exact",
    "gradients": "plug-in discrepancies are exact, found by gradients",
}
SOME_SHOWN = (
    "approximate: in the pull {rows} rows of the reference stand for all of them, all else in the "
    "discrepancies is exact"
)
CHOSEN = {
    True: "the trade-off is chosen exactly",
    False: "approximate: the trade-off is chosen with each site's loss to second order around the "
    "reference's models (exact for regression)",
}
RULE = "{measured}; {chosen}; the final model is trained exactly"
BAD_MODE = "mode must be one of {known}; got {value!r}."
BAD_NUMBER = "{name} must be {what}; got {value!r}."
BAD_SHOWN = (
    "show_rows goes with mode='shared-reference' and is between 1 and the reference's {rows} rows; "
    "got {value!r} with mode={mode!r}."
)

TIMEOUT = 600.0


@dataclass(frozen=True)
class FederatedFacts:
    """What a federated fit was, for reports.

    Attributes
    ----------
    mode : str
    rule : str
        What is exact and what is not, in words.
    rounds : tuple of Round
    left_out : dict
        Sites that have no part in the result, and why.
    capped : dict
        Sites that count for fewer rows than they say: the rows they claim.

    Examples
    --------
    >>> import numpy as np
    >>> import sourcewise as sw
    >>> from sourcewise.engines.flower import FlowerSources, LocalCarrier, Site
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(130, 3))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> parts = {"north": slice(40, 80), "south": slice(80, 120), "tiny": slice(120, 130)}
    >>> sites = [Site.of_arrays(name, X[rows], y[rows]) for name, rows in parts.items()]
    >>> sources = FlowerSources(LocalCarrier(sites), X[:40], y[:40])
    >>> model = sw.SourceWeightedClassifier(reference="ours", random_state=0)
    >>> model = model.fit_sources(sources)
    >>> facts = sources.facts
    >>> facts.left_out
    {'tiny': 'it has fewer rows than its owner answers for'}
    >>> facts.mode, facts.rounds[0].questions
    ('models-only', ('describe',))
    """

    mode: str
    rule: str
    rounds: tuple[Round, ...]
    left_out: dict[str, str]
    capped: dict[str, float]

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences for a report: what is approximate, who was left out, who was not believed."""
        return (
            f"Sites were asked in the mode {self.mode!r}: {self.rule}.",
            *(f"Left out: {name!r}, because {why}." for name, why in self.left_out.items()),
            *(
                f"{name!r} says that it has {rows:.0f} rows, and counts for fewer: nobody can "
                "check that."
                for name, rows in self.capped.items()
            ),
        )

    @property
    def bytes_down(self) -> int:
        """Bytes sent to all sites together."""
        return sum(r.down for r in self.rounds)

    @property
    def bytes_up(self) -> int:
        """Bytes received from all sites together."""
        return sum(r.up for r in self.rounds)

    @property
    def seconds(self) -> float:
        """Time spent waiting for answers."""
        return sum(r.seconds for r in self.rounds)


class FlowerSources:
    """The reference's rows here, and sites that are asked over Flower.

    Parameters
    ----------
    grid : flwr.serverapp.Grid, or a carrier
        What a Flower server app is given.
    X, y : arrays of shape (n_rows, n_features) and (n_rows,)
        The reference's rows, which stay here except in the mode "shared-reference".
    mode : {"models-only", "shared-reference", "gradients"}
        What the sites are told. *models-only*: models and second moments of the reference. The
        weights are then an approximation. *shared-reference*: the reference's rows; all is exact
        but for the choice of the trade-off. *gradients*: the paper's own protocol for the plug-in
        discrepancy, by gradients at hypotheses; for ``discrepancy="plug-in"`` or
        ``protocol="paper"``.
    exact_selection : bool
        Ask the sites for every gradient of the choice of the trade-off, which takes dozens of
        rounds, or hundreds.
    table : TableRules, optional
        For sites whose rows are tables: how their columns become those of ``X``.
    size_cap : float or None
        No site counts for more rows than so many times the reference's: a number of rows cannot be
        checked. None believes every number.
    guards : bool
        Leave out sites that contradict themselves in training, or are copies of others or of the
        reference.
    least_sites : int
        With fewer usable sites there is no model, but a sentence.
    timeout : float
        Seconds that a site has for an answer.
    show_rows : int, optional
        In the mode "shared-reference" only the first so many rows of ``X`` are shown to the sites,
        and stand for all of them in the joint models. These are judged on all rows.
    on_round : callable, optional
        Told every `Round`, for progress.
    on_expected : callable, optional
        With ``exact_selection``, told about how many rounds it will take before the first of them.

    Examples
    --------
    In a server app::

        @app.main()
        def main(grid, context):
            sources = FlowerSources(grid, X, y)
            model = SourceWeightedClassifier(reference="ours").fit_sources(sources)
            print(model.report(), sources.facts)

    The same with sites in this process, of which the last has shuffled labels:

    >>> import numpy as np
    >>> import sourcewise as sw
    >>> from sourcewise.engines.flower import FlowerSources, LocalCarrier, Site
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 3))
    >>> y = (X[:, 0] > 0).astype(int)
    >>> y[300:] = rng.permutation(y[300:])
    >>> sites = [
    ...     Site.of_arrays(f"site-{k}", X[100 * k : 100 * k + 100], y[100 * k : 100 * k + 100])
    ...     for k in (1, 2, 3)
    ... ]
    >>> sources = FlowerSources(LocalCarrier(sites), X[:100], y[:100])
    >>> model = sw.SourceWeightedClassifier(reference="ours", random_state=0)
    >>> model = model.fit_sources(sources)
    >>> bool(model.source_weights_[3] < 0.01)
    True
    """

    def __init__(
        self,
        grid: Any,
        X: Any,
        y: Any,
        *,
        mode: str = "models-only",
        exact_selection: bool = False,
        table: TableRules | None = None,
        size_cap: float | None = STRICT.size_cap,
        guards: bool = True,
        least_sites: int = 1,
        timeout: float = TIMEOUT,
        show_rows: int | None = None,
        on_round: Callable[[Round], None] | None = None,
        on_expected: Callable[[int], None] | None = None,
    ):
        if mode not in MODES:
            raise ValueError(BAD_MODE.format(known=", ".join(map(repr, MODES)), value=mode))
        for name, value, least in (("least_sites", least_sites, 1), ("timeout", timeout, 0.001)):
            if not value >= least:
                what = f"a number of at least {least}"
                raise ValueError(BAD_NUMBER.format(name=name, what=what, value=value))
        if size_cap is not None and not size_cap >= 1.0:
            raise ValueError(
                BAD_NUMBER.format(name="size_cap", what="None or at least 1", value=size_cap)
            )
        shown = len(y) if show_rows is None else show_rows
        if not 1 <= shown <= len(y) or (show_rows is not None and mode != SHARED_REFERENCE):
            raise ValueError(BAD_SHOWN.format(rows=len(y), value=show_rows, mode=mode))
        carrier: Carrier = grid if hasattr(grid, "exchange") else GridCarrier(grid)
        self.X, self.y, self.table = X, y, table
        self.mode = mode
        self.exact_selection, self.size_cap, self.guards = exact_selection, size_cap, guards
        self.show_rows = show_rows
        self.session = Session(carrier, timeout, least_sites, on_round, on_expected)
        self._engine: FlowerEngine | None = None

    def trusted(self, reference: Any) -> TrustedRows:
        """Return the reference's rows, whatever its name."""
        return TrustedRows(self.X, self.y)

    def open(self, rules: RowRules) -> OpenSources:
        """Tell the sites how rows are read, and find out who they are."""
        probe = self._probe(rules)
        self.session.begin(Setup(rules, self.table), probe, rules.reference)
        self._engine = engine = FlowerEngine(
            self.session,
            probe,
            self.mode,
            self.exact_selection,
            self._sizes(),
            self.guards,
            self.show_rows,
        )
        return OpenSources(engine, engine.names, learner=engine.learner)

    def _probe(self, rules: RowRules) -> SourceData:
        X, y = np.asarray(self.X), np.asarray(self.y)
        return rules(X, y, np.zeros(len(y), dtype=np.intp), [rules.reference])

    def _sizes(self) -> np.ndarray:
        """Rows that sites count for."""
        cap = np.inf if self.size_cap is None else self.size_cap
        return counted_sizes(self._claimed(self.session.names), cap, float(len(self.y)))

    def _claimed(self, names: Sequence[str]) -> np.ndarray:
        return np.array([float(self.session.described[name]["sizes"][0]) for name in names])

    def node_weights(self, model: Any) -> dict[int, float]:
        """Weights of the nodes under a model that was fitted to these sources.

        For :class:`sourcewise.engines.flower.TrustedFedAvg`. The reference's own weight is not
        among them.
        """
        weights = dict(zip(model.sources_.tolist(), model.source_weights_, strict=True))
        return {self.session.node_of[n]: float(weights[n]) for n in self.session.names}

    @property
    def notes(self) -> tuple[str, ...]:
        """What the report of a model that was fitted to these sources has to say of them."""
        return self.facts.notes

    @property
    def facts(self) -> FederatedFacts:
        """What the fit was, so far."""
        session = self.session
        names = session.names
        claimed, counted = self._claimed(names), self._sizes()
        capped = {n: float(c) for n, c, s in zip(names, claimed, counted, strict=True) if c > s}
        measured = MODES[self.mode]
        if self.show_rows is not None:
            measured = SOME_SHOWN.format(rows=self.show_rows)
        return FederatedFacts(
            self.mode,
            RULE.format(measured=measured, chosen=CHOSEN[self.exact_selection]),
            tuple(session.rounds),
            {**session.left_out, **{f"node {node}": TOO_LATE for node in session.late()}},
            capped,
        )
