"""The template language of the parser: what a state is seen as, in readable lines.

A template is one or more atoms joined by `&`; it makes one feature of their values together. An atom asks a place for
something: `S0.word`, `N0.upos`, `S0l.suffix3`. Places are the stack, `S0` its top, `S1`, `S2`, and the buffer, `N0` its
front, `N1` and so on; their dependents so far, `S0l` the first on the left, `S0l2` the second, `S0r` the last on the
right, `S0r2` the last but one; and the words beside any of them, `S0[+1]`, `N0[-1]`. Besides columns and attributes of
words, as in the tagger's templates, a place has a relation to its head, `S0l.relation`, a number of left and right
dependents, `S0.lefts`, `S0.rights`, and their relations as a set, `S0.left-set`, `S0.right-set`. `distance(S0,N0)` is
the number of words from one place to another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product
from typing import NamedTuple

import numpy as np

from lols.contract.whole_numbers import number_in
from lols.errors import ConfigurationError, short
from lols.kernels.hashing import mix
from lols.tasks.parsing import space as parsing
from lols.tasks.tokens.attributes import Attribute
from lols.tasks.tokens.encoding import key
from lols.tasks.tokens.templates import expanded, numbers_in, static_atom

DYNAMIC = {
    "relation": parsing.RELATION_OF,
    "lefts": parsing.LEFTS_OF,
    "rights": parsing.RIGHTS_OF,
    "left-set": parsing.LEFT_SET_OF,
    "right-set": parsing.RIGHT_SET_OF,
}
CHILDREN = {
    "": parsing.NO_CHILD,
    "l": parsing.FIRST_CHILD,
    "l2": parsing.SECOND_CHILD,
    "r": parsing.LAST_CHILD,
    "r2": parsing.LAST_BUT_ONE_CHILD,
}
_PLACE = r"([SN])(\d)(?:\.\.(\d))?(l2?|r2?)?(?:\[([+-][1-9])\])?"
_ATOM = re.compile(_PLACE + r"\.(?:([^\W\d][\w-]*)\.)?([^\W\d][\w-]*?)(\d{1,9})?(?:\.\.(\d{1,9}))?")
_DISTANCE = re.compile(r"distance\(\s*([^,\s]+)\s*,\s*([^,\s]+)\s*\)")


class TemplatePlace(NamedTuple):
    """A place: stack (0) or buffer (1), how deep, which dependent of it, how many words beside that."""

    side: int
    depth: int
    child: int = 0
    offset: int = 0


class SearchAtom(NamedTuple):
    """What one place is asked for: an attribute of a column, or something that the search knows."""

    place: TemplatePlace
    column: str = ""
    attribute: Attribute | None = None
    dynamic: int = 0
    other: TemplatePlace | None = None  # for distances


class ParsingTemplate(NamedTuple):
    """A feature: its text, which is its identity, and its atoms."""

    text: str
    atoms: tuple[SearchAtom, ...]

    @property
    def place(self) -> TemplatePlace | None:
        """The one place that a template of an item looks at; None if the search must compute it."""
        first = self.atoms[0].place
        return first if all(a.place == first and a.dynamic == 0 for a in self.atoms) else None


def parse_parsing_templates(lines: str | Iterable[str], columns: Iterable[str]) -> list[ParsingTemplate]:
    """Read templates: one per line, or one per string; `#` begins a comment, ranges are written out.

    >>> [t.text for t in parse_parsing_templates("N0..1.word & S0.upos", ["word", "upos"])]
    ['N0.word & S0.upos', 'N1.word & S0.upos']
    >>> parse_parsing_templates("S0.wrd", ["word"])
    Traceback (most recent call last):
        ...
    lols.errors.ConfigurationError: template 'S0.wrd': there is no attribute or column 'wrd'; columns: word; \
attributes: word, lower, prefixN, suffixN, shape, class, length, digits; of the search: relation, lefts, rights, \
left-set, right-set, distance(S0,N0)
    """
    known = frozenset(columns)
    found = expanded(lines, lambda part, line: _atoms(part, line, known), "S0.word")
    return [ParsingTemplate(text, atoms) for text, atoms in found]


def _atoms(part: str, text: str, columns: frozenset[str]) -> list[tuple[str, SearchAtom]]:
    far = _DISTANCE.fullmatch(part)
    if far is not None:
        places = [_place(name, text) for name in far.groups()]
        atom = SearchAtom(places[0], dynamic=parsing.DISTANCE, other=places[1])
        return [(f"distance({far[1]},{far[2]})", atom)]
    found = _ATOM.fullmatch(part)
    if found is None:
        raise ConfigurationError(
            f"template '{short(text)}': '{short(part)}' is not an atom; atoms look like S0.word, N1.upos, "
            "S0l.relation, S0[+1].suffix2 or distance(S0,N0)"
        )
    side, index, to_index, child, offset, column, name, size, to_size = found.groups()
    made = []
    for i, k in product(numbers_in(index, to_index, text), numbers_in(size, to_size, text)):
        where = f"{side}{i}{child or ''}" + (f"[{offset}]" if offset else "")
        whole = name + ("" if k is None else str(k))
        place = TemplatePlace("SN".index(side), int(i or 0), CHILDREN[child or ""], number_in(offset or "0"))
        if column is None and whole in DYNAMIC and whole not in columns:
            if offset or bool(child) != (whole == "relation"):
                raise ConfigurationError(
                    f"template '{short(text)}': '{short(part)}' is not kept by the search: dependents have a relation, "
                    "such as S0l.relation; S0, S1, N0 have lefts, rights, left-set and right-set; words beside have "
                    "neither"
                )
            atom = SearchAtom(place, dynamic=DYNAMIC[whole])
        else:
            more = f"of the search: {', '.join(DYNAMIC)}, distance(S0,N0)"
            atom = SearchAtom(place, *static_atom(column, whole, columns, text, more))
        made.append((f"{where}.{column + '.' if column else ''}{whole}", atom))
    return made


def _place(name: str, text: str) -> TemplatePlace:
    found = re.fullmatch(_PLACE, name)
    if found is None or found[3] is not None:
        raise ConfigurationError(
            f"template '{short(text)}': '{short(name)}' is not a place; places look like S0, N1, S0l or N0[-1]"
        )
    return TemplatePlace(
        "SN".index(found[1]), number_in(found[2]), CHILDREN[found[4] or ""], number_in(found[5] or "0")
    )


def template_factor(own: int, position: int) -> int:
    """What the value of an atom is multiplied by in the feature of a template with this key: an odd number."""
    return mix(own, position + 1) | 1


def arrays(templates: Iterable[ParsingTemplate], sources: dict[tuple[str, Attribute], int]) -> dict[str, np.ndarray]:
    """The templates that the search computes, as the arrays that `lols.tasks.parsing.space.features` reads."""
    places: dict[TemplatePlace, int] = {}
    atoms: dict[tuple[int, int, int], int] = {}
    first, uses, keys, factors = [0], [], [], []
    for template in templates:
        for position, atom in enumerate(template.atoms):
            at = places.setdefault(atom.place, len(places))
            other = places.setdefault(atom.other, len(places)) if atom.other is not None else 0
            source = atom.dynamic
            if atom.attribute is not None:
                source = sources[atom.column, atom.attribute]
            uses.append(atoms.setdefault((at, source, other), len(atoms)))
            factors.append(template_factor(key(template), position))
        first.append(len(uses))
        keys.append(key(template))
    return {
        "places": np.array(list(places), np.int64).reshape(-1, 4),
        "atoms": np.array(list(atoms), np.int64).reshape(-1, 3),
        "first": np.array(first, np.int64),
        "uses": np.array(uses, np.int64),
        "keys": np.array(keys, np.int64),
        "factors": np.array(factors, np.int64),
    }
