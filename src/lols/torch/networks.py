"""Networks that are ready-made: on hashed features of states, and on features of actions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from lols.engine.states import States
from lols.torch.batches import Bags, StateBatch, hashed_bags


def mlp(sizes: Sequence[int], dropout: float = 0.0) -> nn.Sequential:
    """Linear layers of these sizes, with ReLU and dropout between them."""
    parts: list[nn.Module] = []
    for low, high in pairwise(sizes):
        parts += [nn.Linear(low, high), nn.ReLU(), nn.Dropout(dropout)]
    return nn.Sequential(*parts[:-2])


class _EmbeddedFeatures(nn.Module):
    """Embeddings of hashed features, which are added up, and a perceptron above them."""

    def __init__(self, columns: int, width: int, sizes: Sequence[int], dropout: float, seed: int):
        super().__init__()
        self.columns = columns
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.embedding = nn.EmbeddingBag(columns, width, mode="sum")
            nn.init.normal_(self.embedding.weight, std=width**-0.5)
            self.layers = mlp(sizes, dropout)


class FeatureNetwork(_EmbeddedFeatures):
    """Embeddings of a state's features, summed, and a perceptron with hidden layers that gives a score to each action.

    Parameters
    ----------
    actions
        The number of actions of the space.
    columns
        Features are hashed to this many embeddings.
    width
        The size of an embedding.
    hidden
        The sizes of the hidden layers.
    dropout
        The share of hidden units that are left out in learning.
    seed
        Of the initial weights.

    Examples
    --------
    >>> import lols
    >>> from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
    >>> space, teacher = tagging_space(labels=3), tagging_references()["bad"]
    >>> data, unseen = tagging_data(40, labels=3, words=20), tagging_data(20, labels=3, words=20, seed=1)
    >>> from lols.torch import TorchPolicy
    >>> policy = TorchPolicy(FeatureNetwork(actions=3, columns=512), device="cpu", steps=10)
    >>> model = lols.train(space, data, teacher, policy=policy, passes=8, batch_size=20, compiled=False)
    >>> bool(model.evaluate(unseen) < model.reference_losses(unseen, teacher).mean() / 4)
    True

    """

    def __init__(
        self,
        actions: int,
        *,
        columns: int = 1 << 16,
        width: int = 64,
        hidden: Sequence[int] = (64,),
        dropout: float = 0.0,
        seed: int = 0,
    ):
        super().__init__(columns, width, [width, *hidden, actions], dropout, seed)

    def inputs(self, states: States) -> Bags:
        """The features of the states.

        Parameters
        ----------
        states
            The states as the search has them.

        """
        return hashed_bags(states, self.columns)

    def forward(self, memory: Any, states: StateBatch) -> torch.Tensor:
        """The score of each action.

        Parameters
        ----------
        memory
            What `encode` gave for the examples.
        states
            The batch of states.

        """
        bags = states.inputs
        scores: torch.Tensor = self.layers(self.embedding(bags.ids, bags.start[:-1], bags.values).relu())
        return scores


class PointerNetwork(_EmbeddedFeatures):
    """Scores each action by its own features, so that there may be any number of actions.

    The space needs `action_features`. The actions of a state are embedded, each also sees the mean of those that are
    legal, and a perceptron gives a score to each of them.

    Parameters
    ----------
    columns
        To how many columns features are hashed.
    width
        The size of the embedding of an action.
    hidden
        The sizes of the hidden layers.
    dropout
        The share of values that is dropped in training.
    seed
        What the first weights depend on.

    """

    def __init__(
        self,
        *,
        columns: int = 1 << 16,
        width: int = 64,
        hidden: Sequence[int] = (64,),
        dropout: float = 0.0,
        seed: int = 0,
    ):
        super().__init__(columns, width, [2 * width, *hidden, 1], dropout, seed)

    def inputs(self, states: States) -> Bags:
        """The features of the actions.

        Parameters
        ----------
        states
            The states as the search has them.

        """
        return hashed_bags(states, self.columns, of_actions=True)

    def forward(self, memory: Any, states: StateBatch) -> torch.Tensor:
        """The score of each action.

        Parameters
        ----------
        memory
            What `encode` gave for the examples.
        states
            The batch of states.

        """
        bags = states.inputs
        own = self.embedding(bags.ids, bags.start[:-1], bags.values).view(len(states), states.actions, -1)
        legal = states.legal[:, :, None].to(own.dtype)
        others = (own * legal).sum(1, keepdim=True) / legal.sum(1, keepdim=True).clamp(min=1.0)
        scores: torch.Tensor = self.layers(torch.cat([own, others.expand_as(own)], 2).relu())[:, :, 0]
        return scores
