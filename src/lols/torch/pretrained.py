"""Encoders of Hugging Face: the vectors of words in their sentence, learned elsewhere and tuned further."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import nn

from lols.errors import ConfigurationError
from lols.torch.batches import ExampleBatch, on_device

RATE = 5e-5  # the peak of its learning rate: it has learned before
TOGETHER = 1 << 14  # pieces that are encoded at a time, padding included


class PretrainedEncoder(nn.Module):
    """An encoder that gives each word the mean of the vectors of its pieces.

    Parameters
    ----------
    config
        The encoder's description, the text of its `config.json`.
    folder
        Where its weights are; None for random ones, to be loaded from a model file.

    """

    def __init__(self, config: str, folder: str | None = None):
        super().__init__()
        self.model = _made(config, folder)
        self.width = int(self.model.config.hidden_size)

    def forward(self, batch: ExampleBatch, words: int, first: np.ndarray) -> torch.Tensor:
        """The vectors of all words of a batch, whose sentences begin at `first`."""
        rows = batch.array("pieces").reshape(-1, 3)
        counts = batch.lengths("pieces") // 3
        sentence = np.repeat(np.arange(counts.size), counts)
        new = np.diff(sentence, prepend=-1).astype(bool) | np.diff(rows[:, 2], prepend=-1).astype(bool)
        begins = np.append(np.flatnonzero(new), len(rows))
        lengths = np.diff(begins)
        word = np.where(rows[:, 1] >= 0, rows[:, 1] + first[sentence], -1)
        total = torch.zeros(words, self.width, device=batch.device)
        for some in _groups(lengths):
            place = np.arange(int(lengths[some].max()))
            there = place < lengths[some][:, np.newaxis]
            at = np.where(there, begins[some][:, np.newaxis] + place, 0)
            pieces, mask = on_device(np.where(there, rows[at, 0], 0), batch.device), on_device(there, batch.device)
            found = self.model(input_ids=pieces, attention_mask=mask.long()).last_hidden_state
            of = np.where(there, word[at], -1).ravel()
            inside = np.flatnonzero(of >= 0)
            vectors = found.reshape(-1, self.width)[on_device(inside, batch.device)].float()
            total = total.index_add(0, on_device(of[inside], batch.device), vectors)
        number = np.bincount(word[word >= 0], minlength=words)
        return total / on_device(np.maximum(number, 1.0), batch.device)[:, None]


def _groups(lengths: np.ndarray) -> Iterator[np.ndarray]:
    """Windows of about the same length, few enough to be encoded together."""
    order = np.argsort(lengths, kind="stable")
    low = 0
    while low < order.size:
        high = low + 1
        while high < order.size and (high + 1 - low) * lengths[order[high]] <= TOGETHER:
            high += 1
        yield order[low:high]
        low = high


def _made(config: str, folder: str | None) -> Any:
    from transformers import AutoConfig, AutoModel

    described = {name: value for name, value in json.loads(config).items() if not name.startswith("_")}
    for name in ("auto_map", "quantization_config"):  # which would run or fetch other code
        described.pop(name, None)
    try:
        with _quiet():
            settings = AutoConfig.for_model(described.pop("model_type"), **described)
            if getattr(settings, "is_encoder_decoder", False):
                raise ValueError("it has a decoder, too")
            if folder is None:
                return AutoModel.from_config(settings, trust_remote_code=False)
            safe = {"local_files_only": True, "trust_remote_code": False, "use_safetensors": True}
            return AutoModel.from_pretrained(folder, config=settings, **safe).float()
    except (OSError, ValueError, KeyError, TypeError, AttributeError, ImportError, RuntimeError) as error:
        line = " ".join(str(error).split())
        raise ConfigurationError(
            f"{folder or 'the encoder of the model file'}: cannot be loaded ({line}); give an encoder that "
            "transformers has, such as BERT, with its weights as safetensors"
        ) from error


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No progress bars and notes about weights that are not used."""
    from transformers.utils import logging

    level = logging.get_verbosity()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        logging.enable_progress_bar()
