"""The engine of sites that keep their rows: each of the method's questions becomes messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from sourcewise.core.by_rounds import MOST_ROUNDS, RoundsFamily
from sourcewise.core.data import FloatArray, IntArray, ReferenceRows, SourceData
from sourcewise.core.discrepancy.combined import answer_look
from sourcewise.core.discrepancy.moments import Moments
from sourcewise.core.discrepancy.permutation import answer_permuted
from sourcewise.core.discrepancy.plug_in import answer_plug_in
from sourcewise.core.discrepancy.plug_in_queries import find_by_gradients
from sourcewise.core.discrepancy.pull import (
    answer_pull,
    pull_question,
    quadratic_joint_models,
)
from sourcewise.core.discrepancy.reference_models import ReferenceModels
from sourcewise.core.engine import Arrays, Message, Question
from sourcewise.core.family import LinearFamily
from sourcewise.core.quadratic_sources import (
    Derivatives,
    QuadraticSources,
    QuadraticSums,
    rows_of_moments,
)
from sourcewise.core.row_space import RowSpace
from sourcewise.core.source_weights import SourceWeights
from sourcewise.core.sparse_rows import SparseRows
from sourcewise.engines.flower.copies import copies, copies_by_moments
from sourcewise.engines.flower.guards import (
    JOINED,
    MISJOINED,
    contradictions,
    false_losses,
    misjoined,
    other_answers,
)
from sourcewise.engines.flower.questions import (
    answer_gradients,
    answer_losses,
    answer_moments,
    answer_square_gradients,
    ask_derivatives,
    derivatives_in,
    moments_in,
    name_of,
)
from sourcewise.engines.flower.session import Session

SHARED_REFERENCE = "shared-reference"  # the mode in which sites get the reference's rows
NOT_IN_MODE = "In the mode {mode!r} sites are not asked for the {what} discrepancy; pass {instead}."
NO_SPARSE = (
    "Sites that keep their rows take arrays, not sparse matrices; pass fewer, dense columns."
)
TOO_WIDE = (
    "{outputs} outputs times {features} features are too many for curvatures to travel "
    "({entries} numbers a model, at most {most}); leave columns out, or use fewer classes."
)
FEW_SHOWN = (
    "{rows} rows of the reference are too few to be shown: some of its folds have none of them."
)
Answers = Iterator[tuple[IntArray, Arrays]]

NO_MOMENTS = "Moments are asked for all at once."
NOISY_ROUNDS = 2
MOST_CURVATURE = 4_000_000  # entries of one matrix of curvature


class FlowerEngine:
    """Answers of sites, as the method asks for them.

    ``probe`` is the reference's rows, of which ``show_rows`` may be shown in the mode
    "shared-reference", or all; ``sizes`` are the rows that each site counts for.
    """

    def __init__(
        self,
        session: Session,
        probe: SourceData,
        mode: str,
        exact_selection: bool,
        sizes: FloatArray,
        guards: bool,
        show_rows: int | None = None,
    ):
        if isinstance(probe.X, SparseRows):
            raise ValueError(NO_SPARSE)
        self.session, self.mode, self.exact_selection = session, mode, exact_selection
        self.shares_rows = mode == SHARED_REFERENCE
        self.names = session.names
        self.sizes = sizes
        self.row_counts = np.maximum(np.round(sizes), 1).astype(np.intp)
        self.n_classes = probe.n_classes
        self.guards, self.show_rows = guards, show_rows
        self.noise = np.array([float(session.described[n]["noise"][0]) for n in self.names])
        self._probe = probe
        self._family: LinearFamily | None = None
        self._judged: QuadraticSources | None = None
        self._pilots: QuadraticSources | None = None
        self._pilot_messages: dict[int, Message] = {}

    def learner(self, family: LinearFamily) -> RoundsFamily:
        """Return the learner that asks in few rounds."""
        self._family = family
        return RoundsFamily(family, self)

    # -- what every engine answers -----------------------------------------------------------

    def ask(self, question: Question, sources: Sequence[int] | None = None) -> Answers:
        """Ask some sites (by default all); yields positions and findings."""
        asked = list(range(len(self.names))) if sources is None else list(sources)
        function = question.message.answered_by
        special = {
            answer_look: self._look,
            answer_pull: self._pulls,
            answer_plug_in: self._separate,
            answer_permuted: self._untested,
        }
        yield from special.get(function, self._plainly)(question, asked)

    def weighted(self, weights: SourceWeights) -> FlowerSums:
        """Get ready for sums that sites are asked for one by one."""
        return FlowerSums(self, weights)

    def spread(self, directions: FloatArray) -> FloatArray:
        """Directions are the reference's own: what sites add to them is not worth a round."""
        return np.zeros_like(directions)

    def in_row_space(self, reference: FloatArray) -> tuple[Any, RowSpace] | None:
        """Rows stay as they are."""
        return None

    # -- questions ---------------------------------------------------------------------------

    def _send(self, messages: Sequence[Message], asked: Sequence[int]) -> list[list[Arrays]]:
        """Send the same messages to some sites; answers in the order of sites."""
        names = [self.names[i] for i in asked]
        found = self.session.ask(dict.fromkeys(names, messages))
        return [found[name] for name in names]

    def _plainly(self, question: Question, asked: list[int]) -> Answers:
        """Ask as it is; where the reference's rows are beside each site's, they would travel."""
        if question.message.rows_beside and not self.shares_rows:
            what, instead = name_of(question.message), "mode='shared-reference'"
            raise ValueError(NOT_IN_MODE.format(mode=self.mode, what=what, instead=instead))
        for i, (answer,) in zip(asked, self._send([question.message], asked), strict=True):
            yield np.array([i]), question.judge(self._as_counted(answer, i))

    def _untested(self, question: Question, asked: list[int]) -> Answers:
        """Answer that nothing is known: rows of both sides would have to meet."""
        yield np.array(asked), {"p_values": np.full(len(asked), np.nan)}

    def _look(self, question: Question, asked: list[int]) -> Answers:
        """Ask for the look, and in the same round for all that will be wanted next."""
        if self.mode == "gradients":
            instead = "discrepancy='plug-in', or mode='models-only'"
            raise ValueError(NOT_IN_MODE.format(mode=self.mode, what="combined", instead=instead))
        reference: ReferenceModels = question.known["reference"]
        message = question.message
        if not self.shares_rows or self.show_rows is not None:
            message = replace(message, sent=_without_rows(message.sent))
        messages = [message, self._pilot_message(reference.rows, _learner(reference))]
        if self.shares_rows and self.n_classes:
            messages.append(self._shown(pull_question(reference).message))
        for i, (answer, *_) in zip(asked, self._send(messages, asked), strict=True):
            # All rows of a site count alike, so that their number says how concentrated they are.
            used = np.minimum(self._claimed(i), message.sent["most_rows"])
            counted = self._as_counted({**answer, "concentration": 1.0 / used}, i)
            yield np.array([i]), question.judge(counted)

    def _pulls(self, question: Question, asked: list[int]) -> Answers:
        reference: ReferenceModels = question.known["reference"]
        pilots = self.pilots(reference.rows, _learner(reference))
        if self.shares_rows and not pilots.exact:
            yield from self._claimed_pulls(question, pilots, asked)
            return
        k = int(np.argmin(np.abs(np.log(_learner(reference).settings / reference.setting))))
        penalty = _learner(reference)._penalty(pilots.points.shape[2])
        first = quadratic_joint_models(reference, pilots.near(k), penalty)
        if pilots.exact:
            yield np.arange(len(self.names)), question.judge(first)
            return
        # Once more, around each site's own joint model: that is where it matters.
        own = np.moveaxis(first["joint_models"].mean(axis=0), -1, 0)
        found = self.session.ask(
            {name: [ask_derivatives(own[[i]])] for i, name in enumerate(self.names)}
        )
        for i, name in enumerate(self.names):
            around = QuadraticSources(
                own[[i]],
                derivatives_in(found[name]),
                self.sizes[[i]],
                self.row_counts[[i]],
                self.n_classes,
            )
            answer = quadratic_joint_models(reference, around, penalty)
            yield np.array([i]), question.judge(answer)

    def _claimed_pulls(
        self, question: Question, pilots: QuadraticSources, asked: list[int]
    ) -> Answers:
        """Judge joint models that sites have found, if they go with their derivatives."""
        reference: ReferenceModels = question.known["reference"]
        message = self._shown(question.message)
        most = message.sent["size"]
        answers = [answer for (answer,) in self._send([message], asked)]
        if self.guards:
            weights, wrong = self._shown_weights(question.message), {}
            penalty = _learner(reference)._penalty(pilots.points.shape[2])
            for i, answer in zip(asked, answers, strict=True):
                size = min(float(self._claimed(i)[0]), most)
                noise = float(self.noise[i])
                models = answer["joint_models"][..., 0]
                off = misjoined(models, pilots.some([i]), reference, weights, size, penalty, noise)
                if off > JOINED:
                    wrong[self.names[i]] = MISJOINED.format(ratio=off)
            self.session.leave_out(wrong)
        for i, answer in zip(asked, answers, strict=True):
            sizes = np.minimum(self.sizes[[i]], most)
            yield np.array([i]), question.judge({**answer, "sizes": sizes})

    def _shown(self, message: Message) -> Message:
        """Return the message with the rows of the reference that may be shown."""
        if self.show_rows is None:
            return message
        shown = slice(0, self.show_rows)
        weights = self._shown_weights(message)[shown]
        some = {"X": message.sent["X"][shown], "y": message.sent["y"][shown], "weights": weights}
        return replace(message, sent={**message.sent, **some})

    def _shown_weights(self, message: Message) -> FloatArray:
        """Weights of the reference's rows in joint models; those shown stand for the others."""
        weights: FloatArray = message.sent["weights"]
        if self.show_rows is None:
            return weights
        kept = weights.copy()
        kept[self.show_rows :] = 0.0
        if not kept.any(axis=0).all():
            raise ValueError(FEW_SHOWN.format(rows=self.show_rows))
        return np.asarray(kept * (weights.sum(axis=0) / kept.sum(axis=0)))

    def _claimed(self, site: int) -> FloatArray:
        """Rows that a site says it has."""
        sizes: FloatArray = self.session.described[self.names[site]]["sizes"]
        return sizes

    def _separate(self, question: Question, asked: list[int]) -> Answers:
        """Find the plug-in discrepancy by gradients at hypotheses, then ask for the losses."""
        if self.shares_rows:
            yield from self._plainly(question, asked)
            return
        names = [self.names[i] for i in asked]

        def gradients(models: list[FloatArray]) -> list[FloatArray]:
            found = self.session.ask(
                {
                    name: [Message(answer_square_gradients, {"models": of_site})]
                    for name, of_site in zip(names, models, strict=True)
                }
            )
            return [found[name][0]["gradients"][..., 0] for name in names]

        sent = dict(question.message.sent)
        moments = Moments(sent.pop("gram"), sent.pop("cross"), sent.pop("square"))
        models = find_by_gradients(
            moments, **sent, n_classes=self.n_classes, n_sources=len(asked), ask=gradients
        )
        # In the same round, what training will want next.
        assert self._family is not None
        then = self._pilot_message(
            ReferenceRows.of(replace(self._probe, reference=0)), self._family
        )
        losses = self.session.ask(
            {
                name: [Message(answer_losses, {"models": of_site}), then]
                for name, of_site in zip(names, models, strict=True)
            }
        )
        if self.guards and not self.n_classes:
            self._check_losses(asked, models, losses)
        for i, name, of_site in zip(asked, names, models, strict=True):
            answer = {"models": of_site[..., None], **losses[name][0]}
            yield np.array([i]), question.judge(answer)

    def _check_losses(
        self, asked: list[int], models: list[FloatArray], losses: dict[str, list[Arrays]]
    ) -> None:
        """Leave out whose losses are not those of its moments."""
        wrong = {}
        for i, of_site in zip(asked, models, strict=True):
            said, known = losses[self.names[i]]
            why = false_losses(
                of_site, said["losses"][..., 0], moments_in([known]), float(self.noise[i])
            )
            if why:
                wrong[self.names[i]] = why
        self.session.leave_out(wrong)

    def _as_counted(self, answer: Arrays, site: int) -> Arrays:
        """Let a site count for the rows that it may count for, whatever it says."""
        return {**answer, "sizes": self.sizes[[site]]} if "sizes" in answer else answer

    # -- training ----------------------------------------------------------------------------

    def pilots(self, reference: ReferenceRows, family: LinearFamily) -> QuadraticSources:
        """All sites to second order around the reference's model under each setting."""
        if self._pilots is None:
            message = self._pilot_message(reference, family)
            answers = [answer for (answer,) in self._send([message], range(len(self.names)))]
            if self.guards:
                self._leave_out_copies(message, answers)
            about = self.sizes, self.row_counts
            if self.n_classes:
                known, points = derivatives_in(answers), message.sent["points"]
                self._pilots = QuadraticSources(points, known, *about, self.n_classes)
            else:
                self._pilots = QuadraticSources.of_moments(moments_in(answers), *about)
        return self._pilots

    def derivatives(self, points: FloatArray) -> Derivatives:
        """Ask all sites for derivatives at some models.

        Whoever contradicts what the reference's rows have judged is left out.
        """
        before = self._judged or self._pilots if self.guards else None
        # A question asked before is repeated.
        asked = points if before is None else np.concatenate([points, before.points[:1]])
        answers = self._send([ask_derivatives(asked)], range(len(self.names)))
        known = derivatives_in([answer for (answer,) in answers])
        if before is None:
            return known
        n = len(points)
        known, again = known.at(slice(n)), known.at(slice(n, None))
        wrong = other_answers(self.names, before, again, self.noise)
        wrong |= contradictions(self.names, before, points, known, self.noise)
        self.session.leave_out(wrong)
        if self._judged is None:
            self._judged = before.and_at(points, known)
        return known

    @property
    def most_rounds(self) -> int:
        """With noise, models never stop moving."""
        return NOISY_ROUNDS if self.noise.any() else MOST_ROUNDS

    def expect(self, rounds: int) -> None:
        """Say how many rounds are coming."""
        self.session.expect(rounds)

    def _leave_out_copies(self, message: Message, answers: list[Arrays]) -> None:
        claimed = np.concatenate([self._claimed(i) for i in range(len(self.names))])
        about = claimed, self._probe
        if self.n_classes:
            first = message.sent["points"][0]
            found = copies(self.names, derivatives_in(answers), *about, first)
        else:
            own = moments_in([message.answer(self._probe, ["probe"])])
            found = copies_by_moments(self.names, moments_in(answers), *about, own)
        self.session.leave_out(found)

    def gradients(self, points: FloatArray) -> FloatArray:
        """Ask all sites for gradients at some models, (n_sources, n_points, ...)."""
        message = Message(answer_gradients, {"points": points})
        answers = self._send([message], range(len(self.names)))
        return np.stack([answer["gradients"][..., 0] for (answer,) in answers])

    def _pilot_message(self, reference: ReferenceRows, family: LinearFamily) -> Message:
        key = id(family)
        if key not in self._pilot_messages:
            self._pilot_messages[key] = self._new_pilot_message(reference, family)
        return self._pilot_messages[key]

    def _new_pilot_message(self, reference: ReferenceRows, family: LinearFamily) -> Message:
        if not self.n_classes:
            return Message(answer_moments, {})
        settings = family.settings
        weights = np.repeat((reference.size * reference.shares)[:, None], len(settings), axis=1)
        points = np.asarray(
            family.fit(reference.X, reference.y, weights, settings), dtype=np.float64
        )
        outputs, features = points.shape[1:]
        entries = (outputs * features) ** 2
        if entries > MOST_CURVATURE:
            raise ValueError(
                TOO_WIDE.format(
                    outputs=outputs, features=features, entries=entries, most=MOST_CURVATURE
                )
            )
        return ask_derivatives(points)


def _learner(reference: ReferenceModels) -> Any:
    return getattr(reference.family, "travels_as", reference.family)


class FlowerSums:
    """Weighted sums of gradients and curvature; the weights never leave the server."""

    def __init__(self, engine: Any, weights: SourceWeights):
        self.engine, self.weights = engine, weights

    def gradients(
        self, points: FloatArray, columns: IntArray, at: IntArray | None = None
    ) -> FloatArray:
        """Ask for sums of (x, label) times residual."""
        each = self.engine.gradients(_as_models(points))
        if at is not None:
            each = each[:, at]
        weights = self.weights.of(slice(None), columns)
        return np.asarray(np.einsum("iqek,iq->ekq", each, weights), dtype=points.dtype)

    def curvature(
        self,
        points: FloatArray,
        columns: IntArray,
        at: IntArray,
        basis: FloatArray | None = None,
        every: int = 1,
    ) -> tuple[FloatArray, FloatArray]:
        """Ask for the curvature at the points of the columns."""
        models = _as_models(points)
        engine = self.engine
        around = QuadraticSources(
            models,
            engine.derivatives(models),
            engine.sizes,
            engine.row_counts,
            engine.n_classes,
            at,
        )
        sums = QuadraticSums(around, self.weights.in_columns(columns))
        return sums.curvature(points, np.arange(len(columns)), at, basis)

    def moments(self, columns: IntArray) -> tuple[FloatArray, FloatArray]:
        """Refuse: a regression's learner has them."""
        raise AssertionError(NO_MOMENTS)


def _as_models(points: FloatArray) -> FloatArray:
    """Models (n_points, n_outputs, n_features) in double precision."""
    return np.ascontiguousarray(points.transpose(1, 2, 0), dtype=np.float64)


def _without_rows(sent: dict[str, Any]) -> dict[str, Any]:
    """Replace the reference's rows by others with the same second moments."""
    X = sent["X"]
    moments = (X * sent["shares"][:, None]).T @ X
    rows = rows_of_moments(np.asarray(moments, dtype=np.float64))
    return {**sent, "X": rows, "shares": np.full(len(rows), 1.0 / len(rows))}
