"""What the problems of taggers and parsers share: teachers by name, and what a network has to know of the sentences."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from lols.contract.examples import Ragged, Scalar
from lols.contract.space import Reference
from lols.errors import ConfigurationError
from lols.tasks.problem import Problem
from lols.tasks.tokens.corpus import WORD, Corpus
from lols.tasks.tokens.vocabulary import NetworkVocabulary


class TokenTask(Problem):
    """The base of problems whose examples are sentences."""

    OPTIONS: ClassVar[tuple[str, ...]]  # arguments of the constructor that are attributes, and in the model file
    vocabulary: NetworkVocabulary | None = None  # of a network: numbers of words, characters and given tags

    def options(self) -> dict[str, Any]:
        """What the problem is made with beside labels or relations."""
        made = {name: getattr(self, name) for name in self.OPTIONS}
        return made if self.vocabulary is None else made | {"vocabulary": self.vocabulary}

    def references(self) -> dict[str, Reference]:
        """The teachers by name."""
        raise NotImplementedError

    def reference(self, name: str) -> Reference:
        """A teacher by name: optimal, suboptimal or bad."""
        known = self.references()
        if name not in known:
            raise ConfigurationError(f"unknown reference '{name}': choose one of {', '.join(known)}")
        return known[name]

    def decides_like(self, other: Problem) -> bool:
        """Whether another problem is described alike; what a network knows of words may be more."""
        return self is other or self.describe()[0] == other.describe()[0]

    # --- for networks ---

    def grown_by(self, corpus: Corpus) -> Self:
        """The problem with the words, characters and given tags of further sentences; itself if they are known."""
        vocabulary = None if self.vocabulary is None else self.vocabulary.grown(corpus)
        if vocabulary == self.vocabulary:
            return self
        made = copy.copy(self)
        made.vocabulary = vocabulary
        return made

    def more_columns(self, corpus: Corpus) -> dict[str, Ragged | Scalar]:
        """Further columns of x, which a network reads."""
        return {} if self.vocabulary is None else self.vocabulary.columns(corpus)

    def network(self, **options: Any) -> Any:
        """A network for the problem that has learned nothing."""
        raise NotImplementedError

    def tensors(self) -> dict[str, np.ndarray]:
        """The vocabulary as arrays of a model file."""
        return {} if self.vocabulary is None else self.vocabulary.tensors()

    @staticmethod
    def stored_vocabulary(task: Mapping[str, Any], tensors: Mapping[str, np.ndarray]) -> dict[str, Any]:
        """The vocabulary in a model file, as an argument of the constructor, if its policy is a network."""
        if task["options"].get("policy") != "neural":
            return {}
        further = [name for name in task["columns"] if name != WORD]
        return {"vocabulary": NetworkVocabulary.from_tensors(tensors, further)}
