"""A BiLSTM over sentences, and dropout: cuDNN's on a GPU, and what PyTorch does fastest on a CPU."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from torch import nn

from lols.torch.batches import on_device, spans

OVERHEAD = 8  # a step of an LSTM on a CPU takes as long as if there were so many further sentences


class Dropout(nn.Dropout):
    """Dropout whose masks are bytes of random numbers on a CPU, in a tenth of the time; the share is in 1/256."""

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        """Zeros in some places, and the rest larger."""
        if rows.is_cuda:
            return super().forward(rows)
        kept = round(256 * (1.0 - self.p))
        if not self.training or kept == 256:
            return rows
        words = torch.empty(-(-rows.numel() // 8), dtype=torch.int64).random_(-(1 << 63), None)
        mask = words.view(torch.uint8)[: rows.numel()].view(rows.shape) < kept
        return rows * mask * (256.0 / kept)


class SentenceLSTM(nn.LSTM):
    """A BiLSTM over sentences of any lengths, that lie one after the other.

    On a GPU they are packed, as PyTorch calls it: at each place, cuDNN advances all sentences that are so long. On a
    CPU, PyTorch computes gradients of packed sentences by adding up large tensors for each place. There, sentences are
    padded, those of about the same length together, and each direction of a layer is one call of oneDNN; `packed` does
    without.
    """

    def __init__(self, inputs: int, width: int, layers: int, dropout: float):
        between = dropout if layers > 1 else 0.0
        super().__init__(inputs, width, layers, batch_first=True, bidirectional=True, dropout=between)
        self.between = Dropout(between)
        self.packed: bool | None = None  # None: on a GPU

    def forward(self, words: torch.Tensor, lengths: np.ndarray) -> torch.Tensor:
        """The words in context, [word, feature]."""
        packed = words.is_cuda if self.packed is None else self.packed
        return self._packed(words, lengths) if packed else self._padded(words, lengths)

    def _packed(self, words: torch.Tensor, lengths: np.ndarray) -> torch.Tensor:
        order = np.argsort(-lengths, kind="stable")
        longest_first = lengths[order]
        alive = (longest_first[np.newaxis, :] > np.arange(int(longest_first[0]))[:, np.newaxis]).sum(1)
        first = (np.cumsum(lengths) - lengths)[order]
        at = first[spans(np.zeros(alive.size, np.int64), alive)] + np.repeat(np.arange(alive.size), alive)
        taken = on_device(at, words.device)
        packed = nn.utils.rnn.PackedSequence(words[taken], torch.from_numpy(alive))
        out = super().forward(packed)[0].data
        return torch.empty_like(out).index_copy(0, taken, out)

    def _padded(self, words: torch.Tensor, lengths: np.ndarray) -> torch.Tensor:
        order, begins = np.argsort(lengths, kind="stable"), np.cumsum(lengths) - lengths
        found, at, rows = [], np.empty(len(words), np.int64), 0
        for low, high in pairwise(groups_of(lengths[order])):
            group = order[low:high]
            own, longest = lengths[group], int(lengths[group[-1]])
            place = spans(np.zeros(group.size, np.int64), own)
            sentence = np.repeat(np.arange(group.size), own)
            there, word = place * group.size + sentence, spans(begins[group], own)
            turned = np.arange(longest * group.size)
            turned[there] = (np.repeat(own, own) - 1 - place) * group.size + sentence
            blank = words.new_zeros(longest * group.size, words.shape[1])
            padded = blank.index_copy(0, on_device(there, words.device), words[on_device(word, words.device)])
            found.append(self._in_context(padded, on_device(turned, words.device), group.size))
            at[word] = there + rows
            rows += turned.size
        return torch.cat(found).index_select(0, on_device(at, words.device))

    def _in_context(self, rows: torch.Tensor, turned: torch.Tensor, sentences: int) -> torch.Tensor:
        """All layers over padded sentences, [(place, sentence), feature]; `turned` reverses each of them."""
        start = rows.new_zeros(1, sentences, self.hidden_size)
        for layer in range(self.num_layers):
            rows = self.between(rows) if layer else rows
            both = []
            for backward in (False, True):
                weights = self.all_weights[2 * layer + backward]
                given = torch.empty_like(rows).index_copy(0, turned, rows) if backward else rows
                out = torch.lstm(
                    given.view(-1, sentences, rows.shape[1]), (start, start), weights, True, 1, 0.0, False, False, False
                )[0].view(rows.shape[0], -1)
                both.append(torch.empty_like(out).index_copy(0, turned, out) if backward else out)
            rows = torch.cat(both, 1)
        return rows


def groups_of(lengths: np.ndarray) -> list[int]:
    """Where to cut ascending lengths, so that padded sentences take the least time.

    >>> groups_of(np.array([2, 2, 3, 3, 30, 31, 31]))
    [0, 4, 7]
    """
    ends = np.append(np.flatnonzero(np.diff(lengths)) + 1, lengths.size)
    begins, longest = np.append(0, ends), lengths[ends - 1]
    best, cut = np.zeros(ends.size + 1), np.zeros(ends.size + 1, np.int64)
    for k in range(ends.size):
        times = best[: k + 1] + longest[k] * (ends[k] - begins[: k + 1] + OVERHEAD)
        cut[k + 1] = times.argmin()
        best[k + 1] = times[cut[k + 1]]
    made, k = [int(ends[-1])], ends.size
    while k:
        k = cut[k]
        made.append(int(begins[k]))
    return made[::-1]
