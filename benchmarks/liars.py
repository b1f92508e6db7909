"""What a site that lies can gain, with and without the checks: error, and the liar's weight.

    python -m benchmarks.liars [--seeds 6] [--first 0] [--names | --split] [--quick]

Ten sites of 150 rows, 10 features, 100 trusted rows, two classes; one site lies (or a hundred
copies of it join). Everything runs in this process, through the same messages as over Flower. The
bar: no single liar among ten raises the error by more than .02 over that of the honest nine. Many
names beside honest sites, tiny ones or of a giant that splits itself, come at the end: names with
no more rows in all than an honest site or two may raise it by no more than .01.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sourcewise import SourceWeightedClassifier
from sourcewise.core.data import SourceData
from sourcewise.engines.flower import FlowerSources, LocalCarrier, Policy, Site, wire
from sourcewise.engines.flower.client import message_in

N_SITES, ROWS, FEATURES, TRUSTED, TEST = 10, 150, 10, 100, 4000
LIAR = "site-0"
BAR = 0.02
SHARED, GRADIENTS = "shared-reference", "gradients"


@dataclass(frozen=True)
class Draw:
    """One draw of everybody's rows."""

    X: np.ndarray
    y: np.ndarray
    names: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    w: np.ndarray

    @classmethod
    def of(cls, seed: int) -> Draw:
        """Draw rows of one distribution for all."""
        rng = np.random.default_rng(seed)
        names = np.repeat(
            ["ours", *(f"site-{k}" for k in range(N_SITES))], [TRUSTED] + [ROWS] * N_SITES
        )
        w = 2.0 * rng.normal(size=FEATURES) / FEATURES**0.5
        n = len(names)
        X, y = draw_rows(rng, w, n + TEST)
        return cls(X[:n], y[:n], names, X[n:], y[n:], w)

    def rows(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Features and labels of one source."""
        mine = self.names == name
        return self.X[mine], self.y[mine]


def draw_rows(rng: np.random.Generator, w: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Draw rows whose labels go by a logistic model."""
    X = rng.normal(size=(n, FEATURES)) * np.linspace(0.5, 1.5, FEATURES)
    return X, (rng.random(n) < 1.0 / (1.0 + np.exp(-X @ w))).astype(int)


class Liar(Site):
    """A site that answers some questions as it likes."""

    lie: Callable[[str, Any, SourceData, int], Any]
    asked: dict[str, int]

    @classmethod
    def telling(cls, name: str, X: Any, y: Any, lie: Any) -> Liar:
        """Make one; ``lie(question, message, data, count)`` returns an answer."""
        site = cls.of_arrays(name, X, y, Policy(least_rows=1))
        object.__setattr__(site, "lie", lie)
        object.__setattr__(site, "asked", {})
        return site  # type: ignore[return-value]

    def _answer(self, question: str, content: Any, data: SourceData) -> dict[str, Any]:
        message = message_in(content, question)
        self.asked[question] = self.asked.get(question, 0) + 1
        answer = self.lie(question, message, data, self.asked[question])
        return wire.pack(answer, question)


def flipped(data: SourceData) -> SourceData:
    """Return the same rows with the other label."""
    return replace(data, y=1 - data.y)


def plain(question: str, message: Any, data: SourceData, count: int) -> Any:
    """Answer honestly."""
    return message.answer(data, [LIAR])


def false_loss(question: str, message: Any, data: SourceData, count: int) -> Any:
    """Look as if the labels were right; they are flipped, and so is all that training gets."""
    return plain(question, message, flipped(data) if question == "look" else data, count)


def many_rows(question: str, message: Any, data: SourceData, count: int) -> Any:
    """Claim a thousand million rows."""
    answer = plain(question, message, data, count)
    if question == "describe":
        return {**answer, "rows": np.array([1e9]), "sizes": np.array([1e9])}
    return answer


def poisoned(question: str, message: Any, data: SourceData, count: int) -> Any:
    """Be honest until the final training: pilots, joint model and second look are true."""
    late = question == "derivatives" and count > 3
    return plain(question, message, flipped(data) if late else data, count)


def poisoned_and_large(question: str, message: Any, data: SourceData, count: int) -> Any:
    """Do both."""
    answer = poisoned(question, message, data, count)
    return many_rows(question, message, data, count) if question == "describe" else answer


def poisoned_selection(question: str, message: Any, data: SourceData, count: int) -> Any:
    """Be honest until the pull has been found."""
    late = question == "derivatives" and count > 2
    return plain(question, message, flipped(data) if late else data, count)


def invented(question: str, message: Any, data: SourceData, count: int) -> Any:
    """Invent gradients of an ordinary size in training, with true curvature."""
    answer = plain(question, message, data, count)
    if question == "derivatives" and count > 3:
        rng = np.random.default_rng(7)
        noise = rng.normal(scale=0.3, size=answer["gradients"].shape)
        noise[:, FEATURES + 1 :] = 0.0
        return {**answer, "gradients": answer["gradients"] + noise}
    return answer


def joined(question: str, message: Any, data: SourceData, count: int) -> Any:
    """Fit joint models to the reference's rows alone, and look as if the labels were right."""
    if question == "look":
        return plain(question, message, flipped(data), count)
    if question != "pull":
        return plain(question, message, data, count)
    X, y = message.sent["X"], message.sent["y"]
    n = len(y)
    shown = SourceData(X, y, np.array([0, n]), -1, np.full(n, 1.0 / n), data.n_classes)
    true = plain(question, message, data, count)
    return {**plain(question, message, shown, count), "sizes": true["sizes"]}


def joined_and_large(question: str, message: Any, data: SourceData, count: int) -> Any:
    """Do so with a thousand million rows."""
    lie = many_rows if question == "describe" else joined
    return lie(question, message, data, count)


def behind_noise(question: str, message: Any, data: SourceData, count: int) -> Any:
    """Poison training, claim many rows, and announce noise that would explain any answer."""
    answer = poisoned_and_large(question, message, data, count)
    if question == "describe":
        return {**answer, "noise": np.array([1e9])}
    return answer


def false_plug_in(question: str, message: Any, data: SourceData, count: int) -> Any:
    """Answer for the right labels wherever the plug-in discrepancy is found; train on flipped."""
    asked = question in ("square-gradients", "losses")
    return plain(question, message, flipped(data) if asked else data, count)


def false_plug_in_and_large(question: str, message: Any, data: SourceData, count: int) -> Any:
    """Do so with a thousand million rows."""
    lie = many_rows if question == "describe" else false_plug_in
    return lie(question, message, data, count)


def slowly(question: str, message: Any, data: SourceData, count: int) -> Any:
    """Poison by as little as no check can see: a tenth of the labels, everywhere."""
    y = data.y.copy()
    chosen = np.random.default_rng(3).permutation(len(y))[: len(y) // 10]
    y[chosen] = 1 - y[chosen]
    return plain(question, message, replace(data, y=y), count)


def slowly_and_large(question: str, message: Any, data: SourceData, count: int) -> Any:
    """Do so with a thousand million rows."""
    lie = many_rows if question == "describe" else slowly
    return lie(question, message, data, count)


@dataclass(frozen=True)
class Attack:
    """What the liar does.

    Attributes
    ----------
    name : str
    lie : callable
    flips : bool
        Whether its rows have flipped labels.
    mirrors : bool
        Whether its rows are the reference's.
    copies : int
        Further sites with the same rows.
    mode : str
    seen : bool
        Whether a check can see it.
    names : int
        Sites with rows of their own; more than one stand beside the honest.
    rows : int
        Of each of several.
    honest : int
        Honest sites.
    """

    name: str
    lie: Any = plain
    flips: bool = False
    mirrors: bool = False
    copies: int = 0
    mode: str = "models-only"
    seen: bool = True
    names: int = 1
    rows: int = ROWS
    honest: int = N_SITES - 1


ATTACKS = [
    Attack("labels flipped, no lie", flips=True),
    Attack("the same, losses of right labels claimed", false_loss, flips=True),
    Attack("10^9 rows claimed, good rows", many_rows),
    Attack("10^9 rows claimed, labels flipped", many_rows, flips=True),
    Attack("copy of the reference, which is shared", mirrors=True, mode=SHARED),
    Attack("labels flipped, joint models of the shared reference", joined, True, mode=SHARED),
    Attack("the same, and 10^9 rows claimed", joined_and_large, True, mode=SHARED),
    Attack("100 copies of a site with flipped labels", flips=True, copies=100),
    Attack("100 copies of a good site", copies=100),
    Attack("honest look, poisoned selection and training", poisoned_selection),
    Attack("honest look, poisoned training", poisoned),
    Attack("the same, and 10^9 rows claimed", poisoned_and_large),
    Attack("gradients invented in training", invented),
    Attack("a tenth of the labels flipped", slowly, seen=False),
    Attack("poisoned training, 10^9 rows, noise announced", behind_noise, seen=False),
    Attack(
        "flipped, claims right labels, `gradients`", false_plug_in, True, mode=GRADIENTS, seen=False
    ),
    Attack(
        "the same, and 10^9 rows claimed", false_plug_in_and_large, True, mode=GRADIENTS, seen=False
    ),
    Attack("7 sites of 6 flipped rows beside three honest", flips=True, names=7, rows=6, honest=3),
    Attack("30 sites of 6 flipped rows beside nine", flips=True, names=30, rows=6),
    Attack("the same, 10^9 rows claimed by each", many_rows, True, names=30, rows=6, seen=False),
    Attack("10^9 rows, a tenth flipped", slowly_and_large, seen=False),
    Attack("the same under ten names", slowly_and_large, names=10, rows=15, seen=False),
    Attack(
        "poisoned training, noise, 10^9 rows, ten names",
        behind_noise,
        False,
        names=10,
        rows=15,
        seen=False,
    ),
]


@dataclass(frozen=True)
class Outcome:
    """The error of one fit; weights of liar and honest; how many of its names were left out."""

    error: float
    weight: float
    honest: float
    left_out: int


def liars(draw: Draw, attack: Attack) -> list[Site]:
    """Make the sites of an attack."""
    rng = np.random.default_rng(0)
    rows = [draw.rows("ours" if attack.mirrors else LIAR)] * (attack.copies + 1)
    if attack.names > 1:
        rows = [draw_rows(rng, draw.w, attack.rows) for _ in range(attack.names)]
    return [
        Liar.telling(f"{LIAR}-{k}" if k else LIAR, X, 1 - y if attack.flips else y, attack.lie)
        for k, (X, y) in enumerate(rows)
    ]


def run(draw: Draw, attack: Attack | None, n_honest: int = N_SITES - 1, **options: Any) -> Outcome:
    """Fit once."""
    honest = [f"site-{k}" for k in range(1, n_honest + 1)]
    sites = [Site.of_arrays(name, *draw.rows(name)) for name in honest]
    if attack is not None:
        sites += liars(draw, attack)
        options["mode"] = attack.mode
    sources = FlowerSources(LocalCarrier(sites), *draw.rows("ours"), **options)
    discrepancy = "plug-in" if options.get("mode") == GRADIENTS else "combined"
    model = SourceWeightedClassifier(
        reference="ours", discrepancy=discrepancy, random_state=0, keep_data=False
    )
    model.fit_sources(sources)
    theirs = [name.startswith(LIAR) for name in model.sources_.tolist()]
    others = [name in honest for name in model.sources_.tolist()]
    return Outcome(
        float(np.mean(model.predict(draw.X_test) != draw.y_test)),
        float(model.source_weights_[theirs].sum()),
        float(model.source_weights_[others].sum()),
        sum(name.startswith(LIAR) for name in sources.facts.left_out),
    )


CHECKS: dict[str, dict[str, Any]] = {
    "none": {"size_cap": None, "guards": False},
    "sizes": {"guards": False},
    "all": {},
}
CLAIM_SIZES = (
    many_rows,
    poisoned_and_large,
    joined_and_large,
    false_plug_in_and_large,
    behind_noise,
    slowly_and_large,
)
HEAD = (
    "| attack by one of ten | error: no check | sizes capped | all checks | rise with all checks "
    "| its weight: no check | sizes capped | all checks | left out |"
)


def table(first: int, seeds: int, attacks: list[Attack]) -> None:
    """Run all attacks; prints a Markdown table."""
    draws = [Draw.of(seed) for seed in range(first, first + seeds)]
    kinds = dict.fromkeys((attack.mode, attack.honest) for attack in attacks)
    bases = {(m, n): [run(draw, None, n, mode=m) for draw in draws] for m, n in kinds}
    for (mode, n), base in bases.items():
        errors = np.array([o.error for o in base])
        error = f"{errors.mean():.3f} (s.e. {_error_of(errors):.3f})"
        weight = np.mean([o.honest for o in base])
        print(f"Error of {n} honest, mode {mode}: {error}; their weight: {weight:.2f}.")
    print()
    print(HEAD)
    print("|" + " --- |" * 9, flush=True)
    for attack in attacks:
        found = {
            name: [run(draw, attack, attack.honest, **options) for draw in draws]
            for name, options in CHECKS.items()
            if name != "sizes" or attack.lie in CLAIM_SIZES
        }
        print(_line(attack, found, bases[attack.mode, attack.honest]), flush=True)


def _line(attack: Attack, found: dict[str, list[Outcome]], base: list[Outcome]) -> str:
    """Return the table's line of one attack."""
    cells = {name: _means(made) for name, made in found.items()}
    same = ("the same", "the same")
    errors, weights = zip(*(cells.get(name, same) for name in CHECKS), strict=True)
    rise = np.array([o.error for o in found["all"]]) - [o.error for o in base]
    over = " **over**" if rise.mean() > BAR else ""
    left_out = np.mean([o.left_out for o in found["all"]])
    name = attack.name + ("" if attack.seen else " (open)")
    all_of = f"{left_out:.3g} of {attack.copies + attack.names}"
    change = f"{rise.mean():+.3f} ± {_error_of(rise):.3f}{over}"
    return "| " + " | ".join([name, *errors, change, *weights, all_of]) + " |"


def _means(made: list[Outcome]) -> tuple[str, str]:
    error, weight = np.mean([(outcome.error, outcome.weight) for outcome in made], axis=0)
    return f"{error:.3f}", f"{weight:.2f}"


def _error_of(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / len(values) ** 0.5)


SPOILED: dict[str, Callable[[np.ndarray, np.random.Generator], np.ndarray]] = {
    "good": lambda y, rng: y,
    "a tenth flipped": lambda y, rng: np.where(rng.random(len(y)) < 0.1, 1 - y, y),
    "shuffled": lambda y, rng: rng.permutation(y),
    "flipped": lambda y, rng: 1 - y,
}
PARTS = (1, 5, 25, ROWS)


def split_table(first: int, seeds: int) -> None:
    """Print weight and error of one source of ten under many names, in memory and strict."""
    print("| its labels | " + " | ".join(f"{n} names" for n in PARTS) + " |")
    print("|" + " --- |" * (1 + len(PARTS)), flush=True)
    for kind, spoil in SPOILED.items():
        found = np.array(
            [[_split(Draw.of(s), spoil, n) for n in PARTS] for s in range(first, first + seeds)]
        )
        cells = [f"{weight:.3f}, {error:.3f}" for weight, error in found.mean(axis=0)]
        print(f"| {kind} | " + " | ".join(cells) + " |", flush=True)


def _split(draw: Draw, spoil: Any, n_names: int) -> tuple[float, float]:
    y, names, mine = draw.y.copy(), draw.names.astype("U20"), draw.names == LIAR
    y[mine] = spoil(y[mine], np.random.default_rng(0))
    names[mine] = [f"{LIAR}-{k % n_names}" for k in range(ROWS)]
    model = SourceWeightedClassifier(reference="ours", strict=True, random_state=0)
    model.fit(draw.X, y, sources=names)
    theirs = np.char.startswith(model.sources_.astype(str), LIAR)
    error = np.mean(model.predict(draw.X_test) != draw.y_test)
    return float(model.source_weights_[theirs].sum()), float(error)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--first", type=int, default=0, help="first draw (0)")
    parser.add_argument("--names", action="store_true", help="only attacks of many names")
    parser.add_argument("--split", action="store_true", help="one source under many names")
    parser.add_argument("--quick", action="store_true", help="two draws, without the many copies")
    given = parser.parse_args()
    if given.split:
        split_table(given.first, given.seeds)
        return
    attacks = [a for a in ATTACKS if not (given.quick and a.copies + a.names > 50)]
    attacks = [a for a in attacks if a.names > 1 or not given.names]
    table(given.first, 2 if given.quick else given.seeds, attacks)


if __name__ == "__main__":
    main()
