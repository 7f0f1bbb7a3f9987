"""Searn's policy: a mixture of the policies of all passes, each trained from scratch; one is drawn at each state."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from lols.engine.structures import FrozenPolicy, Table
from lols.engine.table import copied, features_by_row, fill, growing_table, is_fixed
from lols.errors import LolsError
from lols.learners.learner import Learner


class PolicyMixture:
    """The components so far and their weights; the reference has the rest of the weight.

    After a pass of n rounds the new component has weight 1 - (1 - α)^n, and the weights of the others are multiplied by
    (1 - α)^n, so that after t rounds the learned part has weight 1 - (1 - α)^t.
    """

    def __init__(self, alpha: float):
        self.alpha = alpha
        self.weights = np.zeros(0)
        self.stack = np.zeros((0, 0, 0), np.float32)
        self.single_stack = np.zeros((0, 0), np.float32)
        self.tables: tuple[Table, Table] | None = None

    @property
    def reference_weight(self) -> float:
        """The probability of the reference at a state."""
        return float(1.0 - self.weights.sum()) if self.weights.size else 1.0

    def begin(self, learner: Learner) -> None:
        """Start a pass: a new learner over the features seen so far, and frozen components."""
        learner.restart()
        self._freeze(learner)

    def _freeze(self, learner: Learner) -> None:
        policy = learner.policy()
        self.tables = copied(policy.shared), copied(policy.single)

    def policy(self, learner: Learner) -> FrozenPolicy:
        """The learned part of the mixture as it was at the beginning of the pass."""
        assert self.tables is not None
        if not self.weights.size:
            blank, empty = learner.policy(), growing_table(16)
            if is_fixed(blank.shared):
                return blank._replace(stack=np.zeros_like(blank.stack))
            stack, single_stack = np.zeros((1, 1, blank.stack.shape[2]), np.float32), np.zeros((1, 1), np.float32)
            return blank._replace(shared=empty, stack=stack, single=empty, single_stack=single_stack)
        return learner.policy()._replace(
            shared=self.tables[0],
            single=self.tables[1],
            stack=self.stack,
            single_stack=self.single_stack,
            chances=self._chances(),
        )

    def _chances(self) -> np.ndarray:
        chances = np.cumsum(self.weights / self.weights.sum())
        chances[-1] = 1.0
        return chances

    def end(self, learner: Learner, rounds: int) -> None:
        """Finish a pass: its policy becomes a component."""
        policy = learner.policy(averaged=True)
        # Without the unused rows of growing tables, whose number depends on how often a run was interrupted.
        self.stack = _stacked(self.stack, policy.stack[:, : learner.shared.filled[0]])
        self.single_stack = _stacked(self.single_stack, policy.single_stack[:, : learner.single.filled[0]])
        kept = (1.0 - self.alpha) ** rounds
        self.weights = np.append(self.weights * kept, 1.0 - kept)
        self._freeze(learner)

    def final(self, learner: Learner) -> FrozenPolicy:
        """The mixture without the reference."""
        if not self.weights.size:
            return learner.policy(averaged=True)
        return self.policy(learner)

    def state(self) -> dict[str, np.ndarray]:
        """The state for checkpoints. The frozen tables are the first rows of the learner's tables."""
        assert self.tables is not None
        sizes = [int((t.rows >= 0).sum()) for t in self.tables]
        return {
            "mixture.weights": self.weights,
            "mixture.stack": self.stack,
            "mixture.single": self.single_stack,
            "mixture.rows": np.array(sizes, np.int64),
        }

    def load(self, tensors: Mapping[str, np.ndarray], learner: Learner) -> None:
        """Continue from a checkpoint; arrays that do not fit together, or not this learner, are an error."""
        weights, stack, single_stack, sizes = (tensors[f"mixture.{n}"] for n in ("weights", "stack", "single", "rows"))
        if weights.dtype != np.float64 or weights.ndim != 1 or not _shares(weights):
            raise LolsError("'mixture.weights' has no probabilities")
        if sizes.dtype != np.int64 or sizes.shape != (2,):
            raise LolsError("'mixture.rows' has no two numbers")
        # The kernels find a row in a table, and read it in every component.
        banks = (learner.shared, stack, (learner.columns,)), (learner.single, single_stack, ())
        for (bank, part, columns), count in zip(banks, sizes.tolist(), strict=True):
            if not 0 <= count <= bank.filled[0]:
                raise LolsError(f"'mixture.rows' has {count} of {bank.filled[0]} rows")
            rows = int(bank.filled[0]) if is_fixed(bank.table) else count
            needed = (weights.size, rows, *columns) if weights.size else (0,) * part.ndim
            if part.dtype != np.float32 or part.shape != needed:
                raise LolsError(f"a component of the mixture has shape {part.shape}; this learner needs {needed}")
        self.weights, self.stack, self.single_stack = weights.copy(), stack.copy(), single_stack.copy()
        self._freeze(learner)
        assert self.tables is not None
        shared, single = (_first_rows(t, n, learner.compiled) for t, n in zip(self.tables, sizes.tolist(), strict=True))
        self.tables = shared, single


def _shares(weights: np.ndarray) -> bool:
    """Whether these are probabilities of policies, with some or nothing left for the reference."""
    return bool((weights >= 0.0).all()) and (weights.size == 0 or 0.0 < weights.sum() <= 1.0 + 1e-9)


def _stacked(stack: np.ndarray, added: np.ndarray) -> np.ndarray:
    stacked = np.zeros((stack.shape[0] + 1, *added.shape[1:]), np.float32)
    if stack.size:
        stacked[:-1, : stack.shape[1]] = stack
    stacked[-1] = added[0]
    return stacked


def _first_rows(table: Table, count: int, compiled: bool) -> Table:
    """The table as it was when it had `count` rows; a table of fixed size is unchanged."""
    if is_fixed(table):
        return table
    earlier = growing_table(table.entries.shape[0])
    fill(earlier, features_by_row(table, count), compiled=compiled)
    return earlier
