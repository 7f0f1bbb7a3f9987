"""The cost vectors of one example: who finishes which deviation, by the same draws as in the engine, and what it costs.

The engine's twin of this file is `engine/collect.py`; the streams of random numbers are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from lols.engine.structures import (
    COIN,
    COMPARE,
    DRAWN_POLICY,
    EXAMPLE,
    EXPECTED,
    LEARNED,
    MIXTURE,
    NONE,
    REFERENCE,
    ROLLOUT,
    SAMPLE_ACTION,
    SAMPLE_STEP,
    STEP,
    TEACHER_POLICY,
    Plan,
)
from lols.errors import SpaceError
from lols.hashing import mix, unit
from lols.imperative.graph import Graph
from lols.imperative.rolling import Again, RollIn, Trail, follows
from lols.imperative.search import NEEDED, Teacher

__all__ = ["Evaluator", "State"]

INFINITE = float("inf")


class State(NamedTuple):
    """A state that is learned from: its step in the roll-in, its weight, and what its actions cost."""

    step: int
    weight: float
    costs: Any  # one for each action, infinite where it was not evaluated


class Evaluator:
    """Rolls a program in and out on one object after the other."""

    def __init__(self, parts: tuple[Any, Any, Any], tricks: Mapping[str, bool]):
        self.roll_in, self.again, self.graph = RollIn(*parts), Again(*parts), Graph(*parts)
        self.again.memo, self.graph.chain = tricks["memo"], tricks["chain"]
        self.scorer, self.tricks = parts[2], tricks
        self.actions = parts[0].actions

    def evaluate(
        self, x: Any, number: int, plan: Plan, round_key: int, beta: float, beta_in: float
    ) -> tuple[Trail, list[State], list[float]]:
        """The roll-in, its states with their costs, and the losses of completions by teacher and learner."""
        trail = self.roll_in.trail(x, number, plan, round_key, beta_in)
        self.x, self.number, self.plan, self.round_key, self.trail = x, number, plan, round_key, trail
        self.beta = beta if plan.roll_out == MIXTURE else 0.0
        self.learned = 0 if self.scorer.components == 1 else DRAWN_POLICY
        compared_losses = [0.0, 0.0]
        chosen = list(self._chosen())
        if plan.roll_out == NONE:
            return trail, [State(t, weight, self._immediate(t)) for t, weight, _ in chosen], compared_losses
        asks = [self._asks(t, comparing) for t, _, comparing in chosen]
        self._prepare(chosen, asks)
        states = []
        for (t, weight, comparing), (legal, by_action, known) in zip(chosen, asks, strict=True):
            costs = [INFINITE] * self.actions
            for a in legal:
                who, needed = by_action[a]
                if len(needed) == 1 and known is None:
                    costs[a] = self._value(t, a, *needed[0])
                    continue
                values = {TEACHER_POLICY: known[a]} if known is not None else {}
                for acting, stream in needed:
                    value = self._value(t, a, acting, stream)
                    part = 0 if acting == TEACHER_POLICY else 1
                    if comparing and a == trail.actions[t]:
                        compared_losses[part] = value
                    if part == 1 or known is None:
                        values[acting] = value
                if plan.roll_out == MIXTURE and plan.mix == EXPECTED:
                    learner = values[self.learned]
                    costs[a] = self.beta * values[TEACHER_POLICY] + (1.0 - self.beta) * learner
                else:
                    costs[a] = values[who]
            states.append(State(t, weight, costs))
        if self.merging:
            self.graph.forget()
        return trail, states, compared_losses

    # --- which states and actions ---

    def _chosen(self) -> Any:
        """Steps that are deviated at, with their weights and whether teacher and learner are compared there."""
        plan, steps = self.plan, len(self.trail.actions)
        need = min(plan.sample_steps, steps) if plan.sample_steps > 0 else steps
        weight = steps / need
        compared = need - int(unit(mix(self.round_key, COMPARE)) * need) if plan.compare else -1
        for t in range(steps):
            if need > 0 and (need >= steps - t or unit(mix(mix(self.round_key, SAMPLE_STEP), t)) * (steps - t) < need):
                yield t, weight, need == compared
                need -= 1

    def _actions(self, t: int) -> list[int]:
        """The legal actions, thinned out to the one taken, the teacher's, and random others."""
        plan, trail = self.plan, self.trail
        legal = trail.legal[t].actions
        if not 0 < plan.sample_actions < len(legal):
            return legal
        stream = mix(mix(self.round_key, SAMPLE_ACTION), t)
        kept = {trail.actions[t], self._teacher(trail.sampled, t).first}
        need, left = plan.sample_actions - len(kept), len(legal) - len(kept)
        for a in legal:
            if a not in kept:
                if need > 0 and unit(mix(stream, a)) * left < need:
                    kept.add(a)
                    need -= 1
                left -= 1
        return [a for a in legal if a in kept]

    def _pruned(self, t: int, legal: list[int]) -> list[int]:
        """The best-liked of these actions, the one taken and the teacher's."""
        predicted = self.trail.predicted[t]
        best = sorted(legal, key=lambda a: (predicted[a], a))[: self.plan.prune]
        kept = {self.trail.actions[t], self._teacher(self.trail.sampled, t).first, *best}
        return sorted(kept)

    def _teacher(self, asked: Mapping[int, Teacher], t: int) -> Teacher:
        said = asked.get(t, self.trail.teachers[t])
        if said is None:
            raise SpaceError(f"example {self.number}, step {t}: {NEEDED}")
        return said

    def _immediate(self, t: int) -> Any:
        """Without roll-outs an action costs 1 unless the reference would take it."""
        said = self._teacher(self.trail.imitated, t)
        free = said.free if said.free is not None else (said.first,)
        legal = self._actions(t)
        if legal is self.trail.legal[t].actions:
            costs = self.trail.legal[t].ones.copy()
            for a in free:
                costs[a] = 0.0
            return costs
        few = [INFINITE] * self.actions
        for a in legal:
            few[a] = 0.0 if a in free else 1.0
        return few

    # --- who finishes ---

    def _toss(self, shared_stream: int, own_stream: int) -> int:
        plan = self.plan
        if plan.roll_out == REFERENCE:
            return TEACHER_POLICY
        if plan.roll_out == LEARNED:
            return self.learned
        if plan.mix == STEP:
            return DRAWN_POLICY
        stream = own_stream if plan.mix == ROLLOUT else shared_stream
        return TEACHER_POLICY if unit(mix(stream, -1)) < self.beta else self.learned

    def _asks(self, t: int, comparing: bool) -> Any:
        """At a step: the actions; for each who finishes it, and all roll-outs that are needed; closed-form costs."""
        plan, trail = self.plan, self.trail
        mixture = plan.roll_out == MIXTURE
        expected, apart = mixture and plan.mix == EXPECTED, mixture and plan.mix == ROLLOUT
        state_stream = mix(mix(self.round_key, COIN), t)
        shared_stream = mix(self.round_key, COIN) if plan.mix == EXAMPLE else state_stream
        said = trail.teachers[t]
        known = None
        # Closed-form costs may be off by a constant, which must not be compared with the learner's.
        if plan.closed_form and plan.horizon == 0 and not apart and said is not None:
            known = said.costs
        shared = self._toss(shared_stream, state_stream)
        teacher_alone = shared == TEACHER_POLICY and not expected and not apart
        legal = self._actions(t)
        if plan.prune > 0 and not teacher_alone:
            legal = self._pruned(t, legal)
        by_action = dict.fromkeys(legal, (shared, self._needed(shared, state_stream, known, both=expected)))
        for a in legal if plan.mix == ROLLOUT else ():
            stream = mix(state_stream, a)
            who = self._toss(shared_stream, stream)
            by_action[a] = (who, self._needed(who, stream, known, both=expected))
        if comparing:
            taken = trail.actions[t]
            stream = mix(state_stream, taken) if plan.mix == ROLLOUT else state_stream
            by_action[taken] = (by_action[taken][0], self._needed(by_action[taken][0], stream, None, both=True))
        return legal, by_action, known

    def _needed(self, who: int, stream: int, known: Any, *, both: bool) -> list[tuple[int, int]]:
        """Who must roll an action out, and with which stream; the teacher need not where its costs are known."""
        needed = []
        if (both or who == TEACHER_POLICY) and known is None:
            needed.append((TEACHER_POLICY, stream))
        if both or who != TEACHER_POLICY:
            needed.append((who if who != TEACHER_POLICY else self.learned, stream))
        return needed

    # --- what it costs ---

    def _prepare(self, chosen: list[Any], asks: list[Any]) -> None:
        plan, trail, tricks = self.plan, self.trail, self.tricks
        drawn = plan.random_ties or plan.horizon > 0 or trail.random or self.learned == DRAWN_POLICY
        drawn = drawn or (plan.roll_out == MIXTURE and plan.mix == STEP)
        self.merging = tricks["merge"] and not drawn and any(key is not None for key in trail.keys)
        if not self.merging:
            nobody = [False] * len(trail.actions)
            self.follows = follows(trail, plan, self.scorer.components) if tricks["reuse"] else (nobody, nobody)
            self.rest = [0.0]
            for cost in reversed(trail.costs):
                self.rest.append(cost + self.rest[-1])
            self.rest.reverse()
            return
        self.graph.start(self.x, self.number, trail, plan.roll_out != REFERENCE or plan.compare)
        wanted: list[list[tuple[int, int]]] = [[] for _ in trail.actions]
        for (t, _, _), (legal, by_action, _) in zip(chosen, asks, strict=True):
            wanted[t] = [(a, who) for a in legal for who, _ in by_action[a][1][:1]]
        self.graph.want(wanted)

    def _value(self, t: int, a: int, who: int, stream: int) -> float:
        if self.merging:
            return self.graph.value(t, a, who)
        line = 0 if who == TEACHER_POLICY else 1
        if who != DRAWN_POLICY and a == self.trail.actions[t] and self.follows[line][t]:
            return self.rest[t]
        share = self.beta if self.plan.mix == STEP and self.plan.roll_out == MIXTURE else 0.0
        return self.again.value(self.x, self.number, self.plan, self.trail, t, a, who, share, stream)
