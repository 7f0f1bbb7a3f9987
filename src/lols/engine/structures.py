"""The records that kernels pass to each other, and names for the values of their fields."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from lols.contract.features import FeatureBuffer, ItemBuffer
from lols.kernels.layout import Struct

REFERENCE, LEARNED, MIXTURE, NONE = 0, 1, 2, 3
ROLLS = {"reference": REFERENCE, "learned": LEARNED, "mixture": MIXTURE, "none": NONE}

STATE, ROLLOUT, EXAMPLE, EXPECTED, STEP = 0, 1, 2, 3, 4
MIXES = {"state": STATE, "rollout": ROLLOUT, "example": EXAMPLE, "expected": EXPECTED, "step": STEP}

# Purposes of random draws; each has its own stream.
COIN, TIE, TEACHER, ROLL_IN, COMPONENT, SAMPLE_STEP, SAMPLE_ACTION, COMPARE = 1, 2, 3, 4, 5, 6, 7, 8

# The policy of a roll-out: a component of the learned one (0, 1, ...), the teacher, or a draw at every step.
TEACHER_POLICY, DRAWN_POLICY = -1, -2

# The cells of a report: an error code, and where the error occurred.
CODE, AT_EXAMPLE, AT_STEP, AT_ACTION, REPORT_CELLS = range(5)
# Error codes.
OK, TOO_MANY_STEPS, NO_ACTIONS, ILLEGAL_REFERENCE, TOO_MANY_FEATURES, TOO_MANY_ITEMS, NO_SUCH_ITEM = range(7)
NOT_FINITE, NEGATIVE, LOSS_NOT_FINITE, BAD_FEATURE, BAD_ACTION_FEATURE, NOT_WHOLE = range(7, 13)
LARGEST_COST = 1e15  # learners sum up the squares of costs in single precision
NOTHING = -(1 << 62)  # in place of an action: the teacher has none

# The columns of a batch's losses: those of the roll-in, and of completions by teacher and learner.
ROLLED_IN, BY_TEACHER, BY_LEARNER, LOSSES = range(4)


class Table(Struct):
    """The rows of features: hashed to a fixed number (no entries), or in a growing map with open addressing."""

    shift: int
    entries: np.ndarray  # [slot, 2]: feature and row, adjacent for one cache miss per look-up; row -1 if empty
    marks: np.ndarray  # [slot]: eight bits of a filter that rules out most absent features without a cache miss

    @property
    def keys(self) -> np.ndarray:
        """The feature in each slot; undefined where the row is -1."""
        return self.entries[:, 0]

    @property
    def rows(self) -> np.ndarray:
        """The row in each slot, or -1."""
        return self.entries[:, 1]


# The columns of `Sketches.counts`.
FILLED, TURNS, AT_SHARED, AT_SINGLE, COUNTS = range(5)


class Sketches(Struct):
    """The covariances of regressions, as far as they do not belong to single weights."""

    counts: np.ndarray  # [regression, COUNTS]: rows of S, turns so far, and the cells to be brought up to date next
    ridge: np.ndarray  # [regression]: λ
    gram: np.ndarray  # [regression, row, row]: S Sᵀ
    inverse: np.ndarray  # (λ + S Sᵀ)⁻¹
    shift: np.ndarray  # [regression, row]: β
    turns: np.ndarray  # [regression, turn, row before, row after]
    settled: np.ndarray  # [regression, turn, row]: β before the turn
    jumps: np.ndarray  # [regression, number, row, row]: products of turns; see `jump_place`
    jumped: np.ndarray  # [regression, number, row]: what they add to the base
    along: np.ndarray  # S z
    gain: np.ndarray  # its product with the inverse
    moved: np.ndarray
    values: np.ndarray
    vectors: np.ndarray
    beside: np.ndarray
    work: np.ndarray
    places: np.ndarray


class SketchedColumns(Struct):
    """What stands beside the weights of a table, if they are those of sketched regressions."""

    base: np.ndarray  # [row, column]
    sketch: np.ndarray  # [row, column, row of S]
    stamps: np.ndarray  # [row, column]: the turns that the sketch has, plus one; 0 before the first example


class Sketched(Struct):
    """How sure a policy is of its weights: the covariances of its regressions. See `lols.learners.sketch`."""

    shared: SketchedColumns
    single: SketchedColumns
    sketches: Sketches


def _nothing(kind: Any, **dims: int) -> Any:
    """A record of empty arrays, of this many dimensions."""
    kinds: dict[str, Any] = {"counts": np.int64, "places": np.int64, "stamps": np.int32}
    kinds |= dict.fromkeys(("base", "sketch", "turns", "jumps", "moved"), np.float32)
    return kind(**{name: np.zeros((0,) * count, kinds.get(name, np.float64)) for name, count in dims.items()})


NO_COLUMNS: SketchedColumns = _nothing(SketchedColumns, base=2, sketch=3, stamps=2)
NO_SKETCHES: Sketches = _nothing(
    Sketches,
    **{"counts": 2, "ridge": 1, "gram": 3, "inverse": 3, "shift": 2, "turns": 4, "settled": 3, "jumps": 4, "jumped": 3},
    **{"along": 1, "gain": 1, "moved": 1, "values": 1, "vectors": 2, "beside": 1, "work": 1, "places": 1},
)
UNSKETCHED = Sketched(NO_COLUMNS, NO_COLUMNS, NO_SKETCHES)


class FrozenPolicy(Struct):
    """A frozen policy: one component or several, drawn from with given probabilities, over one feature map."""

    shared: Table
    stack: np.ndarray  # [component, row, column]
    single: Table
    single_stack: np.ndarray  # [component, row]: weights of action features
    chances: np.ndarray  # cumulative
    code: np.ndarray  # [subset, action], empty unless the reduction is SECOC
    thresholds: int
    sketched: Sketched = UNSKETCHED


class PendingRollouts(Struct):
    """Deviations to be completed later, in place of the policy; then their costs."""

    chances: np.ndarray  # more than one if the policy draws at random
    asking: np.ndarray  # [1]: whether deviations are recorded; otherwise their costs are read, in the same order
    filled: np.ndarray  # [1]: how many were recorded or read
    example: np.ndarray  # position in the batch
    time: np.ndarray
    action: np.ndarray
    who: np.ndarray
    beta: np.ndarray
    stream: np.ndarray
    value: np.ndarray


class Plan(Struct):
    """The resolved algorithm, as the kernels need it; by default, the learned policy is followed."""

    seed: int = 0
    roll_in: int = LEARNED
    roll_out: int = NONE
    mix: int = STATE
    random_ties: bool = False
    random_teacher: bool = False
    set_valued: bool = False
    horizon: int = 0
    sample_steps: int = 0
    sample_actions: int = 0
    prune: int = 0  # the most actions that are rolled out, those of least predicted cost; 0 for all
    imitate: bool = False  # without roll-outs, use the teacher's actions even if the space has costs
    compare: bool = False  # compare completions by teacher and learner, for beta="auto"
    merge: bool = False
    reuse: bool = False
    closed_form: bool = False
    cache_items: bool = True
    live: int = 0  # cells that a deviation copies; 0 for all
    bound: bool = False  # do not roll out a deviation that already costs more than the action taken
    exact: bool = False  # but do so if the state is learned from, because its exact cost matters
    margin: float = 1.0  # of the hinge; -1 for the difference in cost
    slack: float = math.inf  # a state is passed over if its margins exceed `margin` by this much; infinite for never


def following(seed: int, random_ties: bool) -> Plan:
    """A plan for following a policy, where only the handling of ties and the seed of draws matter."""
    return Plan(seed=seed, random_ties=random_ties)


class Data(Struct):
    """A data set: two records of columns, item features, and the sizes of each example."""

    x: Any
    y: Any
    items: Any
    states: np.ndarray
    steps: np.ndarray


class Slots(Struct):
    """Memory for lessons: features, cost vector and weight of states."""

    start: np.ndarray
    stop: np.ndarray
    ids: np.ndarray
    values: np.ndarray
    costs: np.ndarray  # [slot, action]: infinite for illegal actions and others that were not evaluated
    weight: np.ndarray  # 0 for a state that was not sampled
    action_start: np.ndarray  # [slot, action]
    action_stop: np.ndarray
    action_ids: np.ndarray
    action_values: np.ndarray


class Lessons(Struct):
    """Γ of Algorithm 1, for one example after the other."""

    example: np.ndarray  # [round]: the number in the data set
    first: np.ndarray  # [round]: the first slot
    filled: np.ndarray  # [round]: the number of slots
    widest: int  # the most features that a state may have
    widest_action: int  # the most features that an action may have
    slots: Slots


class Batch(Struct):
    """The examples of a batch, and their lessons."""

    round: np.ndarray
    beta: np.ndarray
    beta_in: np.ndarray
    order: np.ndarray  # longest first, for balance between threads; learning follows the order of the lessons
    losses: np.ndarray  # [example, LOSSES]
    lessons: Lessons


class StateView(Struct):
    """The features of a state, and the scores of the policy."""

    features: FeatureBuffer
    action_features: FeatureBuffer
    items: ItemBuffer
    rows: np.ndarray  # of the weights of the features
    columns: np.ndarray
    part: np.ndarray
    costs: np.ndarray  # predicted, by action
    bits: np.ndarray  # the same memory as integers
    item_scores: np.ndarray  # [component, role, item, column]
    item_epochs: np.ndarray
    type_scores: np.ndarray  # [place, column]: scores of types under the current policy
    type_places: np.ndarray  # [component, role, type]: clock[0] plus the place, as of when it was written
    type_clock: np.ndarray  # [2]: a count that makes older places invalid, and the number of places in use
    whole: np.ndarray


class TeacherView(Struct):
    """The answers of the teacher at a state."""

    free: np.ndarray
    costs: np.ndarray
    rng: np.ndarray


class Memo(Struct):
    """Costs to go from states under teacher (line 0) and learner (line 1), by key; valid in one epoch."""

    keys: np.ndarray  # [line, slot, 2]: epoch and key
    values: np.ndarray
    filled: np.ndarray
    mask: np.ndarray  # the number of slots in use, minus one


class Trail(Struct):
    """The steps of the roll-in, or of one roll-out."""

    action: np.ndarray
    cost: np.ndarray
    value: np.ndarray
    key: np.ndarray


class Scratch(Struct):
    """One thread's working memory."""

    state: np.ndarray
    deviation: np.ndarray
    legal: np.ndarray  # legal actions of the roll-in's state, reduced to those that are tried
    all_legal: np.ndarray  # the same before the reduction, for the teacher
    kept: np.ndarray  # actions that sampling and pruning keep
    rollout_legal: np.ndarray  # legal actions of a roll-out's state
    predicted: np.ndarray  # [step, action]: costs predicted by the policy that rolled in; NaN where it was not needed
    predicted_bits: np.ndarray  # the same memory as integers
    values: np.ndarray  # evaluated costs, by action; one cell more, for the least of them
    value_bits: np.ndarray  # the same memory as integers
    completed: np.ndarray  # [2]: cost of the action taken if teacher or learner completes it, where they are compared
    turn: np.ndarray  # [2]: the examples that this thread has taken: the next one, and the end
    seen: StateView
    teacher: TeacherView
    memo: Memo
    base: Trail  # of the roll-in
    path: Trail  # of a roll-out
    epoch: np.ndarray
    report: np.ndarray
