"""What an encoder of Hugging Face reads: pieces of words, by the tokenizer in its folder."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from lols.contract.examples import Ragged
from lols.errors import ConfigurationError, LolsError, one_line, short, shown
from lols.tasks.tokens.corpus import WORD, Corpus

LONGEST = 512  # pieces that an encoder reads at a time, if it does not say
FILES = ("config.json", "tokenizer.json")
WANTED = "an encoder of Hugging Face, saved by save_pretrained() of the model and of a fast tokenizer"


@dataclass(frozen=True)
class Pieces:
    """A tokenizer, and the description of the encoder that reads its pieces; both are JSON.

    `folder` has the weights to begin with; a model file has its own.
    """

    config: str
    tokenizer: str
    folder: str | None = None
    _made: list[Any] = field(default_factory=list, repr=False, compare=False)

    @classmethod
    def of(cls, folder: str) -> Pieces:
        """The tokenizer and the description in a folder."""
        check_installed()
        if not Path(folder).is_dir():
            raise ConfigurationError(f"{folder}: there is no such folder; give one with {WANTED}")
        for name in FILES:
            if not Path(folder, name).is_file():
                raise ConfigurationError(f"{folder}: has no {name}; give a folder with {WANTED}")
        try:
            config, tokenizer = (Path(folder, name).read_text(encoding="utf-8") for name in FILES)
            made = cls(config, tokenizer, folder)
            made.check()
        except (OSError, ValueError) as error:
            raise ConfigurationError(f"{folder}: {error}; give a folder with {WANTED}") from None
        return made

    def check(self) -> None:
        """Raise a `ValueError` if the tokenizer is none, or does not fit the encoder, or that cannot be built."""
        from lols.torch.encoder_settings import settings_in

        try:
            settings = json.loads(self.config)
            size = int(settings["vocab_size"])
            with panics_as_errors():
                has = int(self._tokenizer().get_vocab_size())
        except Exception as error:
            raise ValueError(f"its tokenizer or its config cannot be read ({short(one_line(error))})") from None
        settings_in(self.config)
        if has > size:
            raise ValueError(f"its tokenizer has {has:,} pieces, and the encoder {size:,}")

    @property
    def longest(self) -> int:
        """How many pieces the encoder reads at a time."""
        most = json.loads(self.config).get("max_position_embeddings")
        return min(LONGEST, most - 2) if isinstance(most, int) and most > 8 else LONGEST

    def _tokenizer(self) -> Any:
        if not self._made:
            from tokenizers import Tokenizer

            described = json.loads(self.tokenizer)
            before = described.get("pre_tokenizer") or {}
            for part in (before, *before.get("pretokenizers", ())):
                if "add_prefix_space" in part:
                    part["add_prefix_space"] = True  # words come one by one, and a space would be before each
            made = Tokenizer.from_str(json.dumps(described))
            made.no_padding()
            made.no_truncation()
            self._made.append(made)
        return self._made[0]

    def column(self, corpus: Corpus) -> Ragged:
        """The pieces of all sentences, three numbers each: piece, word (-1 for none), window.

        A sentence with more pieces than the encoder reads at a time is cut into windows.
        """
        column = corpus.columns[WORD]
        strings = column.texts.strings()
        words = [strings[k] or " " for k in column.numbers.tolist()]
        bounds = corpus.offsets.tolist()
        sentences = [words[a:b] for a, b in pairwise(bounds)]
        rows = [self._rows(sentence) for sentence in sentences]
        offsets = np.concatenate([[0], np.cumsum([len(r) for r in rows])]).astype(np.int64)
        values = np.array([n for r in rows for piece in r for n in piece], np.int64)
        return Ragged(values, offsets * 3)

    def _rows(self, words: Sequence[str]) -> list[tuple[int, int, int]]:
        made = []
        for window, (first, encoded) in enumerate(self._windows(list(words), 0)):
            for piece, word in list(zip(encoded.ids, encoded.word_ids))[: self.longest]:
                made.append((piece, -1 if word is None else first + word, window))
        return made

    def _windows(self, words: list[str], first: int) -> list[tuple[int, Any]]:
        """The pieces of words, in as many windows as are needed, each with the place of its first word."""
        try:
            with panics_as_errors():
                encoded = self._tokenizer().encode(words, is_pretokenized=True)
        except Exception as error:
            raise LolsError(
                f"the tokenizer of the encoder cannot read {shown(words)} ({short(one_line(error))}): give an encoder "
                "whose tokenizer.json is whole"
            ) from None
        if len(encoded.ids) <= self.longest or len(words) == 1:
            return [(first, encoded)]
        half = len(words) // 2
        return [*self._windows(words[:half], first), *self._windows(words[half:], first + half)]

    # --- model files ---

    def tensors(self) -> dict[str, np.ndarray]:
        """As arrays of a model file."""
        from lols.tasks.tokens.input import string_tensors

        return string_tensors("network.encoder", [self.config, self.tokenizer])

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, np.ndarray]) -> Pieces | None:
        """What `tensors` made; None if there is none."""
        from lols.tasks.tokens.input import strings_of

        if "network.encoder" not in tensors:
            return None
        check_installed()
        config, tokenizer = strings_of("network.encoder", tensors)
        made = cls(config, tokenizer)
        made.check()
        return made


@contextlib.contextmanager
def panics_as_errors() -> Iterator[None]:
    """A panic of the library's Rust code as an error, which it is not."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise RuntimeError(one_line(error)) from None


def check_installed() -> None:
    """Raise an error if the libraries are missing."""
    from importlib.util import find_spec

    for name in ("transformers", "tokenizers"):
        if find_spec(name) is None:
            raise ConfigurationError(f"an encoder needs {name}: pip install 'lols[transformers]'")
