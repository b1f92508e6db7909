"""What a site that lies can gain, with and without the checks: error, and the liar's weight.

    python -m benchmarks.liars [--seeds 6] [--quick]

Ten sites of 150 rows, 10 features, 100 trusted rows, two classes; one site lies (or a hundred
copies of it join). Everything runs in this process, through the same messages as over Flower. The
bar: no single liar among ten raises the error by more than .02 over that of the honest nine.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sourcewise import SourceWeightedClassifier
from sourcewise.core.data import SourceData
from sourcewise.core.quadratic_sources import Derivatives
from sourcewise.engines.flower import FlowerSources, LocalCarrier, Site, wire
from sourcewise.engines.flower.questions import Description, name_of

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

    @classmethod
    def of(cls, seed: int) -> Draw:
        """Draw rows of one distribution for all."""
        rng = np.random.default_rng(seed)
        names = np.repeat(
            ["ours", *(f"site-{k}" for k in range(N_SITES))], [TRUSTED] + [ROWS] * N_SITES
        )
        w = 2.0 * rng.normal(size=FEATURES) / FEATURES**0.5
        X = rng.normal(size=(len(names) + TEST, FEATURES)) * np.linspace(0.5, 1.5, FEATURES)
        y = (rng.random(len(X)) < 1.0 / (1.0 + np.exp(-X @ w))).astype(int)
        n = len(names)
        return cls(X[:n], y[:n], names, X[n:], y[n:])

    def rows(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Features and labels of one source."""
        mine = self.names == name
        return self.X[mine], self.y[mine]


class Liar(Site):
    """A site that answers some questions as it likes."""

    lie: Callable[[str, Any, SourceData, int], Any]
    asked: dict[str, int]

    @classmethod
    def telling(cls, name: str, X: Any, y: Any, lie: Any) -> Liar:
        """Make one; ``lie(question, message, data, count)`` returns an answer."""
        site = cls.of_arrays(name, X, y)
        object.__setattr__(site, "lie", lie)
        object.__setattr__(site, "asked", {})
        return site  # type: ignore[return-value]

    def _answer(self, question: str, content: Any, data: SourceData) -> dict[str, Any]:
        from sourcewise.engines.flower.questions import TRAVELLERS

        message = wire.unpack(content, question, TRAVELLERS)
        self.asked[question] = self.asked.get(question, 0) + 1
        answer = self.lie(question, message, data, self.asked[question])
        return wire.pack(answer, name_of(message))


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
    if isinstance(answer, Description):
        return replace(answer, rows=np.array([1e9]), sizes=np.array([1e9]))
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
    if isinstance(answer, Derivatives) and count > 3:
        rng = np.random.default_rng(7)
        noise = rng.normal(scale=0.3, size=answer.gradients.shape)
        noise[:, :, FEATURES + 1 :] = 0.0
        return replace(answer, gradients=answer.gradients + noise)
    return answer


def joined(question: str, message: Any, data: SourceData, count: int) -> Any:
    """Fit joint models to the reference's rows alone, and look as if the labels were right."""
    if question == "look":
        return plain(question, message, flipped(data), count)
    if question != "pull":
        return plain(question, message, data, count)
    n = len(message.shared.y)
    shares = np.full(n, 1.0 / n)
    shown = SourceData(
        message.shared.X, message.shared.y, np.array([0, n]), -1, shares, data.n_classes
    )
    true = plain(question, message, data, count)
    return replace(plain(question, message, shown, count), sizes=true.sizes)


def joined_and_large(question: str, message: Any, data: SourceData, count: int) -> Any:
    """Do so with a thousand million rows."""
    lie = many_rows if question == "describe" else joined
    return lie(question, message, data, count)


def behind_noise(question: str, message: Any, data: SourceData, count: int) -> Any:
    """Poison training, claim many rows, and announce noise that would explain any answer."""
    answer = poisoned_and_large(question, message, data, count)
    if isinstance(answer, Description):
        return replace(answer, noise=np.array([1e9]))
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
    """

    name: str
    lie: Any = plain
    flips: bool = False
    mirrors: bool = False
    copies: int = 0
    mode: str = "models-only"
    seen: bool = True


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
]


@dataclass(frozen=True)
class Outcome:
    """The error of one fit; the liar's weight, and how many of it and its copies were left out."""

    error: float
    weight: float
    left_out: int


def run(draw: Draw, attack: Attack | None, **options: Any) -> Outcome:
    """Fit once."""
    honest = [f"site-{k}" for k in range(1, N_SITES)]
    sites = [Site.of_arrays(name, *draw.rows(name)) for name in honest]
    if attack is not None:
        X, y = draw.rows("ours" if attack.mirrors else LIAR)
        y = 1 - y if attack.flips else y
        names = [LIAR, *(f"{LIAR}-copy-{k}" for k in range(attack.copies))]
        sites += [Liar.telling(name, X, y, attack.lie) for name in names]
        options["mode"] = attack.mode
    sources = FlowerSources(LocalCarrier(sites), *draw.rows("ours"), **options)
    discrepancy = "plug-in" if options.get("mode") == GRADIENTS else "combined"
    model = SourceWeightedClassifier(
        reference="ours", discrepancy=discrepancy, random_state=0, keep_data=False
    )
    model.fit_sources(sources)
    theirs = [name.startswith(LIAR) for name in model.sources_.tolist()]
    return Outcome(
        float(np.mean(model.predict(draw.X_test) != draw.y_test)),
        float(model.source_weights_[theirs].sum()),
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
)
HEAD = (
    "| attack by one of ten | error: no check | sizes capped | all checks | rise with all checks "
    "| its weight: no check | sizes capped | all checks | left out |"
)


def table(seeds: int, attacks: list[Attack]) -> None:
    """Run all attacks; prints a Markdown table."""
    draws = [Draw.of(seed) for seed in range(seeds)]
    modes = dict.fromkeys(["models-only", *(attack.mode for attack in attacks)])
    bases = {m: np.array([run(draw, None, mode=m).error for draw in draws]) for m in modes}
    for mode, base in bases.items():
        error = f"{base.mean():.3f} (s.e. {_error_of(base):.3f})"
        print(f"Error of the honest nine, mode {mode}: {error}.")
    print()
    print(HEAD)
    print("|" + " --- |" * 9, flush=True)
    for attack in attacks:
        found = {
            name: [run(draw, attack, **options) for draw in draws]
            for name, options in CHECKS.items()
            if name != "sizes" or attack.lie in CLAIM_SIZES
        }
        print(_line(attack, found, bases[attack.mode]), flush=True)


def _line(attack: Attack, found: dict[str, list[Outcome]], base: np.ndarray) -> str:
    """Return the table's line of one attack."""
    cells = {name: _means(made) for name, made in found.items()}
    same = ("the same", "the same")
    errors, weights = zip(*(cells.get(name, same) for name in CHECKS), strict=True)
    rise = np.array([o.error for o in found["all"]]) - base
    over = " **over**" if rise.mean() > BAR else ""
    left_out = np.mean([o.left_out for o in found["all"]])
    name = attack.name + ("" if attack.seen else " (open)")
    all_of = f"{left_out:.3g} of {attack.copies + 1}"
    change = f"{rise.mean():+.3f} ± {_error_of(rise):.3f}{over}"
    return "| " + " | ".join([name, *errors, change, *weights, all_of]) + " |"


def _means(made: list[Outcome]) -> tuple[str, str]:
    error, weight = np.mean([(outcome.error, outcome.weight) for outcome in made], axis=0)
    return f"{error:.3f}", f"{weight:.2f}"


def _error_of(values: np.ndarray) -> float:
    return float(values.std(ddof=1) / len(values) ** 0.5)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--quick", action="store_true", help="two draws, without the many copies")
    given = parser.parse_args()
    attacks = [a for a in ATTACKS if not (given.quick and a.copies)]
    table(2 if given.quick else given.seeds, attacks)


if __name__ == "__main__":
    main()
