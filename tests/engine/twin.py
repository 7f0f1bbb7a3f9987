"""The slow twin of the learners, beside `lols.specification`; and from its objects to the engine's arrays and back."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from lols.contract.space import Example, Reference, SearchSpace
from lols.engine.structures import Batch, FrozenPolicy, Lessons, Slots
from lols.engine.table import fill, growing_table
from lols.specification import Choices, Features, Lesson, SlowPolicy, SlowSearch

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

    def learn_round(self, examples: Iterable[Lesson]) -> None:
        """One round: all cost-sensitive examples of one structured example, then the weights count for the average."""
        self.rounds += 1
        for example in examples:
            if example.weight > 0:
                self.learn(example)
        for at, weight in self.weights.items():
            self.after_rounds[at] += float(weight)

    def average(self) -> dict[tuple[str, int, int], float]:
        return {at: total / self.rounds for at, total in self.after_rounds.items()}

    def policy(self, *, averaged: bool = False) -> SlowPolicy:
        """The current policy or the average, on its own memory."""
        shared: dict[int, np.ndarray] = {}
        single: dict[int, float] = {}
        for (bank, feature, column), weight in (self.average() if averaged else self.weights).items():
            if bank == "single":
                single[feature] = float(weight)
            else:
                shared.setdefault(feature, np.zeros(self.columns))[column] = weight
        code = self.code if self.code is not None else np.zeros((0, self.actions), F)
        return SlowPolicy([shared], [single], [1.0], code, self.thresholds)

    def admitted(self, bank: str, features: Features) -> Features:
        """Those of the features that have weights, or get them now, while there is room; the others are dropped."""
        known = self.known[bank]
        for identity, _ in features:
            if identity not in known and len(known) < self.max_features:
                known.append(identity)
            self.dropped += identity not in known
        return [(identity, value) for identity, value in features if identity in known]

    def joint(self, example: Lesson, column: int) -> list[Any]:
        own = example.by_action.get(column, [])
        return [("shared", f, column, F(v)) for f, v in example.features] + [("single", f, 0, F(v)) for f, v in own]

    def predict(self, vector: list[Any], part: str | None = None) -> Any:
        parts = {"shared": F(0.0), "single": F(0.0)}
        for bank, f, column, value in vector:
            parts[bank] += value * self.weights[bank, f, column]
        return parts[part] if part else parts["shared"] + parts["single"]

    def learn(self, example: Lesson) -> None:
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

    def secoc_aims(self, example: Lesson) -> Iterable[tuple[int, Any, Any]]:
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
        self, example: Lesson, aims: list[tuple[int, Any, Any]], predicted: dict[int, Any] | None = None
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

    def learn_hinge(self, example: Lesson) -> None:
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
) -> SlowPolicy:
    """Passes over the data in its order; the examples of a batch see the same policy, and are learned from in order.

    β="auto" is the teacher's share of the squared mean losses. With `searn` each pass trains a new learner, and rolls
    with a mixture of the averages of the passes before it, one drawn at each step.
    """
    total = passes * len(data)
    teacher_mean = learner_mean = compared = 0.0
    alpha = 1 - 0.5 ** (2 / max(total, 2))
    components: list[tuple[float, SlowPolicy]] = []
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
                SlowSearch(
                    space, reference, data[k], policy, choices,
                    seed=seed, number=number * len(data) + k, beta=beta, beta_in=beta_in, learner=learner,
                ).lessons()
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


def _blend(components: list[tuple[float, SlowPolicy]], learner: TwinLearner) -> SlowPolicy:
    """The learned part of Searn's mixture; without components a policy that knows nothing."""
    code = learner.code if learner.code is not None else np.zeros((0, learner.actions), F)
    if not components:
        return SlowPolicy([{}], [{}], [1.0], code, learner.thresholds)
    total = sum(w for w, _ in components)
    return SlowPolicy(
        [p.shared[0] for _, p in components],
        [p.single[0] for _, p in components],
        [w / total for w, _ in components],
        code,
        learner.thresholds,
    )


# --- between the twin's objects and the engine's arrays ---------------------------------------------------------------


def in_arrays(policy: SlowPolicy, actions: int) -> FrozenPolicy:
    """The same policy as the engine takes it."""
    width = policy.code.shape[0] * policy.thresholds if policy.thresholds else actions
    tables, stacks = [], []
    for dictionaries, columns in ((policy.shared, width), (policy.single, 1)):
        known = sorted({identity for d in dictionaries for identity in d})
        table = growing_table(1 << max(4, (2 * len(known)).bit_length()))
        fill(table, np.array(known, np.int64))
        stack = np.zeros((len(dictionaries), max(len(known), 1), columns), np.float32)
        for c, dictionary in enumerate(dictionaries):
            for identity, weights in dictionary.items():
                stack[c, known.index(identity)] = weights
        tables.append(table)
        stacks.append(stack)
    chances = np.cumsum(policy.chances)
    chances[-1] = 1.0
    return FrozenPolicy(
        tables[0], stacks[0], tables[1], stacks[1][:, :, 0].copy(), chances, policy.code, policy.thresholds
    )


def lessons_of(rounds: Sequence[Sequence[Lesson]], actions: int) -> Lessons:
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
    return Lessons(
        example=np.arange(len(rounds)), first=first, filled=counts, widest=width, widest_action=own, slots=slots
    )


def collected(batch: Batch, b: int) -> list[Lesson]:
    """The cost-sensitive examples that the engine left for the b-th example of a batch."""
    lessons, made = batch.lessons, []
    slots = lessons.slots
    for k in range(lessons.first[b], lessons.first[b] + lessons.filled[b]):
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
        made.append(Lesson(features, costs, float(slots.weight[k]), by_action))
    return made


def weights_by_feature(policy: FrozenPolicy, component: int = 0) -> tuple[dict[int, np.ndarray], dict[int, np.ndarray]]:
    """The weights of a policy over growing tables, shared and single, by feature; rows of zeros are left out."""
    made = []
    for table, stack in ((policy.shared, policy.stack), (policy.single, policy.single_stack[:, :, np.newaxis])):
        taken = np.flatnonzero(table.rows >= 0)
        rows = {int(table.keys[h]): stack[component, table.rows[h]] for h in taken if table.rows[h] < stack.shape[1]}
        made.append({identity: row for identity, row in rows.items() if row.any()})
    return made[0], made[1]
