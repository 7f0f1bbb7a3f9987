"""From columns of strings to the columns of examples: features as hashes, computed once per distinct string.

Templates fall into three groups. Those that look at one place of one column are features of that column's distinct
strings (a part of the item). Those that look at several places are features of the token. Those with tags before are
left to the search: here they become a number per token, to be mixed with the tags there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numba import njit

import lols.engine.dual  # noqa: F401  (gives `mix` its compiled form)
from lols.examples import Items
from lols.hashing import mix
from lols.io.strings import Column
from lols.tasks.attributes import NOTHING, Attribute, attribute_values, hash_text
from lols.tasks.templates import Template

__all__ = ["Encoded", "Extra", "Layout", "encode"]


class Extra(NamedTuple):
    """Features that a user computed: ids and values by token, any number each."""

    first: np.ndarray
    ids: np.ndarray
    values: np.ndarray


class Layout(NamedTuple):
    """Templates, sorted by what they look at."""

    columns: tuple[str, ...]
    attributes: dict[str, list[Attribute]]  # of each column
    views: dict[tuple[int, str], list[Template]]  # one place of one column
    joint: list[Template]  # several places
    history: list[Template]  # with tags
    bias: bool

    @classmethod
    def of(cls, templates: Sequence[Template]) -> Layout:
        """Sort templates into groups.

        >>> from lols.tasks.templates import parse_templates
        >>> layout = Layout.of(parse_templates(["word", "suffix2", "word[-1] & word", "tag[-1]", "bias"]))
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


def encode(layout: Layout, columns: Mapping[str, Column], offsets: np.ndarray, extra: Extra | None = None) -> Encoded:
    """Encode sentences, given as columns and the tokens at which they begin."""
    tokens = int(offsets[-1])
    values = {name: attribute_values(columns[name].texts, layout.attributes[name]) for name in layout.columns}
    numbers = np.empty((len(layout.columns), tokens), np.int64)
    for k, name in enumerate(layout.columns):
        numbers[k] = columns[name].numbers
    per_token = bool(layout.joint) or extra is not None or layout.bias
    parts = len(layout.views) + per_token
    types = np.empty((tokens, max(parts, 1)), np.int64)
    starts, ids = [np.zeros(1, np.int64)], []
    count = total = 0
    places = np.zeros((len(layout.views), 4), np.int64)
    for part, ((offset, name), templates) in enumerate(layout.views.items()):
        distinct = columns[name].texts.begin.size
        rows = np.empty((len(templates), distinct + 1), np.int64)
        for k, template in enumerate(templates):
            rows[k] = key(template)
            for atom in template.atoms:
                if atom.attribute is not None:
                    _fold(values[name][layout.attributes[name].index(atom.attribute)], rows[k])
        places[part] = layout.columns.index(name), offset, count, distinct
        start, own = _compact(rows)
        starts.append(start + total)
        ids.append(own)
        count += distinct + 1
        total += own.size
    _place(numbers, offsets, places, types)
    further = extra or _no_extra(tokens)
    room = tokens * (len(layout.joint) + layout.bias) * per_token + further.ids.size
    everything, strength = np.empty(total + room, np.int64), np.ones(total + room, np.float32)
    np.concatenate([*ids, np.zeros(0, np.int64)], out=everything[:total])
    if per_token:
        joint = _hashes(layout, layout.joint, values, numbers, offsets)
        always = np.full(int(layout.bias), mix(hash_text("bias"), 0), np.int64)
        stop = np.empty(tokens, np.int64)
        used = _append(joint, always, *further, total, everything, strength, stop)
        everything, strength = everything[:used], strength[:used]
        types[:, -1] = np.arange(count, count + tokens)
        starts.append(stop)
    bases = _hashes(layout, layout.history, values, numbers, offsets)
    if parts == 0:  # an item without features
        types[:], starts = 0, [np.zeros(2, np.int64)]
    items = Items(offsets, types.reshape(-1), np.concatenate(starts), everything, strength, max(parts, 1), count)
    return Encoded(items, bases.reshape(-1))


def _hashes(
    layout: Layout,
    templates: Sequence[Template],
    values: Mapping[str, np.ndarray],
    numbers: np.ndarray,
    offsets: np.ndarray,
) -> np.ndarray:
    """The hash of what each template sees at each token, [token, template]."""
    made = np.empty((numbers.shape[1] if numbers.size else int(offsets[-1]), len(templates)), np.int64)
    first, atoms = [0], []
    bases = dict(zip(layout.columns, np.cumsum([0, *(values[n].size for n in layout.columns)]).tolist(), strict=False))
    for template in templates:
        for atom in template.atoms:
            if atom.attribute is not None:
                width = values[atom.column].shape[1]
                at = bases[atom.column] + layout.attributes[atom.column].index(atom.attribute) * width
                atoms.append((layout.columns.index(atom.column), atom.offset, at, width - 1))
        first.append(len(atoms))
    flat = np.concatenate([values[name].reshape(-1) for name in layout.columns] or [np.zeros(0, np.int64)])
    keys = np.array([key(template) for template in templates], np.int64)
    looks = np.array(atoms, np.int64).reshape(-1, 4)
    _hash_tokens(numbers, offsets, keys, np.array(first, np.int64), looks, flat, made)
    return made


def key(template: Any) -> int:
    """What makes features of different templates different."""
    return mix(hash_text(template.text), len(template.atoms))


def _no_extra(tokens: int) -> Extra:
    return Extra(np.zeros(tokens + 1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))


@njit(cache=True, nogil=True)
def _place(numbers, offsets, places, types):
    """The type of the string that each view sees from each token; places: (column, offset, first type, outside)."""
    for k in range(offsets.size - 1):
        low, high = offsets[k], offsets[k + 1]
        for t in range(low, high):
            for v in range(places.shape[0]):
                at = t + places[v, 1]
                seen = numbers[places[v, 0], at] if low <= at < high else places[v, 3]
                types[t, v] = places[v, 2] + seen


@njit(cache=True, nogil=True)
def _hash_tokens(numbers, offsets, keys, first, looks, values, made):
    """Mix what atoms see at each token; nothing there makes it nothing. `looks` are (column, offset, row, outside)."""
    for s in range(offsets.size - 1):
        low, high = offsets[s], offsets[s + 1]
        for t in range(low, high):
            for k in range(keys.size):
                identity = keys[k]
                for a in range(first[k], first[k + 1]):
                    at = t + looks[a, 1]
                    seen = numbers[looks[a, 0], at] if low <= at < high else looks[a, 3]
                    value = values[looks[a, 2] + seen]
                    if value == NOTHING:
                        identity = NOTHING
                        break
                    identity = mix(identity, value)
                made[t, k] = identity


@njit(cache=True, nogil=True)
def _fold(values, made):
    """Mix an attribute of every distinct string into its hash."""
    for t in range(values.size):
        made[t] = mix(made[t], values[t]) if made[t] != NOTHING and values[t] != NOTHING else NOTHING


@njit(cache=True, nogil=True)
def _compact(rows):
    """The features of each column of `rows`, without those that are nothing: where each begins, and all of them."""
    ids = np.empty(rows.size, np.int64)
    stop = np.empty(rows.shape[1], np.int64)
    n = 0
    for t in range(rows.shape[1]):
        for k in range(rows.shape[0]):
            if rows[k, t] != NOTHING:
                ids[n] = rows[k, t]
                n += 1
        stop[t] = n
    return stop, ids[:n].copy()


@njit(cache=True, nogil=True)
def _append(rows, always, first, extra_ids, extra_values, n, ids, values, stop):
    """Append the features of each token, without those that are nothing, with those that are always there and more."""
    for t in range(rows.shape[0]):
        for k in range(rows.shape[1]):
            if rows[t, k] != NOTHING:
                ids[n] = rows[t, k]
                n += 1
        for k in range(always.size):
            ids[n] = always[k]
            n += 1
        for k in range(first[t], first[t + 1]):
            ids[n], values[n] = extra_ids[k], extra_values[k]
            n += 1
        stop[t] = n
    return n
