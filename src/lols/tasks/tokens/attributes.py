"""What a feature can look at in a word: itself, its affixes, its shape; computed once per distinct string.

An attribute of a string is a text: `suffix3` of "walking" is "ing". Its value is a hash of that text, so no vocabulary
is needed to tag words never seen, and the same function says it in words.
"""

from __future__ import annotations

import re
import unicodedata
from functools import cache
from itertools import groupby
from typing import NamedTuple

import numpy as np

from lols.contract.whole_numbers import number_in
from lols.io.strings import Texts
from lols.kernels.dual import dual
from lols.kernels.hashing import mix
from lols.kernels.kernel import kernel
from lols.kernels.layout import readonly

NOTHING, OUTSIDE = 0, 1  # values of an attribute that a string does not have, and of a place beside the sentence
SALT = 0x7A66
EXACT, LOWER, PREFIX, SUFFIX, SHAPE, CLASS, LENGTH, DIGITS = range(8)
ATTRIBUTES = {  # in the order of their kinds
    "word": "the string itself",
    "lower": "in lower case",
    "prefixN": "its first N characters, if it has as many",
    "suffixN": "its last N characters, if it has as many",
    "shape": "X for capitals, x for other letters, d for digits, runs as one: Xx, d-x, X.X.",
    "class": "which kinds of character: A all capitals, C first capital, c a later one, d digits, - hyphens, . others",
    "length": "how many characters, 15 for more",
    "digits": "in lower case, all digits as 0",
}
KINDS = {name.removesuffix("N"): kind for kind, name in enumerate(ATTRIBUTES)}
UPPER, LETTER, DIGIT, HYPHEN = 1, 2, 4, 8
LONGEST = 15


class Attribute(NamedTuple):
    """Kind of an attribute, and its number of characters where it has one."""

    kind: int
    size: int = 0


def attribute(name: str) -> Attribute | None:
    """The attribute of a name, or None if there is none.

    Parameters
    ----------
    name
        The name of an attribute, such as `suffix3`.

    Examples
    --------
    >>> attribute("suffix3"), attribute("tense")
    (Attribute(kind=3, size=3), None)

    """
    found = re.fullmatch(r"([a-z]+)(\d{0,9})", name)
    if found is None or found[1] not in KINDS:
        return None
    kind = KINDS[found[1]]
    if (kind in (PREFIX, SUFFIX)) != bool(found[2]) or found[2] == "0":
        return None
    return Attribute(kind, number_in(found[2] or "0"))


# --- in plain Python: what the kernel must agree with, and what `inspect` shows ---------------------------------------


def attribute_text(which: Attribute, string: str) -> str | None:
    """The attribute in words; None where the string does not have it.

    Parameters
    ----------
    which
        The attribute, as `attribute` gives it.
    string
        A word.

    Examples
    --------
    >>> [attribute_text(attribute(n), "Walking") for n in ("suffix3", "prefix9", "shape", "class", "length")]
    ['ing', None, 'Xx', 'C', '7']

    """
    kind, size = which
    if kind in (PREFIX, SUFFIX):
        return (string[:size] if kind == PREFIX else string[-size:]) if len(string) >= size else None
    if kind == LENGTH:
        return str(min(len(string), LONGEST))
    if kind == LOWER:
        return "".join(map(_lower, string))
    if kind == DIGITS:
        return "".join("0" if _class(c) & DIGIT else _lower(c) for c in string)
    if kind == SHAPE:
        return "".join(kind for kind, _ in groupby(map(_shape, string)))
    if kind == CLASS:
        classes = [_class(c) for c in string]
        upper = [bool(c & UPPER) for c in classes]
        marks = ["A" if any(upper) and all(u or not c & LETTER for u, c in zip(upper, classes, strict=True)) else ""]
        marks += ["C" if upper[:1] == [True] else "", "c" if any(upper[1:]) else ""]
        marks += ["d" if any(c & DIGIT for c in classes) else "", "-" if any(c & HYPHEN for c in classes) else ""]
        return "".join([*marks, "." if any(c == 0 for c in classes) else ""])
    return string


def hash_text(text: str) -> int:
    """The value of an attribute whose text this is."""
    value = mix(SALT, len(text))
    for character in text:
        value = mix(value, ord(character))
    return value if value not in (NOTHING, OUTSIDE) else 2


def _lower(character: str) -> str:
    lower = character.lower()
    return lower if len(lower) == 1 else character


def _class(character: str) -> int:
    """Kinds of one character; marks on letters count as letters, so that no script is all punctuation."""
    category = unicodedata.category(character)
    if category == "Nd":
        return DIGIT
    if category[0] in "LM":
        return LETTER | (UPPER if category in ("Lu", "Lt") else 0)
    return HYPHEN if category == "Pd" else 0


@cache
def _shape(character: str) -> str:
    kinds = _class(character)
    return "d" if kinds & DIGIT else "X" if kinds & UPPER else "x" if kinds & LETTER else character


# --- for whole columns ------------------------------------------------------------------------------------------------


class _Characters:
    """Lower case and kind by code point, filled for the characters that were met; most are few."""

    def __init__(self) -> None:
        self.lower = np.arange(0x110000, dtype=np.int32)
        self.kinds = np.zeros(0x110000, np.uint8)
        self.known = np.zeros(0x110000, np.bool_)
        self.learn(np.arange(0x180))

    def learn(self, points: np.ndarray) -> None:
        for point in points.tolist():
            if not 0xD800 <= point < 0xE000:
                self.lower[point], self.kinds[point] = ord(_lower(chr(point))), _class(chr(point))
        self.known[points] = True


_characters: list[_Characters] = []


def attribute_values(texts: Texts, wanted: list[Attribute]) -> np.ndarray:
    """The values of some attributes, [attribute, string]; the last column is that of a place outside the sentence."""
    if not _characters:
        _characters.append(_Characters())
    table = _characters[0]
    kinds = np.array([w.kind for w in wanted], np.int64)
    sizes = np.array([w.size for w in wanted], np.int64)
    values = np.zeros((len(wanted), texts.begin.size + 1), np.int64)
    values[:, -1] = OUTSIDE
    longest = max(int((texts.end - texts.begin).max(initial=0)), 8)
    points, made = np.empty(longest + 1, np.int64), np.empty(longest + 1, np.int64)
    unknown = np.zeros(1 << 12, np.int64)
    buffer, begin, end = readonly(texts.buffer), np.ascontiguousarray(texts.begin), np.ascontiguousarray(texts.end)
    while True:
        count = _values(
            buffer, begin, end, kinds, sizes, table.lower, table.kinds, table.known, points, made, values, unknown
        )
        if count == 0:
            return values
        table.learn(np.unique(unknown[:count]))


@kernel
def _values(buffer, begin, end, kinds, sizes, lower, classes, known, points, made, values, unknown):
    """Fill `values`; if characters are met that the tables do not know, give them back, and how many, instead.

    `points` and `made` are room for the characters of a string.
    """
    missing = 0
    for t in range(begin.size):
        length = _decode(buffer, begin[t], end[t], points)
        for k in range(length):
            if not known[points[k]] and missing < unknown.size:
                unknown[missing] = points[k]
                missing += 1
        if missing:
            continue
        for a in range(kinds.size):
            kind, size = kinds[a], sizes[a]
            first, last = 0, length
            text = points
            if kind == PREFIX or kind == SUFFIX:  # noqa: SIM109  (a tuple takes long to compile)
                if length < size:
                    values[a, t] = NOTHING
                    continue
                if kind == PREFIX:
                    last = size
                else:
                    first = length - size
            elif kind != EXACT:
                text = made
                if kind == SHAPE:
                    last = _shape_of(points, length, classes, made)
                elif kind == CLASS:
                    last = _class_of(points, length, classes, made)
                elif kind == LENGTH:
                    last = _number(length if length < LONGEST else LONGEST, made)
                else:
                    for k in range(length):
                        digit = kind == DIGITS and classes[points[k]] & DIGIT
                        made[k] = 48 if digit else lower[points[k]]
            value = mix(SALT, last - first)
            for k in range(first, last):
                value = mix(value, text[k])
            values[a, t] = value if value != NOTHING and value != OUTSIDE else 2
    return missing


@dual
def _decode(buffer, begin, end, points):
    """Code points of valid UTF-8, and how many."""
    count, k = 0, begin
    while k < end:
        point = np.int64(buffer[k])
        more = 0
        if point >= 0xF0:
            more, point = 3, point & 0x07
        elif point >= 0xE0:
            more, point = 2, point & 0x0F
        elif point >= 0x80:
            more, point = 1, point & 0x1F
        for j in range(k + 1, k + 1 + more):
            point = point << 6 | np.int64(buffer[j]) & 0x3F
        points[count] = point
        count += 1
        k += 1 + more
    return count


@dual
def _shape_of(points, length, classes, made):
    last = 0
    for k in range(length):
        kinds = classes[points[k]]
        mark = points[k]
        if kinds & DIGIT:
            mark = 100
        elif kinds & LETTER:
            mark = 88 if kinds & UPPER else 120
        if last == 0 or made[last - 1] != mark:
            made[last] = mark
            last += 1
    return last


@dual
def _class_of(points, length, classes, made):
    first, later = np.int64(0), np.int64(0)  # the kinds of the first character, and of all others together
    lower, others = False, False
    for k in range(length):
        kinds = np.int64(classes[points[k]])
        if k == 0:
            first = kinds
        else:
            later |= kinds
        if kinds == 0:
            others = True
        elif kinds == LETTER:
            lower = True
    whole = first | later
    last = _put(made, 0, 65, whole & UPPER != 0 and not lower)
    last = _put(made, last, 67, first & UPPER != 0)
    last = _put(made, last, 99, later & UPPER != 0)
    last = _put(made, last, 100, whole & DIGIT != 0)
    last = _put(made, last, 45, whole & HYPHEN != 0)
    return _put(made, last, 46, others)


@dual
def _put(made, last, mark, holds):
    """Write a mark behind the others, if it holds; how many there are."""
    if holds:
        made[last] = mark
        last += 1
    return last


@dual
def _number(value, made):
    if value < 10:
        made[0] = 48 + value
        return 1
    made[0], made[1] = 48 + value // 10, 48 + value % 10
    return 2
