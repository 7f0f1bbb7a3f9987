"""A generated treebank: sentences from a small probabilistic grammar, with ambiguities of English.

Words serve as noun and verb, adjective and noun, name and noun; `that` is a determiner, a conjunction or a pronoun,
`to` marks an infinitive or is a preposition, `'s` is a case or a verb. Usually, but not always, the context decides.
Phrases attach to a verb or a noun depending on their words, with some randomness. Trees are projective and have one
root; tags and relations are named as in Universal Dependencies.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from lols.datasets.grammar_rules import MadeSentence, SentenceWriter
from lols.errors import ConfigurationError, LolsError


def generate(count: int, seed: int = 0) -> list[MadeSentence]:
    """Generate sentences; the same seed always gives the same ones, and a larger `count` only adds more.

    Parameters
    ----------
    count
        How many sentences are drawn.
    seed
        What random draws depend on.

    Examples
    --------
    >>> sentence = generate(1, seed=3)[0]
    >>> len(sentence.forms) == len(sentence.heads), sentence.heads.count(0)
    (True, 1)
    >>> generate(2, seed=3)[0] == sentence
    True

    """
    if count < 0:
        raise ConfigurationError(f"{count} sentences cannot be made: give at least 0")
    writer = SentenceWriter(seed)
    return [writer.sentence() for _ in range(count)]


def write_conllu(path: str | os.PathLike[str], sentences: Iterable[MadeSentence]) -> None:
    """Write sentences as a CoNLL-U file, which `lols train tagger` and `lols train parser` read.

    >>> import tempfile; path = tempfile.mkdtemp() + "/two.conllu"
    >>> write_conllu(path, generate(2))
    >>> open(path, encoding="utf-8").readline().split("\\t")[0]
    '1'
    """
    lines: list[str] = []
    for sentence in sentences:
        for number, (form, tag, head, relation) in enumerate(zip(*sentence, strict=True), 1):
            lines.append(f"{number}\t{form}\t_\t{tag}\t_\t_\t{head}\t{relation}\t_\t_\n")
        lines.append("\n")
    try:
        Path(path).write_bytes("".join(lines).encode())
    except OSError as error:
        raise LolsError(f"{os.fspath(path)}: cannot be written ({error.strerror}); name another file") from None
