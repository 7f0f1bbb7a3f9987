"""What the worlds of sentences share: arrivals, losses, and the features of words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from lols.bandit.worlds.world import Objects, World
from lols.contract.space import Reference, SearchSpace
from lols.front import train
from lols.kernels.hashing import mix
from lols.learners.settings import LearnerSettings

VALUE, WHOLE = 0.02, 1.0  # values of features for learning from losses of whole sentences
# A wrong tag or head costs a sentence of usual length about 0.05. With a width no larger than that, only the
# reference's actions are plausible at first, until the policy has begun to doubt them.
OPTIONS = {
    "epsilon": 1.0,
    "advice": 0.05,
    "width": 0.05,
    "estimator": "dr",
    "learner": LearnerSettings("csoaa", "adagrad", rate=0.3),
}
WORD, LOWER, SUFFIX, SHAPE, FACTS = 0, 1, 2, 5, 6  # the cells of a word; there are three suffixes
CAPITAL, CAPITALS, DIGIT, HYPHEN, LETTER = 1, 2, 4, 8, 16  # the bits of a shape


def text_number(text: str) -> int:
    """A signed 64-bit integer for a text, the same in every process.

    >>> text_number("a") != text_number("b"), -(2**63) <= text_number("") < 2**63
    (True, True)
    """
    return int.from_bytes(blake2b(text.encode(errors="replace"), digest_size=8).digest(), "little", signed=True)


def form_facts(form: str) -> list[int]:
    """Numbers for a form, its lower case, its last one, two and three characters, and its shape.

    >>> ate, Ate = form_facts("ate"), form_facts("Ate")
    >>> ate[WORD] == Ate[WORD], ate[LOWER] == Ate[LOWER], Ate[SHAPE]
    (False, True, 17)
    """
    lower = form.lower()
    shape = CAPITAL * form[:1].isupper() + CAPITALS * (len(form) > 1 and form.isupper())
    shape += DIGIT * any(map(str.isdigit, form)) + HYPHEN * ("-" in form) + LETTER * any(map(str.isalpha, form))
    return [text_number(form), text_number(lower), *(text_number(lower[-k:]) for k in (1, 2, 3)), shape]


def sentence_world(
    name: str,
    truth: str,
    space: SearchSpace,
    reference: Reference,
    *,
    arriving: Objects,
    held_out: Objects,
    at_random: Callable[[Any, int], Any],
    informed: tuple[SearchSpace, Reference, Callable[[Any], Any]],
) -> World:
    """A world whose loss is the share of words with a wrong value, compared with the key `truth` of a sentence.

    `informed` are the space and the teacher of the learner with full information, and a function that prepares
    sentences for it.
    """
    informed_space, teacher, prepare = informed

    def loss(obj: Any, output: Sequence[Any]) -> float:
        return sum(right != value for right, value in zip(obj[truth], output, strict=True)) / len(obj[truth])

    def full_information(sentences: Objects, seed: int) -> Callable[[Objects], list[Any]]:
        once, passes = distinct(sentences)
        data = [prepare(obj) for obj in once]
        return train(informed_space, data, teacher, passes=passes, seed=seed, progress=False).predict

    return World(
        name=name,
        space=space,
        reference=reference,
        arrivals=lambda count, seed: in_passes(arriving, count, seed),
        held_out=held_out,
        loss=loss,
        feedback=lambda obj, output, seed: loss(obj, output),
        at_random=at_random,
        full_information=full_information,
        options=OPTIONS,
    )


def in_passes(objects: Objects, count: int, seed: int) -> list[Any]:
    """This many objects: all of them in random order, then all in another order, and so on."""
    arrivals: list[Any] = []
    number = 0
    while len(arrivals) < count:
        order = np.random.default_rng([abs(mix(seed, 2)), number]).permutation(len(objects))
        arrivals += [objects[k] for k in order[: count - len(arrivals)].tolist()]
        number += 1
    return arrivals


def distinct(objects: Objects) -> tuple[list[Any], int]:
    """Each object once, and how often one occurs on average: for learners that go through data in passes."""
    once = list({id(obj): obj for obj in objects}.values())
    return once, max(round(len(objects) / max(len(once), 1)), 1)
