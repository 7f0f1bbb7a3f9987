"""From columns of strings to the columns of examples: features as hashes, computed once per distinct string.

Templates fall into three groups. Those that look at one place of one column are features of that column's distinct
strings (a part of the item). Those that look at several places are features of the token. Those with tags before are
left to the search: here they become a number per token, to be mixed with the tags there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

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
    edges = _edges(offsets)
    values = {name: attribute_values(columns[name].texts, layout.attributes[name]) for name in layout.columns}

    def value_row(name: str, which: Attribute) -> np.ndarray:
        return values[name][layout.attributes[name].index(which)]

    def hashes(template: Template) -> np.ndarray:
        made = np.full(tokens, key(template), np.int64)
        for atom in template.atoms:
            if atom.attribute is not None:
                row = value_row(atom.column, atom.attribute)
                _fold(row, columns[atom.column].numbers, edges, atom.offset, made)
        return made

    per_token = bool(layout.joint) or extra is not None or layout.bias
    parts = len(layout.views) + per_token
    types = np.empty((tokens, parts), np.int64)
    starts, ids = [np.zeros(1, np.int64)], []
    count = total = 0
    for part, ((offset, name), templates) in enumerate(layout.views.items()):
        distinct = columns[name].texts.begin.size
        rows = np.empty((len(templates), distinct + 1), np.int64)
        for k, template in enumerate(templates):
            rows[k] = key(template)
            for atom in template.atoms:
                if atom.attribute is not None:
                    _fold_types(value_row(name, atom.attribute), rows[k])
        _place(columns[name].numbers, edges, offset, distinct, count, types[:, part])
        start, own = _compact(rows)
        starts.append(start + total)
        ids.append(own)
        count += distinct + 1
        total += own.size
    strength = np.ones(total, np.float32)
    if per_token:
        rows = np.empty((len(layout.joint) + layout.bias, tokens), np.int64)
        for k, template in enumerate(layout.joint):
            rows[k] = hashes(template)
        if layout.bias:
            rows[-1] = mix(hash_text("bias"), 0)
        start, own, own_values = _compact_with(rows, *(extra or _no_extra(tokens)))
        types[:, -1] = count + np.arange(tokens)
        starts.append(start + total)
        ids.append(own)
        strength = np.concatenate([strength, own_values])
    bases = np.empty((tokens, len(layout.history)), np.int64)
    for k, template in enumerate(layout.history):
        bases[:, k] = hashes(template)
    everything = np.concatenate(ids) if ids else np.zeros(0, np.int64)
    items = Items(offsets, types.reshape(-1), np.concatenate(starts), everything, strength, max(parts, 1), count)
    return Encoded(items, bases.reshape(-1))


def key(template: Template) -> int:
    """What makes features of different templates different."""
    return mix(hash_text(template.text), len(template.atoms))


def _no_extra(tokens: int) -> Extra:
    return Extra(np.zeros(tokens + 1, np.int64), np.zeros(0, np.int64), np.zeros(0, np.float32))


@njit(cache=True, nogil=True)
def _edges(offsets):
    """The first token of each token's sentence and the one after its last."""
    made = np.empty((offsets[-1], 2), np.int64)
    for k in range(offsets.size - 1):
        for t in range(offsets[k], offsets[k + 1]):
            made[t, 0], made[t, 1] = offsets[k], offsets[k + 1]
    return made


@njit(cache=True, nogil=True)
def _place(numbers, edges, offset, outside, base, out):
    """The type of the string that lies `offset` places from each token."""
    for t in range(numbers.size):
        at = t + offset
        out[t] = base + (numbers[at] if edges[t, 0] <= at < edges[t, 1] else outside)


@njit(cache=True, nogil=True)
def _fold(values, numbers, edges, offset, made):
    """Mix what lies `offset` places from each token into its hash; nothing there makes it nothing."""
    outside = values.size - 1
    for t in range(numbers.size):
        at = t + offset
        value = values[numbers[at] if edges[t, 0] <= at < edges[t, 1] else outside]
        made[t] = mix(made[t], value) if made[t] != NOTHING and value != NOTHING else NOTHING


@njit(cache=True, nogil=True)
def _fold_types(values, made):
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
def _compact_with(rows, first, extra_ids, extra_values):
    """The same, with further features and their values after them."""
    ids, values = np.empty(rows.size + extra_ids.size, np.int64), np.ones(rows.size + extra_ids.size, np.float32)
    stop = np.empty(rows.shape[1], np.int64)
    n = 0
    for t in range(rows.shape[1]):
        for k in range(rows.shape[0]):
            if rows[k, t] != NOTHING:
                ids[n] = rows[k, t]
                n += 1
        for k in range(first[t], first[t + 1]):
            ids[n], values[n] = extra_ids[k], extra_values[k]
            n += 1
        stop[t] = n
    return stop, ids[:n].copy(), values[:n].copy()
