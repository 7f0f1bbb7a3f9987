"""What a pipeline gives for a text: sentences that draw their trees in notebooks, and how one was decided."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lols.errors import LolsError
from lols.io.sentences import Sentence
from lols.io.text import split_text

COLUMNS = {"relation": "deprel"}  # as CoNLL-U calls them


class ParsedSentence(Sentence):
    """A sentence with tags and a tree, which notebooks draw."""

    def _repr_html_(self) -> str:
        from lols.tasks.parsing.tree_svg import tree_svg

        tags = self.columns.get("upos") or self.columns.get("xpos") or ()
        return tree_svg(self.words, self.tree, tags=tags)


def sentences_of(given: Any, tokenizer: Callable[[str], Sequence[Sequence[str]]] | None) -> list[Sentence]:
    """A text, one sentence or several, as sentences."""
    if isinstance(given, str):
        given = (tokenizer or split_text)(given)
    elif isinstance(given, Sentence) or (len(given) and all(isinstance(word, str | dict) for word in given)):
        given = [given]
    made = []
    for words in given:
        if isinstance(words, str) or not len(words):
            raise LolsError("give a text, or the words of a sentence in a list, or a list of such sentences")
        if isinstance(words, Sentence):
            made.append(words)
        else:
            made.append(Sentence({"form": [w["word"] if isinstance(w, dict) else w for w in words]}))
    return made


def parsed(sentence: Sentence, words: Sequence[dict[str, Any]]) -> ParsedSentence:
    """The sentence with what a pipeline predicts for it; its other columns and comments stay."""
    names = [name for name in (words[0] if words else {}) if name != "word"]
    columns = {COLUMNS.get(name, name): [str(word[name]) for word in words] for name in names}
    return ParsedSentence(
        sentence.columns | columns, comments=sentence.comments, others=sentence.others, word=sentence.word
    )
