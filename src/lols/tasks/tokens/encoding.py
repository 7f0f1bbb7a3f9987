"""From columns of strings to the columns of examples: features as hashes, computed once per distinct string.

Templates fall into three groups. Those that look at one place of one column are features of that column's distinct
strings (a part of the item). Those that look at several places are features of the token. Those with tags before are
left to the search: here they become a number per token, to be mixed with the tags there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from lols.contract.examples import Items
from lols.io.strings import Column, Pile, Texts
from lols.kernels.hashing import mix
from lols.kernels.kernel import kernel
from lols.tasks.tokens.attributes import NOTHING, OUTSIDE, Attribute, attribute_values, hash_text
from lols.tasks.tokens.templates import Template


class Extra(NamedTuple):
    """Features that a user computed: ids and values by token, any number each."""

    first: np.ndarray
    ids: np.ndarray
    values: np.ndarray


class TemplateLayout(NamedTuple):
    """Templates, sorted by what they look at."""

    columns: tuple[str, ...]
    attributes: dict[str, list[Attribute]]  # of each column
    views: dict[tuple[int, str], list[Template]]  # one place of one column
    joint: list[Template]  # several places
    history: list[Template]  # with tags
    bias: bool

    @classmethod
    def of(cls, templates: Sequence[Template]) -> TemplateLayout:
        """Sort templates into groups.

        >>> from lols.tasks.tokens.templates import parse_templates
        >>> layout = TemplateLayout.of(parse_templates(["word", "suffix2", "word[-1] & word", "tag[-1]", "bias"]))
        >>> [t.text for t in layout.views[0, "word"]], [t.text for t in layout.joint], layout.bias
        (['word', 'suffix2'], ['word[-1] & word'], True)
        """
        attributes: dict[str, list[Attribute]] = {}
        views: dict[tuple[int, str], list[Template]] = {}
        joint, history, bias = [], [], False
        for template in templates:
            atoms = [a for a in template.atoms if a.attribute is not None]
            for atom in atoms:
                known = attributes.setdefault(atom.column, [])
                if atom.attribute is not None and atom.attribute not in known:
                    known.append(atom.attribute)
            places = {(a.offset, a.column) for a in atoms}
            if template.tags:
                history.append(template)
            elif not atoms:
                bias = True
            elif len(places) == 1:
                views.setdefault(places.pop(), []).append(template)
            else:
                joint.append(template)
        return cls(tuple(attributes), attributes, views, joint, history, bias)

    @property
    def order(self) -> int:
        """How many tags back the history looks."""
        return max((max(t.tags) for t in self.history), default=0)

    def masks(self) -> np.ndarray:
        """Which tags each template of the history looks at: bit 0 for the last one, and so on."""
        return np.array([sum(1 << (k - 1) for k in t.tags) for t in self.history], np.int64)


class Encoded(NamedTuple):
    """The input side of examples."""

    items: Items
    bases: np.ndarray  # [token * history templates]: 0 where a template has nothing to look at


class Encoder:
    """Encodes one piece of a data set after the other: what can be said of a string is said once.

    The strings of a column must be those of the piece before and more, as an `Interner` gives them. The memory of a
    piece is used again for the next one.
    """

    def __init__(self, layout: TemplateLayout):
        self.layout = layout
        self._joint = _Looks.of(layout.joint, layout, 0)
        self._history = _Looks.of(layout.history, layout, len(layout.joint))
        self._always = np.full(int(layout.bias), mix(hash_text("bias"), 0), np.int64)
        # What each view looks at: column, offset, which of the column's views it is, and what is outside.
        columns = [layout.columns.index(name) for _, name in layout.views]
        ranks = [columns[:k].count(column) for k, column in enumerate(columns)]
        self._places = np.array([columns, [at for at, _ in layout.views], ranks, columns], np.int64).T.copy()
        widest = max((len(attributes) for attributes in layout.attributes.values()), default=0)
        # A string of a column, and the place outside of a sentence, is a line of these; its types are numbered in turn.
        self._values, self._types = Pile(np.int64, (widest,)), Pile(np.int64)
        self._begun = Pile(np.int64, (len(layout.joint) + len(layout.history),))  # templates with their first atom
        self._lines = [Pile(np.int64) for _ in layout.columns]  # of the strings by their numbers
        self._start, self._ids, self._strength = Pile(np.int64), Pile(np.int64), Pile(np.float32)
        self._start.add(np.zeros(1, np.int64))
        for name in layout.columns:  # the first lines are those of what is outside
            self._learn(name, np.full((len(layout.attributes[name]), 1), OUTSIDE, np.int64))

    def _learn(self, name: str, values: np.ndarray) -> None:
        """Take in strings by the values of their attributes, [attribute, string]."""
        attributes, count = self.layout.attributes[name], values.shape[1]

        def hashes(templates: Sequence[Template], most: int | None) -> np.ndarray:
            """Templates with their atoms, or the first of them, if these look at this column."""
            made = np.empty((len(templates), count), np.int64)
            for row, template in zip(made, templates, strict=True):
                row[:] = key(template)
                for column, attribute, _ in _inputs(template)[:most]:
                    if column == name:
                        _fold(values[attributes.index(attribute)], row)
            return made

        groups = [templates for (_, column), templates in self.layout.views.items() if column == name]
        whole = hashes([template for templates in groups for template in templates], None)
        self._begun.add(hashes([*self.layout.joint, *self.layout.history], 1).T)
        bounds = np.cumsum([0, *map(len, groups)])
        ids, stop = np.empty(whole.size, np.int64), np.empty(count * len(groups), np.int64)
        ids = ids[: _compact(whole, bounds, ids, stop)]
        self._types.add(self._start.size - 1 + np.arange(count) * len(groups))
        self._start.add(self._ids.size + stop)
        self._ids.add(ids)
        self._strength.add(np.ones(ids.size, np.float32))
        lines = np.zeros((count, *self._values.filled.shape[1:]), np.int64)
        lines[:, : len(attributes)] = values.T
        self._values.add(lines)

    def encode(self, columns: Mapping[str, Column], offsets: np.ndarray, extra: Extra | None = None) -> Encoded:
        """Encode the sentences of a piece, given as columns and the tokens at which they begin."""
        layout, tokens = self.layout, int(offsets[-1])
        lines = np.empty((len(layout.columns), tokens), np.int64)
        for k, name in enumerate(layout.columns):
            known, texts = self._lines[k], columns[name].texts
            if texts.begin.size > known.size:
                new = Texts(texts.buffer, texts.begin[known.size :], texts.end[known.size :])
                known.add(self._types.size + np.arange(new.begin.size))
                self._learn(name, attribute_values(new, layout.attributes[name])[:, :-1])
            np.take(known.filled, columns[name].numbers, out=lines[k])
        count, total = self._start.size - 1, self._ids.size
        per_token = bool(layout.joint) or extra is not None or layout.bias
        parts = len(layout.views) + per_token
        types = np.empty((tokens, max(parts, 1)), np.int64)
        _place(lines, offsets, self._places, self._types.filled, types)
        start, ids, values = self._start.filled, self._ids.filled, self._strength.filled
        if per_token:
            further = extra or _no_extra(tokens)
            start = self._start.room(tokens)
            room = tokens * (len(layout.joint) + layout.bias) + further.ids.size
            ids, values = self._ids.room(room), self._strength.room(room)
            joint = self._hashes(self._joint, lines, offsets)
            used = _append(joint, self._always, *further, total, ids, values, start[count + 1 :])
            ids, values = ids[:used], values[:used]
            types[:, -1] = np.arange(count, count + tokens)
        bases = self._hashes(self._history, lines, offsets)
        if parts == 0:  # an item without features
            types[:], start = 0, np.zeros(2, np.int64)
        items = Items(offsets, types.reshape(-1), start, ids, values, max(parts, 1), count)
        return Encoded(items, bases.reshape(-1))

    def _hashes(self, looks: _Looks, lines: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """The hash of what each template sees at each token, [token, template]."""
        made = np.empty((int(offsets[-1]), looks.keys.size), np.int64)
        _hash_tokens(lines, offsets, *looks, self._begun.filled, self._values.filled, made)
        return made


class _Looks(NamedTuple):
    """What templates look at: one key each, and the atoms as (column, offset, which attribute, outside)."""

    number: int  # of the first template among those that are begun
    keys: np.ndarray
    first: np.ndarray  # the atom at which each template begins
    atoms: np.ndarray

    @classmethod
    def of(cls, templates: Sequence[Template], layout: TemplateLayout, number: int) -> _Looks:
        first, atoms = [0], []
        for template in templates:
            for name, attribute, offset in _inputs(template):
                column = layout.columns.index(name)
                atoms.append((column, offset, layout.attributes[name].index(attribute), column))
            first.append(len(atoms))
        keys = np.array([key(template) for template in templates], np.int64)
        return cls(number, keys, np.array(first, np.int64), np.array(atoms, np.int64).reshape(-1, 4))


def _inputs(template: Template) -> list[tuple[str, Attribute, int]]:
    """Column, attribute and offset of the atoms that look at a string."""
    return [(atom.column, atom.attribute, atom.offset) for atom in template.atoms if atom.attribute is not None]


def key(template: Any) -> int:
    """What makes features of different templates different."""
    return mix(hash_text(template.text), len(template.atoms))


def _no_extra(tokens: int) -> Extra:
    return Extra(np.zeros(tokens + 1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))


@kernel
def _place(lines, offsets, places, first_types, types):
    """The type of the string that each view sees from each token; places: (column, offset, rank, outside)."""
    for k in range(offsets.size - 1):
        low, high = offsets[k], offsets[k + 1]
        for t in range(low, high):
            for v in range(places.shape[0]):
                at = t + places[v, 1]
                seen = lines[places[v, 0], at] if low <= at < high else places[v, 3]
                types[t, v] = first_types[seen] + places[v, 2]


@kernel
def _hash_tokens(lines, offsets, number, keys, first, atoms, begun, values, made):
    """Mix what atoms see at each token; nothing there makes it nothing. The first atom is mixed already."""
    for s in range(offsets.size - 1):
        low, high = offsets[s], offsets[s + 1]
        for t in range(low, high):
            for k in range(keys.size):
                identity = keys[k]
                for a in range(first[k], first[k + 1]):
                    at = t + atoms[a, 1]
                    seen = lines[atoms[a, 0], at] if low <= at < high else atoms[a, 3]
                    if a == first[k]:
                        identity = begun[seen, number + k]
                    else:
                        value = values[seen, atoms[a, 2]]
                        identity = mix(identity, value) if value != NOTHING else NOTHING
                    if identity == NOTHING:
                        break
                made[t, k] = identity


@kernel
def _fold(values, made):
    """Mix an attribute of every distinct string into its hash."""
    for t in range(values.size):
        made[t] = mix(made[t], values[t]) if made[t] != NOTHING and values[t] != NOTHING else NOTHING


@kernel
def _compact(hashes, groups, ids, stop):
    """The features of each string, group after group, without those that are nothing, and where each ends; how many."""
    count = groups.size - 1
    n = 0
    for t in range(hashes.shape[1]):
        for g in range(count):
            for k in range(groups[g], groups[g + 1]):
                if hashes[k, t] != NOTHING:
                    ids[n] = hashes[k, t]
                    n += 1
            stop[t * count + g] = n
    return n


@kernel
def _append(rows, always, first, extra_ids, extra_values, n, ids, values, stop):
    """Append the features of each token, without those that are nothing, with those that are always there and more."""
    for t in range(rows.shape[0]):
        for k in range(rows.shape[1]):
            if rows[t, k] != NOTHING:
                ids[n], values[n] = rows[t, k], 1.0
                n += 1
        for k in range(always.size):
            ids[n], values[n] = always[k], 1.0
            n += 1
        for k in range(first[t], first[t + 1]):
            ids[n], values[n] = extra_ids[k], extra_values[k]
            n += 1
        stop[t] = n
    return n
