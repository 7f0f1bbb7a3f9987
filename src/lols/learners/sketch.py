"""Sketched second-order regression: ridge regression whose covariance matrix is kept in a few directions.

The matrix is λ + SᵀS, where S has at most 2m rows. An example becomes a row; when S is full, its m strongest directions
stay, each less what the next one has, and λ grows by half of that (robust frequent directions: Luo, Chen, Zhang, Li and
Zhang, "Robust frequent directions with application in online learning", 2019). With 2m examples or fewer this is ridge
regression.

An update costs what its features cost, however many weights there are (in the spirit of the sparse updates of Luo,
Agarwal, Cesa-Bianchi and Langford, "Efficient second order online learning by sketching", 2016). A weight is `base +
s β`: s is its column of S, beside it in the table, and the vector β is the same for all weights of a regression. An
example changes the base of its own features, and β. When S is turned, β becomes 0; columns are turned when they are
next looked at. Turns are kept until then, also the products of 2, 4, 8, ... in a row, so that a column that has missed
many is soon up to date; and each turn brings some columns of the table up to date, so that none misses more than the
memory holds.
"""

from __future__ import annotations

import math

import numpy as np

from lols.engine.structures import (
    AT_SHARED,
    AT_SINGLE,
    COUNTS,
    FILLED,
    TURNS,
    FrozenPolicy,
    Sketched,
    SketchedColumns,
    Sketches,
)
from lols.engine.table import is_fixed
from lols.kernels.dual import dual, not_inlined
from lols.kernels.kernel import Kernel
from lols.learners.eigen import decompose, order

WINDOW, SHARED_WINDOW = 1 << 12, 1 << 10  # turns that are kept of a single regression, and of one of several
SWEPT = 64  # cells that a turn brings up to date at least


def make_sketches(regressions: int, directions: int, ridge: float) -> Sketches:
    """The sketches of new regressions, each of this many directions."""
    rows, window = 2 * directions, WINDOW if regressions == 1 else SHARED_WINDOW
    window = window if regressions else 0

    def zeros(*shape: int) -> np.ndarray:
        return np.zeros((regressions, *shape))

    return Sketches(
        counts=np.zeros((regressions, COUNTS), np.int64),
        ridge=np.full(regressions, ridge),
        gram=zeros(rows, rows),
        inverse=zeros(rows, rows),
        shift=zeros(rows),
        turns=np.zeros((regressions, window, rows, directions), np.float32),
        settled=zeros(window, rows),
        jumps=np.zeros((regressions, window, directions, directions), np.float32),
        jumped=zeros(window, directions),
        along=np.zeros(rows),
        gain=np.zeros(rows),
        moved=np.zeros(rows, np.float32),
        values=np.zeros(rows),
        vectors=np.zeros((rows, rows)),
        beside=np.zeros(rows),
        work=np.zeros(rows),
        places=np.zeros(rows, np.int64),
    )


# --- columns of S -----------------------------------------------------------------------------------------------------


@dual
def jump_place(sketches, turn, size):
    """Where the product of `size` turns from `turn` on is kept: a place that no other product has meanwhile."""
    return (turn + size // 2) & (sketches.turns.shape[1] - 1)


@dual
def turn_column(column, by, width, moved):
    """Multiply the first `width` numbers of a column by a matrix."""
    for i in range(by.shape[1]):
        moved[i] = np.float32(0.0)
    for k in range(width):
        value = column[k]
        if value != 0.0:
            for i in range(by.shape[1]):
                moved[i] += by[k, i] * value
    for i in range(by.shape[1]):
        column[i] = moved[i]


@dual
def inner(column, other, width):
    """The inner product of the first numbers of a column and another vector."""
    total = 0.0
    for k in range(width):
        total += np.float64(column[k]) * other[k]
    return total


@not_inlined
@dual
def catch_up(sketches, j, column, turn):
    """Apply all turns of regression `j` from `turn` on to a column; what they add to the base."""
    now, most = sketches.counts[j, TURNS], sketches.turns.shape[1]
    width, half = column.size, column.size // 2  # after one turn only half of the rows are left
    total = 0.0
    while turn < now:
        size = 1
        while width == half and turn % (2 * size) == 0 and turn + 2 * size <= now and 2 * size < most:
            size *= 2
        if size == 1:
            place = turn & (most - 1)
            total += inner(column, sketches.settled[j, place], width)
            turn_column(column, sketches.turns[j, place], width, sketches.moved)
        else:
            place = jump_place(sketches, turn, size)
            total += inner(column, sketches.jumped[j, place], width)
            turn_column(column, sketches.jumps[j, place], width, sketches.moved)
        turn, width = turn + size, half
    for k in range(half, column.size):
        column[k] = np.float32(0.0)
    return total


@dual
def bring(bank, row, column, sketches, j):
    """Bring the cell of a weight up to date."""
    stamp, now = bank.stamps[row, column], sketches.counts[j, TURNS] + 1
    if stamp == now:
        return
    bank.stamps[row, column] = now
    if stamp > 0:  # otherwise it has no column yet
        bank.base[row, column] += np.float32(catch_up(sketches, j, bank.sketch[row, column], stamp - 1))


@dual
def peek(bank, row, column, sketches, j, seen):
    """Write the column that a cell would have if it were up to date to `seen`; its base."""
    stamp, base = bank.stamps[row, column], np.float64(bank.base[row, column])
    for k in range(seen.size):
        seen[k] = bank.sketch[row, column, k]
    if 0 < stamp <= sketches.counts[j, TURNS]:
        base += catch_up(sketches, j, seen, stamp - 1)
    return base


@dual
def refresh(bank, row, column, sketches, j):
    """Write the weight of a cell that is up to date."""
    more = inner(bank.sketch[row, column], sketches.shift[j], sketches.counts[j, FILLED])
    bank.weights[row, column] = np.float32(np.float64(bank.base[row, column]) + more)


# --- turning ----------------------------------------------------------------------------------------------------------


@not_inlined
@dual
def shrink(sketches, j, first_ridge, keep):
    """Keep half of the rows of S, the strongest directions; of what is known, the share `keep` stays."""
    counts, along = sketches.counts, sketches.settled.shape[1] - 1
    gram, inverse, values, vectors = sketches.gram[j], sketches.inverse[j], sketches.values, sketches.vectors
    rows, places, now = values.size, sketches.places, counts[j, TURNS]
    half, place = rows // 2, now & along
    decompose(gram, values, vectors, sketches.beside, sketches.work)
    order(values, places)
    cut = max(values[places[half]], 0.0)
    sketches.ridge[j] = first_ridge + (sketches.ridge[j] + 0.5 * cut - first_ridge) * keep
    for i in range(rows):
        for k in range(rows):
            gram[i, k] = inverse[i, k] = 0.0
    for i in range(half):
        value = values[places[i]]
        left = max(value - cut, 0.0) * keep
        factor = math.sqrt(left / value) if left > 0.0 else 0.0
        gram[i, i], inverse[i, i] = left, 1.0 / (sketches.ridge[j] + left)
        for k in range(rows):
            sketches.turns[j, place, k, i] = factor * vectors[places[i], k]
    for k in range(rows):
        sketches.settled[j, place, k] = sketches.shift[j, k]
        sketches.shift[j, k] = 0.0
    counts[j, FILLED], counts[j, TURNS] = half, now + 1
    size = np.int64(2)
    while (now + 1) % size == 0 and size <= along:
        join(sketches, j, now + 1 - size, size)
        size *= 2


@dual
def join(sketches, j, first, size):
    """The product of `size` turns from `first` on, of those of its halves."""
    to, middle, along = jump_place(sketches, first, size), first + size // 2, sketches.settled.shape[1] - 1
    if size == 2:
        one, other = sketches.turns[j, first & along], sketches.turns[j, middle & along]
        add, after = sketches.settled[j, first & along], sketches.settled[j, middle & along]
    else:
        before, later = jump_place(sketches, first, size // 2), jump_place(sketches, middle, size // 2)
        one, other = sketches.jumps[j, before], sketches.jumps[j, later]
        add, after = sketches.jumped[j, before], sketches.jumped[j, later]
    half = sketches.jumped.shape[2]
    for k in range(half):
        sketches.jumped[j, to, k] = add[k] + inner(one[k], after, half)
        for i in range(half):
            sketches.jumps[j, to, k, i] = np.float32(0.0)
        for n in range(half):
            for i in range(half):
                sketches.jumps[j, to, k, i] += one[k, n] * other[n, i]


@dual
def sweep(bank, low, high, sketches, j, pointer):
    """Bring the next cells of columns `low` to `high` up to date: all of them within a quarter of the turns kept."""
    cells = bank.filled[0] * (high - low)
    count = min(cells, max(SWEPT, 4 * cells // sketches.turns.shape[1] + 1))
    at = sketches.counts[j, pointer]
    for _ in range(count):
        at = at + 1 if at + 1 < cells else 0
        row, column = at // (high - low), low + at % (high - low)
        if bank.stamps[row, column] > 0:
            bring(bank, row, column, sketches, j)
            refresh(bank, row, column, sketches, j)
    sketches.counts[j, pointer] = at


# --- learning ---------------------------------------------------------------------------------------------------------


@dual
def project(part, column, sketches, j, root):
    """Write features, times `root`, into the next row of S, and add S z to `along`; z times the base."""
    bank, filled, total = part.bank, sketches.counts[j, FILLED], 0.0
    along = sketches.along
    for k in range(part.first, part.last):
        row, value = part.rows[k - part.first], np.float64(part.values[k])
        if row >= 0:
            bring(bank, row, column, sketches, j)
            total += value * np.float64(bank.base[row, column])
            own = bank.sketch[row, column]
            for i in range(filled):
                along[i] += value * np.float64(own[i])
            own[filled] += np.float32(root * value)
    return total


@dual
def measure(part, column, sketches, j):
    """The inner product of features and the last row of S, which has them, too; a feature may come twice."""
    filled, total = sketches.counts[j, FILLED], 0.0
    for k in range(part.first, part.last):
        row = part.rows[k - part.first]
        if row >= 0:
            total += np.float64(part.values[k]) * np.float64(part.bank.sketch[row, column, filled])
    return total


@dual
def add_to_base(part, column, amount):
    """Add features, times `amount`, to the base of their weights."""
    for k in range(part.first, part.last):
        row = part.rows[k - part.first]
        if row >= 0:
            part.bank.base[row, column] += np.float32(amount * np.float64(part.values[k]))


@dual
def refresh_all(part, column, sketches, j):
    """Write the weights of features."""
    for k in range(part.first, part.last):
        row = part.rows[k - part.first]
        if row >= 0:
            bring(part.bank, row, column, sketches, j)
            refresh(part.bank, row, column, sketches, j)


@dual
def spread_of(sketches, j, size, along, gain):
    """The variance zᵀ(λ + SᵀS)⁻¹z of features whose square is `size` and whose S z is `along`; writes the gain."""
    filled, inverse = sketches.counts[j, FILLED], sketches.inverse[j]
    for i in range(filled):
        gain[i] = 0.0
    for i in range(filled):
        for k in range(filled):
            gain[k] += inverse[i, k] * along[i]
    for i in range(filled):
        size -= along[i] * gain[i]
    return max(size / sketches.ridge[j], 0.0)


@not_inlined
@dual
def regress_sketched(own, column, other, sketches, j, recipe, target, weight):
    """One step of weighted ridge regression on features of a state and of an action; whether all is finite.

    By Sherman and Morrison, the weights move by the residual times A⁻¹z / (1 + zᵀA⁻¹z), and A⁻¹z = (z - Sᵀ gain) / λ.
    """
    filled, along, gain = sketches.counts[j, FILLED], sketches.along, sketches.gain
    gram, inverse, shift = sketches.gram[j], sketches.inverse[j], sketches.shift[j]
    for i in range(filled):
        along[i] = 0.0
    target, weight = np.float64(target), np.float64(weight)
    root = math.sqrt(weight)
    predicted = project(own, column, sketches, j, root) + project(other, 0, sketches, j, root)
    for i in range(filled):
        predicted += along[i] * shift[i]
    size = (measure(own, column, sketches, j) + measure(other, 0, sketches, j)) / root
    grown = 1.0 + weight * spread_of(sketches, j, size, along, gain)
    amount = weight * (target - predicted) / (grown * sketches.ridge[j])
    if not np.isfinite(amount):
        return False
    add_to_base(own, column, amount)
    add_to_base(other, 0, amount)
    left = 1.0 / (grown * sketches.ridge[j])  # what the other rows do not have of the example
    for i in range(filled):
        shift[i] -= amount * gain[i]
        gram[i, filled] = gram[filled, i] = root * along[i]
        inverse[i, filled] = inverse[filled, i] = -root * gain[i] * left
        for k in range(filled):
            inverse[i, k] += weight * gain[i] * gain[k] * left
    gram[filled, filled], inverse[filled, filled] = weight * size, left
    sketches.counts[j, FILLED] = filled + 1
    if filled + 1 == along.size:
        shrink(sketches, j, recipe.rate, recipe.keep)
        if recipe.by_action:
            sweep(own.bank, 0, own.bank.weights.shape[1], sketches, j, AT_SHARED)
            sweep(other.bank, 0, 1, sketches, j, AT_SINGLE)
        else:
            sweep(own.bank, column, column + 1, sketches, j, AT_SHARED)
    refresh_all(own, column, sketches, j)
    refresh_all(other, 0, sketches, j)
    return True


# --- policies ---------------------------------------------------------------------------------------------------------


def settle(columns, sketches, to, weights):
    """The columns and weights of all cells as they would be if they were up to date; nothing of the learner changes."""
    several = sketches.counts.shape[0] > 1
    for row in range(weights.shape[0]):
        for column in range(weights.shape[1]):
            j = column if several else 0
            own = to.sketch[row, column]
            base = peek(columns, row, column, sketches, j, own)
            more = inner(own, sketches.shift[j], sketches.counts[j, FILLED])
            to.base[row, column] = np.float32(base)
            weights[row, column] = np.float32(base + more)


settle_kernel = Kernel(settle)


def columns_of(rows: int, columns: int, width: int, stamp: int = 0) -> SketchedColumns:
    """New columns of S for weights."""
    shape = rows, columns
    sketch = np.zeros((*shape, width), np.float32)
    return SketchedColumns(np.zeros(shape, np.float32), sketch, np.full(shape, stamp, np.int32))


def settled(policy: FrozenPolicy, *, compiled: bool = True) -> FrozenPolicy:
    """A policy with weights and columns that are up to date, on memory of its own; without a sketch it stays as it is.

    What the learner needs to go on is left out.
    """
    sketched = policy.sketched
    if not sketched.sketches.counts.size:
        return policy
    made = []
    for table, columns, stack in (
        (policy.shared, sketched.shared, policy.stack[0]),
        (policy.single, sketched.single, policy.single_stack[0][:, np.newaxis]),
    ):
        rows = stack.shape[0] if is_fixed(table) else max(int((table.rows >= 0).sum()), 1)
        to = columns_of(rows, stack.shape[1], columns.sketch.shape[2], stamp=1)
        weights = np.zeros((rows, stack.shape[1]), np.float32)
        settle_kernel(compiled, columns, sketched.sketches, to, weights)
        made.append((to, weights))
    (shared, weights), (single, own) = made
    return policy._replace(
        stack=weights[np.newaxis],
        single_stack=own.reshape(1, -1),
        sketched=Sketched(shared, single, still(sketched.sketches)),
    )


def still(sketches: Sketches) -> Sketches:
    """A copy for columns that are up to date: nothing is turned any more."""
    counts = sketches.counts * (np.arange(COUNTS) == FILLED)
    empty = {name: getattr(sketches, name)[:, :0] for name in ("turns", "settled", "jumps", "jumped")}
    kept = {name: getattr(sketches, name).copy() for name in ("ridge", "inverse", "shift")}
    return sketches._replace(counts=counts, gram=sketches.gram[:, :0], **empty, **kept)
