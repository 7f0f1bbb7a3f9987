"""What the tests of taggers share: small sentences, files of them, and the weights of a tagger."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from lols import Tagger
from lols.io.model_file import read_tensors

TAGS = {"the": "DET", "a": "DET", "dog": "NOUN", "cat": "NOUN", "sleeps": "VERB", "barks": "VERB", "old": "ADJ"}
CHUNKS = {"DET": "B-NP", "ADJ": "I-NP", "NOUN": "I-NP", "VERB": "B-VP"}


def sentences(count: int, seed: int = 0, noise: float = 0.0) -> tuple[list[list[str]], list[list[str]]]:
    """Words, and their tags, some of which may be wrong."""
    generator = np.random.default_rng(seed)
    words, tags = [], []
    for _ in range(count):
        made = [str(w) for w in generator.choice(list(TAGS), generator.integers(1, 7))]
        words.append(made)
        wrong = generator.random(len(made)) < noise
        others = generator.choice(sorted(set(TAGS.values())), len(made))
        tags.append([str(o) if w else TAGS[m] for m, w, o in zip(made, wrong, others, strict=True)])
    return words, tags


def spans(count: int, seed: int = 0) -> tuple[list[list[str]], list[list[str]]]:
    """Words, and chunks of them in the scheme bio."""
    generator = np.random.default_rng(seed)
    words, tags = [], []
    for _ in range(count):
        made: list[tuple[str, str]] = []
        for _ in range(generator.integers(1, 4)):
            kind = generator.integers(0, 3)
            if kind == 0:
                made += [("the", "B-NP"), ("old", "I-NP"), ("dog", "I-NP")][: generator.integers(1, 4)]
            made += [[("sleeps", "B-VP")], [(",", "O"), ("and", "O")], [("Ann", "B-NP")]][kind]
        words.append([w for w, _ in made])
        tags.append([t for _, t in made])
    return words, tags


def conllu(words: list[list[str]], tags: list[list[str]], *, feats: str = "_") -> str:
    """A CoNLL-U file with comments, a multi-word token and an empty node in every sentence."""
    lines = []
    for n, (sentence, own) in enumerate(zip(words, tags, strict=True)):
        lines += [f"# sent_id = {n}", f"# text = {' '.join(sentence)}"]
        for k, (word, tag) in enumerate(zip(sentence, own, strict=True), 1):
            if k == 1:
                lines.append("1-2\tdu\t_\t_\t_\t_\t_\t_\t_\tSpaceAfter=No")
            lines.append(f"{k}\t{word}\t{word}\t{tag}\t{tag[0]}\t{feats}\t0\troot\t_\tNER={tag}|Id={k}")
            if k == 1:
                lines.append("1.1\te\te\tX\tX\t_\t_\t_\t0:root\t_")
        lines.append("")
    return "\n".join(lines) + "\n"


def columns(words: list[list[str]], tags: list[list[str]], *, between: str = " ") -> str:
    """Plain columns: word, its first letter, tag."""
    return "\n".join(
        "".join(f"{w}{between}{w[0]}{between}{t}\n" for w, t in zip(sentence, own, strict=True))
        for sentence, own in zip(words, tags, strict=True)
    )


def weights(tagger: Tagger | Path) -> dict[str, Any]:
    """Weights by feature, exactly: those of a tagger, or of a model file."""
    if isinstance(tagger, Tagger):
        with tempfile.TemporaryDirectory() as folder:
            tagger.save(Path(folder, "of.lols"))
            return weights(Path(folder, "of.lols"))
    _, tensors = read_tensors(tagger, "model")
    return {name: (t.dtype.str, t.shape, t.tobytes()) for name, t in tensors.items() if not name.startswith("task.")}
