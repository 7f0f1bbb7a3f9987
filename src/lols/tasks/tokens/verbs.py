"""The verbs of all estimators on sentences."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, Self

import numpy as np

from lols.contract.sharing import on_snapshot
from lols.contract.threads import Threads
from lols.errors import ConfigurationError, LolsError
from lols.io.conll import Sentences
from lols.io.strings import Interner
from lols.tasks.base import BaseEstimator
from lols.tasks.pieces import one_thread
from lols.tasks.tokens.corpus import WORD
from lols.tasks.verbs import Say, silent
from lols.training.clock import Clock


class SentenceVerbs(BaseEstimator):
    """Files of sentences are predicted piece by piece."""

    task_: Any
    reference: str

    def predict_pieces(
        self, path: Any, columns: Any, *, threads: Threads = None, confidence: bool = False
    ) -> Iterator[tuple[bytes, int]]:
        """The file with predictions, and confidence in them if that is wanted, piece by piece, and their tokens."""
        raise NotImplementedError

    def prepare(self) -> None:
        """Read more strings than a new table has room for."""
        Interner().grow()

    @property
    def used_columns(self) -> list[str]:
        """The columns beside the words that the model was trained with."""
        return [name for name in self.task_.columns if name != WORD]

    def asked(self, verb: str, given: Mapping[str, Any]) -> tuple[Any, Any]:
        """Split the options of a verb; a column that the model was not trained with has no effect."""
        unknown = next((name for name in given.get("use") or () if name not in self.used_columns), None)
        if unknown is not None:
            known = (
                f"the model uses {', '.join(self.used_columns)}" if self.used_columns else "the model uses words only"
            )
            raise ConfigurationError(f"--use {unknown} has no effect: {known}")
        return super().asked(verb, given)

    def taught_by(self, reference: str | None) -> Self:
        """The estimator with another teacher, which must be one of its task's; the same if none is named."""
        if reference is None:
            return self
        self.task_.reference(reference)
        other = copy.copy(self)
        other.reference = reference
        return other

    def searching(self, options: Any) -> Self:
        """The estimator as the options of a verb want it to search."""
        return self

    @on_snapshot
    def predict_file(
        self, path: str, out: BinaryIO, *, output: str = "-", threads: Threads = None, say: Say = silent, **options: Any
    ) -> dict[str, Any]:
        """Write a file of sentences with the predicted columns replaced; all else stays as it is, byte for byte.

        Parameters
        ----------
        path
            A file of sentences.
        out
            The stream of bytes to write to.
        output
            The name of what is written, which says its format.
        threads
            How many threads share the work; None for as many as help.
        say
            Called with a line for each thing that is being done.
        **options
            Where things are in the file, and what `lols predict` takes besides.

        """
        columns, asked = self.asked("predict", options)
        clock, tokens = Clock(), 0
        if asked.confidence:
            self.check_calibrated()
        how: Any = {"threads": threads, "confidence": asked.confidence}
        with one_thread(*self.models()):
            for data, count in self.searching(asked).predict_pieces(path, columns, **how):
                out.write(data)
                tokens += count
        return {"tokens": tokens, "tokens_per_second": tokens / clock.working()}


def one_sentence(sentences: Sentences, number: int, path: Any) -> tuple[Sentences, int]:
    """A sentence of a file, by its number from 1, and how many there are."""
    count = sentences.offsets.size - 1
    if not 1 <= number <= count:
        raise LolsError(f"{path}: there is no sentence {number}; it has {count:,}, and they are counted from 1")
    return sentences.select(np.array([number - 1])), count
