"""Encoders of Hugging Face: the vectors of words in their sentence, learned elsewhere and tuned further."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from lols.errors import ConfigurationError, LolsError, one_line, shown
from lols.torch.batches import ExampleBatch, on_device
from lols.torch.encoder_settings import check_sizes, settings_in

RATE = 5e-5  # the peak of its learning rate: it has learned before
TOGETHER = 1 << 14  # pieces that are encoded at a time, padding included
MOST_TOLD = 300  # characters of an error of the library
PREFIX = "encoder.pretrained."  # of its arrays among those of a network


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
            try:
                found = self.model(input_ids=pieces, attention_mask=mask.long()).last_hidden_state
            except (IndexError, RuntimeError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
                raise LolsError(
                    f"the encoder cannot read {pieces.shape[1]} pieces of words ({one_line(error)}): does its "
                    "config.json belong to its weights?"
                ) from error
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


def check_description(config: str, shapes: Iterable[Sequence[int]]) -> None:
    """Raise an error if an encoder that is described so would not have arrays of these shapes, before it is built."""
    with _told("the encoder of the model file"):
        check_sizes(_settings(config), shapes)


def _made(config: str, folder: str | None) -> Any:
    """An encoder with the weights in a folder, or with random ones."""
    from transformers import AutoModel

    with _told(folder or "the encoder of the model file"):
        settings = _settings(config)
        if folder is None:
            return AutoModel.from_config(settings, trust_remote_code=False)
        weights = _weights(folder)
        check_sizes(settings, [tensor.shape for tensor in weights.values()])
        with torch.random.fork_rng(devices=[]), torch.device("meta"):
            kind = type(AutoModel.from_config(settings, trust_remote_code=False))
        # the folder itself is not shown to the library, which would follow what other files there refer to
        made, found = kind.from_pretrained(None, config=settings, state_dict=weights, output_loading_info=True)
        missing = sorted(name for name in found["missing_keys"] if "pooler" not in name)
        if missing:
            raise LolsError(f"its weights have no '{missing[0]}'")
        return made.float()


def _settings(config: str) -> Any:
    from transformers import CONFIG_MAPPING

    settings = settings_in(config)
    family = settings.pop("model_type")
    if family not in CONFIG_MAPPING:
        raise LolsError(f"transformers has no model_type {shown(family)}")
    kind = CONFIG_MAPPING[family]
    if getattr(kind, "sub_configs", None) or not hasattr(kind(), "vocab_size"):
        raise LolsError(f"its model_type {shown(family)} is not an encoder of text")
    return kind(**settings)


def _weights(folder: str) -> dict[str, torch.Tensor]:
    """The arrays of the safetensors files in a folder."""
    from safetensors.torch import load

    files = (
        [path]
        if (path := Path(folder, "model.safetensors")).is_file()
        else sorted(Path(folder).glob("model-*.safetensors"))
    )
    if not files:
        raise LolsError("it has no model.safetensors")
    return {name: tensor for file in files for name, tensor in load(file.read_bytes()).items()}


@contextlib.contextmanager
def _told(what: str) -> Iterator[None]:
    """Whatever goes wrong with an encoder is told in one line; no progress bars and notes about weights."""
    try:
        with _quiet():
            yield
    except Exception as error:  # a description from elsewhere can make the library raise anything
        reason = error if isinstance(error, LolsError) else one_line(error)[:MOST_TOLD]
        raise ConfigurationError(
            f"{what}: cannot be loaded ({reason}); give an encoder that transformers has, such as BERT, with its "
            "weights as safetensors"
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
