"""How the parts of a pipeline are trained, one after the other; and how it goes on, and resumes."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np

from lols.contract.sharing import exclusive
from lols.errors import ConfigurationError
from lols.io.strings import Column
from lols.tasks.base import unfitted
from lols.tasks.parsing.estimator import Parser
from lols.tasks.pipeline.progress import PipelineProgress
from lols.tasks.pipeline.verbs import PipelineVerbs
from lols.tasks.tagging.estimator import Tagger
from lols.tasks.tokens.corpus import Corpus
from lols.tasks.tokens.neural import NETWORK_OPTIONS
from lols.tasks.verbs import Say
from lols.training.calibration import UnfitSample

COMMON = ("passes", "patience", "calibrate", "policy", *NETWORK_OPTIONS)  # options of taggers and parser alike
OWN = ("seed", "threads", "engine", "progress", "keep_state")  # those of the pipeline, for all parts


class PipelineLearning(PipelineVerbs):
    """The training of `Pipeline`, part by part."""

    tags: Sequence[str] | None
    folds: int
    tagger: Tagger | None
    parser: Parser | None
    seed: int
    threads: Any
    warm_start: bool
    keep_state: bool

    # --- parts ---

    def new_part(self, estimator: Any) -> Any:
        """A part that has learned nothing, with the pipeline's own options."""
        own = {name: getattr(self, name) for name in OWN}
        for name, value in own.items():
            if getattr(estimator, name) not in (value, getattr(type(estimator), name)):
                what = estimator.VERBS.name
                raise ConfigurationError(f"{name} of the {what} has no effect: the pipeline's {name} is for all parts")
        return unfitted(estimator).set_params(**own)

    def old_part(self, part: Any) -> Any:
        """A copy of a part that goes on learning."""
        own = {name: getattr(self, name) for name in OWN}
        return copy.copy(part).set_params(warm_start=True, **own)

    def trained_tagger(
        self, name: str, words: Corpus, column: Column, gold: Any, progress: PipelineProgress, say: Say
    ) -> Tagger:
        """A tagger on all sentences, a new one or one that goes on."""
        done = progress.done(f"{name}, all")
        if done is not None:
            return Tagger.from_file(str(progress.path), *done, threads=self.threads)
        say(f"{name}: a tagger on all sentences")
        tagger = self.old_part(self.taggers_[name]) if self.goes_on else self.new_part(self.tagger or Tagger())
        tagger.fit_columns(words, labels_of(column), dev=gold, **progress.fitting())
        if not (self.keep_state or self.warm_start):
            tagger.stop_learning()
        progress.keep(f"{name}, all", *tagger.contents())
        return tagger

    def jackknifed(self, name: str, words: Corpus, column: Column, progress: PipelineProgress, say: Say) -> Column:
        """A column as taggers give it that did not see the sentence."""
        fold = np.arange(words.offsets.size - 1) * self.folds // (words.offsets.size - 1)
        strings = column.texts.strings()
        made = np.empty(words.tokens, np.int64)
        for k in range(self.folds):
            step, inside = f"{name}, part {k + 1}", np.repeat(fold == k, np.diff(words.offsets))
            done = progress.done(step)
            if done is not None:
                made[inside] = done[1]["numbers"]
                continue
            say(f"{name}: a tagger without part {k + 1} of {self.folds}, to tag that")
            rest, part = some_sentences(words, fold != k), some_sentences(words, fold == k)
            untested = {"patience": None, "calibrate": False}  # no dev data are tagged here
            tagger = self.new_part(self.tagger or Tagger()).set_params(**untested)
            tagger.fit_columns(rest, (column.numbers[~inside], strings), **progress.fitting())
            known = {label: n for n, label in enumerate(strings)}
            to = np.array([known[label] for label in tagger.task_.labels], np.int64)
            made[inside] = to[tagger.predict_columns(part)]
            progress.keep(step, {}, {"numbers": made[inside]})
        return Column(made, column.texts)

    # --- going on ---

    @property
    def goes_on(self) -> bool:
        """Whether training goes on with what was learned."""
        return self.warm_start and self.__sklearn_is_fitted__()

    def check_going_on(self) -> None:
        """Say what would be forgotten, or that there are weights only."""
        if self.__sklearn_is_fitted__():
            self._speaker()._goes_on()

    def _speaker(self) -> Parser:
        """The parser, which speaks for the pipeline where it goes on."""
        parser = copy.copy(self.parser_)
        parser.warm_start, parser.path_ = self.warm_start, self.path_
        return parser

    def starts_from_weights(self) -> str | None:
        """What is to be said where learning goes on without the learners' states; None if they are there."""
        return self._speaker().starts_from_weights()

    @exclusive
    def go_on_with(self, options: Mapping[str, Any]) -> None:
        """Let `fit` go on, with some other options: those of search and learning are the parser's."""
        own = {name: value for name, value in options.items() if name in self._defaults()}
        self.set_params(warm_start=True, **own)
        rest = {name: value for name, value in options.items() if name not in own}
        self.parser_.set_params(**rest)
        for part in self.taggers_.values():
            part.set_params(**{name: value for name, value in rest.items() if name in COMMON})

    @exclusive
    def partial_fit(self, X: Any, y: Any) -> Self:
        """Learn from further sentences, dictionaries with words and tags, and their trees, in the given order.

        Each sentence is tagged before its tags are learned from, and the parser learns from these tags.

        Parameters
        ----------
        X
            The sentences: lists of words, or of dictionaries with the words and their tags.
        y
            The tree of each sentence: a head, counted from 1 and 0 for the root, and a relation for each word.

        """
        made: Any = self
        names = ("word", *self.taggers_)
        seen = [[{name: word[name] for name in names} for word in sentence] for sentence in made.predict(X)]
        for name, tagger in self.taggers_.items():
            tags = [[str(word[name]) for word in sentence] for sentence in X]
            words = [[word["word"] for word in sentence] for sentence in X]
            tagger.partial_fit(words, tags, classes=sorted({tag for each in tags for tag in each}))
        self.parser_.partial_fit(seen, y)
        return self

    def learn_one(self, x: Any, y: Any) -> Self:
        """Learn from one sentence and its tree.

        Parameters
        ----------
        x
            A sentence: a list of dictionaries with the words and their tags.
        y
            The tree of each sentence: a head, counted from 1 and 0 for the root, and a relation for each word.

        """
        return self.partial_fit([x], [y])

    def identity(self, corpus: Corpus, heads: np.ndarray, numbers: np.ndarray, dev: Any) -> dict[str, Any]:
        """What must be the same when training is resumed."""
        parts: list[Any] = [*self.taggers_.values(), self.parser_] if self.goes_on else [self.tagger, self.parser]
        before = [part.fingerprint_ for part in parts] if self.goes_on else []
        return {
            "data": corpus.fingerprint(heads, numbers),
            "dev": None if dev is None else dev[0].fingerprint(*dev[1:3]),
            "options": repr((self.folds, self.tags, self.seed, self.keep_state, parts, before)),
        }


def labels_of(column: Column) -> tuple[np.ndarray, list[str]]:
    """The strings of a column as numbers and names."""
    return column.numbers, column.texts.strings()


def check_filled(corpus: Corpus, name: str, known: Sequence[str]) -> None:
    """Raise an error if a word has no tag in a column; `known` are the tags that a word can have."""
    numbers, names = labels_of(corpus.columns[name])
    blank = [k for k, each in enumerate(names) if each in ("", "_") and each not in known]
    empty = np.flatnonzero(np.isin(numbers, blank))
    if empty.size:
        sentence = int(np.searchsorted(corpus.offsets, empty[0], side="right"))
        word = int(empty[0] - corpus.offsets[sentence - 1]) + 1
        where = f"sentence {sentence}, word {word}: there is no tag in column '{name}'"
        raise UnfitSample(f"{where}; fill it in, or leave the sentence out")


def some_sentences(corpus: Corpus, keep: np.ndarray) -> Corpus:
    """Some of the sentences, and of the strings only those that they have."""
    part, columns = corpus.select(np.flatnonzero(keep)), {}
    for name, (numbers, texts) in part.columns.items():
        used, numbers = np.unique(numbers, return_inverse=True)
        columns[name] = Column(numbers, texts._replace(begin=texts.begin[used], end=texts.end[used]))
    return part._replace(columns=columns)
