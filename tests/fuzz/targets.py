"""Targets of the fuzzer: each makes valid inputs once, and feeds mutated copies of them through a real entrance."""

from __future__ import annotations

import contextlib
import json
import shutil
import sqlite3
from importlib.util import find_spec
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import numpy as np
import pytest

import lols
from lols.bandit.entries import COLUMNS, Decision, to_row
from lols.bandit.log import SqliteLog
from lols.io.model_file import read_tensors, write_tensors
from lols.tasks.registry import read_model
from lols.tasks.tokens.vectors import read_vectors
from tests.bandit import small_bandit
from tests.cli.calling import run
from tests.cli.interrupting import interrupted
from tests.cli.test_stops import given
from tests.fuzz.judging import called, commanded
from tests.fuzz.mutators import ANY, WRITTEN, change_value, damaged, other_array, other_object, other_value
from tests.heuristics import paying, small_shop
from tests.models_0_1.own_task import DATA, Tagging
from tests.tasks.test_old_models import EXPECTED

MODELS = Path(__file__).parents[1] / "models_0_1"
NETWORK = ("--policy", "neural", "--width", 8, "--layers", 1)
SENTENCES = [*EXPECTED["sentences"], [], EXPECTED["sentences"][0][:1] * 9]


class Target:
    """Something that takes input from outside."""

    def __init__(self, folder: Path):
        self.folder = folder

    def case(self, rng: Random) -> bool:
        """Feed one mutated input; whether it was taken. `Wrong` or any error but a `LolsError` is a finding."""
        raise NotImplementedError


class Trained(Target):
    """A small model of a kind, and its files."""

    def train(self, kind: str) -> tuple[Path, Path]:
        own = self.folder / kind
        own.mkdir()
        arguments, held = given(kind, own)
        assert run("train", *arguments, "-o", own / "m.lols").code == 0
        return own / "m.lols", held

    def feed(self, rng: Random, model: Path, held: Path) -> bool:
        data = damaged(rng, held.read_bytes(), WRITTEN)
        path = self.folder / f"mutated{held.suffix}"
        path.write_bytes(data)
        verb = rng.choice(("predict", "predict", "evaluate"))
        return commanded(verb, model, path, *(["-o", self.folder / "out"] if verb == "predict" else []), data=data)


class TokenFiles(Trained):
    """Token files, to be tagged, parsed, or compared with."""

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.pairs = [self.train("tagger"), self.train("parser")]

    def case(self, rng: Random) -> bool:
        return self.feed(rng, *rng.choice(self.pairs))


class Tables(Trained):
    """CSV files, to be classified or compared with."""

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.pair = self.train("classifier")

    def case(self, rng: Random) -> bool:
        return self.feed(rng, *self.pair)


class Templates(Target):
    """Files of templates, to train with."""

    LINES: ClassVar = {
        "tagger": b"# words\nword[-2..2]\nsuffix1..4 & tag[-1]\nlower[+1] & word\ntag[-2] & tag[-1]\nshape\nprefix2\n",
        "parser": b"# words\nS0.word & N0.word\nS0l.upos\nS1.suffix1..3\nN0[+1].word & S0l.relation\ndistance(S0,N0)\n",
    }

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.given = {}
        for kind in self.LINES:
            (folder / kind).mkdir()
            self.given[kind] = given(kind, folder / kind)[0][1]

    def case(self, rng: Random) -> bool:
        kind = rng.choice(sorted(self.LINES))
        data, path = damaged(rng, self.LINES[kind], WRITTEN), self.folder / "templates.txt"
        path.write_bytes(data)
        how = ("--passes", 1, "--templates", path, "--json", "-o", self.folder / "m.lols")
        return commanded("train", kind, self.given[kind], *how, data=data)


def mutated_file(rng: Random, whole: Path, path: Path, kind: str, parts: tuple[str, ...] = ()) -> None:
    """A copy with damaged bytes, or with another header and arrays and the digest that belongs to them.

    Half of the changes are in some parts, if there are any: values of the header, and arrays whose names begin so.
    """
    if rng.random() < 0.2:
        path.write_bytes(damaged(rng, whole.read_bytes()))
        return
    header, tensors = read_tensors(whole, kind)
    header = {name: value for name, value in header.items() if name not in ("kind", "format")}
    for _ in range(rng.choice((1, 1, 2, 3))):
        here = rng.choice((parts, ()))
        arrays = [name for name in sorted(tensors) if not here or name.startswith(here)]
        if arrays and rng.random() < 0.5:
            name = rng.choice(arrays)
            tensors[name] = other_array(rng, tensors[name])
        else:
            change_value(rng, {name: header[name] for name in here if name in header} or header)
    write_tensors(path, kind, header, tensors)


class ModelFiles(Target):
    """Model files of all estimators and of a task of one's own: loaded, then asked to predict."""

    def case(self, rng: Random) -> bool:
        name, path = rng.choice(("tagger", "parser", "pipeline", "classifier", "own")), self.folder / "mutated.lols"
        mutated_file(rng, MODELS / f"{name}.lols", path, "model")
        return called(lambda: self.use(name, path), path.read_bytes())

    def use(self, name: str, path: Path) -> None:
        if name == "own":
            lols.load(path, Tagging, compiled=False).predict(DATA[:3])
        elif name == "classifier":
            lols.load(path).predict(EXPECTED["rows"])
        else:
            lols.load(path).predict(SENTENCES)


class LaterModels(Trained):
    """Model files with confidences and the learner's state: asked for both."""

    KINDS: ClassVar[tuple[str, ...]] = ("tagger", "parser", "classifier")
    PARTS: ClassVar[tuple[str, ...]] = ("calibration", "learning")

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.data: dict[str, Path] = {}
        for kind in self.KINDS:
            own = folder / kind
            own.mkdir()
            arguments, held = given(kind, own)
            how = ("--dev", held, *self.how())
            assert run("train", *arguments, *how, "-o", own / "m.lols").code == 0
            self.data[kind] = held

    def how(self) -> tuple[Any, ...]:
        return ("--keep-state",)

    def case(self, rng: Random) -> bool:
        kind, path = rng.choice(self.KINDS), self.folder / "mutated.lols"
        mutated_file(rng, self.folder / kind / "m.lols", path, "model", self.PARTS)
        out = ("-o", self.folder / "out")
        if "learning" in self.PARTS and rng.random() < 0.5:
            return commanded("train", kind, self.data[kind], "--from", path, "--passes", 1, *out)
        return commanded("predict", path, self.data[kind], "--confidence", *out)


class NeuralModels(LaterModels):
    """Model files of networks."""

    KINDS = ("tagger", "parser")
    PARTS = ("task", "policy")

    def how(self) -> tuple[Any, ...]:
        return *NETWORK, "--passes", 1


class Calibrations(LaterModels):
    """Labelled samples, and models, to be calibrated with."""

    def case(self, rng: Random) -> bool:
        kind = rng.choice(self.KINDS)
        model, path = self.folder / kind / "m.lols", self.folder / f"sample{self.data[kind].suffix}"
        data = self.sample(kind)
        if rng.random() < 0.3:
            mutated_file(rng, model, self.folder / "mutated.lols", "model", ("calibration",))
            model = self.folder / "mutated.lols"
        else:
            data = damaged(rng, data, WRITTEN)
        path.write_bytes(data)
        return commanded("calibrate", model, path, "-o", self.folder / "out", data=data)

    def sample(self, kind: str) -> bytes:
        """A file with decisions enough."""
        header, rows = b"", self.data[kind].read_bytes()
        if kind == "classifier":
            header, _, rows = rows.partition(b"\n")
            header += b"\n"
        return header + rows * 3


class Inspections(LaterModels):
    """Model files of all kinds, to be looked into."""

    PARTS: ClassVar[tuple[str, ...]] = ("about", "task", "space", "calibration", "policy")

    def __init__(self, folder: Path):
        super().__init__(folder)
        own = [MODELS / f"{name}.lols" for name in ("pipeline", "own")]
        self.models = [*own, *(folder / kind / "m.lols" for kind in self.KINDS)]

    def case(self, rng: Random) -> bool:
        path = self.folder / "mutated.lols"
        mutated_file(rng, rng.choice(self.models), path, "model", self.PARTS)
        how = rng.choice(((), ("--json",), ("--against",)))
        return commanded("inspect", path, *how)


class OptimisedModels(Target):
    """Model files of `lols optimise`, with a policy or a kept heuristic: followed, looked at, gone on from."""

    PARTS = ("space", "task", "kept_reference", "about")

    def __init__(self, folder: Path):
        super().__init__(folder)
        model = lols.train(small_shop.Shop, small_shop.shops(20), passes=1, progress=False)
        model.save(folder / "shop.lols")
        model.replaced(kept_reference=small_shop.Shop.teacher).save(folder / "kept.lols")
        for name, program in (("pay", paying.PAYING), ("same", paying.SAME)):
            lols.optimise(program, range(1, 60), minutes=0.002, best_of=1).save(folder / f"{name}.lols")
        self.programs = {"pay": paying.PAYING, "same": paying.SAME}

    def case(self, rng: Random) -> bool:
        path, name = self.folder / "mutated.lols", rng.choice(("shop", "kept", "pay", "same"))
        jobs, best_of = rng.choice((1, 5, 9)), rng.choice((1, 4))
        mutated_file(rng, self.folder / f"{name}.lols", path, "model", self.PARTS)

        def use() -> None:
            read_model(path).inspect()
            if name in self.programs:
                model = lols.load(path, self.programs[name])
                model.predict(range(1, 9), best_of=best_of)
                if jobs == 9:
                    lols.optimise(self.programs[name], range(1, 20), minutes=0.0001, best_of=1, resume=model)
            else:
                lols.load(path, small_shop.Shop).predict(small_shop.shops(3, jobs=jobs), best_of=best_of)

        return called(use, path.read_bytes())


class ReplayedFiles(Trained):
    """Old data, mixed into the training of a model that goes on."""

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.pairs = {kind: self.train(kind) for kind in ("tagger", "parser", "classifier")}

    def case(self, rng: Random) -> bool:
        kind = rng.choice(sorted(self.pairs))
        model, held = self.pairs[kind]
        data, path = damaged(rng, held.read_bytes(), WRITTEN), self.folder / f"mutated{held.suffix}"
        path.write_bytes(data)
        share = damaged(rng, b"0.5", WRITTEN).decode("utf-8", "replace") if rng.random() < 0.2 else "0.5"
        more = ("--from", model, "--passes", 1, "--replay", f"{path}:{share[:50]}", "-o", self.folder / "out")
        return commanded("train", kind, held, *more, data=data)


class Vectors(Target):
    """Files of word vectors, as text and as arrays."""

    WORDS = ("the", "dog", "cat", "New York")

    def case(self, rng: Random) -> bool:
        values = np.random.default_rng(0).normal(size=(len(self.WORDS), 3))
        text, array = self.folder / "vectors.txt", self.folder / "vectors.npy"
        if rng.random() < 0.6:
            rows = (f"{word} {' '.join(map(str, row))}\n" for word, row in zip(self.WORDS, values, strict=True))
            data = damaged(rng, "".join(("4 3\n", *rows)).encode(), WRITTEN)
            text.write_bytes(data)
            return called(lambda: read_vectors(str(text), ["dog"]), data)
        np.save(array, other_array(rng, values) if rng.random() < 0.5 else values)
        array.write_bytes(damaged(rng, array.read_bytes()) if rng.random() < 0.5 else array.read_bytes())
        text.write_bytes(
            damaged(rng, "\n".join(self.WORDS).encode()) if rng.random() < 0.3 else "\n".join(self.WORDS).encode()
        )
        return called(lambda: read_vectors(str(array), ["dog"]), array.read_bytes())


class Checkpoints(Target):
    """Checkpoints, and the best models beside them, of trainings to be resumed."""

    KINDS: ClassVar[tuple[str, ...]] = ("tagger", "classifier")
    WAYS: ClassVar[tuple[tuple[Any, ...], ...]] = ((), ("--algorithm", "searn"))
    PARTS: ClassVar[tuple[str, ...]] = ()

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.runs = [self.begin(kind, *how) for kind in self.KINDS for how in self.WAYS]

    def begin(self, kind: str, *how: Any) -> tuple[tuple[Any, ...], Path]:
        own = self.folder / "-".join(map(str, (kind, *how))).replace("--", "")
        own.mkdir()
        arguments, held = given(kind, own)
        arguments = (*arguments, *how, "--dev", held, "-o", own / "m.lols")
        interrupted(pytest.MonkeyPatch(), 3, *arguments)
        for file in own.glob("m.lols.checkpoint*"):
            file.rename(own / f"whole{file.name.removeprefix('m.lols')}")
        return arguments, own

    def case(self, rng: Random) -> bool:
        arguments, own = rng.choice(self.runs)
        files = sorted(own.glob("whole.checkpoint*"))
        chosen = rng.choice(files)
        for file in files:
            path = own / f"m.lols{file.name.removeprefix('whole')}"
            if file == chosen:
                mutated_file(rng, file, path, "model" if file.suffix == ".best" else "checkpoint", self.PARTS)
            else:
                shutil.copy(file, path)
        return commanded("train", *arguments, "--resume")


class NetworkCheckpoints(Checkpoints):
    """Checkpoints of networks: weights and their average, and what the optimiser holds of them."""

    KINDS = ("tagger", "parser")
    WAYS = (NETWORK,)
    PARTS = ("policy.optimizer.", "policy.counts", "policy.average.", "policy.network.")


class EncoderFolders(Target):
    """Folders of pretrained encoders, to train with, and model files that hold one."""

    SENTENCES: ClassVar[list[list[str]]] = [["the", "dog", "barks"], ["the", "sun"]] * 2
    SMALL: ClassVar[dict[str, Any]] = {"policy": "neural", "device": "cpu", "width": 4, "layers": 1, "passes": 1}
    FILES = ("config.json", "config.json", "config.json", "tokenizer.json", "model.safetensors")
    HARMFUL: ClassVar[dict[str, Any]] = {
        **{"attn_implementation": "evil/repo", "auto_map": {"AutoModel": "evil/repo--m.M"}, "num_hidden_layers": 10**5},
        **{
            "chunk_size_feed_forward": 3,
            "use_pretrained_backbone": True,
            "model_type": "modernbert",
            "is_decoder": True,
        },
    }

    def __init__(self, folder: Path):
        from tests.torch.small_encoder import write_encoder

        super().__init__(folder)
        (folder / "whole").mkdir()
        write_encoder(folder / "whole")
        made = self.train(folder / "whole")
        made.predict(self.SENTENCES)  # compiles, if need be
        made.save(folder / "m.lols")

    def train(self, encoder: Path) -> Any:
        tags = [["D", "N", "V"][: len(words)] for words in self.SENTENCES]
        return lols.Tagger(**self.SMALL, encoder=str(encoder)).fit(self.SENTENCES, tags)

    def case(self, rng: Random) -> bool:
        if rng.random() < 0.3:
            path = self.folder / "mutated.lols"
            mutated_file(rng, self.folder / "m.lols", path, "model", ("task.network.encoder", "policy.network.encoder"))
            return called(lambda: lols.load(path).predict(self.SENTENCES), path.read_bytes())
        own, name = self.folder / "mutated", rng.choice(self.FILES)
        shutil.rmtree(own, ignore_errors=True)
        shutil.copytree(self.folder / "whole", own)
        self.damage(rng, own / name)
        return called(lambda: self.train(own).predict(self.SENTENCES), (own / name).read_bytes())

    def damage(self, rng: Random, path: Path) -> None:
        if path.suffix == ".json" and rng.random() < 0.8:
            described = json.loads(path.read_bytes())
            change_value(rng, described)
            if path.name == "config.json" and rng.random() < 0.3:
                name = rng.choice(sorted(self.HARMFUL))
                described[name] = other_value(rng, described.get(name, self.HARMFUL[name]))
            path.write_text(json.dumps(described))
        else:
            path.write_bytes(damaged(rng, path.read_bytes(), WRITTEN if path.suffix == ".json" else ANY))


class BanditLogs(Target):
    """Logs of a bandit, replayed by one that opens them, which then goes on."""

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.whole = folder / "whole.log"
        with small_bandit.bandit(epsilon=1.0, log=self.whole) as made:
            small_bandit.run(made, 10)
        with SqliteLog(self.whole, identity=None) as log:
            self.decisions = [entry for entry in log.replay() if isinstance(entry, Decision)]

    def case(self, rng: Random) -> bool:
        for file in self.folder.glob("mutated.log*"):
            file.unlink()
        path = self.folder / "mutated.log"
        if rng.random() < 0.3:
            path.write_bytes(damaged(rng, self.whole.read_bytes()))
        else:
            shutil.copy(self.whole, path)
            self.forge(rng, path)
        return called(lambda: self.replay(path))

    def forge(self, rng: Random, path: Path) -> None:
        """Other values in a row, with a checksum where one can be made of them."""
        entry = rng.choice(self.decisions)
        where = f"WHERE id = '{entry.id}'"
        name = rng.choice([field for field in Decision._fields if field != "seen"])
        with (
            contextlib.closing(sqlite3.connect(path)) as connection,
            contextlib.suppress(sqlite3.IntegrityError, OverflowError),  # SQLite itself refuses such values
            connection,
        ):
            value = getattr(entry, name)
            other = other_array(rng, value) if isinstance(value, np.ndarray) else other_value(rng, value)
            try:
                row = to_row(entry._replace(**{name: other}))
            except Exception:  # no row has such a value: as SQLite takes it, then
                plain = other if isinstance(other, str | float) and other != "\ud800" else None
                connection.execute(f"UPDATE decisions SET {name} = ? {where}", (plain,))
            else:
                names = ", ".join(f"{each} = ?" for each in COLUMNS)
                connection.execute(f"UPDATE decisions SET {names} {where}", row)

    def replay(self, path: Path) -> None:
        with small_bandit.bandit(epsilon=1.0, log=path) as made:
            small_bandit.run(made, 2, first=made.report()["decisions"])


class BanditRequests(Target):
    """Requests to a bandit, and losses reported to it: any objects of Python."""

    def __init__(self, folder: Path):
        super().__init__(folder)
        self.bandit = small_bandit.bandit()
        small_bandit.run(self.bandit, 5)

    def case(self, rng: Random) -> bool:
        asked: Any = [small_bandit.request(rng.randrange(20))]
        if rng.random() < 0.3:
            asked[0]["words"] = other_object(rng, asked[0]["words"])
        else:
            change_value(rng, asked)
        if rng.random() < 0.7:
            return called(lambda: self.bandit.decide(asked[0] if asked else None))
        shown = self.bandit.decide(small_bandit.request(3))
        k, loss = (other_object(rng, value) if rng.random() < 0.5 else value for value in (shown.id, 0.5))
        return called(lambda: self.bandit.learn(k, loss))


TARGETS: dict[str, type[Target]] = {
    "tokens": TokenFiles,
    "tables": Tables,
    "templates": Templates,
    "models": ModelFiles,
    "later models": LaterModels,
    "calibrations": Calibrations,
    "inspections": Inspections,
    "optimised": OptimisedModels,
    "replays": ReplayedFiles,
    "vectors": Vectors,
    "checkpoints": Checkpoints,
    "logs": BanditLogs,
    "requests": BanditRequests,
}
FURTHER: dict[str, tuple[type[Target], tuple[str, ...]]] = {  # and the packages that they need
    "networks": (NeuralModels, ("torch",)),
    "network checkpoints": (NetworkCheckpoints, ("torch",)),
    "encoders": (EncoderFolders, ("torch", "transformers", "tokenizers")),
}
MISSING = {name: [each for each in needed if not find_spec(each)] for name, (_, needed) in FURTHER.items()}
TARGETS |= {name: target for name, (target, _) in FURTHER.items() if not MISSING[name]}
