"""Stage 1 for programs: a batch of objects is rolled in and out, and becomes cost-sensitive examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from lols.engine.drivers.portable import Portable
from lols.engine.lessons import NO_FEATURES, FeatureRuns, lessons_of, slots_of
from lols.engine.structures import Batch, FrozenPolicy, Plan, Slots
from lols.kernels.collector import without_collector
from lols.kernels.hashing import mix
from lols.programs.costs import Evaluator, StateCosts
from lols.programs.parts import parts_of
from lols.programs.program import Program
from lols.programs.rolling import ProgramTrail

# Speed tricks; they do not change the results.
TRICKS = {
    "merge": "roll-outs that meet are merged, where the program gives keys",
    "chain": "a run that returns to the roll-in goes on to the next deviation",
    "memo": "a decision with the same features and legal actions is not scored again under the same policy",
    "reuse": "the roll-in's own action is not rolled out if the same policy does both",
    "closed_form": "costs in closed form save the teacher's roll-outs",
}


class ProgramDriver:
    """Runs a program over a data set: `make_lessons` for training, in place of the engine's `FusedDriver`."""

    def __init__(
        self, program: Program, objects: Sequence[Any], tricks: Mapping[str, bool] | None = None, compiled: bool = True
    ):
        self.program, self.objects = program, objects
        self.tricks = dict.fromkeys(TRICKS, True) | dict(tricks or {})
        self.compiled = compiled
        self.choices, self.scorer = parts_of(program, compiled)
        self.evaluator = Evaluator((program, self.choices, self.scorer), self.tricks)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """There is nothing to end."""

    def portable(self) -> Portable:
        """What makes such a driver on another machine."""
        arguments = {"program": self.program, "objects": self.objects, "tricks": self.tricks, "compiled": self.compiled}
        return Portable(type(self), arguments, {"the program": self.program.run})

    def work_of(self, indices: np.ndarray) -> np.ndarray:
        """About how much work each of these objects is, which is not known."""
        return np.ones(indices.size, np.int64)

    def adopt(self, batch: Batch, taken: np.ndarray) -> None:
        """Take over a batch that was searched elsewhere: there is nothing to take over from here on."""

    def make_lessons(
        self,
        indices: np.ndarray,
        rounds: np.ndarray,
        policy: FrozenPolicy,
        plan: Plan,
        beta: np.ndarray,
        beta_in: np.ndarray,
    ) -> Batch:
        """Turn examples into cost-sensitive examples under a frozen policy."""
        self.scorer.follow(policy, bool(plan.random_ties))
        found = []
        with without_collector():  # decisions are freed together; it would take a third of the time
            for b, number in enumerate(indices.tolist()):
                round_key = mix(plan.seed, int(rounds[b]))
                shares = float(beta[b]), float(beta_in[b])
                found.append(self.evaluator.evaluate(self.objects[number], number, plan, round_key, *shares))
        filled = np.array([len(trail.seen) for trail, _, _ in found], np.int64)
        if self.program.actions is None:
            slots, widest, widest_action = _slots_of_candidates(found)
        else:
            (slots, widest), widest_action = _slots(found, self.program.actions), 0
        return Batch(
            round=rounds,
            beta=beta,
            beta_in=beta_in,
            order=np.arange(indices.size),
            losses=np.array([[trail.loss, *losses] for trail, _, losses in found], np.float64),
            lessons=lessons_of(
                slots,
                np.cumsum(filled) - filled,
                filled,
                example=indices,
                widest=widest,
                widest_action=widest_action,
            ),
        )


def _slots(found: list[tuple[ProgramTrail, list[StateCosts], list[float]]], actions: int) -> tuple[Slots, int]:
    """The states of roll-ins with their costs, as the learner reads them; and the most features that one has."""
    ids, values, stops, weights = list[int](), list[float](), [0], list[float]()
    rows, nothing = list[Any](), np.zeros(actions)
    for trail, states, _ in found:
        by_step = {state.step: state for state in states}
        for t, (own, given) in enumerate(trail.seen):
            state = by_step.get(t)
            if state is not None:
                ids += own
                values += given if given is not None else [1.0] * len(own)
            stops.append(len(ids))
            weights.append(state.weight if state is not None else 0.0)
            rows.append(state.costs if state is not None else nothing)
    costs = np.array(rows, np.float64).reshape(len(rows), actions)
    costs -= costs.min(axis=1, keepdims=True)  # infinite for actions that were not evaluated
    seen = FeatureRuns.between(np.array(stops, np.int64), np.array(ids, np.int64), np.array(values, np.float32))
    return slots_of(seen, costs.astype(np.float32), np.array(weights, np.float32)), seen.widest


def _slots_of_candidates(found: list[tuple[ProgramTrail, list[StateCosts], list[float]]]) -> tuple[Slots, int, int]:
    """The same for candidates, who have the features; beyond those of a state, costs are infinite."""
    ids, values, weights = list[int](), list[float](), list[float]()
    rows = sum(len(trail.seen) for trail, _, _ in found)
    most = max(legal.count for trail, _, _ in found for legal in trail.legal)
    costs, (start, stop) = np.full((rows, most), np.inf), np.zeros((2, rows, most), np.int64)
    for trail, states, _ in found:
        by_step = {state.step: state for state in states}
        for t, seen in enumerate(trail.seen):
            row, state, count = len(weights), by_step.get(t), trail.legal[t].count
            weights.append(state.weight if state is not None else 0.0)
            costs[row, :count] = state.costs if state is not None else 0.0
            if state is not None:
                bounds = np.array(seen.bounds, np.int64) + len(ids)
                start[row, :count], stop[row, :count] = bounds[:-1], bounds[1:]
                ids += seen.ids
                values += seen.values
    costs -= costs.min(axis=1, keepdims=True)
    own = FeatureRuns(start.ravel(), stop.ravel(), np.array(ids, np.int64), np.array(values, np.float32))
    none = NO_FEATURES._replace(start=np.zeros(rows, np.int64), stop=np.zeros(rows, np.int64))
    return slots_of(none, costs.astype(np.float32), np.array(weights, np.float32), own), 0, own.widest
