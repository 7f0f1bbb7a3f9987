"""The example of handwritten words: short, true to the contract, learns on drawn words, and reads the real ones."""

from __future__ import annotations

import doctest
import json
import os

import numpy as np
import ocr
import pytest
from helpers import glyphs

import lols
from lols.contract.checks import check_space
from lols.contract.features import feature_buffer
from tests.examples.example_checks import check_length, check_page, run


def drawn(count: int, seed: int, looks=ocr.strokes):
    return ocr.seen(ocr.generate(count, seed), looks)


def slow_strokes(picture: np.ndarray) -> np.ndarray:
    """The same as `strokes` does for one letter, pixel by pixel."""

    def ink(row: int, column: int) -> float:
        return float(picture[row, column]) if 0 <= row < 16 and 0 <= column < 8 else 0.0

    made = np.zeros((5, 16, 8))
    for kind, (down, right) in enumerate([(0, 0), (0, 1), (1, 0), (1, 1), (1, -1)]):
        for row in range(16):
            for column in range(8):
                for i, j in np.ndindex(3, 3):
                    at = row + i - 1, column + j - 1
                    inside = 0 <= at[0] < 16 and 0 <= at[1] < 8
                    pair = ink(*at) * ink(at[0] + down, at[1] + right) if inside else 0.0
                    made[kind, row, column] += pair * (1, 2, 1)[i] * (1, 2, 1)[j] / 32
    return made.ravel()


def test_the_task_is_short_and_the_page_shows_it():
    check_length("ocr", "Letters")
    check_page("ocr", "Letters")


def test_the_contract_is_kept():
    assert check_space(ocr.Letters, drawn(6, 1)) == []
    assert check_space(ocr.Letters(before=1), drawn(3, 2, ocr.pixels)) == []


def test_strokes_are_smeared_pairs_of_pixels():
    pictures = ocr.generate(1, 4)[0]["pictures"]
    for (where, values), picture in zip(ocr.strokes(pictures), pictures, strict=True):
        slow = slow_strokes(picture)
        assert where.tolist() == np.flatnonzero(slow).tolist()
        assert values == pytest.approx(slow[where])


def test_history_is_every_run_of_letters_up_to_the_state():
    x = lols.Examples(ocr.Letters, drawn(1, 1)).example(0)[0]

    def history(*letters: int) -> list[int]:
        out = feature_buffer(ocr.BEFORE)
        ocr.Letters.features(x, np.array([len(letters), *letters, 9, 9, 9]), out)
        return out.ids[: out.size[0]].tolist()

    assert len(history()) == 1  # the word begins here
    assert len(history(3, 4)) == 3
    assert history(3, 4)[0] == history(5, 4)[0]
    assert history(3, 4)[1] != history(5, 4)[1]
    assert history(4)[1] != history(3, 4)[1]  # at the beginning of the word, or not


def test_a_drawn_word_has_its_letters():
    assert doctest.testmod(glyphs).failed == 0
    assert {letter for word in glyphs.WORDS for letter in word} == set("abcdefghijklmnopqrstuvwxyz")
    assert len({glyph.tobytes() for glyph in glyphs.GLYPHS}) == 26


@pytest.mark.slow
def test_it_learns_to_read_drawn_words():
    test = drawn(30, 2)
    # without roll-outs, which are slow as plain Python
    model = lols.train(ocr.Letters, drawn(70, 1), algorithm="dagger", seed=1, passes=2, compiled=False)
    often = np.bincount([letter for word in test for letter in word["letters"]])
    assert ocr.accuracy(test, model.predict(test)) > 0.4 > 2 * often.max() / often.sum()


def test_the_command_prints_a_table_or_json(capsys, monkeypatch):
    small = ("--generated", "--words", "20", "--folds", "1", "--uncompiled")
    monkeypatch.setattr(ocr, "PASSES", 1)
    printed = run(ocr.main, capsys, *small)
    assert printed.startswith("generated words (as asked): 20 words")
    assert ocr.LOLS in printed
    assert "on the same folds" in printed
    monkeypatch.setattr(ocr, "compare", lambda *_: {f"lols, {name}": {"accuracy": [1.0]} for name in ocr.SYSTEMS})
    assert json.loads(run(ocr.main, capsys, *small, "--json"))["systems"][f"lols, {ocr.LOLS}"] == {"accuracy": [1.0]}


def test_bad_options_are_refused(capsys):
    with pytest.raises(SystemExit, match="2"):
        ocr.main(["--folds", "11"])
    assert "from 1 to 10" in capsys.readouterr().err


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.skipif("LOLS_DATA" not in os.environ, reason="LOLS_DATA does not name the folder of data sets")
def test_one_fold_of_the_real_words_reaches_its_floor():
    words = ocr.read(ocr.data_file())
    assert (len(words), sum(len(word["letters"]) for word in words)) == (6877, 52152)
    words = ocr.seen([word for word in words if word["fold"] < 3], ocr.strokes)
    model = ocr.learn([word for word in words if word["fold"] == 0], seed=0)
    test = [word for word in words if word["fold"] > 0]
    assert ocr.accuracy(test, model.predict(test)) > 0.88
