"""The cost vectors of one example of a program: the engine's rules of stage 1, with roll-outs that run it again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from lols.engine.deviations import (
    Completion,
    acting,
    combined,
    compared_step,
    completer,
    completion,
    deviates_at,
    keep_best,
    keep_sample,
    must_complete,
    steps_wanted,
    teacher_alone,
)
from lols.engine.structures import DRAWN_POLICY, MIXTURE, NONE, REFERENCE, ROLLOUT, STEP, TEACHER_POLICY, Plan
from lols.errors import SpaceError
from lols.programs.choices import Teacher
from lols.programs.graph import Graph
from lols.programs.rolling import ProgramTrail, Rerun, RollIn, follows
from lols.programs.search import NEEDED

INFINITE = float("inf")


class StateCosts(NamedTuple):
    """A state to learn from: its step in the roll-in, its weight, and the costs of its actions."""

    step: int
    weight: float
    costs: Any  # one for each action, infinite where it was not evaluated


class Evaluator:
    """Rolls a program in and out on one object after the other."""

    def __init__(self, parts: tuple[Any, Any, Any], tricks: Mapping[str, bool]):
        self.roll_in, self.again, self.graph = RollIn(*parts), Rerun(*parts), Graph(*parts)
        self.again.memo, self.graph.chain = tricks["memo"], tricks["chain"]
        self.scorer, self.tricks = parts[2], tricks

    def evaluate(
        self, x: Any, number: int, plan: Plan, round_key: int, beta: float, beta_in: float
    ) -> tuple[ProgramTrail, list[StateCosts], list[float]]:
        """The roll-in, its states with their costs, and the losses of completions by teacher and learner."""
        trail = self.roll_in.trail(x, number, plan, round_key, beta_in)
        self.x, self.number, self.plan, self.round_key, self.trail = x, number, plan, round_key, trail
        self.beta = beta if plan.roll_out == MIXTURE else 0.0
        compared_losses = [0.0, 0.0]
        chosen = list(self._chosen())
        if plan.roll_out == NONE:
            return trail, [StateCosts(t, weight, self._immediate(t)) for t, weight, _ in chosen], compared_losses
        asks = [self._asks(t, comparing) for t, _, comparing in chosen]
        self._prepare(chosen, asks)
        states = []
        for (t, weight, comparing), asked in zip(chosen, asks, strict=True):
            costs = [INFINITE] * trail.legal[t].count
            for a, (who, rolled) in asked.by_action.items():
                values = [asked.closed[a] if asked.choice.closed else 0.0, 0.0]
                for by_learner, policy, stream in rolled:
                    value = self._value(t, a, policy, stream)
                    if comparing and a == trail.actions[t]:
                        compared_losses[by_learner] = value
                    if by_learner or not asked.choice.closed:
                        values[by_learner] = value
                costs[a] = combined(asked.choice, who, *values)
            states.append(StateCosts(t, weight, costs))
        if self.merging:
            self.graph.forget()
        return trail, states, compared_losses

    # --- which states and actions ---

    def _chosen(self) -> Any:
        """The steps to deviate at, their weights, and whether teacher and learner are compared there."""
        plan, steps = self.plan, len(self.trail.actions)
        wanted = steps_wanted(plan, steps)
        weight, compared = steps / wanted, compared_step(plan, self.round_key, wanted)
        for t in range(steps):
            if deviates_at(self.round_key, t, steps, wanted):
                yield t, weight, wanted == compared
                wanted -= 1

    def _actions(self, t: int) -> list[int]:
        """The legal actions; if they are sampled, the one taken, the teacher's, and random others."""
        legal = self.trail.legal[t]
        if not 0 < self.plan.sample_actions < len(legal.actions):
            return legal.actions
        tried = [a in legal.members for a in range(legal.count)]
        keep_sample(self.plan, self.round_key, t, tried, self._kept(t))
        return [a for a in legal.actions if tried[a]]

    def _pruned(self, t: int, legal: list[int]) -> list[int]:
        """Those of these actions with the lowest predicted costs, the one taken, and the teacher's."""
        tried = [False] * self.trail.legal[t].count
        for a in legal:
            tried[a] = True
        keep_best(self.plan, self.trail.predicted[t], tried, self._kept(t))
        return [a for a, kept in enumerate(tried) if kept]

    def _kept(self, t: int) -> list[bool]:
        """The action taken, and the teacher's."""
        always = self.trail.actions[t], self._teacher(self.trail.sampled, t).first
        return [a in always for a in range(self.trail.legal[t].count)]

    def _teacher(self, asked: Mapping[int, Teacher], t: int) -> Teacher:
        answer = asked.get(t, self.trail.teachers[t])
        if answer is None:
            raise SpaceError(f"example {self.number}, step {t}: {NEEDED}")
        return answer

    def _immediate(self, t: int) -> Any:
        """Costs without roll-outs: 0 for the reference's actions, 1 for the others."""
        answer = self._teacher(self.trail.imitated, t)
        free = answer.free if answer.free is not None else (answer.first,)
        legal = self._actions(t)
        if legal is self.trail.legal[t].actions:
            costs = self.trail.legal[t].ones.copy()
            for a in free:
                costs[a] = 0.0
            return costs
        few = [INFINITE] * self.trail.legal[t].count
        for a in legal:
            few[a] = 0.0 if a in free else 1.0
        return few

    # --- who completes ---

    def _asks(self, t: int, comparing: bool) -> Asks:
        """The roll-outs of a step."""
        plan, trail, components = self.plan, self.trail, self.scorer.components
        answer = trail.teachers[t]
        closed = answer.costs if answer is not None else None
        choice = completion(plan, self.round_key, t, components, self.beta, closed is not None)
        legal = self._actions(t)
        if plan.prune > 0 and not teacher_alone(choice):
            legal = self._pruned(t, legal)
        by_action = {}
        if plan.mix != ROLLOUT:  # all alike
            who, stream = completer(plan, choice, 0)
            by_action = dict.fromkeys(legal, (who, _rolled(choice, who, stream, False)))
        for a in legal if plan.mix == ROLLOUT else [trail.actions[t]] if comparing else []:
            who, stream = completer(plan, choice, a)
            by_action[a] = (who, _rolled(choice, who, stream, comparing and a == trail.actions[t]))
        return Asks(choice, by_action, closed)

    # --- the costs of roll-outs ---

    def _prepare(self, chosen: list[Any], asks: list[Asks]) -> None:
        plan, trail, tricks = self.plan, self.trail, self.tricks
        drawn = plan.random_ties or plan.horizon > 0 or trail.random or self.scorer.components > 1
        drawn = drawn or (plan.roll_out == MIXTURE and plan.mix == STEP)
        self.merging = tricks["merge"] and not drawn and any(key is not None for key in trail.keys)
        if not self.merging:
            never = [False] * len(trail.actions)
            self.follows = follows(trail, plan, self.scorer.components) if tricks["reuse"] else (never, never)
            self.rest = [0.0]
            for cost in reversed(trail.costs):
                self.rest.append(cost + self.rest[-1])
            self.rest.reverse()
            return
        self.graph.start(self.x, self.number, trail, plan.roll_out != REFERENCE or plan.compare)
        wanted: list[list[tuple[int, int]]] = [[] for _ in trail.actions]
        for (t, _, _), asked in zip(chosen, asks, strict=True):
            wanted[t] = [(a, policy) for a, (_, rolled) in asked.by_action.items() for _, policy, _ in rolled[:1]]
        self.graph.want(wanted)

    def _value(self, t: int, a: int, who: int, stream: int) -> float:
        if self.merging:
            return self.graph.value(t, a, who)
        line = 0 if who == TEACHER_POLICY else 1
        if who != DRAWN_POLICY and a == self.trail.actions[t] and self.follows[line][t]:
            return self.rest[t]
        share = self.beta if self.plan.mix == STEP and self.plan.roll_out == MIXTURE else 0.0
        return self.again.value(self.x, self.number, self.plan, self.trail, t, a, who, share, stream)


class Asks(NamedTuple):
    """The roll-outs of a step, and the teacher's costs if they are given in closed form."""

    choice: Completion
    by_action: dict[int, tuple[int, list[tuple[bool, int, int]]]]  # who completes it, and the roll-outs it needs
    closed: Any  # the teacher's costs, or None


def _rolled(choice: Completion, who: int, stream: int, compared: bool) -> list[tuple[bool, int, int]]:
    """The roll-outs that an action needs: whether the learner completes, which policy, and its stream."""
    return [
        (by_learner, acting(choice, who, by_learner), stream)
        for by_learner in (False, True)
        if must_complete(choice, who, by_learner, compared)
    ]
