"""Online updates of a linear predictor: normalized adaptive invariant gradient (NAG), AdaGrad, plain gradient, ridge.

Each has two forms: for all columns at once (`*_rows`: a regressor per action, actions contiguous) and for one column. A
change of a weight in round i counts i times in `sums`, so that the average over rounds needs no copies.
"""

from __future__ import annotations

import math

import numpy as np

from lols.kernels.dual import dual
from lols.learners.structures import ADAGRAD, GD, NAG, NORM, PERCEPTRON, RIDGE, ROUNDS, WEIGHT

TINY = np.float32(1e-12)


@dual
def rate_now(recipe, counters):
    """The step size; for plain gradient descent it decays as 1/sqrt(rounds)."""
    if recipe.update == GD:
        return np.float32(recipe.rate / np.sqrt(counters[ROUNDS]))
    if recipe.update == PERCEPTRON:
        return np.float32(1.0)
    return np.float32(recipe.rate)


@dual
def change(bank, row, column, amount, counters):
    """Change one weight, and its sum for the average."""
    bank.weights[row, column] += amount
    if bank.sums.size > 0:
        bank.sums[row, column] += np.float32(counters[ROUNDS]) * amount


@dual
def rescale(bank, row, value, counters):
    """Record the largest value of a feature; when it grows, shrink its weights so that predictions keep their scale."""
    size = abs(value)
    if size > bank.scales[row]:
        if bank.scales[row] > 0.0:
            factor = bank.scales[row] / size - np.float32(1.0)
            for j in range(bank.weights.shape[1]):
                change(bank, row, j, bank.weights[row, j] * factor, counters)
        bank.scales[row] = size


@dual
def multiplier(counters):
    """The mean size of normalized examples, which sets the scale of the normalized update."""
    return np.float32(np.sqrt(counters[WEIGHT] / counters[NORM])) if counters[NORM] > 0.0 else np.float32(1.0)


@dual
def invariant_step(residual, scale, sensitivity):
    """How far a prediction moves if its squared loss is minimised `scale` times in infinitely small steps."""
    # Explicitly in double precision: Numba and NumPy promote mixtures of single and double differently.
    residual, scale, sensitivity = np.float64(residual), np.float64(scale), np.float64(sensitivity)
    if scale * sensitivity < 1e-6:
        return np.float32(2.0 * residual * scale)
    return np.float32(residual * (1.0 - math.exp(-2.0 * scale * sensitivity)) / sensitivity)


@dual
def regress_rows(part, recipe, work, counters):
    """One squared-loss update of all columns with positive importance, from predictions `columns` to `targets`."""
    if recipe.update == RIDGE:
        ridge_rows(part, work)
    elif recipe.update == NAG:
        nag_rows(part, recipe, work, counters)
    else:
        for j in range(work.columns.size):
            gradient = np.float32(2.0) * (work.columns[j] - work.targets[j]) * work.importance[j]
            if recipe.update == PERCEPTRON:
                wrong = work.columns[j] * work.targets[j] <= 0.0
                gradient = -work.targets[j] * work.importance[j] if wrong else np.float32(0.0)
            work.gradients[j] = gradient
        descend_rows(part, recipe, work.gradients, counters)


@dual
def descend_rows(part, recipe, gradients, counters):
    """A gradient step on all columns, with AdaGrad's scale per weight or one rate."""
    bank, rows, values, first, last = part.bank, part.rows, part.values, part.first, part.last
    rate, rounds = rate_now(recipe, counters), np.float32(counters[ROUNDS])
    weights, squares, sums = bank.weights, bank.squares, bank.sums
    averaged = sums.size > 0
    for k in range(first, last):
        row, value = rows[k - first], values[k]
        if row < 0:
            continue
        if recipe.update == ADAGRAD and averaged:
            for j in range(gradients.size):
                g = gradients[j] * value
                q = squares[row, j] + g * g
                squares[row, j] = q
                amount = rate * g / np.sqrt(q + TINY)
                weights[row, j] -= amount
                sums[row, j] -= rounds * amount
        elif recipe.update == ADAGRAD:
            for j in range(gradients.size):
                g = gradients[j] * value
                q = squares[row, j] + g * g
                squares[row, j] = q
                weights[row, j] -= rate * g / np.sqrt(q + TINY)
        else:
            for j in range(gradients.size):
                change(bank, row, j, -rate * gradients[j] * value, counters)


@dual
def nag_rows(part, recipe, work, counters):
    """The normalized adaptive invariant update of the paper's experiments, for all columns."""
    bank, rows, values, first, last = part.bank, part.rows, part.values, part.first, part.last
    sensitivity, gradients, importance = work.sensitivity, work.gradients, work.importance
    weights, squares, sums = bank.weights, bank.squares, bank.sums
    weight = np.float32(0.0)
    for j in range(work.columns.size):
        sensitivity[j] = 0.0
        residual = work.targets[j] - work.columns[j]
        gradients[j] = np.float32(4.0) * residual * residual * importance[j]
        weight += importance[j]
    norm = np.float64(0.0)
    for k in range(first, last):
        row, value = rows[k - first], values[k]
        if row < 0 or value == 0.0:
            continue
        rescale(bank, row, value, counters)
        scale, square = bank.scales[row], value * value
        norm += np.float64(square / (scale * scale))
        for j in range(sensitivity.size):
            q = squares[row, j] + gradients[j] * square
            squares[row, j] = q
            sensitivity[j] += square / (np.sqrt(q + TINY) * scale)
    counters[WEIGHT] += weight
    counters[NORM] += weight * norm
    factor = multiplier(counters)
    for j in range(sensitivity.size):
        residual = work.targets[j] - work.columns[j]
        moved = np.float32(0.0)
        if importance[j] > 0.0 and residual != 0.0:
            times = np.float64(recipe.rate) * np.float64(importance[j])
            moved = invariant_step(residual, times, sensitivity[j] * factor) * factor
        gradients[j] = moved
    rounds, averaged = np.float32(counters[ROUNDS]), sums.size > 0
    for k in range(first, last):
        row, value = rows[k - first], values[k]
        if row < 0 or value == 0.0:
            continue
        scaled = value / bank.scales[row]
        if averaged:
            for j in range(sensitivity.size):
                amount = gradients[j] * scaled / np.sqrt(squares[row, j] + TINY)
                weights[row, j] += amount
                sums[row, j] += rounds * amount
        else:
            for j in range(sensitivity.size):
                weights[row, j] += gradients[j] * scaled / np.sqrt(squares[row, j] + TINY)


@dual
def ridge_rows(part, work):
    """Exact online ridge regression: every column keeps its inverse covariance matrix (Sherman and Morrison)."""
    bank, rows, values, first, last = part.bank, part.rows, part.values, part.first, part.last
    size = bank.inverse.shape[1]
    gain = work.dense
    for j in range(work.columns.size):
        weight = np.float64(work.importance[j])
        if weight <= 0.0:
            continue
        inverse = bank.inverse[j]
        for r in range(size):
            gain[r] = 0.0
        for k in range(first, last):
            if rows[k - first] >= 0:
                for r in range(size):
                    gain[r] += inverse[r, rows[k - first]] * values[k]
        spread = 0.0
        for k in range(first, last):
            if rows[k - first] >= 0:
                spread += gain[rows[k - first]] * values[k]
        shrink = weight / (1.0 + weight * spread)
        residual = np.float64(work.targets[j]) - np.float64(work.columns[j])
        for r in range(size):
            bank.weights[r, j] += np.float32(shrink * residual * gain[r])
            for c in range(size):
                inverse[r, c] -= shrink * gain[r] * gain[c]


@dual
def sensitize(part, column, square_gradient, weight, counters):
    """NAG for one column, first half: record the gradient; how much a unit step moves the prediction."""
    bank, rows, values, first, last = part.bank, part.rows, part.values, part.first, part.last
    total = np.float32(0.0)
    norm = np.float64(0.0)
    for k in range(first, last):
        row, value = rows[k - first], values[k]
        if row < 0 or value == 0.0:
            continue
        rescale(bank, row, value, counters)
        square = value * value
        norm += np.float64(square / (bank.scales[row] * bank.scales[row]))
        bank.squares[row, column] += square_gradient * square
        total += square / (np.sqrt(bank.squares[row, column] + TINY) * bank.scales[row])
    counters[NORM] += np.float64(weight) * norm
    return total


@dual
def move(part, recipe, column, amount, counters):
    """Move one column against `amount`, the gradient of its prediction (NAG, second half: the step itself)."""
    bank, rows, values, first, last = part.bank, part.rows, part.values, part.first, part.last
    rate = rate_now(recipe, counters)
    for k in range(first, last):
        row, value = rows[k - first], values[k]
        if row < 0 or value == 0.0:
            continue
        if recipe.update == NAG:
            by = amount * value / (bank.scales[row] * np.sqrt(bank.squares[row, column] + TINY))
        elif recipe.update == ADAGRAD:
            g = amount * value
            bank.squares[row, column] += g * g
            by = rate * g / np.sqrt(bank.squares[row, column] + TINY)
        else:
            by = rate * amount * value
        change(bank, row, column, -by, counters)
