"""The teachers of a parser: the dynamic oracle, some rules, and the first legal action."""

from __future__ import annotations

from lols.contract.space import Reference, as_family
from lols.tasks.parsing.space import (
    DEPTH,
    HEAD,
    LABEL,
    LEFT,
    NEVER,
    NEXT,
    ONLY,
    PENDING,
    RIGHT,
    SHIFT,
    cell,
    label_cost,
    on_stack,
)


def best_costs(x, y, s, out):
    """The dynamic oracle (Goldberg & Nivre 2013): gold arcs that an action puts out of reach, and wrong labels.

    With one root, the root's arc is out of reach as soon as the root word lies above another one: that one can only be
    popped after it. All other arcs are as in the textbook, since no arc of a projective tree spans the root.
    """
    if s[PENDING]:
        for a in range(out.size):
            if x.kinds[a] == LABEL:
                out[a] = label_cost(x, y, s, s[PENDING], a)
        return
    front, depth, top, below = s[NEXT], s[DEPTH], on_stack(s, 0), on_stack(s, 1)
    shift, right, left = 0.0, 0.0, 0.0
    if top >= 0:
        head = y.heads[top]
        for word in range(front, y.last_child[top] + 1):
            if y.heads[word] == top:
                left += y.weights[word]
        right = left
        if head >= front:
            right += y.weights[top]
        if head > front or (head == below and below >= 0):
            left += y.weights[top]
        if head == -1 and x.many_roots:
            right += y.weights[top]
            if front < x.length:
                left += y.weights[top]
        elif head == -1 and depth == 1:
            left += y.weights[top]
    if front < x.length:
        head = y.heads[front]
        if head == -1:
            if depth > 0 and not x.many_roots:
                shift += y.weights[front]
        elif head < front and head != top and s[cell(head, HEAD)] == 0:
            shift += y.weights[front]
        for back in range(depth):
            word = on_stack(s, back)
            if word < y.first_child[front]:
                break
            if y.heads[word] == front:
                shift += y.weights[word]
    for a in range(out.size):
        kind = x.kinds[a]
        if kind == SHIFT:
            out[a] = shift
        elif kind == RIGHT and depth >= 2:
            out[a] = right + (0.0 if x.labels_later else label_cost(x, y, s, RIGHT, a))
        elif kind == LEFT and depth >= 1:
            out[a] = left + (0.0 if x.labels_later else label_cost(x, y, s, LEFT, a))


def first_legal(x, s):
    """Shift, else ReduceRight, else ReduceLeft, with the first label."""
    if s[PENDING]:
        return first_of(x, LABEL)
    if s[NEXT] < x.length:
        return first_of(x, SHIFT)
    if s[DEPTH] >= 2:
        return first_of(x, RIGHT)
    for a in range(x.kinds.size):
        if x.kinds[a] == LEFT and x.root_at[a] != NEVER:
            return a
    return 0


def first_of(x, kind):
    """The first action of a kind."""
    for a in range(x.kinds.size):
        if x.kinds[a] == kind:
            return a
    return 0


def bad(x, y, s):
    return first_legal(x, s)


def suboptimal(x, y, s):
    """Shift below a gold head, ReduceLeft to one, and else the first legal action."""
    top, front = on_stack(s, 0), s[NEXT]
    if s[PENDING]:
        for a in range(x.kinds.size):
            if x.kinds[a] == LABEL and x.relations[a] == y.relations[top]:
                return a
    elif front < x.length and top >= 0 and y.heads[front] != top and y.heads[top] == front:
        for a in range(x.kinds.size):
            fits = not x.labelled or x.labels_later or x.relations[a] == y.relations[top]
            if x.kinds[a] == LEFT and x.root_at[a] != ONLY and fits:
                return a
    return first_legal(x, s)


def teach(x, y, s):
    """The action of one of these teachers, by its number; the first has costs only."""
    return suboptimal(x, y, s) if y.teacher == 1 else bad(x, y, s)


def named(x, y):
    return y.teacher != 0


def references() -> dict[str, Reference]:
    """The paper's teachers: `optimal`, the dynamic oracle; `suboptimal`, some rules; `bad`, the first legal action."""
    teachers = {
        "optimal": Reference(costs=best_costs, name="optimal"),
        "suboptimal": Reference(action=suboptimal, name="suboptimal"),
        "bad": Reference(action=bad, name="bad"),
    }
    return as_family(teachers, action=teach, costs=best_costs, named=named)
