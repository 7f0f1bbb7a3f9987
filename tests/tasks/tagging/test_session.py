"""A tagger's session tags pieces as if each came alone, and does less for it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols.engine.memory
import lols.engine.policy
import lols.tasks.tagging.session
import lols.tasks.tokens.encoding
from lols import Tagger
from lols.io.strings import texts_of
from lols.tasks.tagging.files import FileColumns, TaggedFormat
from lols.tasks.tokens.corpus import corpus_of, offsets_of
from lols.tasks.verbs import NoOptions
from tests.tasks.tagging.tagger_data import columns, conllu, sentences, spans

OPTIONS: dict[str, dict[str, Any]] = {
    "tags": {},
    "random ties": {"algorithm": lols.algorithm("lols", ties="random")},
    "several policies": {"algorithm": "searn"},
    "clusters": {"clusters": {"dog": "10", "cat": "11", "unicorn": "0"}},
    "backward": {"direction": "backward"},
    "no words": {"templates": ["tag[-1]", "bias"]},
}


def pieces() -> list[list[list[str]]]:
    """Pieces with words that come again, words that are new in each, and one piece twice."""
    made = []
    for k in range(6):
        words, _ = sentences(8, seed=k)
        made.append([[*sentence, f"unicorn{k}"] for sentence in words])
    return [*made, made[0]]


def session_predicts(tagger: Tagger, several: list[list[list[str]]]) -> list[list[int]]:
    session = tagger.session()
    return [
        session.predict({"word": texts_of([w for s in piece for w in s])}, offsets_of(piece)).tolist()
        for piece in several
    ]


@pytest.mark.thinned(5)
@pytest.mark.parametrize("most", [1 << 17, 5, 0], ids=["all", "some", "none"])
@pytest.mark.parametrize("places", [1 << 17, 7], ids=["large", "small"])
@pytest.mark.parametrize("name", OPTIONS)
def test_a_session_predicts_what_the_tagger_does(
    name: str, places: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tagger = Tagger(passes=2, progress=False, **OPTIONS[name]).fit(*sentences(40, noise=0.2))
    alone = [tagger.predict_columns(corpus_of(piece)).tolist() for piece in pieces()]
    monkeypatch.setattr(lols.tasks.tagging.session, "MOST_STRINGS", most)
    monkeypatch.setattr(lols.engine.memory, "TYPES_MOST", places)
    assert session_predicts(tagger, pieces()) == alone


def tagged(tagger: Tagger, path: Path, places: FileColumns, threads: int = 1) -> bytes:
    """The file with predictions."""
    return b"".join(data for data, _ in tagger.predict_pieces(path, places, NoOptions(), threads=threads))


def one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every piece have a session of its own."""
    monkeypatch.setattr(Tagger, "_session", lambda tagger: lambda *given: tagger.session().predicted(*given))


@pytest.mark.thinned(5)
@pytest.mark.parametrize("keep", [True, False])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_file_in_pieces_is_the_file(
    keep: bool, threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words, tags = sentences(60, noise=0.2)
    tagger = Tagger(passes=2, progress=False).fit(words, tags)
    path = tmp_path / "file.conllu"
    path.write_text(conllu(*sentences(80, seed=3)))
    places = FileColumns(label="upos", use={})
    whole = tagged(tagger, path, places)
    if not keep:
        one_at_a_time(monkeypatch)
    for size in (50, 400, 3000):
        monkeypatch.setitem(TaggedFormat.pieces.__kwdefaults__, "size", size)
        assert tagged(tagger, path, places, threads) == whole


def test_further_columns_go_on_from_piece_to_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words, tags = spans(60)
    table = [[{"word": w, "pos": w[0]} for w in s] for s in words]
    tagger = Tagger(passes=2, progress=False).fit(table, tags)
    path = tmp_path / "file.txt"
    path.write_text(columns(*spans(50, seed=4)))
    places = FileColumns("1", "3", {"pos": "2"})
    whole = tagged(tagger, path, places)
    monkeypatch.setitem(TaggedFormat.pieces.__kwdefaults__, "size", 100)
    assert tagged(tagger, path, places) == whole


def test_strings_that_came_before_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    tagger = Tagger(passes=1, progress=False, templates=["word", "suffix2[-1]"]).fit(*sentences(20))
    tagger.model_.compiled = False
    calls, lookup = Counter[str](), lols.engine.policy.lookup
    values = lols.tasks.tokens.encoding.attribute_values

    def counted_lookup(table: Any, identity: int) -> int:
        calls["lookups"] += 1
        return lookup(table, identity)

    def counted_values(texts: Any, wanted: Any) -> np.ndarray:
        calls["strings"] += texts.begin.size
        return values(texts, wanted)

    monkeypatch.setattr(lols.engine.policy, "lookup", counted_lookup)
    monkeypatch.setattr(lols.tasks.tokens.encoding, "attribute_values", counted_values)
    piece = [["the", "dog", "barks"], ["a", "dog"]]
    session_predicts(tagger, [piece])
    assert calls == {"strings": 4, "lookups": 7}  # "a", before "dog", has no suffix of two
    session_predicts(tagger, [piece] * 3)
    assert calls == {"strings": 8, "lookups": 14}
