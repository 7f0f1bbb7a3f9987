"""Handwritten words by a network: what a letter looks like, the whole word around it, and the letters read before.

The data and the task are those of examples/ocr.py. The protocol is that of SeaRNN (Leblond et al. 2018): train on nine
folds, test on the tenth. It needs PyTorch, and a GPU takes a minute for a fold.

    python examples/ocr_network.py --folds 10
    python examples/ocr_network.py --generated     # words drawn here: a minute on two cores
"""

from __future__ import annotations

import argparse
import functools
import json
import time
from typing import Any

import numpy as np
import torch
from ocr import Letters, accuracy, data_file, generate, read
from torch import nn
from torch.nn import functional

import lols
from lols.torch import TorchPolicy, warm_up_and_decay

BEFORE = 4  # letters read before that the network looks at
HIGH, WIDE = 16, 8


class Pictures(Letters):
    """The task of examples/ocr.py with the pixels of a word in place of features."""

    def encode(word):
        looks = [((), ())] * len(word["letters"])
        dots = np.ravel(word["pictures"]).astype(np.int64)
        return lols.Example({"length": len(looks), "dots": dots}, {"letters": word["letters"]}, looks)


class Reader(nn.Module):
    """A convolution over each picture, a BiLSTM over the word, the last letters; pictures are varied in learning."""

    def __init__(self, width: int = 128, dropout: float = 0.5, noise: float = 0.03, seed: int = 0):
        super().__init__()
        self.noise = noise
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.look = nn.Sequential(
                *(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 64, 3, padding=1), nn.ReLU()),
                *(nn.MaxPool2d(2), nn.Dropout2d(0.1), nn.Conv2d(64, 64, 3, padding=1), nn.ReLU(), nn.Flatten()),
                *(nn.Dropout(dropout), nn.Linear(64 * HIGH * WIDE // 4, 2 * width), nn.ReLU(), nn.Dropout(dropout)),
            )
            self.word = nn.LSTM(2 * width, width, 2, batch_first=True, bidirectional=True, dropout=dropout)
            self.seen = nn.Sequential(nn.Dropout(dropout), nn.Linear(4 * width, width))
            self.letters = nn.ModuleList(nn.Embedding(27, width) for _ in range(BEFORE))
            self.out = nn.Sequential(nn.ReLU(), nn.Dropout(dropout), nn.Linear(width, 26))

    def inputs(self, states: Any) -> np.ndarray:
        """How many letters are read, and the last of them, from 1 on; 0 where there is none."""
        place = states.vectors[:, 0]
        last = [place]
        for back in range(BEFORE):
            letter = np.take_along_axis(states.vectors, np.maximum(place - back, 1)[:, np.newaxis], 1)[:, 0]
            last.append(np.where(place > back, letter + 1, 0))
        return np.stack(last, 1)

    def encode(self, examples: Any) -> torch.Tensor:
        """What is seen of each letter, alone and in its word."""
        dots = examples.padded("dots", width=HIGH * WIDE).float()
        words, places, _ = dots.shape
        pictures = dots.view(-1, 1, HIGH, WIDE)
        if self.training:
            pictures = self.varied(pictures)
        alone = self.look(pictures).view(words, places, -1)
        # packed, so that the second reading begins at the end of the word
        lengths = torch.as_tensor(examples.lengths("dots") // (HIGH * WIDE))
        packed = nn.utils.rnn.pack_padded_sequence(alone, lengths, batch_first=True, enforce_sorted=False)
        read, _ = nn.utils.rnn.pad_packed_sequence(self.word(packed)[0], batch_first=True, total_length=places)
        return self.seen(torch.cat([alone, read], 2))

    def varied(self, pictures: torch.Tensor) -> torch.Tensor:
        """Pictures moved by a pixel, slanted and stretched a little, some of their pixels changed."""
        count, device = len(pictures), pictures.device
        change = torch.eye(2, 3, device=device) + torch.randn(count, 2, 3, device=device) * torch.tensor(
            [[0.08, 0.12, 0.12], [0.03, 0.08, 0.06]], device=device
        )
        grid = functional.affine_grid(change, list(pictures.shape), align_corners=False)
        moved = functional.grid_sample(pictures, grid, align_corners=False)
        return torch.where(torch.rand_like(moved) < self.noise, 1.0 - moved, moved)

    def forward(self, memory: torch.Tensor, states: Any) -> torch.Tensor:
        """The score of each letter."""
        found = memory[states.row, states.inputs[:, 0]]
        for back, letter in enumerate(self.letters):
            found = found + letter(states.inputs[:, 1 + back])
        return self.out(found)


def train(words: list[dict[str, Any]], *, passes: int, seed: int, device: str, **options: Any) -> lols.Model:
    """Learn to read these words by LOLS: the learned policy rolls in, a mixture with the truth rolls out."""
    together = min(1024, max(16, len(words) // 8))
    steps = max(8, together // 64)
    policy = TorchPolicy(
        Reader(seed=seed),
        loss=options.pop("loss", "log"),
        optimizer=functools.partial(torch.optim.AdamW, lr=2e-3, weight_decay=0.01),
        schedule=warm_up_and_decay(passes * steps * -(-len(words) // together)),
        steps=steps,
        average=0.995,
        seed=seed,
        device=device,
    )
    return lols.train(Pictures(), words, policy=policy, passes=passes, batch_size=together, seed=seed, **options)


def main(argv: list[str] | None = None) -> list[float]:
    """Train without each of some folds, and print the errors on it."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--folds", type=int, help="how many of the ten folds to test on (all; 1 of words drawn here)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (default 0)")
    parser.add_argument("--passes", type=int, help="(40; 25 on words drawn here)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    parser.add_argument("--loss", default="log", help="log, kl, hinge or regression")
    parser.add_argument("--roll-out", default="mixture", help="mixture, reference, learned or none")
    parser.add_argument("--words", type=int, default=600, help="how many words to draw without data")
    parser.add_argument("--generated", action="store_true", help="draw words even where the data are at hand")
    parser.add_argument("--json", action="store_true", help="print the errors as one JSON object, and nothing else")
    chosen = parser.parse_args(argv)
    path = None if chosen.generated else data_file()
    chosen.folds = chosen.folds or (10 if path else 1)
    chosen.passes = chosen.passes or (40 if path else 25)
    if not (1 <= chosen.folds <= 10 and 0 <= chosen.first <= 10 - chosen.folds):
        parser.error("--folds is from 1 to 10, and so is --first plus --folds")
    words = read(path) if path else generate(chosen.words, chosen.seed)
    errors = []
    for fold in range(chosen.first, chosen.first + chosen.folds):
        began, test = time.perf_counter(), [word for word in words if word["fold"] == fold]
        model = train(
            [word for word in words if word["fold"] != fold],
            passes=chosen.passes, seed=chosen.seed, device=chosen.device, loss=chosen.loss, roll_out=chosen.roll_out,
        )  # fmt: skip
        errors.append(100 - 100 * accuracy(test, model.predict(test)))
        if not chosen.json:
            took = time.perf_counter() - began
            print(f"fold {fold}: {errors[-1]:.2f} % of the letters are wrong; {took:.0f} s", flush=True)
    if chosen.json:
        print(json.dumps({"errors": errors}))
    else:
        spread = f", standard error {np.std(errors, ddof=1) / np.sqrt(len(errors)):.2f}" if len(errors) > 1 else ""
        print(f"error {np.mean(errors):.2f} %{spread}")
    return errors


if __name__ == "__main__":
    main()
