"""Cost-sensitive learners on dictionaries, the slow twins of `lols.learners`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from lols.specification import Features, Lesson, SlowPolicy

# --- learners ---------------------------------------------------------------------------------------------------------

F = np.float32
TINY = F(1e-12)


class Sketch:
    """What is kept of the covariance of a regression: the matrix is `ridge` + `rows`ᵀ `rows`."""

    def __init__(self) -> None:
        self.places: dict[tuple[str, int, int], int] = {}  # of the weights
        self.rows, self.ridge = np.zeros((0, 0)), 0.0


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
        directions: int = 20,
        decay: float = 0.0,
    ):
        self.directions, self.decay = directions, decay
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
        self.sketches: dict[int, Sketch] = defaultdict(Sketch)

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
        if self.update == "sketch":
            for a, cost in sorted(example.costs.items()):
                self.sketch(0 if self.by_action else a, self.joint(example, a), cost, float(example.weight))
        elif self.reduction == "csoaa":
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

    def sketch(self, regression: int, vector: list[Any], aim: float, importance: float) -> None:
        """A step of ridge regression; then all of S is turned, as soon as it is full."""
        own, row = self.sketches[regression], np.zeros(0)
        for bank, f, at, value in vector:
            place = own.places.setdefault((bank, f, at), len(own.places))
            row = np.pad(row, (0, max(0, len(own.places) - row.size)))
            row[place] += float(value)
        row = np.pad(row, (0, len(own.places) - row.size))
        own.ridge = own.ridge or self.rate
        own.rows = np.pad(own.rows, ((0, 0), (0, row.size - own.rows.shape[1])))
        own.rows = np.vstack([own.rows, np.sqrt(importance) * row])
        weights = np.array([float(self.weights[at]) for at in own.places])
        covariance = own.ridge * np.eye(row.size) + own.rows.T @ own.rows
        weights += importance * (aim - weights @ row) * np.linalg.solve(covariance, row)
        for at, weight in zip(own.places, weights, strict=True):
            self.weights[at] = weight
        if len(own.rows) == 2 * self.directions:
            keep = (1.0 - self.decay) ** self.directions
            strengths, ways = np.linalg.eigh(own.rows @ own.rows.T)
            cut = max(strengths[-1 - self.directions], 0.0)
            left = np.maximum(strengths - cut, 0.0)
            factors = np.sqrt(keep * left / np.where(left > 0.0, strengths, 1.0))
            own.rows = (factors * ways).T[-self.directions :] @ own.rows
            own.ridge = self.rate + (own.ridge + cut / 2.0 - self.rate) * keep

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
