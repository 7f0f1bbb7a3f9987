"""A network on numbered words and the last tag, and what the tests train it on."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

import lols
from lols.datasets.worlds import tagging_data, tagging_references, tagging_space
from lols.torch import ExampleBatch, StateBatch, TorchPolicy

LABELS, WORDS = 3, 20
SPACE, TEACHERS = tagging_space(labels=LABELS), tagging_references()
DATA, UNSEEN = tagging_data(24, labels=LABELS, words=WORDS), tagging_data(10, labels=LABELS, words=WORDS, seed=1)


class SmallTagger(nn.Module):
    """A BiLSTM over the words, and an embedding of the last tag."""

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        self.encoded = 0
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(5)
            self.word, self.tag = nn.Embedding(WORDS, 8), nn.Embedding(LABELS + 1, 8)
            self.lstm = nn.LSTM(8, 8, batch_first=True, bidirectional=True)
            self.out, self.dropout = nn.Linear(24, LABELS), nn.Dropout(dropout)

    def encode(self, examples: ExampleBatch) -> torch.Tensor:
        self.encoded += 1
        packed = nn.utils.rnn.pack_padded_sequence(
            self.word(examples.padded("words")), examples.lengths("words"), batch_first=True, enforce_sorted=False
        )
        found: torch.Tensor = nn.utils.rnn.pad_packed_sequence(self.lstm(packed)[0], batch_first=True)[0]
        return found

    def forward(self, memory: torch.Tensor, states: StateBatch) -> torch.Tensor:
        place, tag = states.inputs[:, 0], states.inputs[:, 1]
        seen = torch.cat([memory[states.row, place], self.tag(tag + 1)], 1)
        scores: torch.Tensor = self.out(self.dropout(torch.tanh(seen)))
        return scores


def make_policy(network: Any = None, rate: float = 0.02, **options: Any) -> TorchPolicy:
    """A policy on the CPU."""
    made = SmallTagger() if network is None else network
    return TorchPolicy(made, device="cpu", optimizer=lambda p: torch.optim.Adam(p, lr=rate), **options)


def train(policy: Any, teacher: str = "bad", **options: Any) -> lols.Model:
    """A model that the policy was trained for."""
    how = {"passes": 3, "batch_size": 8, "compiled": False, "seed": 2} | options
    return lols.train(SPACE, DATA, TEACHERS[teacher], policy=policy, **how)
