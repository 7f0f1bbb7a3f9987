"""Stage 1 for programs: a batch of objects is rolled in and out, and becomes cost-sensitive examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from lols.contract.examples import without_collector
from lols.contract.hashing import mix
from lols.engine.drivers.portable import Portable
from lols.engine.lessons import FeatureRuns, lessons_of, slots_of
from lols.engine.structures import Batch, FrozenPolicy, Plan
from lols.programs.choices import ActionChoices
from lols.programs.costs import Evaluator, StateCosts
from lols.programs.program import Program
from lols.programs.rolling import ProgramTrail
from lols.programs.scorer import Scorer

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
        self.choices = ActionChoices(program.actions, program.labels)
        self.scorer = Scorer(compiled)
        self.evaluator = Evaluator((program, self.choices, self.scorer), self.tricks)

    def portable(self) -> Portable:
        """What makes such a driver on another machine."""
        arguments = {"program": self.program, "objects": self.objects, "tricks": self.tricks, "compiled": self.compiled}
        return Portable(type(self), arguments, {"the program": self.program.run})

    def work_of(self, indices: np.ndarray) -> np.ndarray:
        """About how much work each of these objects is, which is not known."""
        return np.ones(indices.size, np.int64)

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
        writer = LessonWriter(self.program.actions)
        with without_collector():  # decisions are freed together; it would take a third of the time
            for b, number in enumerate(indices.tolist()):
                round_key = mix(plan.seed, int(rounds[b]))
                trail, states, losses = self.evaluator.evaluate(
                    self.objects[number], number, plan, round_key, float(beta[b]), float(beta_in[b])
                )
                writer.add(trail, states, losses)
        return writer.batch(indices, rounds, beta, beta_in)


class LessonWriter:
    """Writes states and their costs into the slots of a batch."""

    def __init__(self, actions: int):
        self.actions = actions
        self.ids: list[int] = []
        self.values: list[float] = []
        self.stops: list[int] = [0]
        self.weights: list[float] = []
        self.rows: list[Any] = []
        self.nothing = np.zeros(actions)
        self.filled: list[int] = []
        self.losses: list[list[float]] = []

    def add(self, trail: ProgramTrail, states: list[StateCosts], losses: list[float]) -> None:
        """Add an example."""
        by_step = {state.step: state for state in states}
        for t, (ids, values) in enumerate(trail.seen):
            state = by_step.get(t)
            if state is not None:
                self.ids += ids
                self.values += values if values is not None else [1.0] * len(ids)
            self.stops.append(len(self.ids))
            self.weights.append(state.weight if state is not None else 0.0)
            self.rows.append(state.costs if state is not None else self.nothing)
        self.filled.append(len(trail.seen))
        self.losses.append([trail.loss, *losses])

    def batch(self, indices: np.ndarray, rounds: np.ndarray, beta: np.ndarray, beta_in: np.ndarray) -> Batch:
        """The batch as the learner reads it."""
        ids, values = np.array(self.ids, np.int64), np.array(self.values, np.float32)
        seen = FeatureRuns.between(np.array(self.stops, np.int64), ids, values)
        slots = slots_of(seen, self._costs(), np.array(self.weights, np.float32))
        filled = np.array(self.filled, np.int64)
        return Batch(
            round=rounds,
            beta=beta,
            beta_in=beta_in,
            order=np.arange(indices.size),
            losses=np.array(self.losses, np.float64),
            lessons=lessons_of(slots, np.cumsum(filled) - filled, filled, example=indices, widest=seen.widest),
        )

    def _costs(self) -> np.ndarray:
        """Costs relative to the best action of each state; infinite for actions that were not evaluated."""
        costs = np.array(self.rows, np.float64).reshape(len(self.rows), self.actions)
        costs -= costs.min(axis=1, keepdims=True)
        return costs.astype(np.float32)
