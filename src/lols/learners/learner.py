"""The linear learner: growing tables of weights, learning, and its state for checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from lols.engine.structures import FrozenPolicy, Lessons
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
from lols.learners.reductions import average_kernel, learn_costs_kernel, learn_margins_kernel
from lols.learners.settings import LearnerSettings
from lols.learners.structures import (
    ADAGRAD,
    BAD,
    DROPPED,
    HINGE,
    NAG,
    REDUCTIONS,
    RIDGE,
    ROUNDS,
    STATES,
    UPDATES,
    Bank,
    KernelSettings,
    Workspace,
)

RIDGE_BYTES = 1 << 30
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
                "hinge or csoaa with adagrad, nag or gd"
            )
        self.settings, self.actions, self.by_action = settings, actions, by_action
        actions = actions or 1
        self.averaged = averaged and settings.update != "ridge"
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
        )
        self.counters = np.zeros(6, np.float64)
        self.shared = self._bank(self.columns)
        self.single = self._bank(1)
        self._work = _workspace(64, self.columns, actions, self.shared.inverse.shape[1])

    def _bank(self, columns: int) -> Bank:
        settings = self.settings
        rows, most = _first_rows(columns), min(settings.max_features, 1 << 31)
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
        return Bank(table, *self._arrays(rows, columns), inverse, filled, most)

    def _arrays(self, rows: int, columns: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        def table(wanted: bool) -> np.ndarray:
            return np.zeros((rows, columns) if wanted else (0, columns), np.float32)

        adaptive = self.recipe.update in (NAG, ADAGRAD)
        scales = np.zeros(rows if self.recipe.update == NAG else 0, np.float32)
        return table(True), table(adaptive), table(self.averaged), scales

    def with_room(self, bank: Bank, more: int) -> Bank:
        """A table with room for `more` new features, by doubling the arrays; fixed tables never grow."""
        if is_fixed(bank.table) or self.recipe.update == RIDGE:
            return bank
        need = min(int(bank.filled[0]) + more, bank.most)
        if need > bank.weights.shape[0]:
            rows = min(max(bank.weights.shape[0] * 2, need), bank.most)
            weights, squares, sums, scales = grown = self._arrays(rows, bank.weights.shape[1])
            for new, old in zip(grown, bank.arrays(), strict=True):
                new[: old.shape[0]] = old
            bank = bank._replace(weights=weights, squares=squares, sums=sums, scales=scales)
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
        return learn_costs_kernel, (*common, self.code, self._work, self.counters)

    def calls(self, lessons: Lessons) -> list[tuple[Kernel, tuple[Any, ...]]]:
        """The kernels of learning with arguments of the right types, to compile them ahead."""
        average = (average_kernel, (self.shared, 1.0, self.shared.weights))
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
        self.counters[:] = 0.0

    # --- policies ---

    def policy(self, *, averaged: bool = False) -> FrozenPolicy:
        """The current policy, which shares memory with the learner, or the average over rounds."""
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
        )

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
            for part in ("weights", "squares", "sums", "scales"):
                state[f"{name}.{part}"] = getattr(bank, part)[:rows].copy()
            if bank.inverse.size:
                state[f"{name}.inverse"] = bank.inverse.copy()
        return state

    def load(self, state: Mapping[str, np.ndarray]) -> None:
        """Restore the state of a learner with the same settings."""
        for name, columns in (("shared", self.columns), ("single", 1)):
            setattr(self, name, self._loaded(name, columns, state))
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
        for part in ("weights", "squares", "sums", "scales"):
            array = getattr(bank, part)
            shape = (rows, *array.shape[1:]) if array.shape[0] else array.shape
            array[: shape[0]] = _checked(state, f"{name}.{part}", shape)
            if part in ("squares", "scales") and (array < 0.0).any():
                raise LolsError(f"'{name}.{part}' has negative numbers")
        if bank.inverse.size:
            bank.inverse[:] = _checked(state, f"{name}.inverse", bank.inverse.shape)
        return bank

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
