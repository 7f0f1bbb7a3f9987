"""What the tasks of taggers and parsers share: teachers by name, and what a network's task has more of."""

from __future__ import annotations

import copy
from typing import Any, ClassVar, Self

from lols.contract.examples import Ragged, Scalar
from lols.contract.space import Reference
from lols.errors import ConfigurationError
from lols.tasks.tokens.corpus import Corpus
from lols.tasks.tokens.vocabulary import NetworkVocabulary


class TokenTask:
    """The base of tasks whose examples are sentences."""

    OPTIONS: ClassVar[tuple[str, ...]]  # arguments of the constructor that are attributes, and in the model file

    def options(self) -> dict[str, Any]:
        """What the task is made with beside labels or relations."""
        return {name: getattr(self, name) for name in self.OPTIONS} | self.more_options()

    def references(self) -> dict[str, Reference]:
        """The teachers by name."""
        raise NotImplementedError

    def reference(self, name: str) -> Reference:
        """A teacher by name: optimal, suboptimal or bad."""
        known = self.references()
        if name not in known:
            raise ConfigurationError(f"unknown reference '{name}': choose one of {', '.join(known)}")
        return known[name]

    # --- for networks ---

    def more_options(self) -> dict[str, Any]:
        """What a subclass needs to be made again."""
        return {}

    def grown_by(self, corpus: Corpus) -> Self:
        """The task with what a network has to know of further sentences."""
        return self

    def more_columns(self, corpus: Corpus) -> dict[str, Ragged | Scalar]:
        """Further columns of x."""
        return {}


class NetworkTask(TokenTask):
    """What the tasks of networks add: numbers of words, characters and given tags."""

    vocabulary: NetworkVocabulary

    def more_options(self) -> dict[str, Any]:
        """What the task is made with beside labels."""
        return {"vocabulary": self.vocabulary}

    def grown_by(self, corpus: Corpus) -> Self:
        """The task with the words, characters and given tags of further sentences."""
        made = copy.copy(self)
        made.vocabulary = self.vocabulary.grown(corpus)
        return made

    def more_columns(self, corpus: Corpus) -> dict[str, Ragged | Scalar]:
        """What the network reads."""
        return self.vocabulary.columns(corpus)
