"""Generated data and their search space, for the demo, the tests and the documentation."""

from __future__ import annotations

from typing import Any

import numpy as np

from lols.contract.features import emit, feature, hamming
from lols.contract.space import Example, Reference, SearchSpace, Sizes


def tagging_space(labels: int) -> SearchSpace:
    """Left-to-right tagging of numbered words, with the two previous tags as history and Hamming loss.

    Parameters
    ----------
    labels
        How many labels there are.

    Examples
    --------
    >>> tagging_space(labels=5).sizes.actions
    5

    """
    return SearchSpace(
        start=_start,
        actions=_actions,
        step=_step,
        features=_features,
        loss=_loss,
        cost=_cost,
        key=_key,
        output=_output,
        encode=_encode,
        sizes=Sizes(
            state=lambda x: 3 + len(x.words), live=3, actions=labels, features=10, steps=lambda x: len(x.words)
        ),
        name="lols.worlds:tagging",
    )


def _start(x, s):
    s[1] = s[2] = -1


def _actions(x, s, legal):
    if s[0] < len(x.words):
        legal[:] = True


def _step(x, s, a):
    s[3 + s[0]] = a
    s[2] = s[1]
    s[1] = a
    s[0] += 1


def _word(x, i):
    return x.words[i] if 0 <= i < len(x.words) else -1


def _features(x, s, out):
    i = s[0]
    word = x.words[i]
    emit(out, feature(0, word))
    emit(out, feature(1, _word(x, i - 1)))
    emit(out, feature(2, _word(x, i + 1)))
    emit(out, feature(3, _word(x, i - 1), word))
    emit(out, feature(4, word, _word(x, i + 1)))
    emit(out, feature(5, _word(x, i - 2)))
    emit(out, feature(6, s[1]))
    emit(out, feature(7, s[1], s[2]))
    emit(out, feature(8, s[1], word))
    emit(out, feature(9))


def _loss(x, y, s):
    return hamming(s[3:], y.tags)


def _cost(x, y, s, a):
    return 1.0 if a != y.tags[s[0]] else 0.0


def _key(x, s):
    return (s[0] * 4096 + s[1] + 1) * 4096 + s[2] + 1


def _output(x: Any, s: np.ndarray) -> list[int]:
    return list(s[3 : 3 + len(x.words)].tolist())


def _encode(obj: dict[str, Any]) -> Example:
    return Example({"words": obj["words"]}, {"tags": obj["tags"]} if "tags" in obj else None)


def tagging_references() -> dict[str, Reference]:
    """Three teachers: the truth; the truth half of the time, else label 0; always label 0."""
    from lols.contract.features import uniform

    return {
        "optimal": Reference(action=lambda x, y, s: y.tags[s[0]], name="optimal"),
        "suboptimal": Reference(
            action=lambda x, y, s, rng: y.tags[s[0]] if uniform(rng) < 0.5 else 0, name="suboptimal"
        ),
        "bad": Reference(action=lambda x, y, s: 0, name="bad"),
    }


def tagging_data(sentences: int, *, labels: int = 12, words: int = 400, seed: int = 0) -> list[dict[str, list[int]]]:
    """Sentences from a hidden Markov chain over tags; half of the words are ambiguous between two tags.

    Parameters
    ----------
    sentences
        How many sentences are drawn.
    labels
        How many labels there are.
    words
        How many different words there are.
    seed
        What random draws depend on.

    """
    rng = np.random.default_rng(seed)
    world = np.random.default_rng(12345)
    chain = world.dirichlet(np.full(labels, 0.25), size=labels)
    homes = world.integers(0, labels, size=(words, 2))
    homes[: words // 2, 1] = homes[: words // 2, 0]
    zipf = 1.0 / np.arange(1, words + 1)
    emission = np.zeros((labels, words))
    np.add.at(emission, (homes[:, 0], np.arange(words)), zipf)
    np.add.at(emission, (homes[:, 1], np.arange(words)), zipf)
    emission += 1e-6
    emission /= emission.sum(axis=1, keepdims=True)
    data = []
    for _ in range(sentences):
        tag, tags, text = int(rng.integers(labels)), [], []
        for _ in range(int(rng.integers(5, 25))):
            tag = int(rng.choice(labels, p=chain[tag]))
            tags.append(tag)
            text.append(int(rng.choice(words, p=emission[tag])))
        data.append({"words": text, "tags": tags})
    return data
