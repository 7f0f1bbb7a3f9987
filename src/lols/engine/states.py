"""Many states at a time, as a policy sees them; their features are gathered when they are first needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lols.contract.examples import Examples
from lols.engine.calls import step
from lols.engine.lessons import write_features
from lols.engine.policy import gather
from lols.engine.search import Search, begin, find_legal, instance
from lols.engine.structures import AT_EXAMPLE, AT_STEP, CODE, Slots
from lols.errors import ConfigurationError
from lols.kernels.hashing import GOLDEN
from lols.kernels.kernel import Kernel
from lols.kernels.layout import Struct

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


class States:
    """Some states of a search space, in order.

    All arrays are in memory that the driver reuses. They are valid until the call that received them returns, so a
    policy must copy what it wants to keep.

    Attributes
    ----------
    legal
        Which actions are legal, [state, action].
    example
        The number of each state's example in `examples`, the data set.
    step
        The step of each state's search; in a roll-out, that of the deviation.
    vectors
        The state vectors themselves, [state, cell], for policies that are written for one space. In roll-outs only the
        first `Sizes.live` cells are valid.
    memory
        The same without a copy: other rows than those in `rows` are of other searches, and so are cells behind a
        state's own.
    rows
        The row of the memory that holds each state's vector.
    draws
        A random 64-bit number for each state, for policies that draw at random; determined by the seed.
    start
        Where the features of each state begin: state i has those from `start[i]` to `start[i + 1]`, the features of its
        items first, in their roles.
    ids
        The feature ids of the states.
    values
        The values of these features.
    action_start
        The same for features of actions, if the space has them: those of action a in state i begin at
        `action_start[i * actions + a]`.
    action_ids
        The feature ids of the actions.
    action_values
        The values of the features of the actions.

    """

    vectors: np.ndarray
    memory: np.ndarray
    rows: np.ndarray
    legal: np.ndarray
    start: np.ndarray
    ids: np.ndarray
    values: np.ndarray
    action_start: np.ndarray
    action_ids: np.ndarray
    action_values: np.ndarray

    def __init__(
        self,
        examples: Examples,
        example: np.ndarray,
        step: np.ndarray,
        draws: np.ndarray,
        *,
        find_states: Callable[[], tuple[np.ndarray, np.ndarray, np.ndarray]],
        find_features: Callable[[States], GatheredFeatures],
    ):
        self.examples, self.example, self.step, self.draws = examples, example, step, draws
        self._find_states, self._find_features = find_states, find_features

    def __getattr__(self, name: str) -> Any:
        """Find what is asked for the first time; from then on it is an ordinary attribute."""
        if name not in States.__annotations__:
            raise AttributeError(f"States has no attribute '{name}'")
        if name in ("memory", "rows", "legal"):
            self.memory, self.rows, self.legal = self._find_states()
        elif name == "vectors":
            self.vectors = self.memory[self.rows]
        else:
            vars(self).update(vars(self._find_features(self)))
        return vars(self)[name]

    def __len__(self) -> int:
        return self.example.size

    def where(self) -> StateRows:
        """The states, for a kernel."""
        return StateRows(self.example, self.step, self.memory, self.rows, self.legal)

    def cells(self, columns: Sequence[int]) -> np.ndarray:
        """Some cells of the state vectors, [state, column].

        Parameters
        ----------
        columns
            To how many columns features are hashed.

        """
        found: np.ndarray = self.memory[self.rows[:, np.newaxis], np.asarray(columns)]
        return found

    @property
    def actions(self) -> int:
        """The number of actions, legal or not."""
        return self.examples.most_actions

    def matrix(self, columns: int) -> csr_matrix:
        """The features as a sparse matrix, hashed to this many columns, for example for scikit-learn.

        Parameters
        ----------
        columns
            To how many columns features are hashed.

        """
        return hashed_matrix(self.start, self.ids, self.values, columns)

    def dense(self, columns: int) -> np.ndarray:
        """The same matrix as a dense array.

        Parameters
        ----------
        columns
            To how many columns features are hashed.

        """
        return np.asarray(self.matrix(columns).toarray())

    def action_matrix(self, columns: int) -> csr_matrix:
        """The actions' features as a sparse matrix: row `i * actions + a` is action a in state i.

        Parameters
        ----------
        columns
            To how many columns features are hashed.

        """
        return hashed_matrix(self.action_start, self.action_ids, self.action_values, columns)


class GatheredFeatures:
    """The features of states, one after the other without gaps."""

    def __init__(self, slots: Slots, kept: np.ndarray | slice, ends: tuple[int, int]):
        self.start = np.append(slots.start[kept], ends[0])
        self.ids, self.values = slots.ids[: ends[0]], slots.values[: ends[0]]
        by_action = slots.action_start[kept].ravel() if slots.action_start.size else np.zeros(0, np.int64)
        self.action_start = np.append(by_action, ends[1])
        self.action_ids, self.action_values = slots.action_ids[: ends[1]], slots.action_values[: ends[1]]


def column_of(ids: np.ndarray, columns: int) -> np.ndarray:
    """The column of each feature: the upper half of its product with the golden ratio, scaled.

    >>> column_of(np.array([1, 2, 3]), 4).tolist()
    [2, 0, 3]
    """
    spread = (ids.view(np.uint64) * np.uint64(GOLDEN)) >> np.uint64(32)
    return ((spread * np.uint64(columns)) >> np.uint64(32)).astype(np.int64)


def hashed_matrix(start: np.ndarray, ids: np.ndarray, values: np.ndarray, columns: int) -> csr_matrix:
    """Features in compressed rows, hashed to this many columns; the arrays are not changed."""
    try:
        from scipy.sparse import csr_matrix
    except ImportError:
        raise ConfigurationError("features as a matrix need SciPy: pip install 'lols[sklearn]'") from None
    # A copy of the values, because duplicates are summed in place.
    matrix = csr_matrix((values.copy(), column_of(ids, columns), start), shape=(start.size - 1, columns))
    matrix.sum_duplicates()
    return matrix


class StateRows(Struct):
    """States where they are: that of `example[i]` is row `rows[i]` of the memory."""

    example: np.ndarray
    step: np.ndarray
    memory: np.ndarray
    rows: np.ndarray
    legal: np.ndarray


class Replayed(Struct):
    """States of earlier searches: each is `time` steps into its example, by the `actions` from `first` on."""

    example: np.ndarray
    first: np.ndarray
    time: np.ndarray
    actions: np.ndarray
    vectors: np.ndarray  # to be filled
    legal: np.ndarray


# --- kernels ----------------------------------------------------------------------------------------------------------


def look_at(space, data, scratch, found, slots, ends):
    """Gather the features of states into slots, without gaps."""
    search = Search(space, None, None, None, data.items, scratch)
    f, m = 0, 0
    for i in range(found.example.size):
        example, legal = found.example[i], found.legal[i]
        here = instance(data, example, i, 0)
        s = found.memory[found.rows[i], : data.states[example]]
        scratch.report[AT_EXAMPLE], scratch.report[AT_STEP] = example, found.step[i]
        gather(search, here, s, legal)
        f, m = write_features(search, here, s, legal, slots, i, f, m)
        if scratch.report[CODE] != 0:
            break
    ends[0], ends[1] = f, m


def replay(space, data, scratch, replayed):
    """Compute states of earlier searches again, into `vectors` and `legal`; those of an example in order of time."""
    search = Search(space, None, None, None, data.items, scratch)
    example, first, time = replayed.example, replayed.first, replayed.time
    last, reached = -1, 0
    for i in range(example.size):
        here = instance(data, example[i], i, 0)
        s = scratch.state[: data.states[example[i]]]
        scratch.report[AT_EXAMPLE], scratch.report[AT_STEP] = example[i], time[i]
        if i == 0 or first[i] != last or time[i] < reached:
            begin(search, here, s)
            last, reached = first[i], 0
        while reached < time[i]:
            step(space, here.x, s, replayed.actions[first[i] + reached])
            reached += 1
        find_legal(search, here, s, replayed.legal[i])
        for k in range(s.size):
            replayed.vectors[i, k] = s[k]


look_at_kernel: Any = Kernel(look_at)
replay_kernel: Any = Kernel(replay)
