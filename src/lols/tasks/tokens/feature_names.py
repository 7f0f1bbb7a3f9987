"""From feature ids back to words: which values of which template hash to a given id.

Ids are chains of `mix`: the template's key, then one value after the other. The last step of a chain can be undone when
its value is known, so an id is looked for from both ends: all chains of a template's first values are made, and the ids
are taken back by all of its last values until the two meet. A pair of words takes as many steps as there are words, for
each id, not their square.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lols.contract.hashing import GOLDEN, MASK, MULTIPLY_1, MULTIPLY_2, SPREAD, mix
from lols.engine.compile.kernel import kernel
from lols.engine.structures import Table
from lols.engine.table import fill, growing_table, lookup
from lols.io.strings import texts_of
from lols.tasks.tokens.attributes import NOTHING, OUTSIDE, attribute_text, attribute_values, hash_text
from lols.tasks.tokens.encoding import key
from lols.tasks.tokens.templates import Atom, Template, parse_templates

if TYPE_CHECKING:
    from lols.tasks.tagging.task import TaggingTask

UNKNOWN = "?"
BEFORE, AFTER = "(start)", "(end)"  # what is beside the sentence
MOST_CHAINS = 1 << 21  # kept in memory at a time
MOST_STEPS = 1 << 28  # a second or two
INVERSE_1, INVERSE_2, INVERSE_SPREAD = (pow(n, -1, 1 << 64) for n in (MULTIPLY_1, MULTIPLY_2, SPREAD))


class Names(NamedTuple):
    """What ids are called, and the templates whose features cannot be named."""

    by_id: dict[int, str]
    unnamed: list[str]

    def of(self, identity: int) -> str:
        """The name of a feature; a question mark where it has none."""
        if identity in self.by_id:
            return self.by_id[identity]
        return f"{self.unnamed[0]} = {UNKNOWN}" if len(self.unnamed) == 1 else UNKNOWN


class Values(NamedTuple):
    """What one link of a chain can be: hashes, and the text of each."""

    hashes: np.ndarray  # uint64
    text: Callable[[int], str]


def find_names(task: TaggingTask, strings: Mapping[str, Sequence[str]], wanted: np.ndarray) -> Names:
    """Name features of a tagging task, given the strings that each column is known to hold.

    >>> from lols.tasks.tagging.task import TaggingTask
    >>> task = TaggingTask(["N", "V"], templates=["suffix3", "tag[-1] & lower[+1]", "length"])
    >>> suffix, length = parse_templates(["suffix3", "length"])
    >>> ids = [mix(key(suffix), hash_text("ing")), mix(key(length), hash_text("7"))]
    >>> find_names(task, {"word": ["Walking", "the"]}, np.array(ids)).by_id.values()
    dict_values(['suffix3 = ing', 'length = 7'])
    """
    makers = _Makers(task, strings)
    left = np.unique(np.asarray(wanted, np.int64)).view(np.uint64)
    found: dict[int, str] = {}
    if task.layout.bias and (np.uint64(mix(hash_text("bias"), 0) & MASK) == left).any():
        found[mix(hash_text("bias"), 0)] = "bias"
    unnamed, able = [], []
    for template in parse_templates(task.templates, task.columns):
        if not template.tags and all(a.attribute is None for a in template.atoms):
            continue  # the bias, which has been found
        chain = makers.chain(template)
        if chain is None:
            unnamed.append(template.text)
        else:
            able.append((split_chain(chain, left.size)[1], template, chain))
    for _, template, chain in sorted(able, key=lambda entry: entry[0]):
        left = left[~np.isin(left, np.array(list(found), np.int64).view(np.uint64))]
        at, work = split_chain(chain, left.size)
        if at < 0 or work > MOST_STEPS:
            unnamed.append(template.text)
            continue
        for identity, places in search_names(template, chain, at, left).items():
            found[identity] = _name(template, [v.text(p) for v, p in zip(chain, places, strict=True)])
    return Names(found, unnamed)


# --- what templates can see -------------------------------------------------------------------------------------------


class _Makers:
    """Makes the links of chains; those that several templates share are made once."""

    def __init__(self, task: TaggingTask, strings: Mapping[str, Sequence[str]]):
        self.labels, self.strings, self.radix = task.inner_labels, strings, task.radix
        self.before, self.after = (BEFORE, AFTER) if task.direction == "forward" else (AFTER, BEFORE)
        self.texts = {name: texts_of(values) for name, values in strings.items()}
        self.known: dict[tuple[Atom, int], Values] = {}

    def chain(self, template: Template) -> list[Values] | None:
        """The values that follow a template's key, link by link; None if a column's strings are not known."""
        atoms = [a for a in template.atoms if a.attribute is not None]
        if any(a.column not in self.strings for a in atoms):
            return None
        return [self.values(a) for a in atoms] + ([self.tags(len(template.tags))] if template.tags else [])

    def values(self, atom: Atom) -> Values:
        side = (atom.offset > 0) - (atom.offset < 0)
        place = (atom._replace(offset=0), side)
        if place not in self.known:
            self.known[place] = self._values(atom, side)
        return self.known[place]

    def _values(self, atom: Atom, side: int) -> Values:
        which, strings = atom.attribute, self.strings[atom.column]
        assert which is not None
        row = attribute_values(self.texts[atom.column], [which])[0, :-1]
        hashes, first = np.unique(row, return_index=True)
        some = hashes != NOTHING
        hashes, first = hashes[some], first[some]
        if side:
            hashes = np.append(hashes, OUTSIDE)
        outside = self.before if side < 0 else self.after

        def text(place: int) -> str:
            return outside if place == first.size else shown_value(attribute_text(which, strings[first[place]]) or "")

        return Values(hashes.view(np.uint64), text)

    def tags(self, count: int) -> Values:
        """The tags before as one number, as `tags_before` makes it: the nearest tag counts most, and 0 is no tag."""
        base, radix = len(self.labels) + 1, self.radix
        names = [self.before, *self.labels]

        def tags(place: int) -> list[int]:
            return [place // base**k % base for k in range(count - 1, -1, -1)]

        def text(place: int) -> str:
            return "\t".join(names[tag] for tag in tags(place))

        codes = np.arange(base**count, dtype=np.uint64)
        if radix < base:  # labels that were added later
            for place in range(codes.size):
                code = 0
                for tag in tags(place):
                    code = code * radix + tag if tag < radix else mix(code, tag)
                codes[place] = code & ((1 << 64) - 1)
        return Values(codes, text)


def shown_value(text: str) -> str:
    """A text as it is, unless one could not see where it begins and ends, or took it for an unknown one."""
    return text if text not in ("", UNKNOWN) and text == text.strip() else f'"{text}"'


def _name(template: Template, texts: Sequence[str]) -> str:
    """A template's text with the value of each part in place."""
    values = list(texts)
    tags = dict(zip(template.tags, values.pop().split("\t"), strict=True)) if template.tags else {}
    rest, parts = iter(values), []
    for part in template.text.split(" & "):
        if part == "bias":
            parts.append(part)
        elif part.startswith("tag["):
            parts.append(f"{part} = {tags[-int(part[4:-1])]}")
        else:
            parts.append(f"{part} = {next(rest)}")
    return " & ".join(parts)


# --- the search -------------------------------------------------------------------------------------------------------


def split_chain(chain: Sequence[Values], wanted: int) -> tuple[int, int]:
    """How many links are best made forwards, and how many steps that takes in all; -1 if they never fit in memory."""
    sizes = [v.hashes.size for v in chain]
    options = [(prod(sizes[:m]) + wanted * prod(sizes[m:]), m) for m in range(len(sizes) + 1)]
    able = [(work, m) for work, m in options if prod(sizes[:m]) <= MOST_CHAINS]
    work, at = min(able, default=(0, -1))
    return at, work


def search_names(template: Template, chain: Sequence[Values], at: int, wanted: np.ndarray) -> dict[int, list[int]]:
    """The places, one per link, of the wanted ids that this template makes."""
    chains = np.array([key(template) & MASK], np.uint64)
    for link in chain[:at]:
        chains = _mixed(chains[:, np.newaxis], link.hashes).reshape(-1)
    table = growing_table(1 << max(int(2 * chains.size).bit_length(), 4))
    fill(table, chains.view(np.int64))
    sizes = [v.hashes.size for v in chain]
    made = {}
    # One link undone: all ids at once. Several: one id after the other, or the ends would not fit in memory.
    groups = [wanted] if len(chain) - at < 2 else [wanted[k : k + 1] for k in range(wanted.size)]
    for group in groups:
        ends, links = group, np.zeros(1, np.uint64)
        for link in chain[at + 1 :][::-1]:
            ends = undone(ends[:, np.newaxis], link.hashes).reshape(-1)
        if at < len(chain):
            ends, links = _part(ends), _step(chain[at].hashes)
        for end, link_place, row in meet(table, ends.view(np.int64), links.view(np.int64)).tolist():
            # Ends are numbered like digits: the group's id, then the last link, ..., down to the second undone.
            later = list(np.unravel_index(end, (group.size, *sizes[at + 1 :][::-1])))
            forward = list(np.unravel_index(row, sizes[:at])) if at else []
            middle = [link_place] if at < len(chain) else []
            identity = int(group[later[0]].view(np.int64))
            made[identity] = [int(p) for p in [*forward, *middle, *later[:0:-1]]]
    return made


def meet(table: Table, ends: np.ndarray, links: np.ndarray) -> np.ndarray:
    """Which ends, taken back by which links, are in the table: their places, and the row there."""
    found = np.empty((ends.size + 1, 3), np.int64)
    return found[: _meet(table, ends, links, found)].copy()


@kernel
def _meet(table, ends, links, found):
    count = 0
    for i in range(ends.size):
        for j in range(links.size):
            row = lookup(table, ends[i] - links[j])
            if row >= 0 and count < found.shape[0]:
                found[count, 0], found[count, 1], found[count, 2] = i, j, row
                count += 1
    return count


# --- the hash, backwards ----------------------------------------------------------------------------------------------


def _mixed(first: Any, second: Any) -> Any:
    """`mix` for whole arrays."""
    z = first * np.uint64(SPREAD) + second * np.uint64(GOLDEN) + np.uint64(GOLDEN)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(MULTIPLY_1)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(MULTIPLY_2)
    return z ^ (z >> np.uint64(31))


def _part(made: Any) -> Any:
    """What `mix` made, taken back to the first number plus `_step` of the second."""
    z = _unshifted(made, 31) * np.uint64(INVERSE_2)
    z = _unshifted(z, 27) * np.uint64(INVERSE_1)
    return _unshifted(z, 30) * np.uint64(INVERSE_SPREAD)


def _step(second: Any) -> Any:
    """The second number's share in `_part`."""
    return (second + np.uint64(1)) * np.uint64(GOLDEN * INVERSE_SPREAD & MASK)


def undone(made: Any, second: Any) -> Any:
    """The first number, given what `mix` made of it and the second.

    >>> first, second = np.array([5, 2**63 + 1], np.uint64), np.array([7], np.uint64)
    >>> undone(_mixed(first, second), second).tolist() == first.tolist()
    True
    """
    return _part(made) - _step(second)


def _unshifted(z: Any, by: int) -> Any:
    """The number whose exclusive or with itself, shifted, is `z`."""
    return z ^ (z >> np.uint64(by)) ^ (z >> np.uint64(2 * by))
