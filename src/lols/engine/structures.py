"""What the kernels pass to each other: records of arrays and numbers behind pointers, and the names of their values."""

from __future__ import annotations

from typing import Any

import numpy as np

from lols.contract.features import FeatureBuffer, ItemBuffer
from lols.engine.compile.layout import Struct

REFERENCE, LEARNED, MIXTURE, NONE = 0, 1, 2, 3
ROLLS = {"reference": REFERENCE, "learned": LEARNED, "mixture": MIXTURE, "none": NONE}

STATE, ROLLOUT, EXAMPLE, EXPECTED, STEP = 0, 1, 2, 3, 4
MIXES = {"state": STATE, "rollout": ROLLOUT, "example": EXAMPLE, "expected": EXPECTED, "step": STEP}

# Purposes of random draws: each has its own stream.
COIN, TIE, TEACHER, ROLL_IN, COMPONENT, SAMPLE_STEP, SAMPLE_ACTION, COMPARE = 1, 2, 3, 4, 5, 6, 7, 8

# What a roll-out follows: a component of the learned policy (0, 1, ...), the teacher, or a draw at every step.
TEACHER_POLICY, DRAWN_POLICY = -1, -2

# The cells of a report: what is wrong, and where.
CODE, AT_EXAMPLE, AT_STEP, AT_ACTION, REPORT_CELLS = range(5)
# What can be wrong, as the kernels report it.
OK, TOO_MANY_STEPS, NO_ACTIONS, ILLEGAL_REFERENCE, TOO_MANY_FEATURES, TOO_MANY_ITEMS, NO_SUCH_ITEM = range(7)
NOT_FINITE, NEGATIVE, LOSS_NOT_FINITE = 7, 8, 9
NOTHING = -(1 << 62)  # in place of an action: none at all

# The columns of a batch's losses: of the roll-in, and of completions by teacher and learner.
ROLLED_IN, BY_TEACHER, BY_LEARNER, LOSSES = range(4)


class Table(Struct):
    """Where the weights of a feature are: hashed to a fixed size (no entries), or a growing open-addressing map."""

    shift: int
    entries: np.ndarray  # [slot, 2]: feature and row side by side, so that a look-up is one cache miss; row -1 if empty
    marks: np.ndarray  # [slot]: eight bits that say which features are surely not there, so that most cost no miss

    @property
    def keys(self) -> np.ndarray:
        """The feature in each slot; meaningless where the row is -1."""
        return self.entries[:, 0]

    @property
    def rows(self) -> np.ndarray:
        """The row in each slot, or -1."""
        return self.entries[:, 1]


class FrozenPolicy(Struct):
    """A frozen policy: one or several weight tables, drawn from with given chances, over one feature map."""

    shared: Table
    stack: np.ndarray  # [component, row, column]
    single: Table
    single_stack: np.ndarray  # [component, row]: weights of action features
    chances: np.ndarray  # cumulative
    code: np.ndarray  # [subset, action], empty unless the reduction is SECOC
    thresholds: int


class PendingRollouts(Struct):
    """Deviations to be completed later, in the place of a policy that is not at hand; then what came of them."""

    chances: np.ndarray  # as many as a policy has: more than one if it draws at random
    asking: np.ndarray  # [1]: whether deviations are written down; else their values are read, in the same order
    filled: np.ndarray  # [1]: how many there are
    example: np.ndarray  # place in the batch
    time: np.ndarray
    action: np.ndarray
    who: np.ndarray
    beta: np.ndarray
    stream: np.ndarray
    value: np.ndarray


class Plan(Struct):
    """The resolved schematic: everything that the kernels must know of an algorithm."""

    seed: int
    roll_in: int
    roll_out: int
    mix: int
    random_ties: bool
    random_teacher: bool
    set_valued: bool
    horizon: int
    sample_steps: int
    sample_actions: int
    prune: int  # the most actions that are rolled out, best-liked first; 0 for all
    imitate: bool  # without roll-outs, ask the teacher even where the space has costs
    compare: bool  # measure teacher against learner, for beta="auto"
    merge: bool
    reuse: bool
    closed_form: bool
    cache_items: bool
    live: int  # cells that a deviation copies; 0 for all
    bound: bool  # a deviation that already costs more than is known to be possible need not be rolled out
    exact: bool  # unless the state is learned from, where it matters how much it costs
    margin: float  # the hinge's, -1 if it is as wide as the difference in cost; states that have it may be passed over
    slack: float  # how much wider the margin of a state that is passed over must be; infinite for none


def following(seed: int, random_ties: bool) -> Plan:
    """A plan for following a policy: all that matters then is how ties are broken and draws are made."""
    nothing: dict[str, Any] = dict.fromkeys(Plan.names(), 0) | {
        "roll_in": LEARNED,
        "roll_out": NONE,
        "mix": STATE,
        "slack": np.inf,
    }
    flags = ("random_teacher", "set_valued", "imitate", "compare", "merge", "reuse", "closed_form", "bound", "exact")
    chosen = dict.fromkeys(flags, False) | {"cache_items": True, "margin": 1.0}
    return Plan(**(nothing | chosen | {"seed": seed, "random_ties": random_ties}))


class Data(Struct):
    """A data set as the kernels see it: two records of columns, item features, and sizes per example."""

    x: Any
    y: Any
    items: Any
    states: np.ndarray
    steps: np.ndarray


class Slots(Struct):
    """Room for lessons: features, cost vector and weight of states."""

    start: np.ndarray
    stop: np.ndarray
    ids: np.ndarray
    values: np.ndarray
    costs: np.ndarray  # [slot, action]: infinite for actions that were not evaluated, illegal ones among them
    weight: np.ndarray  # 0 for a state that was not sampled
    action_start: np.ndarray  # [slot, action]
    action_stop: np.ndarray
    action_ids: np.ndarray
    action_values: np.ndarray


class Lessons(Struct):
    """What is to be learned: Γ of Algorithm 1, for one example after the other."""

    example: np.ndarray  # [round]: its number in the data set
    first: np.ndarray  # [round]: its first slot
    filled: np.ndarray  # [round]: how many slots it has
    widest: int  # the most features that a state may have
    widest_action: int  # and an action
    slots: Slots


class Batch(Struct):
    """Examples to work on, and the lessons that come of them."""

    round: np.ndarray
    beta: np.ndarray
    beta_in: np.ndarray
    order: np.ndarray  # longest first, for balance between threads; learning goes in the order of the lessons
    losses: np.ndarray  # [example, LOSSES]
    lessons: Lessons


class StateView(Struct):
    """What is seen of a state, and what the policy thinks of it."""

    features: FeatureBuffer
    action_features: FeatureBuffer
    items: ItemBuffer
    rows: np.ndarray  # of the features' weights
    columns: np.ndarray
    part: np.ndarray
    costs: np.ndarray  # predicted, by action
    bits: np.ndarray  # the same memory as integers
    item_scores: np.ndarray  # [component, role, item, column]
    item_epochs: np.ndarray
    type_scores: np.ndarray  # [place, column]: what types contribute, while the policy stays the same
    type_places: np.ndarray  # [component, role, type]: when and where it was put there
    type_clock: np.ndarray  # the time at which the places began to be filled, and how many are
    whole: np.ndarray


class TeacherView(Struct):
    """What the teacher says of a state."""

    free: np.ndarray
    costs: np.ndarray
    rng: np.ndarray


class Memo(Struct):
    """What states are worth under teacher (line 0) and learner (line 1), by key; valid in one epoch."""

    keys: np.ndarray  # [line, slot, 2]: epoch and key, side by side
    values: np.ndarray
    filled: np.ndarray
    mask: np.ndarray  # slots in use, less one


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
    legal: np.ndarray
    there: np.ndarray  # legal actions of a roll-out's state
    predicted: np.ndarray  # [step, action]: costs predicted by the policy that rolled in; NaN where it was not asked
    predicted_bits: np.ndarray  # the same memory as integers
    values: np.ndarray  # evaluated costs, by action
    value_bits: np.ndarray  # the same memory as integers
    completed: np.ndarray  # [2]: what teacher and learner made of the action that was taken, where they are compared
    turn: np.ndarray  # [2]: the examples that this thread has taken: the next one, and where they end
    seen: StateView
    teacher: TeacherView
    memo: Memo
    base: Trail  # of the roll-in
    path: Trail  # of a roll-out
    epoch: np.ndarray
    report: np.ndarray
