"""From sentences to spaCy's `Doc` and back; spaCy is needed only here."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lols.errors import ConfigurationError, LolsError
from lols.io.sentences import NOTHING, Sentence


def to_spacy(sentences: Iterable[Sentence], vocab: Any) -> Any:
    """A spaCy `Doc` with words, tags and trees of sentences, for a vocabulary such as that of `spacy.blank("en")`.

    Where MISC says SpaceAfter=No, no space follows a word.

    Parameters
    ----------
    sentences
        The sentences.
    vocab
        The vocabulary of the pipeline that will use them.

    """
    try:
        from spacy.tokens import Doc
    except ImportError:
        raise ConfigurationError("to_spacy makes a Doc of spaCy, which is not installed: pip install spacy") from None
    given: dict[str, list[Any]] = {name: [] for name in ("words", "spaces", "sent_starts")}
    columns: dict[str, list[str]] = {name: [] for name in ("pos", "tags", "lemmas", "morphs", "deps")}
    heads: list[int] = []
    listed = list(sentences)
    trees = all("head" in sentence.columns and NOTHING not in sentence.columns["head"] for sentence in listed)
    for sentence in listed:
        count, first = len(sentence), len(given["words"])
        given["words"] += sentence.words
        misc = sentence.columns.get("misc", [NOTHING] * count)
        given["spaces"] += ["SpaceAfter=No" not in each.split("|") for each in misc]
        given["sent_starts"] += [k == 0 for k in range(count)]
        for name, column in (("pos", "upos"), ("tags", "xpos"), ("lemmas", "lemma"), ("morphs", "feats")):
            columns[name] += ["" if v == NOTHING else v for v in sentence.columns.get(column, [NOTHING] * count)]
        if trees:
            for k, (head, relation) in enumerate(sentence.tree):
                heads.append(first + (head - 1 if head else k))
                columns["deps"].append("ROOT" if head == 0 else relation)
    filled: dict[str, Any] = {name: values for name, values in columns.items() if any(values)}
    if trees and heads:
        filled["heads"] = heads
        given.pop("sent_starts")  # spaCy derives them from the trees
    whole: Any = given | filled
    return Doc(vocab, **whole)


def from_spacy(doc: Any) -> list[Sentence]:
    """The sentences of a spaCy `Doc`, with what it has of lemmas, tags and trees; the whole is one if none are set.

    Parameters
    ----------
    doc
        What a pipeline of spaCy gave for a text.

    """
    starts = doc.has_annotation("SENT_START")
    made = []
    for span in doc.sents if starts else [doc[:]]:
        tokens = [token for token in span if not token.is_space]
        if not tokens:
            continue
        number = {token.i: k for k, token in enumerate(tokens, 1)}
        columns: dict[str, list[str]] = {"form": [token.text for token in tokens]}
        for name, attribute in (("lemma", "lemma_"), ("upos", "pos_"), ("xpos", "tag_"), ("feats", "morph")):
            values = [str(getattr(token, attribute)) for token in tokens]
            columns[name] = [value or NOTHING for value in values]
        if doc.has_annotation("DEP"):
            try:
                columns["head"] = ["0" if t.head.i == t.i else str(number[t.head.i]) for t in tokens]
            except KeyError:
                raise LolsError("a word of the Doc hangs on a space or on another sentence: it has no tree") from None
            columns["deprel"] = ["root" if t.dep_ == "ROOT" else t.dep_ for t in tokens]
        columns["misc"] = [NOTHING if token.whitespace_ else "SpaceAfter=No" for token in tokens]
        made.append(Sentence(columns))
    return made
