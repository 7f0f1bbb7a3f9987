"""Corpora from the user's own copy: trees to dependencies, files with the right checksums, clear errors."""

from __future__ import annotations

import gzip
import os
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts"))
from prepare_corpora import dependencies, main, read_trees

from lols.errors import LolsError

TREE = """
( (S
    (NP-SBJ-1 (NP (DT The) (NN dog) ) (PP (IN with) (NP (JJ long) (NNS ears) )))
    (VP (MD will) (VP (VB sleep) (NP-TMP (-NONE- *T*) ) (PRN (-LRB- -LRB-) (ADVP (RB soundly) ) (-RRB- -RRB-) )))
    (. .) ))
"""
HEADS = {"The": "dog", "dog": "will", "with": "dog", "long": "ears", "ears": "with", "sleep": "will", ".": "will"}


def test_trees_become_dependencies():
    (tree,) = read_trees(TREE)
    tokens = dependencies(tree)
    words = [token.word for token in tokens]
    assert words == ["The", "dog", "with", "long", "ears", "will", "sleep", "-LRB-", "soundly", "-RRB-", "."]
    heads = {token.word: words[token.head - 1] for token in tokens if token.head}
    assert HEADS.items() <= heads.items()
    assert [token.word for token in tokens if not token.head] == ["will"]


@pytest.mark.parametrize(
    ("phrase", "head"),
    [
        ("(NP (NP (NN price)) (, ,) (NP (NN cost)))", "price"),
        ("(NP (NNP Smith) (POS 's))", "'s"),
        ("(NP (DT the) (CD 30) (JJ last))", "30"),
        ("(NP ($ $) (CD 5) (NN fee))", "fee"),
        ("(VP (TO to) (VP (VB go)))", "to"),
        ("(SBAR (WHNP (WDT that)) (S (VP (VBZ is))))", "that"),
        ("(ADVP (RB much) (RBR more))", "much"),
        ("(UNKNOWN (NN a) (NN b) (. .))", "b"),
    ],
)
def test_heads_of_phrases(phrase, head):
    (tree,) = read_trees(f"( {phrase} )")
    assert [token.word for token in dependencies(tree) if not token.head] == [head]


@pytest.mark.parametrize("text", ["(S (NN a)", "(S (NN a)))"])
def test_brackets_that_do_not_match(text):
    with pytest.raises(LolsError, match="bracket"):
        list(read_trees(text))


def test_sections_of_the_penn_treebank(tmp_path, capsys):
    for section in range(25):
        (tmp_path / f"{section:02}").mkdir()
        (tmp_path / f"{section:02}" / f"wsj_{section:02}01.mrg").write_text(TREE.replace("dog", f"dog{section}"))
    main(["ptb", str(tmp_path), str(tmp_path / "out")])
    assert "20 sentences" in capsys.readouterr().out
    found = {}
    for path in (tmp_path / "out").iterdir():
        text = gzip.decompress(path.read_bytes()).decode()
        found[path.name] = [int(number) for number in re.findall(r"dog(\d+)", text)]
    assert found["ptb-tags-train.conll.gz"] == list(range(19)) and found["ptb-tags-test.conll.gz"] == list(
        range(19, 25)
    )
    assert found["ptb-trees-train.conll.gz"] == list(range(2, 22)) and found["ptb-trees-test.conll.gz"] == [23]
    from lols.tasks.parsing.files import ParserColumns, read_treebanks

    trained, tested, _ = read_treebanks(
        [str(tmp_path / "out" / "ptb-trees-train.conll.gz")], str(tmp_path / "out" / "ptb-trees-test.conll.gz"),
        ParserColumns(),
    )  # fmt: skip
    assert trained.corpus.tokens == 20 * 11 and tested is not None and tested.corpus.tokens == 11


@pytest.mark.parametrize("corpus", ["nltk", "craft", "ptb"])
def test_a_folder_without_the_corpus_is_one_line(corpus, tmp_path):
    with pytest.raises(SystemExit, match=r"prepare_corpora: .*(cannot be read|holds no \.mrg files)"):
        main([corpus, str(tmp_path), str(tmp_path / "out")])


@pytest.mark.data
@pytest.mark.skipif("LOLS_DATA" not in os.environ, reason="LOLS_DATA is not set")
def test_the_sample_of_nltk_has_the_checksum(tmp_path, capsys):
    for part, first, last in (("train", 1, 160), ("test", 161, 199)):
        path = Path(os.environ["LOLS_DATA"]) / f"wsj-{part}.conll.gz"
        sentences = gzip.decompress(path.read_bytes()).decode().strip().split("\n\n")
        for number in range(first, last + 1):
            (tmp_path / f"wsj_{number:04}.dp").write_text("")
        rows = [[line.split("\t") for line in sentence.splitlines()] for sentence in sentences]
        text = "\n\n".join("\n".join(f"{row[1]}\t{row[3]}\t{row[6]}" for row in sentence) for sentence in rows)
        (tmp_path / f"wsj_{first:04}.dp").write_text(text)
    main(["nltk", str(tmp_path), str(tmp_path / "out")])
    assert "3,401 sentences" in capsys.readouterr().out
