"""How the parts of a pipeline are trained, one after the other, and what is kept of it in case it is interrupted."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from glob import escape
from pathlib import Path
from typing import Any

import numpy as np

from lols.errors import ConfigurationError, ModelFileError
from lols.io.model_file import read_tensors, write_tensors
from lols.io.strings import Column
from lols.io.whole_file import remove
from lols.policies.neural import Neural
from lols.tasks.base import unfitted
from lols.tasks.tagging.estimator import Tagger
from lols.tasks.tokens.corpus import Corpus
from lols.tasks.verbs import Say
from lols.training.calibration import UnfitSample

KIND = "pipeline checkpoint"


class PipelineProgress:
    """What was made so far, in steps that are named: columns of tags, and taggers.

    Parameters
    ----------
    checkpoint
        Where it is kept; None keeps nothing.
    identity
        What must be equal for a file to belong to this training.
    resume
        Whether to take over what a file has.

    """

    def __init__(self, checkpoint: Any, identity: dict[str, Any], *, resume: bool = False):
        self.path = None if checkpoint is None else Path(checkpoint)
        self.identity = identity
        self.headers: dict[str, Any] = {}
        self.tensors: dict[str, np.ndarray] = {}
        if self.path is None:
            return
        if resume and self.path.exists():
            self._take_over(self.path)
        else:
            self._sweep()
            self._write(self.path)  # at once, so that the first step can be resumed, too

    def _take_over(self, path: Path) -> None:
        header, tensors = read_tensors(path, KIND)
        identity = header.get("identity")
        for name, value in self.identity.items():
            if not isinstance(identity, dict) or identity.get(name) != value:
                raise ModelFileError(
                    f"{path}: made with another {name}; resume with the same data and options, or delete it"
                )
        if not isinstance(header.get("steps"), dict):
            raise ModelFileError(f"{path}: what was done so far is damaged; delete it, and start again")
        self.headers, self.tensors = header["steps"], tensors

    def _write(self, path: Path) -> None:
        header = {"identity": self.identity, "steps": self.headers}
        write_tensors(path, KIND, header, self.tensors or {"nothing": np.zeros(1)})

    def _sweep(self) -> None:
        """Delete the checkpoints of all steps, each before what is beside it and of no use without it."""
        if self.path is not None:
            for left in sorted(self.path.parent.glob(f"{escape(self.path.name)}.part*")):
                remove(left)

    def done(self, step: str) -> tuple[dict[str, Any], dict[str, np.ndarray]] | None:
        """Header and arrays of a step that is done; None if it is not."""
        if step not in self.headers:
            return None
        own = {k.removeprefix(f"{step}/"): array for k, array in self.tensors.items() if k.startswith(f"{step}/")}
        return self.headers[step], own

    def fitting(self) -> dict[str, Any]:
        """How the step that comes next is trained: with a checkpoint of its own, which no other step takes over."""
        return {} if self.path is None else {"checkpoint": f"{self.path}.part{len(self.headers)}", "resume": True}

    def keep(self, step: str, header: dict[str, Any], tensors: dict[str, np.ndarray]) -> None:
        """Note that a step is done."""
        self.headers[step] = header
        self.tensors |= {f"{step}/{name}": array for name, array in tensors.items()}
        if self.path is not None:
            self._write(self.path)
            self._sweep()

    def end(self) -> None:
        """Delete all of it: training is done."""
        if self.path is not None:
            self._sweep()
            remove(self.path)


@dataclass
class PartTraining:
    """Trains one part after the other; what an interrupted training has done is not done again.

    Parameters
    ----------
    own
        The pipeline's options that are for all parts.
    before
        What goes on learning, by name; nothing if training begins anew.
    folds
        Into how many parts the sentences are cut for jack-knifing.
    keeps
        Whether taggers keep what further learning needs.
    progress
        The steps that are done.
    say
        Is told what is being done.

    """

    own: Mapping[str, Any]
    before: Mapping[str, Any]
    folds: int
    keeps: bool
    progress: PipelineProgress
    say: Say

    def learner(self, name: str, template: Any) -> Any:
        """What learns to be a part: a copy of the part as it was, which goes on, or one that has learned nothing."""
        if name in self.before:
            return copy.copy(self.before[name]).set_params(warm_start=True, **self.own)
        return self._new(template)

    def _new(self, template: Any) -> Any:
        for name, value in self.own.items():
            if getattr(template, name) not in (value, getattr(type(template), name)):
                what = template.VERBS.name
                raise ConfigurationError(f"{name} of the {what} has no effect: the pipeline's {name} is for all parts")
        if isinstance(template.policy, Neural) and template.policy.network is not None:
            raise ConfigurationError(
                "the file of a pipeline has no place for a network of your own: train taggers and parser one by one"
            )
        return unfitted(template).set_params(**self.own)

    def tagger(self, name: str, template: Tagger, words: Corpus, column: Column, dev: Any) -> Tagger:
        """The tagger of a column, trained on all sentences."""
        done = self.progress.done(f"{name}, all")
        if done is not None:
            return Tagger.from_file(str(self.progress.path), *done, threads=self.own["threads"])
        self.say(f"{name}: a tagger on all sentences")
        tagger: Tagger = self.learner(name, template)
        tagger.fit_columns(words, labels_of(column), dev=dev, **self.progress.fitting())
        if not self.keeps:
            tagger.stop_learning()
        self.progress.keep(f"{name}, all", *tagger.contents())
        return tagger

    def jackknifed(self, name: str, template: Tagger, words: Corpus, column: Column) -> Column:
        """A column as taggers give it that did not see the sentence; with one fold, the column as it is."""
        if self.folds == 1:
            return column
        fold = np.arange(words.offsets.size - 1) * self.folds // (words.offsets.size - 1)
        strings = column.texts.strings()
        numbers = np.empty(words.tokens, np.int64)
        for k in range(self.folds):
            step, inside = f"{name}, part {k + 1}", np.repeat(fold == k, np.diff(words.offsets))
            done = self.progress.done(step)
            if done is not None:
                numbers[inside] = done[1]["numbers"]
                continue
            self.say(f"{name}: a tagger without part {k + 1} of {self.folds}, to tag that")
            rest, part = some_sentences(words, fold != k), some_sentences(words, fold == k)
            tagger = self._new(template).set_params(patience=None, calibrate=False)  # no dev data are tagged here
            tagger.fit_columns(rest, (column.numbers[~inside], strings), **self.progress.fitting())
            known = {label: n for n, label in enumerate(strings)}
            to = np.array([known[label] for label in tagger.task_.labels], np.int64)
            numbers[inside] = to[tagger.predict_columns(part)]
            self.progress.keep(step, {}, {"numbers": numbers[inside]})
        return Column(numbers, column.texts)


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
