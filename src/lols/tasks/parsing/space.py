"""Dependency parsing: arc-hybrid (Kuhlmann, Gomez-Rodriguez & Satta 2011), with labels joint or as a second decision.

A stack and a buffer of words: Shift moves the front of the buffer onto the stack; ReduceRight pops the stack's top and
makes the word below it its head; ReduceLeft pops the top and makes the buffer's front its head. With one root, the word
that is left in the end is the root; with many, the root stands at the end of the buffer and may be the front.

The functions are the same for any templates and labels: those come as settings and columns, so they are compiled once.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lols.contract.features import look
from lols.contract.space import Example
from lols.kernels.hashing import add_product, mix

SHIFT, RIGHT, LEFT, LABEL = 0, 1, 2, 3  # kinds of actions
ANY, NEVER, ONLY = 0, 1, 2  # whether an action of kind LEFT may take the root as head

# The state: how many words left the buffer, how many are on the stack, the arc that waits for its label; then, for
# every word, what is known of it, and beside that one cell of the stack with a hash of all that lies up to it.
NEXT, DEPTH, PENDING, HEADER = 0, 1, 2, 3
HEAD, RELATION, FIRST, SECOND, LAST, LAST_BUT_ONE, LEFTS, RIGHTS, LEFT_SET, RIGHT_SET, STACK, LOW, HIGH = range(13)
FIELDS = 13
ROOT = 1  # as a head; words are counted from 2, and 0 is a head not known yet

# What an atom of a template asks of the word at its place, if it is no column of the input.
RELATION_OF, LEFTS_OF, RIGHTS_OF, LEFT_SET_OF, RIGHT_SET_OF, DISTANCE = -1, -2, -3, -4, -5, -6
NO_CHILD, FIRST_CHILD, SECOND_CHILD, LAST_CHILD, LAST_BUT_ONE_CHILD = 0, FIRST, SECOND, LAST, LAST_BUT_ONE
MOST_CHILDREN = 4  # that a valency tells apart
FARTHEST = 10


def cell(word, field):
    """Where the state holds a fact about a word."""
    return HEADER + word * FIELDS + field


def on_stack(s, back):
    """The word on the stack, 0 for the top, or -1."""
    depth = s[DEPTH] - 1 - back
    return s[cell(depth, STACK)] if depth >= 0 else -1


def start(x, s):
    pass


def actions(x, s, legal):
    front, depth = s[NEXT], s[DEPTH]
    if s[PENDING]:
        for a in range(legal.size):
            legal[a] = x.kinds[a] == LABEL
        return
    at_root = front == x.length
    for a in range(legal.size):
        kind = x.kinds[a]
        if kind == SHIFT:
            legal[a] = not at_root
        elif kind == RIGHT:
            legal[a] = depth >= 2
        elif kind == LEFT:
            legal[a] = depth >= 1 and ((x.root_at[a] != NEVER) if at_root else (x.root_at[a] != ONLY))


def step(x, s, a):
    kind = x.kinds[a]
    if kind == SHIFT:
        depth = s[DEPTH]
        s[cell(depth, STACK)] = s[NEXT]
        s[NEXT] += 1
        s[DEPTH] = depth + 1
        chain(s, depth)
    elif x.labels_later and kind != LABEL:
        s[PENDING] = kind
    else:
        if kind == LABEL:
            kind = s[PENDING]
            s[PENDING] = 0
        dependent = on_stack(s, 0)
        s[DEPTH] -= 1
        s[cell(dependent, RELATION)] = x.relations[a]
        if kind == LEFT:
            s[cell(dependent, HEAD)] = ROOT
            if s[NEXT] < x.length:
                attach_left(s, s[NEXT], dependent, x.relations[a])
        else:
            attach_right(s, on_stack(s, 0), dependent, x.relations[a])
            chain(s, s[DEPTH] - 1)


def attach_left(s, head, dependent, relation):
    """Left dependents come nearest first: each is farther out than those before."""
    s[cell(dependent, HEAD)] = head + 2
    s[cell(head, SECOND)] = s[cell(head, FIRST)]
    s[cell(head, FIRST)] = dependent + 1
    s[cell(head, LEFTS)] = min(s[cell(head, LEFTS)] + 1, MOST_CHILDREN)
    s[cell(head, LEFT_SET)] |= 1 << (relation % 31)


def attach_right(s, head, dependent, relation):
    s[cell(dependent, HEAD)] = head + 2
    s[cell(head, LAST_BUT_ONE)] = s[cell(head, LAST)]
    s[cell(head, LAST)] = dependent + 1
    s[cell(head, RIGHTS)] = min(s[cell(head, RIGHTS)] + 1, MOST_CHILDREN)
    s[cell(head, RIGHT_SET)] |= 1 << (relation % 31)


# --- what the policy sees ---------------------------------------------------------------------------------------------


def word_at(x, s, p):
    """The word at a place of the templates, or -1."""
    if x.places[p, 0] == 0:
        word = on_stack(s, x.places[p, 1])
    else:
        word = s[NEXT] + x.places[p, 1]
        if word >= x.length:
            word = -1
    if word >= 0 and x.places[p, 2] != NO_CHILD:
        word = s[cell(word, x.places[p, 2])] - 1
    if word >= 0:
        word += x.places[p, 3]
    return word if word < x.length else -1


def items(x, s, out):
    classes, count = x.classes, x.item_places.size
    for role in range(count):
        word = word_at(x, s, x.item_places[role])
        item = word * classes + x.item_classes[role] if word >= 0 else x.length * classes
        look(out, item, role + count * s[PENDING])


def features(x, s, out):
    # Beyond the features there is room to work in: first the words at all places, then the values of all atoms.
    words = x.first.size - 1
    values = words + x.places.shape[0]
    for p in range(x.places.shape[0]):
        out.ids[words + p] = word_at(x, s, p)
    for k in range(x.atoms.shape[0]):
        out.ids[values + k] = atom_value(x, s, out.ids, words, k)
    n = out.size[0]
    for t in range(x.first.size - 1):
        identity, there = x.keys[t], True
        for k in range(x.first[t], x.first[t + 1]):
            value = out.ids[values + x.uses[k]]
            there &= value != 0
            identity = add_product(identity, x.factors[k], value)
        if there:
            out.ids[n] = identity
            out.values[n] = 1.0
            n += 1
    out.size[0] = n
    if s[PENDING]:
        for k in range(n):
            out.ids[k] = mix(out.ids[k], s[PENDING])


def atom_value(x, s, room, words, k):
    """The value of an atom, 0 if there is no word at its place."""
    word, source = room[words + x.atoms[k, 0]], x.atoms[k, 1]
    if word < 0:
        return 0
    if source >= 0:
        return x.values[word * x.width + source]
    if source == DISTANCE:
        other = room[words + x.atoms[k, 2]]
        return 0 if other < 0 else 1 + min(abs(other - word), FARTHEST)
    return 1 + np.int64(s[cell(word, dynamic_field(source))])


def dynamic_field(source):
    """The cell that an atom reads."""
    if source == RELATION_OF:
        return RELATION
    if source == LEFTS_OF:
        return LEFTS
    if source == RIGHTS_OF:
        return RIGHTS
    return LEFT_SET if source == LEFT_SET_OF else RIGHT_SET


# --- which states have the same future --------------------------------------------------------------------------------


def seen_of(s, word):
    """A hash of everything that templates can see below a word."""
    code: Any = np.int64(word)
    for field in range(FIRST, LAST_BUT_ONE + 1):
        child = s[cell(word, field)]
        code = mix(code, child * 65536 + (s[cell(child - 1, RELATION)] if child > 0 else 0))
    code = mix(code, s[cell(word, LEFTS)] * 64 + s[cell(word, RIGHTS)])
    return mix(code, np.int64(s[cell(word, LEFT_SET)]) * 4294967296 + s[cell(word, RIGHT_SET)])


def chain(s, depth):
    """Note a hash of the stack up to a depth; what lies deeper does not change while something lies above."""
    code: Any = np.int64(0)
    if depth > 0:
        code = np.int64(s[cell(depth - 1, HIGH)]) * 4294967296 + s[cell(depth - 1, LOW)]
    code = mix(code, seen_of(s, s[cell(depth, STACK)]))
    s[cell(depth, LOW)] = (code & 4294967295) - 2147483648
    s[cell(depth, HIGH)] = code >> 32


def key(x, s):
    depth, front = s[DEPTH], s[NEXT]
    code: Any = np.int64(front * 4 + s[PENDING])
    if depth > 0:
        code = mix(code, np.int64(s[cell(depth - 1, HIGH)]) * 4294967296 + s[cell(depth - 1, LOW)])
    return mix(code, seen_of(s, front)) if front < x.length else code


# --- what it costs ----------------------------------------------------------------------------------------------------


def root_is_left(x, s, kind):
    """Whether an action of this kind leaves one word, which becomes the root."""
    front, depth = s[NEXT], s[DEPTH]
    if x.many_roots:
        return False
    return (front == x.length and depth == 2 and kind != SHIFT) or (front + 1 == x.length and depth == 0)


def new_head(x, s, kind):
    """The head that an action gives to the stack's top, -1 for the root."""
    if kind == RIGHT:
        return on_stack(s, 1)
    return s[NEXT] if s[NEXT] < x.length else -1


def cost(x, y, s, a):
    kind = x.kinds[a]
    if kind == LABEL:
        return label_cost(x, y, s, s[PENDING], a)
    wrong = 0.0
    if kind != SHIFT:
        top = on_stack(s, 0)
        if new_head(x, s, kind) != y.heads[top]:
            wrong = y.weights[top]
        elif not x.labels_later:
            wrong = label_cost(x, y, s, kind, a)
    if root_is_left(x, s, kind):
        word = s[cell(0, STACK)] if s[DEPTH] > 0 else s[NEXT]
        if y.heads[word] != -1:
            wrong += y.weights[word]
    return wrong


def label_cost(x, y, s, kind, a):
    """What a wrong label of a right arc costs; that of a wrong arc costs nothing more."""
    top, head = on_stack(s, 0), new_head(x, s, kind)
    right = head < 0 or head != y.heads[top] or x.relations[a] == y.relations[top] or not x.labelled
    return 0.0 if right else y.weights[top]


def loss(x, y, s):
    wrong = 0.0
    for word in range(x.length):
        head = max(s[cell(word, HEAD)], ROOT) - 2
        relation = s[cell(word, RELATION)]
        if head != y.heads[word] or (head >= 0 and x.labelled and relation != y.relations[word]):
            wrong += y.weights[word]
    return wrong


def output(x: Any, s: Any) -> tuple[list[int], list[int]]:
    words = range(int(x.length))
    heads = [max(int(s[cell(word, HEAD)]), ROOT) - 2 for word in words]
    return heads, [int(s[cell(word, RELATION)]) if heads[word] >= 0 else int(x.root_relation) for word in words]


def encode(obj: Any) -> Example:
    raise TypeError("a parsing space is filled by columns: use lols.Parser, or Examples.from_columns")


FUNCTIONS: dict[str, Any] = {
    "start": start,
    "actions": actions,
    "step": step,
    "features": features,
    "items": items,
    "key": key,
    "cost": cost,
    "loss": loss,
    "output": output,
    "encode": encode,
}
