"""The linear learner: growing tables of weights, learning, and its state for checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from lols.engine.structures import FILLED, TURNS, UNSKETCHED, FrozenPolicy, Lessons, Sketched, SketchedColumns, Sketches
from lols.engine.table import (
    copied,
    distinct,
    features_by_row,
    fill,
    fixed_table,
    growing_table,
    is_fixed,
    rehash_kernel,
)
from lols.errors import ConfigurationError, LolsError
from lols.kernels.kernel import Kernel
from lols.learners.reductions import average_kernel, learn_costs_kernel, learn_margins_kernel, learn_sketched_kernel
from lols.learners.settings import LearnerSettings
from lols.learners.sketch import columns_of, make_sketches, settle_kernel, settled
from lols.learners.structures import (
    ADAGRAD,
    BAD,
    DROPPED,
    HINGE,
    NAG,
    REDUCTIONS,
    RIDGE,
    ROUNDS,
    SKETCH,
    STATES,
    UPDATES,
    Bank,
    KernelSettings,
    Workspace,
)

GROWING = ("weights", "squares", "sums", "scales", "base", "sketch", "stamps")  # `Bank.arrays`
SKETCH_PARTS = ("counts", "ridge", "gram", "inverse", "shift")
SKETCH_TURNS = ("turns", "settled", "jumps", "jumped")
RIDGE_BYTES = 1 << 30
MOST_SKETCHES = 256
FIRST_BYTES = 1 << 26


class Learner:
    """A cost-sensitive online learner over hashed features.

    Parameters
    ----------
    settings
        Reduction, update and table.
    actions
        The number of actions; None if it differs from example to example, and only actions have features.
    by_action
        Whether actions have their own features.
    averaged
        Whether to keep the sums that the averaged policy needs.
    compiled
        False runs the same kernels as plain Python.

    """

    def __init__(
        self,
        settings: LearnerSettings,
        actions: int | None,
        *,
        by_action: bool = False,
        averaged: bool = True,
        compiled: bool = True,
    ):
        if by_action and (settings.reduction == "secoc" or settings.update == "ridge"):
            raise ConfigurationError(
                f"{settings.reduction} with {settings.update} has no form for `action_features` and candidates: use "
                "hinge or csoaa with adagrad, nag or gd, or csoaa with sketch"
            )
        self.settings, self.actions, self.by_action = settings, actions, by_action
        actions = actions or 1
        self.averaged = averaged and settings.update not in ("ridge", "sketch")
        self.compiled = compiled
        self.code = hadamard_code(actions) if settings.reduction == "secoc" else np.zeros((0, actions), np.float32)
        self.columns = self.code.shape[0] * settings.thresholds if settings.reduction == "secoc" else actions
        self.recipe = KernelSettings(
            REDUCTIONS[settings.reduction],
            UPDATES[settings.update],
            float(settings.step),
            settings.width,
            settings.margin == "weighted",
            settings.thresholds,
            by_action,
            settings.keep,
        )
        self.counters = np.zeros(6, np.float64)
        self.sketches = self._sketches()
        self.shared = self._bank(self.columns)
        self.single = self._bank(1)
        self._work = _workspace(64, self.columns, actions, self.shared.inverse.shape[1])

    def _sketches(self) -> Sketches:
        """Those of sketched regressions: one for each column, or one for all if actions have their own features."""
        settings, regressions = self.settings, 1 if self.by_action else self.columns
        wanted = settings.update == "sketch"
        if wanted and regressions > MOST_SKETCHES:
            raise ConfigurationError(
                f"sketch keeps directions for each of {regressions} actions, and {MOST_SKETCHES} is the most: use nag "
                "or adagrad, or give actions features of their own"
            )
        return make_sketches(regressions if wanted else 0, settings.directions, float(settings.step))

    def _bank(self, columns: int) -> Bank:
        settings = self.settings
        rows, most = _first_rows(columns * (1 + 2 * self._directions)), min(settings.max_features, 1 << 31)
        slots, inverse = 1 << 10, np.zeros((0, 0, 0))
        if settings.bits:
            rows = 1 << settings.bits
        if settings.update == "ridge":
            rows = most = rows if settings.bits else min(settings.max_features, 1024)
            slots = 1 << (2 * rows - 1).bit_length()
            if columns * rows * rows * 8 > RIDGE_BYTES:
                raise ConfigurationError(
                    f"ridge keeps a {rows} x {rows} matrix for each of {columns} columns, more than 1 GiB: lower "
                    "max_features or bits, or use nag or adagrad"
                )
            inverse = np.stack([np.eye(rows) / settings.step] * columns)
        table = fixed_table(settings.bits) if settings.bits else growing_table(slots)
        filled = np.array([rows if settings.bits else 0], np.int64)
        weights, squares, sums, scales, base, sketch, stamps = self._arrays(rows, columns)
        return Bank(table, weights, squares, sums, scales, base, sketch, stamps, inverse, filled, most)

    @property
    def _directions(self) -> int:
        return self.settings.directions if self.recipe.update == SKETCH else 0

    def _arrays(self, rows: int, columns: int) -> tuple[np.ndarray, ...]:
        """The arrays of a bank, in the order of `Bank.arrays`."""

        def table(wanted: bool) -> np.ndarray:
            return np.zeros((rows, columns) if wanted else (0, columns), np.float32)

        adaptive = self.recipe.update in (NAG, ADAGRAD)
        scales = np.zeros(rows if self.recipe.update == NAG else 0, np.float32)
        sketched = rows if self.recipe.update == SKETCH else 0
        return (
            table(True),
            table(adaptive),
            table(self.averaged),
            scales,
            table(sketched > 0),
            np.zeros((sketched, columns, 2 * self._directions), np.float32),
            np.zeros((sketched, columns), np.int32),
        )

    def with_room(self, bank: Bank, more: int) -> Bank:
        """A table with room for `more` new features, by doubling the arrays; fixed tables never grow."""
        if is_fixed(bank.table) or self.recipe.update == RIDGE:
            return bank
        need = min(int(bank.filled[0]) + more, bank.most)
        if need > bank.weights.shape[0]:
            rows = min(max(bank.weights.shape[0] * 2, need), bank.most)
            grown, filled = self._arrays(rows, bank.weights.shape[1]), int(bank.filled[0])
            for new, old in zip(grown, bank.arrays(), strict=True):
                new[: min(filled, old.shape[0])] = old[:filled]
            bank = bank._replace(**dict(zip(GROWING, grown, strict=True)))
        if 2 * need > bank.table.entries.shape[0]:
            table = growing_table(1 << int(2 * need).bit_length())
            rehash_kernel(self.compiled, bank.table, table)
            bank = bank._replace(table=table)
        return bank

    def learn(self, lessons: Lessons, count: int | None = None) -> None:
        """Learn from lessons in the order of rounds and steps; with `count`, from the first rounds only."""
        count = lessons.example.size if count is None else count
        rounds, first, slots = self.counters[ROUNDS], lessons.first[:count], lessons.slots
        last = first + lessons.filled[:count] - 1
        if self.settings.scale not in (None, 1.0):  # the lessons may be learned from again, so they stay as they are
            scaled = slots.costs * np.float32(1.0 / float(self.settings.scale or 1.0))
            lessons = lessons._replace(slots=slots._replace(costs=scaled))
        self.shared = self.with_room(self.shared, int((slots.stop[last] - slots.start[first]).sum()))
        if self.by_action:
            self.single = self.with_room(self.single, int(slots.action_ids.size))
        self.widen(max(lessons.widest, lessons.widest_action), slots.costs.shape[1])
        kernel, arguments = self._call(lessons, count)
        kernel(self.compiled, *arguments)
        if self.counters[BAD]:
            at = int(lessons.example[int(self.counters[BAD] - rounds) - 1])
            raise LolsError(
                f"the weights became infinite at example {at}: lower the rate {self.settings.step:g} or scale features"
            )

    def _call(self, lessons: Lessons, count: int) -> tuple[Kernel, tuple[Any, ...]]:
        """The kernel that learns from the first rounds, and its arguments."""
        common = (lessons, count, self.shared, self.single, self.recipe)
        if self.recipe.reduction == HINGE:
            return learn_margins_kernel, (*common, self._work, self.counters)
        if self.recipe.update == SKETCH:
            return learn_sketched_kernel, (*common, self.sketches, self._work, self.counters)
        return learn_costs_kernel, (*common, self.code, self._work, self.counters)

    def calls(self, lessons: Lessons) -> list[tuple[Kernel, tuple[Any, ...]]]:
        """The kernels of learning with arguments of the right types, to compile them ahead."""
        average: tuple[Kernel, tuple[Any, ...]] = (average_kernel, (self.shared, 1.0, self.shared.weights))
        if self.recipe.update == SKETCH:
            columns = self._sketched().shared
            none = columns_of(0, self.shared.weights.shape[1], self.shared.sketch.shape[2])
            average = (settle_kernel, (columns, self.sketches, none, self.shared.weights[:0]))
        return [self._call(lessons, 0), *self.growth(), average]

    def growth(self) -> list[tuple[Kernel, tuple[Any, ...]]]:
        """The kernel that makes room for more features, likewise."""
        return [] if is_fixed(self.shared.table) else [(rehash_kernel, (self.shared.table, self.shared.table))]

    def widen(self, widest: int, actions: int) -> None:
        """Make room for states of `widest` features and this many actions."""
        if widest > self._work.rows.size or actions > self._work.costs.size:
            columns, widest = self.columns if self.actions is not None else actions, max(widest, self._work.rows.size)
            self._work = _workspace(widest, columns, actions, self.shared.inverse.shape[1])

    def restart(self) -> None:
        """Forget all weights, but keep the features' rows."""
        for bank, columns in ((self.shared, self.columns), (self.single, 1)):
            for array in bank.arrays():
                array[: int(bank.filled[0])] = 0  # unused rows stay untouched, so that they take no memory
            if bank.inverse.size:
                bank.inverse[:] = self._bank(columns).inverse
        self.sketches = self._sketches()
        self.counters[:] = 0.0

    # --- policies ---

    def policy(self, *, averaged: bool = False) -> FrozenPolicy:
        """The current policy, which shares memory with the learner, or the average over rounds.

        Weights of a sketch change with every example, also those of features that it does not have; the table has them
        as of when they were last looked at. They are up to date in the average, which is the last policy.
        """
        if averaged and self.recipe.update == SKETCH:
            return settled(self.policy(), compiled=self.compiled)
        shared, single = (
            (self._average(self.shared), self._average(self.single))
            if averaged and self.averaged
            else (self.shared.weights, self.single.weights)
        )
        return FrozenPolicy(
            self.shared.table,
            shared[np.newaxis],
            self.single.table,
            single.reshape(1, -1),
            np.ones(1),
            self.code,
            self.settings.thresholds if self.settings.reduction == "secoc" else 0,
            self._sketched(),
        )

    def _sketched(self) -> Sketched:
        """The covariances of regressions, which share memory with the learner."""
        if self.recipe.update != SKETCH:
            return UNSKETCHED
        shared, single = (SketchedColumns(bank.base, bank.sketch, bank.stamps) for bank in (self.shared, self.single))
        return Sketched(shared, single, self.sketches)

    def last(self) -> FrozenPolicy:
        """A copy of the current policy, with all its weights up to date; how sure they are is not told."""
        return frozen(self.policy(averaged=self.recipe.update == SKETCH))._replace(sketched=UNSKETCHED)

    def _average(self, bank: Bank) -> np.ndarray:
        """The mean of the weights after each round: a change in round i counts in all rounds from i on."""
        means = np.zeros((max(int(bank.filled[0]), 1), bank.weights.shape[1]), np.float32)
        average_kernel(self.compiled, bank, max(float(self.counters[ROUNDS]), 1.0), means)
        return means

    # --- state ---

    def report(self) -> dict[str, Any]:
        """Numbers of features, bytes, bytes per feature, dropped features, rounds and states."""
        features = int(self.shared.filled[0]) + int(self.single.filled[0]) * (not is_fixed(self.single.table))
        total = 0
        for bank in (self.shared, self.single):
            total += bank.table.entries.nbytes + bank.inverse.nbytes
            total += sum(array[: int(bank.filled[0])].nbytes for array in bank.arrays())
        return {
            "features": features,
            "bytes": total,
            "bytes_per_feature": total / max(features, 1),
            "dropped": int(self.counters[DROPPED]),
            "rounds": int(self.counters[ROUNDS]),
            "states": int(self.counters[STATES]),
        }

    def state(self) -> dict[str, np.ndarray]:
        """A copy of the whole state of the learner, as named arrays without unused rows."""
        state = {"counters": self.counters.copy()}
        for name, bank in (("shared", self.shared), ("single", self.single)):
            rows = int(bank.filled[0])
            state[f"{name}.features"] = features_by_row(bank.table, rows)
            for part in GROWING[:4] if self.recipe.update != SKETCH else GROWING:
                state[f"{name}.{part}"] = getattr(bank, part)[:rows].copy()
            if bank.inverse.size:
                state[f"{name}.inverse"] = bank.inverse.copy()
        return state | self._sketch_state() if self.recipe.update == SKETCH else state

    def _sketch_state(self) -> dict[str, np.ndarray]:
        """Of sketches, what they are now, and the turns that some column has missed."""
        sketches, state = self.sketches, {}
        for name in SKETCH_PARTS:
            state[f"sketch.{name}"] = getattr(sketches, name).copy()
        at = self._missed_turns()
        for name in SKETCH_TURNS:
            array = getattr(sketches, name)
            state[f"sketch.{name}"] = array[np.arange(array.shape[0])[:, np.newaxis], at % max(array.shape[1], 1)]
        return state

    def _missed_turns(self) -> np.ndarray:
        """The numbers [regression, turn] of the last turns, from the first that a column has missed on."""
        now, most = self.sketches.counts[:, TURNS], 0
        for bank in (self.shared, self.single):
            stamps = bank.stamps[: int(bank.filled[0])].astype(np.int64)
            behind = np.where(stamps > 0, (now + 1) - stamps, 0)  # of all regressions, or of the only one
            most = max(most, int(behind.max(initial=0)))
        return now[:, np.newaxis] - most + np.arange(most)

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore the state of a learner with the same settings."""
        for name, columns in (("shared", self.columns), ("single", 1)):
            setattr(self, name, self._loaded(name, columns, state))
        if self.recipe.update == SKETCH:
            self._load_sketches(state)
        counters = _checked(state, "counters", self.counters.shape).astype(np.float64)
        if not (counters >= 0.0).all() or counters[BAD]:
            raise LolsError("'counters' has numbers that do not count")
        self.counters = counters

    def _loaded(self, name: str, columns: int, state: Mapping[str, np.ndarray]) -> Bank:
        bank = self._bank(columns)
        features = state.get(f"{name}.features", np.zeros(0, np.int64))
        rows = 1 << self.settings.bits if self.settings.bits else features.size
        if not self.settings.bits:
            if not distinct(features) or rows > bank.most:
                raise LolsError(f"'{name}.features' is not a list of at most {bank.most} different features")
            bank = self.with_room(bank, rows)
            fill(bank.table, features, compiled=self.compiled)
            bank.filled[0] = rows
        for part in GROWING[:4] if self.recipe.update != SKETCH else GROWING:
            array = getattr(bank, part)
            shape = (rows, *array.shape[1:]) if array.shape[0] else array.shape
            array[: shape[0]] = _checked(state, f"{name}.{part}", shape)
            if part in ("squares", "scales", "stamps") and (array[: shape[0]] < 0.0).any():
                raise LolsError(f"'{name}.{part}' has negative numbers")
        if bank.inverse.size:
            bank.inverse[:] = _checked(state, f"{name}.inverse", bank.inverse.shape)
        return bank

    def _load_sketches(self, state: Mapping[str, np.ndarray]) -> None:
        self.sketches = sketches = self._sketches()
        for name in SKETCH_PARTS:
            array = getattr(sketches, name)
            array[:] = _checked(state, f"sketch.{name}", array.shape)
        counts, rows = sketches.counts, sketches.along.size
        if (counts < 0).any() or (counts[:, FILLED] >= rows).any() or not (sketches.ridge > 0.0).all():
            raise LolsError("'sketch.counts' or 'sketch.ridge' has numbers that do not count")
        at = self._missed_turns()
        if at.shape[1] > max(sketches.turns.shape[1] - 1, 0) or any(
            (bank.stamps > counts[:, TURNS] + 1).any() for bank in (self.shared, self.single)
        ):
            raise LolsError("the stamps of the learner's state do not fit its turns")
        there = at >= 0  # one of several regressions may have turned less often than another has missed turns
        for name in SKETCH_TURNS:
            array = getattr(sketches, name)
            given = _checked(state, f"sketch.{name}", (*at.shape, *array.shape[2:]))
            of = np.broadcast_to(np.arange(at.shape[0])[:, np.newaxis], at.shape)
            array[of[there], at[there] % max(array.shape[1], 1)] = given[there]

    def describe(self) -> dict[str, Any]:
        """Settings as plain values, for model files."""
        return asdict(self.settings) | {"actions": self.actions, "by_action": self.by_action, "averaged": self.averaged}


def frozen(policy: FrozenPolicy) -> FrozenPolicy:
    """A copy that later learning does not change."""
    return policy._replace(
        shared=copied(policy.shared),
        single=copied(policy.single),
        stack=policy.stack.copy(),
        single_stack=policy.single_stack.copy(),
    )


def hadamard_size(actions: int) -> int:
    """The number of subsets in `hadamard_code`."""
    return int((1 << max(actions - 1, 1).bit_length()) - 1)


def hadamard_code(actions: int) -> np.ndarray:
    """Subsets of the actions such that half of them separate any two actions (Sylvester's construction).

    >>> hadamard_code(3).astype(int).tolist()
    [[0, 1, 0], [0, 0, 1], [0, 1, 1]]
    """
    code = np.zeros((1, 1), np.bool_)
    while code.shape[0] <= hadamard_size(actions):
        code = np.block([[code, code], [code, ~code]])
    return code[1:, :actions].astype(np.float32)


def _first_rows(columns: int) -> int:
    """Rows of a new table: many, because untouched memory costs nothing, and growing copies everything."""
    return max(1 << 9, min(1 << 18, FIRST_BYTES // (4 * columns)))


def _checked(state: Mapping[str, np.ndarray], name: str, shape: tuple[int, ...]) -> np.ndarray:
    if name not in state:
        raise LolsError(f"the learner's state has no '{name}'")
    if state[name].shape != shape:
        raise LolsError(f"'{name}' has shape {state[name].shape}; this learner needs {shape}")
    return state[name]


def _workspace(features: int, columns: int, actions: int, dense: int) -> Workspace:
    def column() -> np.ndarray:
        return np.zeros(columns, np.float32)

    return Workspace(
        rows=np.zeros(features, np.int64),
        action_rows=np.zeros(features, np.int64),
        columns=column(),
        targets=column(),
        importance=column(),
        gradients=column(),
        sensitivity=column(),
        dense=np.zeros(dense, np.float64),
        costs=np.zeros(actions, np.float32),
    )
