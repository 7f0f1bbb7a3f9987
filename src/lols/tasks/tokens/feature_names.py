"""From feature ids back to words: which values of which template make a given id.

Most ids are chains of `mix`: the template's key, then one value after the other. Those that a parser computes in the
search are sums: the key, and a product for each value. The last step of a chain or a sum can be undone when its value
is known, so an id is looked for from both ends: all beginnings with a template's first values are made, and the ids are
taken back by all of its last values until the two meet. A pair of words takes as many steps as there are words, for
each id, not their square.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from lols.engine.structures import Table
from lols.engine.table import fill, growing_table, lookup
from lols.io.strings import texts_of
from lols.kernels.hashing import GOLDEN, MASK, MULTIPLY_1, MULTIPLY_2, SPREAD
from lols.kernels.kernel import kernel
from lols.tasks.tokens.attributes import NOTHING, OUTSIDE, Attribute, attribute_text, attribute_values

UNKNOWN = "?"
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


class Chain(NamedTuple):
    """The features of a template: its key, what can follow that link by link, and the name that texts of these make."""

    template: str
    key: int
    links: list[Values] | None  # None if they are not known
    name: Callable[[list[str]], str]
    factors: Sequence[int] = ()  # of a sum: what the value of each link is multiplied by
    last: int = 0  # what the whole is mixed with in the end, unless it is 0


def name_features(chains: Sequence[Chain], wanted: np.ndarray, others: Mapping[int, str]) -> Names:
    """Name those of the wanted ids that the chains can make, and those of the others, which are known by their ids."""
    left = np.unique(np.asarray(wanted, np.int64)).view(np.uint64)
    found = {int(identity): others[identity] for identity in left.view(np.int64).tolist() if identity in others}
    unnamed = {chain.template: None for chain in chains if chain.links is None}
    able = [(chain, chain.links) for chain in chains if chain.links is not None]
    for chain, links in sorted(able, key=lambda entry: _split(entry[1], left.size)[1]):
        left = left[~np.isin(left, np.array(list(found), np.int64).view(np.uint64))]
        at, work = _split(links, left.size)
        if at < 0 or work > MOST_STEPS:
            unnamed[chain.template] = None
            continue
        for identity, places in _search(chain, links, at, left).items():
            found[identity] = chain.name([v.text(p) for v, p in zip(links, places, strict=True)])
    return Names(found, list(unnamed))


def attribute_link(strings: Sequence[str], which: Attribute, outside: str | None = None) -> Values:
    """What an attribute of strings can be; and what is beside the sentence, where that has a name."""
    hashes, first = np.unique(attribute_values(texts_of(strings), [which])[0, :-1], return_index=True)
    hashes, first = hashes[hashes != NOTHING], first[hashes != NOTHING]
    if outside is not None:
        hashes = np.append(hashes, OUTSIDE)

    def text(place: int) -> str:
        if outside is not None and place == first.size:
            return outside
        return shown_value(attribute_text(which, strings[first[place]]) or "")

    return Values(hashes.view(np.uint64), text)


def shown_value(text: str) -> str:
    """A text as it is, unless one could not see where it begins and ends, or took it for an unknown one."""
    return text if text not in ("", UNKNOWN) and text == text.strip() else f'"{text}"'


# --- the search -------------------------------------------------------------------------------------------------------


def _split(links: Sequence[Values], wanted: int) -> tuple[int, int]:
    """How many links are best made forwards, and how many steps that takes in all; -1 if they never fit in memory."""
    sizes = [v.hashes.size for v in links]
    options = [(prod(sizes[:m]) + wanted * prod(sizes[m:]), m) for m in range(len(sizes) + 1)]
    able = [(work, m) for work, m in options if prod(sizes[:m]) <= MOST_CHAINS]
    work, at = min(able, default=(0, -1))
    return at, work


def _search(chain: Chain, values: Sequence[Values], at: int, wanted: np.ndarray) -> dict[int, list[int]]:
    """The places, one per link, of the wanted ids that this chain makes."""
    links = [v.hashes for v in values]
    join: Any = np.add if chain.factors else _mixed
    undo: Any = np.subtract if chain.factors else undone
    if chain.factors:
        links = [link * np.uint64(factor & MASK) for link, factor in zip(links, chain.factors, strict=True)]
    whole = undone(wanted, np.array([chain.last], np.uint64)) if chain.last else wanted
    begun = np.array([chain.key & MASK], np.uint64)
    for link in links[:at]:
        begun = join(begun[:, np.newaxis], link).reshape(-1)
    table = growing_table(1 << max(int(2 * begun.size).bit_length(), 4))
    fill(table, begun.view(np.int64))
    sizes = [link.size for link in links]
    made = {}
    # One link undone: all ids at once. Several: one id after the other, or the ends would not fit in memory.
    count = max(wanted.size, 1) if len(links) - at < 2 else 1
    for number in range(0, wanted.size, count):
        ends, middle = whole[number : number + count], np.zeros(1, np.uint64)
        for link in links[at + 1 :][::-1]:
            ends = undo(ends[:, np.newaxis], link).reshape(-1)
        if at < len(links):
            ends, middle = (ends, links[at]) if chain.factors else (_part(ends), _step(links[at]))
        for end, place, row in meet(table, ends.view(np.int64), middle.view(np.int64)).tolist():
            # Ends are numbered like digits: the id, then the last link, ..., down to the second undone.
            which, *later = np.unravel_index(end, (count, *sizes[at + 1 :][::-1]))
            forward = np.unravel_index(row, sizes[:at]) if at else ()
            places = [*forward, *([place] if at < len(links) else []), *later[::-1]]
            made[int(wanted[number + which].view(np.int64))] = [int(p) for p in places]
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
