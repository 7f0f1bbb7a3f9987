"""The template language: which features a tagger looks at, in readable lines.

A template is one or more atoms joined by `&`; it makes one feature of their values together. An atom is an attribute of
a word, `suffix3`, of a word beside it, `lower[-1]`, the value of another column, `pos[+1]`, an attribute of that,
`cluster.prefix4`, a tag given before, `tag[-1]`, or `bias`, which is always there. `word[-2..2]` and `suffix1..4` stand
for one template each.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import NamedTuple, TypeVar

from lols.contract.whole_numbers import number_in
from lols.errors import ConfigurationError, short
from lols.tasks.tokens.attributes import ATTRIBUTES, EXACT, Attribute, attribute

AnAtom = TypeVar("AnAtom")
MOST_TAGS = 3
FARTHEST = 9
MOST = 1 << 12  # templates
_SIZE, _OFFSET = r"(\d{1,9})", r"([+-]?\d{1,9})"
_ATOM = re.compile(
    rf"(?:([^\W\d][\w-]*)\.)?([^\W\d][\w-]*?){_SIZE}?(?:\.\.{_SIZE})?(?:\[{_OFFSET}(?:\.\.{_OFFSET})?\])?"
)


class Atom(NamedTuple):
    """What one place is asked for; a tag has no column and no attribute."""

    column: str
    attribute: Attribute | None
    offset: int = 0


class Template(NamedTuple):
    """A feature: its text, which is its identity, the input it looks at, and how far back the tags lie."""

    text: str
    atoms: tuple[Atom, ...]
    tags: tuple[int, ...] = ()


def parse_templates(lines: str | Iterable[str], columns: Iterable[str] = ("word",)) -> list[Template]:
    """Read templates: one per line, or one per string; `#` begins a comment, ranges are written out.

    Parameters
    ----------
    lines
        The templates.
    columns
        The columns that they may name.

    Examples
    --------
    >>> [t.text for t in parse_templates("suffix1..2\\nword[-1..0] & tag[-1]  # history")]
    ['suffix1', 'suffix2', 'word[-1] & tag[-1]', 'word & tag[-1]']
    >>> parse_templates("sufix3")
    Traceback (most recent call last):
        ...
    lols.errors.ConfigurationError: template 'sufix3': there is no attribute or column 'sufix3'; columns: word; \
attributes: word, lower, prefixN, suffixN, shape, class, length, digits; also tag[-1], bias
    """
    known, made = frozenset(columns), []
    for text, atoms in expanded(lines, lambda part, line: _atoms(part, line, known), "word"):
        tags = tuple(sorted(-atom.offset for atom in atoms if atom.column == ""))
        if len(set(tags)) < len(tags):
            raise ConfigurationError(f"template '{short(text)}': names a tag twice")
        made.append(Template(text, tuple(atom for atom in atoms if atom.column), tags))
    return made


def expanded(
    lines: str | Iterable[str], atoms_of: Callable[[str, str], list[tuple[str, AnAtom]]], example: str
) -> Iterator[tuple[str, tuple[AnAtom, ...]]]:
    """The text and the atoms of each template; `atoms_of` is given a part of a line and the line, and reads an atom.

    That has as many atoms as its range says, each with its own text.
    """
    made: dict[str, tuple[AnAtom, ...]] = {}
    for line in lines.splitlines() if isinstance(lines, str) else lines:
        text = line.partition("#")[0].strip()
        choices = [atoms_of(part.strip(), text) for part in text.split("&")] if text else []
        if sum(len(c) > 1 for c in choices) > 1:
            raise ConfigurationError(f"template '{short(text)}': only one atom may have a range")
        if choices:
            made |= {" & ".join(t for t, _ in chosen): tuple(a for _, a in chosen) for chosen in product(*choices)}
        if len(made) > MOST:  # every word has their features
            raise ConfigurationError(f"there are more than {MOST} templates: give fewer")
    if not made:
        raise ConfigurationError(f"there are no templates: give at least one, such as '{example}'")
    yield from made.items()


def _atoms(part: str, text: str, columns: frozenset[str]) -> list[tuple[str, Atom]]:
    """One atom, or as many as its range says, each with its own text."""
    found = _ATOM.fullmatch(part)
    if found is None:
        raise ConfigurationError(
            f"template '{short(text)}': '{short(part)}' is not an atom; atoms look like word, suffix3[-1], pos[+1] or "
            "tag[-1]"
        )
    column, name, size, to_size, offset, to_offset = found.groups()
    if to_size is not None and to_offset is not None:
        raise ConfigurationError(f"template '{short(text)}': only one atom may have a range")
    sizes = numbers_in(size, to_size, text)
    offsets = numbers_in(offset or "0", to_offset, text)
    made = []
    for s, o in product(sizes, offsets):
        whole = name + ("" if s is None else str(s))
        place = "" if o == 0 else f"[{o:+d}]"
        made.append(
            ((f"{column}." if column else "") + whole + place, _atom(column, whole, int(o or 0), text, columns))
        )
    return made


def numbers_in(first: str | None, last: str | None, text: str) -> list[int | None]:
    """The numbers of a range in a template; one, or none, where it has no range or no number."""
    if first is None:
        return [None]
    low, high = number_in(first), number_in(last if last is not None else first)
    if high < low or high - low > 2 * FARTHEST:
        raise ConfigurationError(f"template '{short(text)}': the range {low}..{high} does not go upwards, or too far")
    return list(range(low, high + 1))


def _atom(column: str | None, name: str, offset: int, text: str, columns: frozenset[str]) -> Atom:
    if abs(offset) > FARTHEST:
        raise ConfigurationError(f"template '{short(text)}': {offset} is too far away; at most {FARTHEST} places")
    if name == "tag" and column is None:
        if not -MOST_TAGS <= offset < 0:
            raise ConfigurationError(f"template '{short(text)}': tags are known for tag[-1] to tag[-{MOST_TAGS}] only")
        return Atom("", None, offset)
    if name == "bias" and column is None and offset == 0:
        return Atom("word", None)
    return Atom(*static_atom(column, name, columns, text, "also tag[-1], bias"), offset)


def static_atom(
    column: str | None, name: str, columns: frozenset[str], text: str = "", more: str = ""
) -> tuple[str, Attribute]:
    """The column and the attribute that a name stands for: an attribute of words, a column, or one of a column.

    >>> static_atom(None, "suffix3", frozenset(["word", "pos"])), static_atom(None, "pos", frozenset(["word", "pos"]))
    (('word', Attribute(kind=3, size=3)), ('pos', Attribute(kind=0, size=0)))
    """
    known = attribute(name)
    if column is None:
        if known is not None and (name == "word" or name not in columns):
            return "word", known
        if name in columns:
            return name, Attribute(EXACT)
    elif column in columns and known is not None:
        return column, known
    wrong = name if column is None or column in columns else column
    raise ConfigurationError(
        f"template '{short(text)}': there is no attribute or column '{short(wrong)}'; columns: "
        f"{', '.join(sorted(columns))}; attributes: {', '.join(ATTRIBUTES)}; {more}"
    )
