"""Checkpoints of networks whose checksum is right, and whose content is forged: refused in one line, never a crash."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
from torch import nn

import lols
from lols.io.model_file import read_tensors, write_tensors
from lols.torch import TorchPolicy
from tests.cli.calling import run
from tests.cli.interrupting import interrupted
from tests.cli.test_stops import given
from tests.torch.small_networks import SmallTagger, make_policy, train

Arrays = dict[str, np.ndarray]
NETWORK = ("--policy", "neural", "--width", 8, "--layers", 1)


class Begun(NamedTuple):
    """A training that was interrupted: what resumes it, where its checkpoint is, and the model that it leads to."""

    arguments: tuple[Any, ...]
    folder: Path
    wanted: bytes


@pytest.fixture(scope="module", params=["tagger", "parser"])
def begun(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Begun:
    folder = tmp_path_factory.mktemp(request.param)
    arguments = (*given(request.param, folder)[0], *NETWORK, "-o", folder / "m.lols")
    assert run("train", *arguments).code == 0
    wanted = (folder / "m.lols").read_bytes()
    (folder / "m.lols").unlink()
    interrupted(pytest.MonkeyPatch(), 3, *arguments)
    (folder / "m.lols.checkpoint").rename(folder / "whole")
    return Begun(arguments, folder, wanted)


def resumed(begun: Begun, forge: Callable[[Arrays], Any]) -> Any:
    header, tensors = read_tensors(begun.folder / "whole", "checkpoint")
    forge(tensors)
    plain = {name: value for name, value in header.items() if name not in ("kind", "format")}
    write_tensors(begun.folder / "m.lols.checkpoint", "checkpoint", plain, tensors)
    return run("train", *begun.arguments, "--resume")


def first(tensors: Arrays, end: str, axes: int = 1) -> str:
    """The first array of the optimiser with this name and so many dimensions."""
    names = [n for n in sorted(tensors) if n.startswith("policy.optimizer.") and n.endswith(end)]
    return next(n for n in names if tensors[n].ndim == axes)


def cut(tensors: Arrays) -> None:
    """Each vector of moments becomes one element."""
    for name in tensors:
        if name.startswith("policy.optimizer.") and tensors[name].ndim == 1:
            tensors[name] = tensors[name][:1].copy()


def changed(end: str, change: Callable[[np.ndarray], np.ndarray], axes: int = 1) -> Callable[[Arrays], None]:
    def forge(tensors: Arrays) -> None:
        name = first(tensors, end, axes)
        tensors[name] = change(tensors[name])

    return forge


def renamed(old: str, new: str) -> Callable[[Arrays], None]:
    def forge(tensors: Arrays) -> None:
        for name in [name for name in tensors if re.search(old, name)]:
            tensors[re.sub(old, new, name)] = tensors.pop(name)

    return forge


def counts(*values: int, dtype: Any = np.int64) -> Callable[[Arrays], None]:
    return lambda tensors: tensors.update({"policy.counts": np.array(values, dtype)})


FORGED: dict[str, tuple[Callable[[Arrays], Any], str]] = {
    "cut": (cut, r"exp_avg' has shape \(1,\) of float32, and this optimiser has \(\d+,\) of float32: train with"),
    "a longer one": (changed(".exp_avg", lambda a: np.append(a, a)), r"exp_avg' has shape \(\d+,\)"),
    "transposed": (changed(".exp_avg_sq", lambda a: a.T.copy(), axes=2), r"exp_avg_sq' has shape"),
    "a single number": (
        lambda t: t.update({f"{n}.single": t.pop(n)[:1] for n in [first(t, ".exp_avg")]}),
        r"exp_avg' has shape \(\) of float32",
    ),
    "doubles": (changed(".exp_avg", lambda a: a.astype(np.float64)), r"of float64, and this optimiser has"),
    "integers": (changed(".exp_avg", lambda a: a.astype(np.int64)), r"of int64, and this optimiser has"),
    "no such parameter": (
        renamed(r"optimizer\.1\.", "optimizer.4096."),
        r"optimizer\.4096' is of no parameter: there are \d+",
    ),
    "a parameter without a number": (
        renamed(r"optimizer\.1\.", "optimizer.x."),
        r"optimizer\.x' is of no parameter",
    ),
    "no such moment": (renamed(r"exp_avg$", "exp_avg_cubed"), r"has no 'exp_avg'"),
    "another moment": (
        lambda t: t.update({"policy.optimizer.0.momentum_buffer": t["policy.optimizer.0.exp_avg"]}),
        r"momentum_buffer' is nothing that this optimiser holds",
    ),
    "negative squares": (changed(".exp_avg_sq", lambda a: -1.0 - a), r"exp_avg_sq' has numbers below 0"),
    "a negative step": (changed(".step.single", lambda a: a * 0 - 1), r"step' is -1, and there were \d+ steps"),
    "a huge step": (changed(".step.single", lambda a: a * 0 + 1e30), r"step' is 1e\+30, and there were \d+ steps"),
    "half a step": (changed(".step.single", lambda a: a * 0 + 0.5), r"step' is 0.5, and there were \d+ steps"),
    "huge counts": (counts(3, 1 << 62), r"'counts' says that there were 3 updates and \d+ steps"),
    "negative counts": (counts(-1, 5), r"'counts' says that there were -1 updates and 5 steps"),
    "one count": (counts(3), r"'counts' has shape \(1,\) of int64, not two"),
    "counts with halves": (counts(3, 6, dtype=np.float32), r"'counts' has shape \(2,\) of float32, not two"),
    "an average that is cut": (
        lambda t: t.update({n: t[n][..., :1].copy() for n in t if n.startswith("policy.average.module.")}),
        r"has shape \(.*\), and this network has \(",
    ),
    "an average of nothing": (
        lambda t: [t.pop(n) for n in list(t) if n.startswith("policy.average.module.")],
        r"does not fit, the file has none",
    ),
    "an average of too many": (
        lambda t: t.update({"policy.average.n_averaged.single": np.array([1 << 40])}),
        r"'average.n_averaged' is 1099511627776, and there were \d+ steps",
    ),
    "weights that are cut": (
        lambda t: t.update({n: t[n][:1].copy() for n in t if n.startswith("policy.network.")}),
        r"has shape \(1.*\), and this network has \(",
    ),
}


@pytest.mark.parametrize("what", FORGED)
def test_forged_checkpoints_of_taggers_and_parsers(what: str, begun: Begun) -> None:
    forge, says = FORGED[what]
    ran = resumed(begun, forge)
    assert ran.code == 2, ran.err
    line = ran.err.strip().splitlines()[-1]
    assert "m.lols.checkpoint: " in line and "Traceback" not in ran.err
    assert re.search(says, line), line
    assert (begun.folder / "m.lols.checkpoint").is_file() and not (begun.folder / "m.lols").exists()


def test_genuine_checkpoints_go_on_bit_for_bit(begun: Begun) -> None:
    assert resumed(begun, lambda tensors: None).code == 0
    assert (begun.folder / "m.lols").read_bytes() == begun.wanted
    (begun.folder / "m.lols").unlink()


# --- networks of one's own ---


class Grouped(SmallTagger):
    """Two groups of parameters, one of which is frozen in part; some are in no group, and some are never used."""

    def __init__(self) -> None:
        super().__init__()
        self.unused = nn.Parameter(torch.zeros(4))
        self.word.weight.requires_grad_(False)

    def parameter_groups(self) -> list[Any]:
        return [
            {"params": [self.word.weight, *self.lstm.parameters()], "lr": 0.1},
            {"params": [*self.tag.parameters(), self.unused]},
        ]


class Sparse(SmallTagger):
    """Its embeddings have sparse gradients, and nothing else is learned."""

    def __init__(self) -> None:
        super().__init__()
        self.requires_grad_(False)
        self.tag.sparse = True
        self.tag.requires_grad_(True)


def cosine(optimizer: Any) -> Any:
    return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 20)


OPTIMIZERS: dict[str, tuple[Any, Any, str]] = {
    "Adam": (torch.optim.Adam, SmallTagger, "exp_avg"),
    "fused AdamW": (partial(torch.optim.AdamW, fused=True, weight_decay=0.5), SmallTagger, "exp_avg_sq"),
    "foreach Adam": (partial(torch.optim.Adam, foreach=True, amsgrad=True), SmallTagger, "max_exp_avg_sq"),
    "momentum": (partial(torch.optim.SGD, lr=0.1, momentum=0.9), SmallTagger, "momentum_buffer"),
    "fused SGD": (partial(torch.optim.SGD, lr=0.1, momentum=0.9, fused=True), SmallTagger, "momentum_buffer"),
    "SGD": (partial(torch.optim.SGD, lr=0.1), SmallTagger, ""),
    "Adagrad": (partial(torch.optim.Adagrad, lr=0.1), SmallTagger, "sum"),
    "RMSprop": (partial(torch.optim.RMSprop, centered=True), SmallTagger, "square_avg"),
    "Adafactor": (torch.optim.Adafactor, SmallTagger, "variance"),
    "groups": (torch.optim.Adam, Grouped, "exp_avg"),
    "sparse": (torch.optim.SparseAdam, Sparse, "exp_avg"),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_networks_of_ones_own(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    optimizer, network, moment = OPTIMIZERS[name]
    clip = None if name == "sparse" else 5.0

    def policy() -> TorchPolicy:
        return TorchPolicy(
            network(), device="cpu", optimizer=optimizer, schedule=cosine, clip=clip, replay=2, average=0.9
        )

    whole = policy()
    train(whole)
    stopped(monkeypatch, policy(), tmp_path / "c")
    shutil.copy(tmp_path / "c", tmp_path / "whole")
    again = policy()
    train(again, checkpoint=tmp_path / "c", resume=True)
    wanted, found = whole.state(), again.state()
    assert wanted.keys() == found.keys()
    assert [n for n in wanted if not np.array_equal(wanted[n], found[n])] == []
    if moment:
        header, tensors = read_tensors(tmp_path / "whole", "checkpoint")
        plain = {k: v for k, v in header.items() if k not in ("kind", "format")}
        names = [n for n in tensors if n.startswith("policy.optimizer.") and n.endswith(f".{moment}")]
        assert names
        tensors |= {n: tensors[n].reshape(-1)[:1].copy() for n in names}
        write_tensors(tmp_path / "c", "checkpoint", plain, tensors)
        with pytest.raises(lols.LolsError, match=rf"c: 'optimizer\.\d+\.{moment}' has shape \(1,\)"):
            train(policy(), checkpoint=tmp_path / "c", resume=True)


class Stop(Exception):
    pass


def stopped(monkeypatch: pytest.MonkeyPatch, policy: TorchPolicy, path: Path, after: int = 4) -> None:
    """Train until so many batches were learned from."""
    update, seen = TorchPolicy.update, []

    def until(self: TorchPolicy, *lesson: Any) -> None:
        seen.append(1)
        if len(seen) > after:
            raise Stop
        update(self, *lesson)

    with monkeypatch.context() as patched:
        patched.setattr(TorchPolicy, "update", until)
        with pytest.raises(Stop):
            train(policy, checkpoint=path, checkpoint_every=0.0)


REPLAYED: dict[str, tuple[Callable[[Arrays], Any], str]] = {
    "lessons of other examples": (
        lambda t: t.update({"policy.replay.0.example": t["policy.replay.0.example"] + 1000}),
        "the lessons under 'replay' of the file cannot be learned from",
    ),
    "negative examples": (
        lambda t: t.update({"policy.replay.0.example": t["policy.replay.0.example"] - 1000}),
        "do not fit together",
    ),
    "fewer costs": (
        lambda t: t.update({"policy.replay.0.costs": t["policy.replay.0.costs"][:2].copy()}),
        "do not fit together",
    ),
    "negative weights": (
        lambda t: t.update({"policy.replay.0.weights": -t["policy.replay.0.weights"]}),
        "do not fit together",
    ),
    "inputs of another width": (
        lambda t: t.update({"policy.replay.0.inputs": t["policy.replay.0.inputs"][:, :1].copy()}),
        "are of another space or network",
    ),
    "inputs that no network reads": (
        lambda t: [t.update({n: t[n] + 10**6}) for n in t if n.endswith(".inputs")],
        "cannot be learned from",
    ),
    "too many batches": (
        lambda t: t.update({n.replace(".0.", f".{k}."): t[n] for n in list(t) if ".replay.0." in n for k in range(9)}),
        "there are 9 batches under 'replay', and this policy keeps 2",
    ),
    "nothing of a batch": (
        lambda t: [t.pop(n) for n in list(t) if n.startswith("policy.replay.0.") and "inputs" in n],
        "the checkpoint is damaged",
    ),
}


@pytest.fixture(scope="module")
def with_replay(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("replay") / "c"
    stopped(pytest.MonkeyPatch(), make_policy(replay=2), path)
    return path


@pytest.mark.parametrize("what", REPLAYED)
def test_forged_lessons(what: str, with_replay: Path, tmp_path: Path) -> None:
    forge, says = REPLAYED[what]
    header, tensors = read_tensors(with_replay, "checkpoint")
    forge(tensors)
    plain = {k: v for k, v in header.items() if k not in ("kind", "format")}
    write_tensors(tmp_path / "c", "checkpoint", plain, tensors)
    with pytest.raises(lols.LolsError, match=says) as caught:
        train(make_policy(replay=2), checkpoint=tmp_path / "c", resume=True)
    assert "\n" not in str(caught.value)


def test_a_long_schedule_is_not_stepped_for_years(with_replay: Path, tmp_path: Path) -> None:
    stopped(pytest.MonkeyPatch(), make_policy(schedule=cosine), tmp_path / "c")
    header, tensors = read_tensors(tmp_path / "c", "checkpoint")
    tensors["policy.counts"] = np.array([4, 1 << 39])
    plain = {k: v for k, v in header.items() if k not in ("kind", "format")}
    write_tensors(tmp_path / "c", "checkpoint", plain, tensors)
    with pytest.raises(lols.LolsError, match="a schedule is advanced by at most 10,000,000"):
        train(make_policy(schedule=cosine), checkpoint=tmp_path / "c", resume=True)
