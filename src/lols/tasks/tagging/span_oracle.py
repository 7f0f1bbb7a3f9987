"""The cheapest legal completion from any state of a tagger of spans: a dynamic oracle in one table.

With a learned roll-in the gold label may be illegal, so the teacher must know what is best from wherever it is. The
loss adds up from step to step, and what is best from here on depends on the position, the automaton's state and one
bit. What label `a` costs, if the best completion follows, is

    hamming    (a != gold[i])          + cost_to_go[i + 1, next[q, a]]
    f1         span_step_cost(..., a)  + cost_to_go[i + 1, states if matching else q]
               with q, matching = span_step(..., a)

The loss `f1` charges false positives and false negatives: a span is right if begin, end and type are. With C right
ones among P that were found and G that are there, F1 = 2C / (P + G) is at its most, F, where 2C - F (P + G) is: where a
false positive costs F and a false negative 2 - F. The level F is 1/2 here, so a miss costs three times as much. With
F = 1 they would cost the same: what is less likely to be a span than not would be passed over, and rare spans are that.

The bit of `f1` is *matching*: a span is open that has begun where a gold span of its type has, and its last word so far
is in that gold span. When things are charged:

- A false positive when the span's end is known: at its own last label in `bilou` and `bioes`, at the label after it in
  `bio`, and at the last label of the sentence.
- A gold span that is missed at its first word if no span of its type begins there. Otherwise where the match breaks:
  when the span is known to have ended too early, or at its first word beyond the gold span.
"""

from __future__ import annotations

import numpy as np

from lols.errors import ConfigurationError
from lols.kernels.dual import dual
from lols.kernels.kernel import kernel
from lols.tasks.tagging.spans import Automaton, span_marks

LEVEL = 0.5  # of F1
FALSE_POSITIVE, FALSE_NEGATIVE = LEVEL, 2.0 - LEVEL


def completions(gold: np.ndarray, offsets: np.ndarray, machine: Automaton, loss: str) -> np.ndarray:
    """The least further loss from every position in every state, infinite where no legal completion exists.

    Parameters
    ----------
    gold
        Numbers of the gold labels of all sentences, int64. Illegal sequences are read as in `lols.tasks.tagging.spans`.
    offsets
        Where each sentence begins, and where the last one ends.
    machine
        The legal sequences.
    loss
        `"hamming"` (wrong labels) or `"f1"` (spans found wrongly, and spans missed).

    Returns
    -------
    numpy.ndarray
        float32 [words + sentences, states + 1]. Sentence k has the rows `offsets[k] + k + i` for its positions i from 0
        to its length. The last column is for a span that is matching, the others are for those that are not; for
        `"hamming"` the last column is infinite.

    Examples
    --------
    >>> from lols.tasks.tagging.spans import automaton
    >>> machine = automaton("bio", ["O", "B-PER", "I-PER"])

    Before the second word of a span, with no span open (column 0), the gold label is illegal:

    >>> completions(np.array([1, 2]), np.array([0, 2]), machine, "hamming").tolist()
    [[0.0, 0.0, inf], [1.0, 0.0, inf], [0.0, 0.0, inf]]
    """
    if loss not in ("hamming", "f1"):
        raise ConfigurationError(f"unknown loss '{loss}': choose hamming or f1")
    if loss == "f1" and (machine.types < 0).all():
        raise ConfigurationError("loss 'f1' needs span labels, and these are plain tags: choose loss 'hamming'")
    begins, ends = span_marks(gold, offsets, machine)
    gold, offsets = np.ascontiguousarray(gold, np.int64), np.ascontiguousarray(offsets, np.int64)
    states = machine.next.shape[0]
    cost_to_go = np.full((len(gold) + len(offsets) - 1, states + 1), np.inf, np.float32)
    # Few labels are legal in a state: lists of them save most of the work where there are many types.
    owners, labels = np.nonzero(machine.next >= 0)
    first = np.searchsorted(owners, np.arange(states + 1))
    labels = np.ascontiguousarray(labels)
    _fill(gold, offsets, begins, ends, loss == "f1", *machine, labels, first, cost_to_go)
    return cost_to_go


@dual
def span_matching(begins, ends, i, matching, a, opens, types):
    """Whether the span that word i is in, after label a, coincides with a gold span so far."""
    if opens[a]:
        return begins[i] == types[a]
    return bool(matching) and types[a] >= 0 and not ends[i - 1]


@dual
def span_step(begins, ends, i, q, matching, a, following, opens, types):
    """The automaton's state and the bit *matching* after label a at word i.

    `begins` and `ends` are a sentence's part of `spans.span_marks` of the gold labels; `following`, `opens`
    and `types` are the automaton's `next`, `opens` and `types`. At the start `q` and `matching` are 0.

    >>> from lols.tasks.tagging.spans import automaton, span_marks
    >>> machine = automaton("bio", ["O", "B-PER", "I-PER"])
    >>> begins, ends = span_marks(np.array([1, 2, 0]), np.array([0, 3]), machine)
    >>> span_step(begins, ends, 0, 0, 0, 1, machine.next, machine.opens, machine.types)
    (1, 1)
    """
    after = int(following[q, a])
    return after, int(after > 0 and span_matching(begins, ends, i, matching, a, opens, types))


@dual
def span_step_cost(begins, ends, i, q, matching, a, opens, closes, types):
    """What label a at word i adds to the cost of false positives and false negatives; arguments as for `span_step`.

    >>> from lols.tasks.tagging.spans import automaton, span_marks
    >>> machine = automaton("bio", ["O", "B-PER", "I-PER"])
    >>> begins, ends = span_marks(np.array([1, 2, 0]), np.array([0, 3]), machine)

    After the gold span's first word, O cuts it short: a span found wrongly, and one missed.

    >>> span_step_cost(begins, ends, 1, 1, 1, 0, machine.opens, machine.closes, machine.types)
    2.0
    """
    cost = 0.0
    matches = span_matching(begins, ends, i, matching, a, opens, types)
    if q > 0:
        if opens[a] or types[a] < 0:  # the open span ended with the word before
            if not matching:
                cost += FALSE_POSITIVE
            elif not ends[i - 1]:
                cost += FALSE_POSITIVE + FALSE_NEGATIVE
        elif matching and ends[i - 1]:  # it goes on beyond the gold span
            cost += FALSE_NEGATIVE
    if begins[i] >= 0 and not matches:
        cost += FALSE_NEGATIVE
    if types[a] >= 0 and (closes[a] or i == len(begins) - 1):  # the span ends with this word
        if not matches:
            cost += FALSE_POSITIVE
        elif not ends[i]:
            cost += FALSE_POSITIVE + FALSE_NEGATIVE
    return cost


@kernel
def _fill(gold, offsets, begins, ends, spans, following, can_end, opens, closes, types, labels, first, cost_to_go):
    states = following.shape[0]
    for k in range(len(offsets) - 1):
        start, stop = offsets[k], offsets[k + 1]
        starts, stops = begins[start:stop], ends[start:stop]
        for q in range(states):
            if can_end[q]:
                cost_to_go[stop + k, q] = 0.0
        if spans and stop > start:
            kind = types[gold[stop - 1]]
            if kind >= 0:
                cost_to_go[stop + k, states] = cost_to_go[stop + k, 1 + kind]
        for i in range(stop - start - 1, -1, -1):
            row = start + k + i
            for column in range(states + 1):
                q = column
                if column == states:
                    # What matches is of the gold span's type, so one column is enough.
                    kind = types[gold[start + i - 1]] if spans and i > 0 else -1
                    if kind < 0:
                        continue
                    q = 1 + kind
                matching = column == states
                for j in range(first[q], first[q + 1]):
                    a = labels[j]
                    if spans:
                        cost = span_step_cost(starts, stops, i, q, matching, a, opens, closes, types)
                        after, matches = span_step(starts, stops, i, q, matching, a, following, opens, types)
                        cost += cost_to_go[row + 1, states if matches else after]
                    else:
                        cost = np.float64(a != gold[start + i]) + cost_to_go[row + 1, following[q, a]]
                    cost_to_go[row, column] = min(cost_to_go[row, column], cost)
