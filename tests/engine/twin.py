"""Training with the slow twins, and conversion between their objects and the arrays of the engine."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from lols.contract.space import Example, Reference, SearchSpace
from lols.engine.structures import Batch, FrozenPolicy, Lessons, Slots
from lols.engine.table import fill, growing_table
from lols.specification import Choices, Features, Lesson, SlowPolicy, SlowSearch
from tests.engine.twin_learner import F, TwinLearner

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

    β="auto" is the probability that the teacher's completions are cheaper. With `searn` each pass trains a new learner,
    and rolls with a mixture of the averages of the passes before it, one drawn at each step.
    """
    total = passes * len(data)
    seen: list[tuple[float, float]] = []  # losses of completions by teacher and learner
    alpha = 1 - 0.5 ** (2 / max(total, 2))
    components: list[tuple[float, SlowPolicy]] = []
    for number in range(passes):
        if searn:
            learner.restart()
        for begin in range(0, len(data), batch_size):
            policy = _blend(components, learner) if searn else learner.policy()
            beta = choices.beta
            if beta == "auto":
                beta = _teacher_is_better(seen)
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
                seen.append((losses[1], losses[2]))
        if searn:
            kept = (1 - alpha) ** len(data)
            components = [(w * kept, p) for w, p in components] + [(1 - kept, learner.policy(averaged=True))]
    return _blend(components, learner) if searn else learner.policy(averaged=True)


def _teacher_is_better(seen: list[tuple[float, float]]) -> float:
    """The probability that the teacher's completions are cheaper, from the weighted means of all that was seen."""
    if len(seen) < 2:
        return 1.0
    teacher = learner = squares = 0.0
    spread = 1.0
    for count, (with_teacher, with_learner) in enumerate(seen, 1):
        rate = max(3.0 / (count + 2.0), 1.0 / 300)
        teacher += rate * (with_teacher - teacher)
        learner += rate * (with_learner - learner)
        squares += rate * ((with_teacher - with_learner) ** 2 - squares)
        spread += rate * (rate - (2.0 - rate) * spread)
    gain = teacher - learner
    error = math.sqrt(max(squares - gain**2, 0.0) * spread / (1.0 - spread))
    if error == 0.0:
        return 0.5 if gain == 0.0 else float(gain < 0.0)
    return 0.5 * math.erfc(gain / (error * math.sqrt(2.0)))


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
