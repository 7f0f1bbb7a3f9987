"""Texts cut into sentences and words by rules, without losing a character."""

from __future__ import annotations

import re
import unicodedata
from enum import Enum
from functools import lru_cache

from lols.errors import LolsError

# Abbreviations keep their mark. A sentence goes on after the first ones and may end after the second ones. The third
# ones are also words, and count before numbers only.
TITLES = """Mr Mrs Ms Mx Dr Drs Prof St Ste Gen Sen Sens Rep Reps Gov Lt Col Sgt Capt Maj Rev Hon Pres Mme Mlle Mgr
    Sr Sra Hr Fr Dipl Ing Messrs Ft Mt vs cf viz approx bzw vgl ca esp incl resp"""
CLOSINGS = "Inc Ltd Corp Co Bros Jr Esq etc usw Ave Blvd Rd Dept Univ Attn Ph.D"
NUMBERED = "No Nos Nr Fig Figs Eq Sec Sect Vol Art Ch Chap p pp Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec"

CAPITAL = "A-ZÀ-ÖØ-ÞΑ-ΩА-Я"
JOINERS = "\u200c\u200d\u2060\u00ad"  # between letters of one word, or parts of one sign
SKINS = "\U0001f3fb-\U0001f3ff"
FLAG = "[\U0001f1e6-\U0001f1ff]"
CLOSERS = frozenset("\"'”’»›)]}】」』）")
ENDS = re.compile(r"[.!?…。！？⁇⁈⁉؟।]+")
WIDE = frozenset("。！？")  # a sentence ends there without a space
BEGINS = re.compile(r"[\"'“‘„«‹(\[{¿¡*•–—\-「『（\s]*+([^\W_])")
BLANK = re.compile(r"(?:\n|\r(?!\n))\s*?[\n\r]|\u2029")  # a blank line
URL = r"(?:\([^\s()<>]*\)|[^\s()<>\"“”])*(?:\([^\s()<>]*\)|[^\s()<>\[\]{}.,:;!?…'\"’“”»*])"


class Over(Enum):
    """What says that a sentence may be over."""

    NOT = 0
    ABBREVIATION = 1
    MARK = 2
    WIDE = 3  # a mark that needs no space after it


@lru_cache(maxsize=64)
def _tokens(marks: str) -> re.Pattern[str]:
    """What tokens are in a text with these marks, which combine with letters."""
    w, more, sign = rf"[\w{marks}]", rf"[{marks}{JOINERS}{SKINS}]", rf"[^\w\s{marks}]"
    titles, closings, numbered = ("|".join(map(re.escape, each.split())) for each in (TITLES, CLOSINGS, NUMBERED))
    no_word = rf"(?![^\W{CAPITAL}])"  # a capital may follow, as in "Mr.Smith", but nothing like "ca.gov"
    inner = rf"[-'’·{JOINERS}]|\.(?!(?<=[a-zß-öø-ÿ]\.)[{CAPITAL}])|(?<=\d)[,:/](?=\d)|(?<=[A-Z])&(?=[A-Z])"
    rules = {
        "url": rf"(?<!\w)(?:[a-zA-Z][a-zA-Z0-9+]{{1,9}}://|www\.){URL}",
        "mail": r"(?<![\w.+%-])[\w.+%-]++@\w+(?:[-.]\w+)*\.\w{2,}",
        "path": rf"(?<![\w.-])(?:[\w-]+\.)+[a-z]{{2,}}(?::\d+)?/(?:{URL})?",
        "face": r"(?<!\S)[:;=8][-^']?[()\[\]DPpoO|/\\3*]+(?!\S)",
        "handle": rf"(?<![\w&@#])[@#](?=[^\W\d]){w}+",
        "title": rf"(?<!{w})(?:{titles})\.{no_word}",
        "closing": rf"(?<!{w})(?:{closings})\.{no_word}",
        "numbered": rf"(?<!{w})(?:{numbered})\.(?=\s?\d)",
        "letters": rf"(?<![\w.])(?:[^\W\d_]\.){{2,}}(?!{w})",
        "initial": rf"(?<![\w.'’])[A-HJ-ZÀ-ÖØ-ÞΑ-ΩА-Я]\.(?=[^\S\n\r]?[{CAPITAL}])",
        "word": rf"{w}+(?:(?:{inner}){w}+)*",
        "flag": rf"{FLAG}{FLAG}{more}*",
        "run": r"\.{2,}|[!?]{2,}|(?P<same>[^\w\s()\[\]{}.'\"])(?P=same)+|``|''",
        "sign": rf"{sign}(?:\u200d{sign}|{more})*",
    }
    return re.compile("|".join(f"(?P<{name}>{rule})" for name, rule in rules.items()))


def split_text(text: str) -> list[list[str]]:
    """Cut a text into sentences and words by rules for prose in scripts with spaces; no character is lost.

    Words end at spaces and punctuation marks. Numbers, times, addresses of pages and mail, abbreviations and runs of
    one mark stay whole, and so do words with hyphens and apostrophes. Sentences end at a blank line, or at a mark such
    as . ! ? (with quotes and brackets that close after it) before a space and a letter that is not small.

    Parameters
    ----------
    text
        Any text; blank lines end sentences.

    Examples
    --------
    >>> split_text("A dog barks. It doesn't stop!")
    [['A', 'dog', 'barks', '.'], ['It', "doesn't", 'stop', '!']]
    >>> split_text("(Mr. Smith paid $1,000.50 at 10:30...) See https://example.org/a.")
    [['(', 'Mr.', 'Smith', 'paid', '$', '1,000.50', 'at', '10:30', '...', ')'], ['See', 'https://example.org/a', '.']]

    """
    if not isinstance(text, str):
        raise LolsError(f"a text is a string; this is {type(text).__name__}")
    marks = "" if text.isascii() else "".join(sorted(c for c in {*text} if unicodedata.category(c)[0] == "M"))
    made: list[list[str]] = []
    words: list[str] = []
    over, end = Over.NOT, 0
    for found in _tokens(marks).finditer(text):
        kind, word = str(found.lastgroup), found[0]
        gap = text[end : found.start()]
        if words and (BLANK.search(gap) or ((gap or over is Over.WIDE) and _begins(found, over))):
            made.append(words)
            words, over = [], Over.NOT
        if gap or word not in CLOSERS:  # else a sentence that was over still is
            over = _over(kind, word, over, words)
        words.append(word)
        end = found.end()
    return [*made, words] if words else made


def _over(kind: str, word: str, before: Over, words: list[str]) -> Over:
    """Whether a sentence may be over after this word, which comes after `words`."""
    if kind in ("run", "sign") and ENDS.fullmatch(word):
        numbered = word == "." and len(words) == 1 and words[0].isdecimal()  # "2. The next item of a list"
        return Over.NOT if numbered else Over.WIDE if word[-1] in WIDE else Over.MARK
    if kind == "closing" or word.lower() in ("a.m.", "p.m."):
        return Over.ABBREVIATION
    return before if kind == "face" else Over.NOT


def _begins(found: re.Match[str], over: Over) -> bool:
    """Whether a sentence begins with this word: with a letter that is not small, or, after a mark, with a number."""
    if over is Over.NOT:
        return False
    first = BEGINS.match(found.string, found.start())
    capital = first is not None and not first[1].islower() and (over is not Over.ABBREVIATION or first[1].isalpha())
    return capital or (over is not Over.ABBREVIATION and found.lastgroup in ("url", "path"))
