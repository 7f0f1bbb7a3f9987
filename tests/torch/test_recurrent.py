"""The LSTM over sentences beside PyTorch's own, and dropout by bytes of random numbers."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
import torch

from lols.torch.recurrent import OVERHEAD, Dropout, SentenceLSTM, groups_of


@pytest.mark.parametrize("layers", [1, 3])
def test_padded_sentences_have_the_words_and_gradients_of_packed_ones(layers: int) -> None:
    random = np.random.default_rng(layers)
    torch.manual_seed(layers)
    lstm = SentenceLSTM(7, 5, layers, dropout=0.3).eval()
    for lengths in ([1], [4, 4, 4], [40, 1, 2, 2, 38, 1], random.integers(1, 30, 25)):
        words = torch.randn(int(np.sum(lengths)), 7, requires_grad=True)
        weights = torch.randn(len(words), 10)
        found = []
        for packed in (True, False):
            lstm.packed = packed
            out = lstm(words, np.array(lengths))
            gradients = torch.autograd.grad((out * weights).sum(), [words, *lstm.parameters()])
            found.append([out, *gradients])
        for one, other in zip(*found, strict=True):
            assert torch.allclose(one, other, atol=1e-5)


def test_words_in_context_are_those_of_each_sentence_alone() -> None:
    torch.manual_seed(0)
    lstm = SentenceLSTM(3, 4, 2, dropout=0.0).eval()
    lengths = np.array([5, 1, 9, 5])
    words = torch.randn(20, 3)
    alone = [torch.nn.LSTM.forward(lstm, part[None])[0][0] for part in words.split(lengths.tolist())]
    for packed in (True, False):
        lstm.packed = packed
        assert torch.allclose(lstm(words, lengths), torch.cat(alone), atol=1e-6)


def test_there_is_dropout_between_layers_in_training_only() -> None:
    torch.manual_seed(0)
    lstm = SentenceLSTM(3, 4, 2, dropout=0.5)
    words, lengths = torch.randn(6, 3), np.array([4, 2])
    assert not torch.equal(lstm(words, lengths), lstm(words, lengths))
    lstm.eval()
    assert torch.equal(lstm(words, lengths), lstm(words, lengths))


def test_the_groups_take_the_least_time_of_all() -> None:
    random = np.random.default_rng(1)
    for _ in range(40):
        lengths = np.sort(random.integers(1, 12, random.integers(1, 9)))
        every = [
            (0, *cuts, lengths.size) for k in range(lengths.size) for cuts in combinations(range(1, len(lengths)), k)
        ]

        def time(cuts: tuple[int, ...], lengths: np.ndarray = lengths) -> int:
            return sum(int(lengths[high - 1]) * (high - low + OVERHEAD) for low, high in pairwise(cuts))

        assert time(tuple(groups_of(lengths))) == min(map(time, every))


def test_dropout_keeps_a_share_and_the_mean() -> None:
    dropout = Dropout(0.33)
    torch.manual_seed(3)
    rows = torch.ones(1001, 999, requires_grad=True)
    found = dropout(rows)
    kept = found != 0
    assert float(kept.float().mean()) == pytest.approx(0.67, abs=5e-3)
    assert float(found.detach().mean()) == pytest.approx(1.0, abs=5e-3)
    shares = kept.flatten()[:999_992].view(-1, 8).float().mean(0)  # each byte of a random number is as good as another
    assert torch.allclose(shares, torch.full((8,), 0.672), atol=5e-3)
    found.sum().backward()
    assert rows.grad is not None and torch.equal(rows.grad, found.detach())
    torch.manual_seed(3)
    assert torch.equal(dropout(rows), found)
    assert torch.equal(dropout.eval()(rows), rows) and torch.equal(Dropout(0.0)(rows), rows)
