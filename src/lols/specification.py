"""The whole algorithm, slow and obvious: learning to search as in the paper, without any optimisation.

Roll-outs are recursive, states are copied, weights are in dictionaries; nothing is merged, reused, cached or computed
in closed form. Tests check that the compiled engine makes exactly the same lessons. Begin reading with
`learn_to_search` (Algorithm 1) and `SlowSearch.lessons` (its lines 3 to 13).

Random numbers are hashes of where they are used, so that this module tosses the same coins as the engine. With `mix`
and `unit` of `lols.kernels.hashing`, and purposes (in capitals) numbered in `lols.engine.structures`:

    round       mix(mix(seed, 0x1015), round)
    roll-in     stream = mix(mix(round, ROLL_IN), t); its coin: COIN, teacher: TEACHER, component: COMPONENT, ties: TIE
    deviations  stream = mix(mix(round, COIN), t), shared by the deviations at the state of step t, or each its own with
                mix="rollout": mix(mix(mix(round, COIN), t), a)
    their coin  mix(stream, -1); with mix="example", of the stream mix(round, COIN)
    roll-out    draw = mix(stream, n) at its n-th step; coin: COMPONENT, component and teacher: TEACHER, ties: TIE
    sampling    mix(mix(round, SAMPLE_STEP), t); mix(mix(round, SAMPLE_ACTION), t), and of it TEACHER or the action;
                pruning uses the same TEACHER
    no roll-out mix(mix(round, TEACHER), t): of the teacher
    comparison  mix(round, COMPARE): which of the sampled states
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np

from lols.contract.features import feature_buffer, item_buffer
from lols.contract.space import Example, Reference, SearchSpace
from lols.engine.structures import (
    COIN,
    COMPARE,
    COMPONENT,
    ROLL_IN,
    SAMPLE_ACTION,
    SAMPLE_STEP,
    TEACHER,
    TIE,
)
from lols.errors import SpaceError
from lols.kernels.hashing import mix, unit

Features = list[tuple[int, float]]


@dataclass
class Lesson:
    """What is learned from one state: ⟨cost vector, Φ(x, s)⟩ and a weight."""

    features: Features
    costs: dict[int, float]
    weight: float = 1.0
    by_action: dict[int, Features] = field(default_factory=dict)


NOT_LEARNED = Lesson([], {}, 0.0)


@dataclass(kw_only=True)
class Choices:
    """The choices of an algorithm, with the names of `lols.Algorithm`."""

    roll_in: str = "learned"
    roll_out: str = "mixture"
    mix: str = "state"
    ties: str = "first"
    beta: float | str = 0.5
    beta_in: float | None = None
    horizon: int | None = None
    sample_steps: int | None = None
    sample_actions: int | None = None
    prune: int | None = None

    def shares(self) -> dict[str, float]:
        """β of roll-outs and roll-ins; one half if it is not a number."""
        beta = self.beta if isinstance(self.beta, float) else 0.5
        return {"beta": beta, "beta_in": beta if self.beta_in is None else self.beta_in}

    def options(self) -> dict[str, Any]:
        """The same as options of `lols.Trainer`, without those that have no effect."""
        options = dict(vars(self))
        if self.roll_out != "mixture":
            del options["mix"]
            if self.roll_in != "mixture" or self.beta_in is not None:
                del options["beta"]
        if self.roll_out == "none":
            del options["horizon"]
        if self.roll_out in ("none", "reference"):
            del options["prune"]
        if self.roll_in != "mixture":
            del options["beta_in"]
        return options


# --- Algorithm 1 ------------------------------------------------------------------------------------------------------


def learn_to_search(
    space: SearchSpace, reference: Reference, data: Sequence[Example], choices: Choices, learner: Any, *, seed: int = 0
) -> SlowPolicy:
    """Algorithm 1 of the paper: one pass over the data.

    The learner has `policy()`, its current policy, `learn_round(lessons)`, one update, and `policy(averaged=True)`.
    """
    for i, example in enumerate(data):  # line 2
        how: dict[str, Any] = {"seed": seed, "number": i, "learner": learner, **choices.shares()}
        search = SlowSearch(space, reference, example, learner.policy(), choices, **how)
        lessons, _ = search.lessons()  # lines 3 to 13: Γ
        learner.learn_round(lessons)  # line 14: the update
    policy: SlowPolicy = learner.policy(averaged=True)  # line 16: the average policy
    return policy


# --- the policy -------------------------------------------------------------------------------------------------------


@dataclass
class SlowPolicy:
    """Weights by feature, one dictionary for each component; a component is drawn at each state."""

    shared: list[dict[int, np.ndarray]]
    single: list[dict[int, float]]
    chances: list[float]
    code: np.ndarray
    thresholds: int = 0

    def costs(self, component: int, features: Features, by_action: dict[int, Features], actions: int) -> list[float]:
        """The predicted cost of every action."""
        width = self.code.shape[0] * self.thresholds if self.thresholds else actions
        columns = np.zeros(width)
        for identity, value in features:
            columns = columns + value * self.shared[component].get(identity, np.zeros(width))
        costs = votes(self.code, self.thresholds, columns) if self.thresholds else columns.tolist()
        for a, own in by_action.items():
            costs[a] += sum(value * float(self.single[component].get(identity, 0.0)) for identity, value in own)
        return costs


def votes(code: np.ndarray, thresholds: int, columns: np.ndarray) -> list[float]:
    """SECOC: a subset of the actions saves the share of its thresholds that are exceeded, its complement the rest."""
    costs = [0.0] * code.shape[1]
    for subset in range(code.shape[0]):
        passed = sum(columns[subset * thresholds + h] > 0 for h in range(thresholds)) / thresholds
        for a in range(code.shape[1]):
            costs[a] += 1 - passed if code[subset, a] else passed
    return costs


def cheapest(costs: Sequence[float], among: Iterable[int], ties: str, stream: int) -> int:
    """The action of least cost; of several, the first or a random one."""
    among = sorted(among)
    least = min(costs[a] for a in among)
    equal = [a for a in among if costs[a] == least]
    chosen = equal[0]
    if ties == "random":
        for seen, a in enumerate(equal, start=1):
            if unit(mix(stream, a)) * seen < 1.0:
                chosen = a
    return chosen


def finite(name: str, value: float, least: float = -np.inf) -> float:
    """A cost or a loss as a number, which must be finite."""
    if not (np.isfinite(value) and value >= least):
        raise SpaceError(f"`{name}` gives {value}: it must be finite, and a loss not negative")
    return float(value)


# --- the search -------------------------------------------------------------------------------------------------------


class SlowSearch:
    """One example under one policy: Algorithm 1, lines 3 to 11."""

    def __init__(
        self,
        space: SearchSpace,
        reference: Reference,
        example: Example,
        policy: SlowPolicy,
        choices: Choices,
        *,
        seed: int = 0,
        number: int = 0,
        beta: float = 0.5,
        beta_in: float = 0.5,
        learner: Any = None,
    ):
        self.space, self.reference, self.policy, self.choices = space, reference, policy, choices
        self.passes_over = learner.passes_over if learner is not None else lambda costs, predicted: False
        self.x, self.y = SimpleNamespace(**example.x), SimpleNamespace(**(example.y or {}))
        self.items = example.items or []
        self.beta, self.beta_in = beta, beta_in
        self.prune = choices.options().get("prune")
        self.round = mix(mix(seed, 0x1015), number)
        self.actions = _size(space.sizes.actions, self.x)
        self.state = SimpleNamespace(x=self.x, size=_size(space.sizes.state, self.x))

    # the space, on copies of states

    def begin(self) -> np.ndarray:
        s = np.zeros(self.state.size, np.int32)
        self.space.start(self.x, s)
        return s

    def legal(self, s: np.ndarray) -> list[int]:
        legal = np.zeros(self.actions, bool)
        self.space.actions(self.x, s.copy(), legal)
        return np.flatnonzero(legal).tolist()

    def after(self, s: np.ndarray, a: int) -> np.ndarray:
        reached = s.copy()
        self.space.step(self.x, reached, a)
        return reached

    def price(self, s: np.ndarray, a: int) -> float:
        return finite("cost", self.space.cost(self.x, self.y, s.copy(), a)) if self.space.cost else 0.0

    def loss(self, s: np.ndarray) -> float:
        return finite("loss", self.space.loss(self.x, self.y, s.copy()), 0.0)

    def surveyed(self, s: np.ndarray) -> np.ndarray:
        s, legal = s.copy(), np.zeros(self.actions, bool)
        if self.space.survey:
            self.space.actions(self.x, s, legal)
            self.space.survey(self.x, s, legal)
        return s

    def features(self, s: np.ndarray) -> Features:
        of_items: Features = []
        if self.space.items:
            looked = item_buffer(self.space.sizes.items)
            self.space.items(self.x, self.surveyed(s), looked)
            for k in range(looked.size[0]):
                item, role = int(looked.items[k]), int(looked.roles[k])
                for identity, value in zip(*self.items[item], strict=True):
                    of_items.append((mix(identity, role) if role else identity, float(np.float32(value))))
        out = feature_buffer(self.space.sizes.features)
        self.space.features(self.x, self.surveyed(s), out)
        return of_items + _emitted(out)

    def by_action(self, s: np.ndarray) -> dict[int, Features]:
        features: dict[int, Features] = {}
        if self.space.action_features:
            for a in self.legal(s):
                out = feature_buffer(self.space.sizes.action_features)
                self.space.action_features(self.x, self.surveyed(s), a, out)
                if out.size[0]:
                    features[a] = _emitted(out)
        return features

    # the policies

    def predicted(self, s: np.ndarray, component: int) -> list[float]:
        return self.policy.costs(component, self.features(s), self.by_action(s), self.actions)

    def learner(self, s: np.ndarray, among: Iterable[int], component: int, stream: int) -> int:
        return cheapest(self.predicted(s, component), among, self.choices.ties, stream)

    def component(self, stream: int) -> int:
        """A component of the policy, drawn by its probability."""
        passed = 0.0
        for c, chance in enumerate(self.policy.chances):
            passed += chance
            if unit(stream) < passed:
                return c
        return len(self.policy.chances) - 1

    def equally_good(self, s: np.ndarray, stream: int) -> list[int]:
        """The equally good actions of the teacher."""
        if self.reference.free:
            marked = np.zeros(self.actions, bool)
            self.reference.free(self.x, self.y, s.copy(), marked)
            return np.flatnonzero(marked).tolist()
        if self.reference.action or not self.reference.costs:
            return [self.teacher(s, stream)]
        costs = np.full(self.actions, np.nan)
        self.reference.costs(self.x, self.y, s.copy(), costs)
        least = min(costs[a] for a in self.legal(s))
        return [a for a in self.legal(s) if costs[a] == least]

    def teacher(self, s: np.ndarray, stream: int) -> int:
        """The teacher's action in a roll-out: the one it names, or the first of its equally good ones."""
        if not self.reference.action:
            return self.equally_good(s, stream)[0]
        rng = np.array([stream], np.int64)
        arguments = (rng,) if self.reference.random else ()
        named = self.reference.action(self.x, self.y, s.copy(), *arguments)
        if named not in range(self.actions):
            raise SpaceError(f"the reference takes {named}, which is no action")
        return int(named)

    # rolling in, deviating, rolling out

    def teacher_rolls_in(self, t: int) -> bool:
        """Whether the teacher acts at step t of the roll-in."""
        coin = mix(mix(mix(self.round, ROLL_IN), t), COIN)
        return self.choices.roll_in == "reference" or (self.choices.roll_in == "mixture" and unit(coin) < self.beta_in)

    def predicted_at(self, s: np.ndarray, t: int) -> list[float]:
        """The costs that the policy predicts at step t of the roll-in."""
        return self.predicted(s, self.component(mix(mix(mix(self.round, ROLL_IN), t), COMPONENT)))

    def predicts_at(self, t: int) -> bool:
        """Whether the policy predicts costs at step t of the roll-in: not if a teacher acts that names its action."""
        named = self.reference.action is not None and self.reference.free is None
        return self.prune is not None or not (named and self.teacher_rolls_in(t))

    def roll_in(self) -> tuple[list[np.ndarray], list[int], float]:
        """States and actions of the roll-in, and the loss at its end."""
        states: list[np.ndarray] = []
        taken: list[int] = []
        s = self.begin()
        while self.legal(s):
            stream = mix(mix(self.round, ROLL_IN), len(taken))
            among = self.legal(s)
            if self.teacher_rolls_in(len(taken)):
                among = self.equally_good(s, mix(stream, TEACHER))
            a = self.learner(s, among, self.component(mix(stream, COMPONENT)), mix(stream, TIE))
            states.append(s)
            taken.append(a)
            s = self.after(s, a)
        return states, taken, self.loss(s)

    def roll_out(self, s: np.ndarray, who: str, stream: int, n: int = 0) -> float:
        """The cost to go if `who` continues: the "teacher", the "learner", or a draw at each "step"."""
        if not self.legal(s):
            return 0.0 if self.space.cost else self.loss(s)
        if self.choices.horizon is not None and n >= self.choices.horizon:
            return 0.0
        draw = mix(stream, n)
        acting = who
        if who == "step":
            acting = "teacher" if unit(mix(draw, COMPONENT)) < self.beta else "learner"
        if acting == "teacher":
            a = self.teacher(s, mix(draw, TEACHER))
        else:
            a = self.learner(s, self.legal(s), self.component(mix(draw, TEACHER)), mix(draw, TIE))
        return self.price(s, a) + self.roll_out(self.after(s, a), who, stream, n + 1)

    def deviation(self, s: np.ndarray, a: int, who: str, stream: int) -> float:
        return self.price(s, a) + self.roll_out(self.after(s, a), who, stream)

    def value(self, s: np.ndarray, t: int, a: int) -> float:
        """The cost of action `a` at the state of step t, with the chosen roll-out."""
        chosen = self.choices
        stream = self.stream(t, a)
        if chosen.roll_out == "reference":
            return self.deviation(s, a, "teacher", stream)
        if chosen.roll_out == "learned":
            return self.deviation(s, a, "learner", stream)
        if chosen.mix == "expected":
            by_teacher, by_learner = (self.deviation(s, a, who, stream) for who in ("teacher", "learner"))
            return self.beta * by_teacher + (1 - self.beta) * by_learner
        if chosen.mix == "step":
            return self.deviation(s, a, "step", stream)
        return self.deviation(s, a, "teacher" if self.heads(stream) else "learner", stream)

    def heads(self, stream: int) -> bool:
        """Whether the coin chooses the teacher for the roll-out."""
        coin = mix(self.round, COIN) if self.choices.mix == "example" else stream
        return unit(mix(coin, -1)) < self.beta

    def stream(self, t: int, a: int) -> int:
        shared = mix(mix(self.round, COIN), t)
        return mix(shared, a) if self.choices.roll_out == "mixture" and self.choices.mix == "rollout" else shared

    def immediate(self, s: np.ndarray, t: int, a: int) -> float:
        """The cost without roll-outs: what the action adds to the loss, or 1 unless the teacher would take it."""
        if self.space.cost:
            return self.price(s, a)
        return 0.0 if a in self.equally_good(s, mix(mix(self.round, TEACHER), t)) else 1.0

    def kept_actions(self, s: np.ndarray, t: int, taken: int) -> list[int]:
        """The actions that are tried: all, or the one taken, the teacher's, and random others."""
        legal, most = self.legal(s), self.choices.sample_actions
        if most is None or len(legal) <= most:
            return legal
        stream = mix(mix(self.round, SAMPLE_ACTION), t)
        kept = {taken, self.teacher(s, mix(stream, TEACHER))}
        others = [a for a in legal if a not in kept]
        need = most - len(kept)
        for k, a in enumerate(others):
            if need and unit(mix(stream, a)) * (len(others) - k) < need:
                kept.add(a)
                need -= 1
        return sorted(kept)

    def unpruned(self, s: np.ndarray, t: int, taken: int, kept: list[int]) -> list[int]:
        """The actions that are rolled out: all that are tried, if the teacher alone rolls out.

        Otherwise those of least predicted cost, the one taken and the teacher's.
        """
        one_coin = self.choices.roll_out == "mixture" and self.choices.mix in ("state", "example")
        if self.prune is None or (one_coin and self.heads(self.stream(t, taken))):
            return kept
        predicted = self.predicted_at(s, t)
        best = sorted(kept, key=lambda a: (predicted[a], a))[: self.prune]
        teacher = self.teacher(s, mix(mix(mix(self.round, SAMPLE_ACTION), t), TEACHER))
        return sorted({*best, taken, teacher})

    def kept_steps(self, steps: int) -> list[int]:
        """The steps at which deviations are tried: all, or a random sample."""
        need = min(self.choices.sample_steps or steps, steps)
        kept: list[int] = []
        for t in range(steps):
            if unit(mix(mix(self.round, SAMPLE_STEP), t)) * (steps - t) < need - len(kept):
                kept.append(t)
        return kept

    def lessons(self) -> tuple[list[Lesson], list[float]]:
        """Γ, one lesson for each state; and the losses of the roll-in and of completions by teacher and learner.

        A state that was not sampled, or that is passed over, has an empty lesson.
        """
        states, taken, loss = self.roll_in()
        kept = self.kept_steps(len(states))
        compared = kept[int(unit(mix(self.round, COMPARE)) * len(kept))]
        lessons, losses = [], [loss, 0.0, 0.0]
        for t, s in enumerate(states):
            lesson = NOT_LEARNED
            if t in kept:
                value = self.immediate if self.choices.roll_out == "none" else self.value
                tried = self.unpruned(s, t, taken[t], self.kept_actions(s, t, taken[t]))
                values = {a: value(s, t, a) for a in tried}
                costs = {a: v - min(values.values()) for a, v in values.items()}
                if not (self.predicts_at(t) and self.passes_over(costs, self.predicted_at(s, t))):
                    weight = float(np.float32(len(states) / len(kept)))
                    lesson = Lesson(self.features(s), costs, weight, self.by_action(s))
            lessons.append(lesson)
            if t == compared and self.choices.roll_out != "none":
                stream = self.stream(t, taken[t])
                losses[1:] = [self.deviation(s, taken[t], who, stream) for who in ("teacher", "learner")]
        return lessons, losses


def _size(size: Any, x: Any) -> int:
    return int(size(x) if callable(size) else size)


def _emitted(out: Any) -> Features:
    return [(int(out.ids[k]), float(out.values[k])) for k in range(out.size[0])]
