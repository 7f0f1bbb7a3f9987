"""The tagger's task for a network: words instead of templates, and the last tags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lols.tasks.tagging.space import LAST, POSITION
from lols.tasks.tagging.task import TaggingTask
from lols.tasks.tokens.task import NetworkTask
from lols.tasks.tokens.vocabulary import NetworkVocabulary

BEFORE = 2  # tags that the network looks at
TEMPLATES = ["tag[-2] & tag[-1]"]  # says that a state's future depends on these tags


class NeuralTaggingTask(NetworkTask, TaggingTask):
    """A tagging task whose examples have numbers of words, characters and given tags."""

    def __init__(self, labels: Sequence[str], *, vocabulary: NetworkVocabulary, **options: Any):
        super().__init__(labels, **options | {"templates": TEMPLATES, "more_templates": ()})
        self.vocabulary = vocabulary

    def network(self, **options: Any) -> Any:
        """A network for the task that has learned nothing."""
        from lols.torch.sentences import NetworkSizes, TagNetwork

        begin = {"seed": options.pop("seed", 0), "folder": self.vocabulary.folder}
        sizes = NetworkSizes(**self.vocabulary.sizes(), **options)
        actions = len(self.inner_labels)
        made = TagNetwork(sizes, actions=actions, before=BEFORE, positions=tag_positions, **begin)
        self.vocabulary.begin(made.encoder)
        return made


def tag_positions(states: Any) -> np.ndarray:
    """The word that is tagged next, and the tags before it, [state, 1 + BEFORE]."""
    made: np.ndarray = states.cells([POSITION, *range(LAST, LAST + BEFORE)])
    return made
