"""Word vectors and encoders that were learned elsewhere: a tiny random BERT is made here."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import lols
from lols.errors import ConfigurationError, LolsError
from lols.tasks.tokens.corpus import corpus_of
from lols.tasks.tokens.word_pieces import Pieces
from tests.cli.command_line import run
from tests.torch.small_encoder import write_encoder

SMALL: dict[str, Any] = {"policy": "neural", "device": "cpu", "width": 12, "layers": 1, "passes": 4, "rate": 0.01}
NOUNS, VERBS = ("dog", "cat", "sun"), ("sees", "barks")
SENTENCES = [["the", n, v] for n in NOUNS for v in VERBS] * 4
TAGS = [["D", "N", "V"]] * len(SENTENCES)
TREES = [[(2, "det"), (3, "nsubj"), (0, "root")]] * len(SENTENCES)
UNSEEN = ["the", "wolf", "howls"]

needs_transformers = pytest.mark.skipif(find_spec("transformers") is None, reason="transformers is not installed")


@pytest.fixture(scope="module")
def vectors(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Words of a kind are alike, those that training never sees, too."""
    folder = tmp_path_factory.mktemp("vectors")
    kinds = {
        "the": (3, 0, 0),
        **dict.fromkeys((*NOUNS, "wolf"), (0, 3, 0)),
        **dict.fromkeys((*VERBS, "howls"), (0, 0, 3)),
    }
    lines = [f"{word} {a}.5 {b}.0 {c}.25" for word, (a, b, c) in kinds.items()]
    (folder / "v.txt").write_text("\n".join([f"{len(lines)} 3", *lines]) + "\n", encoding="utf-8")
    (folder / "w.txt").write_text("\n".join(kinds) + "\n", encoding="utf-8")
    np.save(folder / "w.npy", np.array([[a + 0.5, b, c + 0.25] for a, b, c in kinds.values()]))
    return folder


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a BERT of one layer, and a tokenizer of letters."""
    return write_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.mark.parametrize("name", ["v.txt", "w.npy"])
def test_vectors_tell_what_unseen_words_are_like(name: str, vectors: Path, tmp_path: Path) -> None:
    tagger = lols.Tagger(**SMALL, vectors=str(vectors / name)).fit(SENTENCES, TAGS)
    assert tagger.predict_one(UNSEEN) == ["D", "N", "V"]
    tagger.save(tmp_path / "t.lols")
    loaded = lols.load(tmp_path / "t.lols")
    assert loaded.predict_one(UNSEEN) == ["D", "N", "V"]  # without the file of vectors
    network: Any = loaded.model_.policy.network
    assert network.encoder.vectors.weight.std() > 0.5
    assert not network.encoder.vectors.weight.requires_grad


def test_both_kinds_of_files_say_the_same(vectors: Path) -> None:
    from lols.tasks.tokens.vectors import read_vectors

    text, array = (read_vectors(str(vectors / name), ["the"]) for name in ("v.txt", "w.npy"))
    assert text.words == array.words
    assert np.array_equal(text.values, array.values)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("a 1 2\nb 1 2 3\n", "v, line 2: 3 numbers, and 2 in the lines before: all vectors must have the same length"),
        ("a 1 2\nb 1\n", "v, line 2: 1 numbers, and 2 in the lines before"),
        ("a 1 2\nb 1 x\n", "v, line 2: not all cells after the word are numbers"),
        ("a 1 nan\n", "v: the vector of 'a' has NaN or infinity: leave the word out"),
        ("\n", "v: there are no vectors in it: write a word and its numbers on each line"),
        (None, "v: there is no such file; correct the name"),
    ],
)
def test_bad_vectors_are_one_line(content: str | None, says: str, tmp_path: Path) -> None:
    if content is not None:
        (tmp_path / "v").write_text(content, encoding="utf-8")
    with pytest.raises(LolsError, match=says):
        lols.Tagger(**SMALL, vectors=str(tmp_path / "v")).fit(SENTENCES, TAGS)


def test_arrays_that_do_not_fit_are_one_line(tmp_path: Path) -> None:
    np.save(tmp_path / "v.npy", np.zeros((2, 3)))
    (tmp_path / "v.txt").write_text("a\n", encoding="utf-8")
    with pytest.raises(LolsError, match=r"has 2 rows, and .*v.txt 1 words: give as many of each"):
        lols.Tagger(**SMALL, vectors=str(tmp_path / "v.npy")).fit(SENTENCES, TAGS)
    whole = (tmp_path / "v.npy").read_bytes()
    for damaged in (whole.replace(b"(2, 3)", b"(2, 3 "), b"PK\x05\x06" + bytes(18), whole[:90]):
        (tmp_path / "v.npy").write_bytes(damaged)
        with pytest.raises(LolsError, match=r"cannot be read .*; give a \.npy file of numbers"):
            lols.Tagger(**SMALL, vectors=str(tmp_path / "v.npy")).fit(SENTENCES, TAGS)


@needs_transformers
def test_an_encoder_is_tuned_and_kept_in_the_model_file(encoder: Path, tmp_path: Path) -> None:
    """Renaming its folder shows that the file alone is enough."""
    import shutil

    here = tmp_path / "encoder"
    shutil.copytree(encoder, here)
    parser = lols.Parser(**SMALL, encoder=str(here)).fit(SENTENCES, TREES)
    parser.save(tmp_path / "p.lols")
    here.rename(tmp_path / "gone")
    loaded = lols.load(tmp_path / "p.lols")
    assert loaded.predict(SENTENCES) == parser.predict(SENTENCES)
    assert loaded.score(SENTENCES, TREES) > 0.9
    groups = parser.model_.policy.network.parameter_groups()
    assert [group.get("lr") for group in groups] == [None, 5e-5]
    from transformers import BertModel

    before = BertModel.from_pretrained(encoder).embeddings.word_embeddings.weight.detach()
    after = parser.model_.policy.network.encoder.pretrained.model.embeddings.word_embeddings.weight.detach()
    assert 0.0 < float((before - after).abs().max()) < 0.1


@needs_transformers
def test_words_get_the_mean_of_their_pieces(encoder: Path) -> None:
    """In windows, against the model itself, sentence by sentence."""
    import torch
    from transformers import BertModel

    from lols.contract.examples import Scalar
    from lols.torch.batches import ExampleBatch
    from lols.torch.pretrained import PretrainedEncoder

    pieces = Pieces.of(str(encoder))
    sentences = [["the", "dog", "barks"], ["sun"], ["the", "cat", "sees", "the", "sun", "and", "the", "dog"]]
    corpus = corpus_of(sentences)
    column = pieces.column(corpus)
    assert pieces.longest == 12

    class Held:
        x = type("X", (), {"_fields": ("pieces",), "pieces": column})()
        y = type("Y", (), {"_fields": ()})()
        has_truth = False

    assert not isinstance(column, Scalar)
    batch = ExampleBatch(Held(), np.arange(3), torch.device("cpu"))  # type: ignore[arg-type]
    made = PretrainedEncoder(pieces.config, str(encoder)).eval()
    with torch.no_grad():
        found = made(batch, corpus.tokens, corpus.offsets[:-1])
        model = BertModel.from_pretrained(encoder).eval()
        ids = pieces._tokenizer().encode(sentences[0], is_pretokenized=True)
        alone = model(torch.tensor([ids.ids])).last_hidden_state[0]
    expected = torch.stack([alone[[k for k, w in enumerate(ids.word_ids) if w == n]].mean(0) for n in range(3)])
    assert torch.allclose(found[:3], expected, atol=1e-5)
    windows = column.values.reshape(-1, 3)[:, 2]
    assert windows.max() > 0  # the last sentence is longer than the encoder reads
    assert bool((found.abs().sum(1) > 0).all())


@needs_transformers
def test_bad_encoders_are_one_line(encoder: Path, tmp_path: Path) -> None:
    import shutil

    data = tmp_path / "d.conllu"
    data.write_text("1\ta\ta\tX\tX\t_\t0\troot\t_\t_\n\n" * 4, encoding="utf-8")
    typed = ("train", "tagger", data, "-o", tmp_path / "t.lols", "--policy", "neural", "--encoder", tmp_path / "no")
    says = "no: there is no such folder; give one with an encoder of Hugging Face"
    made = run(*typed)
    assert made.exit_code != 0
    assert says in str(made.exception)
    assert not (tmp_path / "t.lols").exists()
    half = tmp_path / "half"
    shutil.copytree(encoder, half)
    (half / "tokenizer.json").unlink()
    with pytest.raises(ConfigurationError, match=r"half: has no tokenizer.json; give a folder"):
        lols.Tagger(**SMALL, encoder=str(half)).fit(SENTENCES, TAGS)
    shutil.copy(encoder / "tokenizer.json", half)
    (half / "model.safetensors").unlink()
    with pytest.raises(ConfigurationError, match=r"half: cannot be loaded .*; give an encoder that transformers has"):
        lols.Tagger(**SMALL, encoder=str(half)).fit(SENTENCES, TAGS)


def test_they_need_the_neural_policy() -> None:
    for name in ("vectors", "encoder"):
        with pytest.raises(ConfigurationError, match=f"{name} has no effect: it is for policy='neural'"):
            lols.Tagger(**{name: "x"}).fit(SENTENCES, TAGS)


def test_mixed_precision_trains_parsers_and_taggers() -> None:
    half = SMALL | {"precision": "bfloat16", "passes": 6}
    assert lols.Parser(**half).fit(SENTENCES, TREES).score(SENTENCES, TREES) > 0.9
    assert lols.Tagger(**half).fit(SENTENCES, TAGS).score(SENTENCES, TAGS) > 0.9
