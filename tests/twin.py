"""The slow twin: learning to search written from the paper, with nothing fast in it.

Roll-outs are recursive, states are copied whole, weights live in dictionaries; nothing is merged, reused, cached or
known in closed form. What the compiled engine makes of an example must be what comes out here.

Random numbers are hashes of where they are used, so that the engine's coins can be tossed again here. With `mix` and
`unit` of `lols.hashing`, and purposes (in capitals) numbered in `lols.engine.structures`:

    round       mix(mix(seed, 0x1015), round)
    roll-in     stream = mix(mix(round, ROLL_IN), t); its coin: COIN, teacher: TEACHER, component: COMPONENT, ties: TIE
    deviations  stream = mix(mix(round, COIN), t), shared by the deviations at the state of step t, or each its own with
                mix="rollout": mix(mix(mix(round, COIN), t), a)
    their coin  mix(stream, -1); with mix="example", of the stream mix(round, COIN)
    roll-out    draw = mix(stream, n) at its n-th step; coin: COMPONENT, component and teacher: TEACHER, ties: TIE
    sampling    mix(mix(round, SAMPLE_STEP), t); mix(mix(round, SAMPLE_ACTION), t), and of it TEACHER or the action;
                pruning asks the same TEACHER
    no roll-out mix(mix(round, TEACHER), t): the teacher's
    comparison  mix(round, COMPARE): which of the sampled states
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any

import numpy as np

from lols.engine.structures import (
    COIN,
    COMPARE,
    COMPONENT,
    ROLL_IN,
    SAMPLE_ACTION,
    SAMPLE_STEP,
    TEACHER,
    TIE,
    Batch,
    Policy,
    Slots,
)
from lols.engine.table import fill, growing_table
from lols.features import feature_buffer, item_buffer
from lols.hashing import mix, unit
from lols.space import Example, Reference, SearchSpace

Features = list[tuple[int, float]]


@dataclass
class CostSensitiveExample:
    """What is learned from one state."""

    features: Features
    costs: dict[int, float]
    weight: float = 1.0
    by_action: dict[int, Features] = field(default_factory=dict)


NOT_LEARNED = CostSensitiveExample([], {}, 0.0)


@dataclass(kw_only=True)
class Choices:
    """The schematic, in the words of `lols.Algorithm`."""

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

    def options(self) -> dict[str, Any]:
        """The same as options of `lols.Trainer`; those that have no effect are left out."""
        made = dict(vars(self))
        if self.roll_out != "mixture":
            del made["mix"]
            if self.roll_in != "mixture" or self.beta_in is not None:
                del made["beta"]
        if self.roll_out == "none":
            del made["horizon"]
        if self.roll_out in ("none", "reference"):
            del made["prune"]
        if self.roll_in != "mixture":
            del made["beta_in"]
        return made


# --- the policy -------------------------------------------------------------------------------------------------------


@dataclass
class TwinPolicy:
    """Weights by feature, for each component one dictionary; a component is drawn at each state by its chance."""

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
        made = votes(self.code, self.thresholds, columns) if self.thresholds else columns.tolist()
        for a, shown in by_action.items():
            made[a] += sum(value * float(self.single[component].get(identity, 0.0)) for identity, value in shown)
        return made

    def compiled(self, actions: int) -> Policy:
        """The same policy as the engine takes it."""
        width = self.code.shape[0] * self.thresholds if self.thresholds else actions
        tables, stacks = [], []
        for dictionaries, columns in ((self.shared, width), (self.single, 1)):
            known = sorted({identity for d in dictionaries for identity in d})
            table = growing_table(1 << max(4, (2 * len(known)).bit_length()))
            fill(table, np.array(known, np.int64))
            stack = np.zeros((len(dictionaries), max(len(known), 1), columns), np.float32)
            for c, dictionary in enumerate(dictionaries):
                for identity, weights in dictionary.items():
                    stack[c, known.index(identity)] = weights
            tables.append(table)
            stacks.append(stack)
        chances = np.cumsum(self.chances)
        chances[-1] = 1.0
        return Policy(tables[0], stacks[0], tables[1], stacks[1][:, :, 0].copy(), chances, self.code, self.thresholds)


def votes(code: np.ndarray, thresholds: int, columns: np.ndarray) -> list[float]:
    """SECOC: a subset of the actions saves the share of its thresholds that are passed, its complement the rest."""
    made = [0.0] * code.shape[1]
    for subset in range(code.shape[0]):
        passed = sum(columns[subset * thresholds + h] > 0 for h in range(thresholds)) / thresholds
        for a in range(code.shape[1]):
            made[a] += 1 - passed if code[subset, a] else passed
    return made


def cheapest(costs: Sequence[float], among: Iterable[int], ties: str, stream: int) -> int:
    """The action of least cost; among equals the first, or one kept at random as they come by."""
    among = sorted(among)
    least = min(costs[a] for a in among)
    equal = [a for a in among if costs[a] == least]
    chosen = equal[0]
    if ties == "random":
        for seen, a in enumerate(equal, start=1):
            if unit(mix(stream, a)) * seen < 1.0:
                chosen = a
    return chosen


# --- the schematic ----------------------------------------------------------------------------------------------------


class Search:
    """One example under one policy: Algorithm 1, lines 3 to 11."""

    def __init__(
        self,
        space: SearchSpace,
        reference: Reference,
        example: Example,
        policy: TwinPolicy,
        choices: Choices,
        *,
        seed: int = 0,
        number: int = 0,
        beta: float = 0.5,
        beta_in: float = 0.5,
        learner: TwinLearner | None = None,
    ):
        self.space, self.reference, self.policy, self.choices = space, reference, policy, choices
        self.passes_over = learner.passes_over if learner is not None else lambda costs, predicted: False
        self.x, self.y = SimpleNamespace(**example.x), SimpleNamespace(**(example.y or {}))
        self.items = example.items or []
        self.beta, self.beta_in = beta, beta_in
        self.prune = choices.options().get("prune")
        self.round = mix(mix(seed, 0x1015), number)
        self.actions = space.sizes.actions
        self.state = SimpleNamespace(x=self.x, size=_size(space.sizes.state, self.x))

    # the space, with copies

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
        return float(self.space.cost(self.x, self.y, s.copy(), a)) if self.space.cost else 0.0

    def loss(self, s: np.ndarray) -> float:
        return float(self.space.loss(self.x, self.y, s.copy()))

    def features(self, s: np.ndarray) -> Features:
        made: Features = []
        if self.space.items:
            looked = item_buffer(self.space.sizes.items)
            self.space.items(self.x, s.copy(), looked)
            for k in range(looked.size[0]):
                item, role = int(looked.items[k]), int(looked.roles[k])
                for identity, value in zip(*self.items[item], strict=True):
                    made.append((mix(identity, role) if role else identity, float(np.float32(value))))
        out = feature_buffer(self.space.sizes.features)
        self.space.features(self.x, s.copy(), out)
        return made + _emitted(out)

    def by_action(self, s: np.ndarray) -> dict[int, Features]:
        made: dict[int, Features] = {}
        if self.space.action_features:
            for a in self.legal(s):
                out = feature_buffer(self.space.sizes.action_features)
                self.space.action_features(self.x, s.copy(), a, out)
                if out.size[0]:
                    made[a] = _emitted(out)
        return made

    # who acts

    def predicted(self, s: np.ndarray, component: int) -> list[float]:
        return self.policy.costs(component, self.features(s), self.by_action(s), self.actions)

    def learner(self, s: np.ndarray, among: Iterable[int], component: int, stream: int) -> int:
        return cheapest(self.predicted(s, component), among, self.choices.ties, stream)

    def component(self, stream: int) -> int:
        """A component, drawn by its chance."""
        passed = 0.0
        for c, chance in enumerate(self.policy.chances):
            passed += chance
            if unit(stream) < passed:
                return c
        return len(self.policy.chances) - 1

    def equally_good(self, s: np.ndarray, stream: int) -> list[int]:
        """The actions that the teacher finds equally good."""
        if self.reference.free:
            marked = np.zeros(self.actions, bool)
            self.reference.free(self.x, self.y, s.copy(), marked)
            return np.flatnonzero(marked).tolist()
        if self.reference.action:
            return [self.teacher(s, stream)]
        costs = np.full(self.actions, np.nan)
        self.reference.costs(self.x, self.y, s.copy(), costs)
        least = min(costs[a] for a in self.legal(s))
        return [a for a in self.legal(s) if costs[a] == least]

    def teacher(self, s: np.ndarray, stream: int) -> int:
        """The teacher in a roll-out: its action, or the first of its equally good ones."""
        if not self.reference.action:
            return self.equally_good(s, stream)[0]
        rng = np.array([stream], np.int64)
        arguments = (rng,) if self.reference.random else ()
        return int(self.reference.action(self.x, self.y, s.copy(), *arguments))

    # rolling in, deviating, rolling out

    def teacher_rolls_in(self, t: int) -> bool:
        """Whether the teacher is at the wheel at step t of the roll-in."""
        coin = mix(mix(mix(self.round, ROLL_IN), t), COIN)
        return self.choices.roll_in == "reference" or (self.choices.roll_in == "mixture" and unit(coin) < self.beta_in)

    def opinion(self, s: np.ndarray, t: int) -> list[float]:
        """What the policy that rolls in thinks of the state of step t."""
        return self.predicted(s, self.component(mix(mix(mix(self.round, ROLL_IN), t), COMPONENT)))

    def opinion_asked(self, t: int) -> bool:
        """Whether the policy that rolls in looks at step t: not where a teacher that names its action acts instead."""
        named = self.reference.action is not None and self.reference.free is None
        return self.prune is not None or not (named and self.teacher_rolls_in(t))

    def roll_in(self) -> tuple[list[np.ndarray], list[int], float]:
        """States and actions of the roll-in, and the loss at its end."""
        states, taken, s = [], [], self.begin()
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
        """What is still to come when `who` goes on: the "teacher", the "learner", or either at each "step"."""
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
        """What the schematic says that action `a` costs at the state of step t."""
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
        """Whether the coin says that the teacher rolls out."""
        coin = mix(self.round, COIN) if self.choices.mix == "example" else stream
        return unit(mix(coin, -1)) < self.beta

    def stream(self, t: int, a: int) -> int:
        shared = mix(mix(self.round, COIN), t)
        return mix(shared, a) if self.choices.roll_out == "mixture" and self.choices.mix == "rollout" else shared

    def immediate(self, s: np.ndarray, t: int, a: int) -> float:
        """Without roll-outs: what the action adds to the loss, or whether the teacher would not take it."""
        if self.space.cost:
            return self.price(s, a)
        return 0.0 if a in self.equally_good(s, mix(mix(self.round, TEACHER), t)) else 1.0

    def kept_actions(self, s: np.ndarray, t: int, taken: int) -> list[int]:
        """The actions that are deviated to: all, or the one taken, the teacher's, and others at random."""
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
        """Of the actions deviated to those that are rolled out: all, unless the learner has to do with it.

        Then those that the learner likes best, the one taken and the teacher's.
        """
        one_coin = self.choices.roll_out == "mixture" and self.choices.mix in ("state", "example")
        if self.prune is None or (one_coin and self.heads(self.stream(t, taken))):
            return kept
        liking = self.opinion(s, t)
        best = sorted(kept, key=lambda a: (liking[a], a))[: self.prune]
        teacher = self.teacher(s, mix(mix(mix(self.round, SAMPLE_ACTION), t), TEACHER))
        return sorted({*best, taken, teacher})

    def kept_steps(self, steps: int) -> list[int]:
        """The steps whose states are deviated at: all, or some at random."""
        need = min(self.choices.sample_steps or steps, steps)
        kept: list[int] = []
        for t in range(steps):
            if unit(mix(mix(self.round, SAMPLE_STEP), t)) * (steps - t) < need - len(kept):
                kept.append(t)
        return kept

    def collect(self) -> tuple[list[CostSensitiveExample], list[float]]:
        """Cost-sensitive examples, one per state; and the losses of the roll-in and of two completions.

        A state that was not sampled, or that is passed over, has nothing to be learned from.
        """
        states, taken, loss = self.roll_in()
        kept = self.kept_steps(len(states))
        compared = kept[int(unit(mix(self.round, COMPARE)) * len(kept))]
        made, losses = [], [loss, 0.0, 0.0]
        for t, s in enumerate(states):
            learned = NOT_LEARNED
            if t in kept:
                value = self.immediate if self.choices.roll_out == "none" else self.value
                tried = self.unpruned(s, t, taken[t], self.kept_actions(s, t, taken[t]))
                values = {a: value(s, t, a) for a in tried}
                costs = {a: v - min(values.values()) for a, v in values.items()}
                if not (self.opinion_asked(t) and self.passes_over(costs, self.opinion(s, t))):
                    weight = float(np.float32(len(states) / len(kept)))
                    learned = CostSensitiveExample(self.features(s), costs, weight, self.by_action(s))
            made.append(learned)
            if t == compared and self.choices.roll_out != "none":
                stream = self.stream(t, taken[t])
                losses[1:] = [self.deviation(s, taken[t], who, stream) for who in ("teacher", "learner")]
        return made, losses


def _size(size: int | Callable[[Any], int], x: Any) -> int:
    return size(x) if callable(size) else size


def _emitted(out: Any) -> Features:
    return [(int(out.ids[k]), float(out.values[k])) for k in range(out.size[0])]


# --- learners ---------------------------------------------------------------------------------------------------------

F = np.float32
TINY = F(1e-12)


class TwinLearner:
    """Cost-sensitive learners on dictionaries.

    A weight belongs to a feature and a column; an action's own features have column 0 of a second bank. The joint
    feature vector of one prediction is a list of (bank, feature, column, value).
    """

    def __init__(
        self,
        reduction: str,
        update: str,
        rate: float,
        actions: int,
        *,
        margin: str = "unit",
        code: np.ndarray | None = None,
        thresholds: int = 4,
        by_action: bool = False,
        slack: float | None = None,
        max_features: int = 1 << 26,
    ):
        self.slack, self.max_features = slack, max_features
        self.reduction, self.update, self.rate, self.actions = reduction, update, rate, actions
        self.by_action = by_action
        self.margin, self.code, self.thresholds = margin, code, thresholds if reduction == "secoc" else 0
        self.columns = code.shape[0] * thresholds if reduction == "secoc" and code is not None else actions
        self.restart()

    def restart(self) -> None:
        """Forget everything."""
        self.known: dict[str, list[int]] = {"shared": [], "single": []}  # features that have weights
        self.dropped = self.passed = 0
        self.weights: dict[tuple[str, int, int], Any] = defaultdict(lambda: F(0.0))
        self.squares: dict[tuple[str, int, int], Any] = defaultdict(lambda: F(0.0))
        self.scales: dict[tuple[str, int], Any] = defaultdict(lambda: F(0.0))
        self.after_rounds: dict[tuple[str, int, int], float] = defaultdict(float)  # sum over rounds
        self.rounds = self.total_weight = self.total_norm = 0.0
        self.regressions: dict[int, list[tuple[dict[tuple[str, int, int], float], float, float]]] = defaultdict(list)

    def learn_round(self, examples: Iterable[CostSensitiveExample]) -> None:
        """One round: all cost-sensitive examples of one structured example, then the weights count for the average."""
        self.rounds += 1
        for example in examples:
            if example.weight > 0:
                self.learn(example)
        for at, weight in self.weights.items():
            self.after_rounds[at] += float(weight)

    def average(self) -> dict[tuple[str, int, int], float]:
        return {at: total / self.rounds for at, total in self.after_rounds.items()}

    def policy(self, *, averaged: bool = False) -> TwinPolicy:
        """The current policy or the average, on its own memory."""
        shared: dict[int, np.ndarray] = {}
        single: dict[int, float] = {}
        for (bank, feature, column), weight in (self.average() if averaged else self.weights).items():
            if bank == "single":
                single[feature] = float(weight)
            else:
                shared.setdefault(feature, np.zeros(self.columns))[column] = weight
        code = self.code if self.code is not None else np.zeros((0, self.actions), F)
        return TwinPolicy([shared], [single], [1.0], code, self.thresholds)

    def admitted(self, bank: str, features: Features) -> Features:
        """Those of the features that have weights, or get them now, while there is room; the others are dropped."""
        known = self.known[bank]
        for identity, _ in features:
            if identity not in known and len(known) < self.max_features:
                known.append(identity)
            self.dropped += identity not in known
        return [(identity, value) for identity, value in features if identity in known]

    def joint(self, example: CostSensitiveExample, column: int) -> list[Any]:
        own = example.by_action.get(column, [])
        return [("shared", f, column, F(v)) for f, v in example.features] + [("single", f, 0, F(v)) for f, v in own]

    def predict(self, vector: list[Any], part: str | None = None) -> Any:
        parts = {"shared": F(0.0), "single": F(0.0)}
        for bank, f, column, value in vector:
            parts[bank] += value * self.weights[bank, f, column]
        return parts[part] if part else parts["shared"] + parts["single"]

    def learn(self, example: CostSensitiveExample) -> None:
        if self.reduction == "hinge":
            self.learn_hinge(example)
            return
        example = replace(
            example,
            features=self.admitted("shared", example.features),
            by_action={a: self.admitted("single", example.by_action.get(a, [])) for a in sorted(example.costs)},
        )
        if self.reduction == "csoaa":
            aims = [(a, F(c), F(example.weight)) for a, c in sorted(example.costs.items())]
            if self.by_action:
                # The state's part of all predictions is made before learning; actions share weights, so in turn.
                before = {a: self.predict(self.joint(example, a), "shared") for a, _, _ in aims}
                for a, cost, weight in aims:
                    predicted = before[a] + self.predict(self.joint(example, a), "single")
                    self.regress(example, [(a, cost, weight)], {a: predicted})
            else:
                self.regress(example, aims)
        else:
            self.regress(example, list(self.secoc_aims(example)))

    def secoc_aims(self, example: CostSensitiveExample) -> Iterable[tuple[int, Any, Any]]:
        """Is the subset's share of what can be saved above the threshold? As important as the distance from it."""
        worst = max(F(cost) for cost in example.costs.values())
        total = F(0.0)
        for cost in example.costs.values():
            total += worst - F(cost)
        for subset in range(self.code.shape[0]):
            inside = F(0.0)
            for a, cost in example.costs.items():
                inside += worst - F(cost) if self.code[subset, a] else F(0.0)
            for h in range(self.thresholds):
                gap = inside - total * F((h + 0.5) / self.thresholds)
                yield subset * self.thresholds + h, F(1.0) if gap >= 0 else F(-1.0), abs(gap) * F(example.weight)

    # regression of columns: (column, aim, importance)

    def regress(
        self, example: CostSensitiveExample, aims: list[tuple[int, Any, Any]], predicted: dict[int, Any] | None = None
    ) -> None:
        vectors = {column: self.joint(example, column) for column, _, _ in aims}
        predicted = predicted or {column: self.predict(vectors[column]) for column, _, _ in aims}
        if self.update == "nag":
            self.nag_regress(example, aims, vectors, predicted)
            return
        for column, aim, importance in aims:
            if self.update == "ridge":
                self.ridge(column, vectors[column], float(aim), float(importance))
                continue
            gradient = F(2.0) * (predicted[column] - aim) * importance
            if self.update == "perceptron":
                gradient = -aim * importance if predicted[column] * aim <= 0 else F(0.0)
            self.descend(vectors[column], gradient)

    def descend(self, vector: list[Any], gradient: Any) -> None:
        rate = F({"gd": self.rate / np.sqrt(max(self.rounds, 1.0)), "perceptron": 1.0}.get(self.update, self.rate))
        for bank, f, column, value in vector:
            at = (bank, f, column)
            g = gradient * value
            if self.update == "adagrad":
                self.squares[at] += g * g
                self.weights[at] -= rate * g / np.sqrt(self.squares[at] + TINY)
            else:
                self.weights[at] -= rate * gradient * value

    def ridge(self, column: int, vector: list[Any], aim: float, importance: float) -> None:
        """Solve the whole regression again."""
        if importance <= 0:
            return
        row: dict[tuple[str, int, int], float] = defaultdict(float)
        for bank, f, at, value in vector:
            row[bank, f, at] += float(value)
        self.regressions[column].append((row, aim, importance))
        known = sorted({at for r, _, _ in self.regressions[column] for at in r})
        matrix = np.array([[r.get(at, 0.0) for at in known] for r, _, _ in self.regressions[column]])
        aims = np.array([c for _, c, _ in self.regressions[column]])
        by = np.array([h for _, _, h in self.regressions[column]])
        solved = np.linalg.solve(
            self.rate * np.eye(len(known)) + matrix.T @ (by[:, None] * matrix), matrix.T @ (by * aims)
        )
        for at, weight in zip(known, solved, strict=True):
            self.weights[at] = F(weight)

    # the normalized adaptive invariant update (Ross, Mineiro & Langford 2013; Karampatziakis & Langford 2011)

    def rescale(self, vector: list[Any]) -> float:
        """Note the features' largest values, shrinking weights where they grow; the normalized size of the vector."""
        for bank, f, _, value in vector:
            before = self.scales[bank, f]
            if abs(value) > before:
                for at in [at for at in self.weights if at[:2] == (bank, f)]:
                    self.weights[at] = self.weights[at] * (before / abs(value))
                self.scales[bank, f] = abs(value)
        return sum(float(v / self.scales[bank, f]) ** 2 for bank, f, _, v in vector if v)

    def sense(self, vector: list[Any], square: Any) -> float:
        """Add a squared gradient; how much the prediction moves by a unit step."""
        total = 0.0
        for bank, f, column, value in vector:
            if value:
                self.squares[bank, f, column] += square * value * value
                root = np.sqrt(float(self.squares[bank, f, column]) + 1e-12)
                total += float(value) ** 2 / (root * float(self.scales[bank, f]))
        return total

    def nag_step(self, vector: list[Any], amount: float) -> None:
        for bank, f, column, value in vector:
            if value:
                root = np.sqrt(float(self.squares[bank, f, column]) + 1e-12)
                self.weights[bank, f, column] += F(amount * float(value) / (root * float(self.scales[bank, f])))

    def nag_regress(self, example: Any, aims: Any, vectors: Any, predicted: Any) -> None:
        movement = {}
        for column, aim, importance in aims:
            residual = float(aim) - float(predicted[column])
            norm = self.rescale(vectors[column])
            self.total_weight += float(importance)
            self.total_norm += float(importance) * norm
            movement[column] = self.sense(vectors[column], F(4 * residual**2 * float(importance)))
        factor = np.sqrt(self.total_weight / self.total_norm) if self.total_norm else 1.0
        for column, aim, importance in aims:
            residual = float(aim) - float(predicted[column])
            if importance > 0 and residual and movement[column]:
                speed = movement[column] * factor
                moved = residual * -np.expm1(-2 * self.rate * float(importance) * speed) / speed
                self.nag_step(vectors[column], moved * factor)

    # the hinge

    def violation(self, costs: dict[int, float], predicted: Any) -> tuple[int, int, Any] | None:
        """The best-liked cheapest action, the worst violator, and what is missing to the margin between them."""
        least = min(costs.values())
        good = min((a for a in sorted(costs) if costs[a] <= least), key=lambda a: predicted[a])
        wrong = [a for a in sorted(costs) if costs[a] > least]
        if not wrong:
            return None

        def margin(a: int) -> Any:
            if self.update == "perceptron":
                return F(0.0)
            return F(costs[a]) - F(least) if self.margin == "cost" else F(1.0)

        bad = max(wrong, key=lambda a: margin(a) - predicted[a])
        return good, bad, predicted[good] + (margin(bad) - predicted[bad])

    def passes_over(self, costs: dict[int, float], predicted: Any) -> bool:
        """Whether these predictions, of a policy from before, have a state so right that it needs no other look."""
        if self.slack is None:
            return False
        found = self.violation(costs, predicted)
        passed = found is None or found[2] < -self.slack
        self.passed += passed
        return passed

    def learn_hinge(self, example: CostSensitiveExample) -> None:
        predicted = {a: self.predict(self.joint(example, a)) for a in sorted(example.costs)}
        found = self.violation(example.costs, predicted)
        if found is None:
            return
        good, bad, violation = found
        if violation < 0 or (violation == 0 and self.update != "perceptron"):
            return
        # A feature gets weights only now that they change.
        example = replace(
            example,
            features=self.admitted("shared", example.features),
            by_action={a: self.admitted("single", example.by_action.get(a, [])) for a in (good, bad)},
        )
        weight = F(example.weight)
        if self.margin == "weighted":
            weight = weight * (F(example.costs[bad]) - F(example.costs[good]))
        up, down = self.joint(example, good), self.joint(example, bad)
        if self.update == "nag":
            self.total_weight += float(weight)
            movement = 0.0
            for bank in ("shared", "single"):
                for vector in (up, down):
                    part = [entry for entry in vector if entry[0] == bank]
                    self.total_norm += float(weight) * self.rescale(part)
                    movement += self.sense(part, weight)
            factor = np.sqrt(self.total_weight / self.total_norm) if self.total_norm else 1.0
            amount = min(self.rate * float(weight), float(violation) / max(movement * factor, 1e-12)) * factor
            self.nag_step(up, -amount)
            self.nag_step(down, amount)
            return
        self.descend([e for e in up if e[0] == "shared"], weight)
        self.descend([e for e in down if e[0] == "shared"], -weight)
        self.descend([e for e in up if e[0] == "single"], weight)
        self.descend([e for e in down if e[0] == "single"], -weight)


# --- training ---------------------------------------------------------------------------------------------------------


def train(
    space: SearchSpace,
    reference: Reference,
    data: Sequence[Example],
    choices: Choices,
    learner: TwinLearner,
    *,
    passes: int,
    batch_size: int,
    seed: int = 0,
    searn: bool = False,
) -> TwinPolicy:
    """Passes over the data in its order; the examples of a batch see the same policy, and are learned from in order.

    β="auto" is the teacher's share of the squared mean losses. With `searn` each pass trains a new learner, and rolls
    with a mixture of the averages of the passes before it, one drawn at each step.
    """
    total = passes * len(data)
    teacher_mean = learner_mean = compared = 0.0
    alpha = 1 - 0.5 ** (2 / max(total, 2))
    components: list[tuple[float, TwinPolicy]] = []
    for number in range(passes):
        if searn:
            learner.restart()
        for begin in range(0, len(data), batch_size):
            policy = _blend(components, learner) if searn else learner.policy()
            beta = choices.beta
            if beta == "auto":
                squares = (teacher_mean**2, learner_mean**2)
                beta = squares[1] / sum(squares) if sum(squares) else 0.5
            if searn:
                beta = (1 - alpha) ** (number * len(data))
            beta_in = beta if choices.beta_in is None else choices.beta_in
            rounds = range(begin, min(begin + batch_size, len(data)))
            batch = [
                Search(
                    space, reference, data[k], policy, choices,
                    seed=seed, number=number * len(data) + k, beta=beta, beta_in=beta_in, learner=learner,
                ).collect()
                for k in rounds
            ]  # fmt: skip
            for examples, losses in batch:
                learner.learn_round(examples)
                compared += 1
                teacher_mean += (losses[1] - teacher_mean) / min(compared, 300)
                learner_mean += (losses[2] - learner_mean) / min(compared, 300)
        if searn:
            kept = (1 - alpha) ** len(data)
            components = [(w * kept, p) for w, p in components] + [(1 - kept, learner.policy(averaged=True))]
    return _blend(components, learner) if searn else learner.policy(averaged=True)


def _blend(components: list[tuple[float, TwinPolicy]], learner: TwinLearner) -> TwinPolicy:
    """The learned part of Searn's mixture; without components a policy that knows nothing."""
    code = learner.code if learner.code is not None else np.zeros((0, learner.actions), F)
    if not components:
        return TwinPolicy([{}], [{}], [1.0], code, learner.thresholds)
    total = sum(w for w, _ in components)
    return TwinPolicy(
        [p.shared[0] for _, p in components],
        [p.single[0] for _, p in components],
        [w / total for w, _ in components],
        code,
        learner.thresholds,
    )


# --- between the twin's objects and the engine's arrays ---------------------------------------------------------------


def batch_of(rounds: Sequence[Sequence[CostSensitiveExample]], actions: int) -> Batch:
    """Cost-sensitive examples, by round, as a learner takes them."""
    flat = [example for one in rounds for example in one]
    width = max((len(e.features) for e in flat), default=0)
    own = max((len(f) for e in flat for f in e.by_action.values()), default=0)
    n = len(flat)
    slots = Slots(
        start=np.arange(n) * width,
        stop=np.array([k * width + len(e.features) for k, e in enumerate(flat)], np.int64),
        ids=np.zeros(n * width, np.int64),
        values=np.zeros(n * width, F),
        costs=np.full((n, actions), np.inf, F),
        weight=np.array([e.weight for e in flat], F),
        action_start=np.zeros((n if own else 0, actions), np.int64),
        action_stop=np.zeros((n if own else 0, actions), np.int64),
        action_ids=np.zeros(n * actions * own, np.int64),
        action_values=np.zeros(n * actions * own, F),
    )
    for k, example in enumerate(flat):
        for j, (identity, value) in enumerate(example.features):
            slots.ids[k * width + j], slots.values[k * width + j] = identity, value
        for a, cost in example.costs.items():
            slots.costs[k, a] = cost
        for a in range(actions if own else 0):
            at = (k * actions + a) * own
            shown = example.by_action.get(a, [])
            slots.action_start[k, a], slots.action_stop[k, a] = at, at + len(shown)
            for j, (identity, value) in enumerate(shown):
                slots.action_ids[at + j], slots.action_values[at + j] = identity, value
    counts = np.array([len(one) for one in rounds], np.int64)
    first = np.cumsum(counts) - counts
    return Batch(
        example=np.arange(len(rounds)),
        round=np.arange(len(rounds)),
        beta=np.full(len(rounds), 0.5),
        beta_in=np.full(len(rounds), 0.5),
        order=np.arange(len(rounds)),
        first=first,
        first_feature=first * width,
        first_action_feature=first * actions * own,
        filled=counts,
        losses=np.zeros((len(rounds), 3)),
        slots=slots,
    )


def collected(batch: Batch, b: int) -> list[CostSensitiveExample]:
    """The cost-sensitive examples that the engine left for the b-th example of a batch."""
    slots, made = batch.slots, []
    for k in range(batch.first[b], batch.first[b] + batch.filled[b]):
        span = slice(slots.start[k], slots.stop[k])
        costs: dict[int, float] = {}
        by_action: dict[int, Features] = {}
        if slots.weight[k] > 0:
            costs = {a: float(c) for a, c in enumerate(slots.costs[k]) if np.isfinite(c)}
            for a in range(slots.costs.shape[1] if slots.action_start.shape[0] else 0):
                own = slice(slots.action_start[k, a], slots.action_stop[k, a])
                if own.start < own.stop:
                    pairs = zip(slots.action_ids[own].tolist(), slots.action_values[own].tolist(), strict=True)
                    by_action[a] = list(pairs)
        features = list(zip(slots.ids[span].tolist(), slots.values[span].tolist(), strict=True))
        made.append(CostSensitiveExample(features, costs, float(slots.weight[k]), by_action))
    return made


def weights_by_feature(policy: Policy, component: int = 0) -> tuple[dict[int, np.ndarray], dict[int, np.ndarray]]:
    """The weights of a policy over growing tables, shared and single, by feature; rows of zeros are left out."""
    made = []
    for table, stack in ((policy.shared, policy.stack), (policy.single, policy.single_stack[:, :, np.newaxis])):
        taken = np.flatnonzero(table.rows >= 0)
        rows = {int(table.keys[h]): stack[component, table.rows[h]] for h in taken if table.rows[h] < stack.shape[1]}
        made.append({identity: row for identity, row in rows.items() if row.any()})
    return made[0], made[1]
