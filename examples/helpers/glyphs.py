"""Handwriting without a download: words drawn from little bitmaps, moved, leaning, thick or thin, with wrong pixels."""

from __future__ import annotations

import numpy as np

__all__ = ["WORDS", "draw_word"]

HEIGHT, WIDTH = 16, 8

# Five rows of five for each letter of the alphabet; an x is ink.
BITMAPS = """
.xxx. x...x xxxxx x...x x...x   xxxx. x...x xxxx. x...x xxxx.   .xxxx x.... x.... x.... .xxxx
xxxx. x...x x...x x...x xxxx.   xxxxx x.... xxxx. x.... xxxxx   xxxxx x.... xxxx. x.... x....
.xxxx x.... x..xx x...x .xxxx   x...x x...x xxxxx x...x x...x   ..x.. ..x.. ..x.. ..x.. ..x..
....x ....x ....x x...x .xxx.   x..x. x.x.. xx... x.x.. x..x.   x.... x.... x.... x.... xxxxx
x...x xx.xx x.x.x x...x x...x   x...x xx..x x.x.x x..xx x...x   .xxx. x...x x...x x...x .xxx.
xxxx. x...x xxxx. x.... x....   .xxx. x...x x.x.x x..x. .xx.x   xxxx. x...x xxxx. x..x. x...x
.xxxx x.... .xxx. ....x xxxx.   xxxxx ..x.. ..x.. ..x.. ..x..   x...x x...x x...x x...x .xxx.
x...x x...x x...x .x.x. ..x..   x...x x...x x.x.x xx.xx x...x   x...x .x.x. ..x.. .x.x. x...x
x...x .x.x. ..x.. ..x.. ..x..   xxxxx ...x. ..x.. .x... xxxxx
"""
GLYPHS = np.array([[cell == "x" for cell in "".join(BITMAPS.split())]]).reshape(26, 5, 5)
TEXT = """
able actor awake banjo brick cabin cargo chair cloud coin dizzy dream eagle early envoy fable fjord flour ghost given
glove habit honey index ivory joker juice kayak knife lemon light magic music night novel ocean orbit paper pixel plant
quack queen quiz river robot salad seven shape smoke sugar taxi tiger toxic ultra uncle under vapor video vowel waltz
water wedge xylem yacht young zebra zone
"""
WORDS = TEXT.split()


def draw_word(word: str, rng: np.random.Generator, noise: float = 0.04) -> np.ndarray:
    """Draw each letter of a word as 16 × 8 pixels, one hand for all of them.

    >>> for row in draw_word("t", np.random.default_rng(1), noise=0)[0][3:7]:
    ...     print("".join(".x"[ink] for ink in row))
    .xxxxx..
    .xxxxx..
    ...x....
    ...x....
    """
    lean, thick = rng.integers(-1, 2), rng.random() < 0.4
    made = np.zeros((len(word), HEIGHT, WIDTH), bool)
    for picture, letter in zip(made, word, strict=True):
        tall = np.repeat(GLYPHS[ord(letter) - ord("a")], 2, axis=0)
        top, left = rng.integers(2, 5), rng.integers(1, 3)
        for row, ink in enumerate(tall):
            at = left + round(lean * (4.5 - row) / 6)
            picture[top + row, at : at + 5] = ink
        if thick:
            picture[:, 1:] |= picture[:, :-1]
    return (made ^ (rng.random(made.shape) < noise)).astype(np.uint8)
