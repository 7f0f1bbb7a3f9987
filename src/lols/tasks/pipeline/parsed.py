"""What a pipeline gives for a text: sentences that draw their trees in notebooks, and how one was decided."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lols.errors import LolsError, shown
from lols.io.sentences import Sentence
from lols.io.text import split_text
from lols.tasks.tokens.input import is_list

WANTED = "give a text, or the words of a sentence in a list, or a list of such sentences"


class ParsedSentence(Sentence):
    """A sentence with tags and a tree, which notebooks draw."""

    def _repr_html_(self) -> str:
        from lols.tasks.parsing.tree_svg import tree_svg

        tags = self.columns.get("upos") or self.columns.get("xpos") or ()
        return tree_svg(self.words, self.tree, tags=tags)


def sentences_of(given: Any, tokenizer: Callable[[str], Sequence[Sequence[str]]] | None) -> list[Sentence]:
    """A text, one sentence or several, as sentences."""
    place = "a sentence"
    if isinstance(given, str):
        if tokenizer is not None and not callable(tokenizer):
            raise LolsError(f"tokenizer is {shown(tokenizer)}: give a function from a text to lists of words")
        given = (tokenizer or split_text)(given)
        place = "a sentence that the tokenizer gives"
    elif isinstance(given, Sentence) or (is_list(given) and len(given) and not any(map(is_list, given))):
        given = [given]
    if not is_list(given):
        raise LolsError(f"{WANTED}; this is {shown(given)}")
    sentences = []
    for k, words in enumerate(given):
        if not is_list(words) or not len(words):
            raise LolsError(f"{WANTED}; {place} is {shown(words)}")
        if not isinstance(words, Sentence):
            words = Sentence({"form": [_word(word, f"sentence {k}, word {n}") for n, word in enumerate(words)]})
        sentences.append(words)
    return sentences


def _word(word: Any, place: str) -> str:
    """A word, or that of a dictionary."""
    text = word.get("word") if isinstance(word, Mapping) else word
    if not isinstance(text, str) or not text:
        raise LolsError(f"{place}: {shown(word)} is no word: give a string with something in it, or leave it out")
    return text


def parsed(sentence: Sentence, words: Sequence[dict[str, Any]]) -> ParsedSentence:
    """The sentence with what a pipeline predicts for it; its other columns and comments stay."""
    names = [name for name in (words[0] if words else {}) if name not in ("word", "relation")]
    columns = {name: [str(word[name]) for word in words] for name in names}
    return ParsedSentence(
        sentence.columns | columns, comments=sentence.comments, others=sentence.others, word=sentence.word
    )
