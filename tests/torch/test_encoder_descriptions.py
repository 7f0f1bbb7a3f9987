"""Descriptions of encoders that come from elsewhere: in a model file with the right checksum, and in a folder."""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import lols
from lols.io.model_file import read_tensors, write_tensors
from lols.tasks.tokens.input import string_tensors, strings_of
from tests.torch.test_pretrained import SENTENCES, SMALL, TAGS, encoder, needs_transformers  # noqa: F401

pytestmark = needs_transformers
Described = dict[str, Any]

REFUSED: dict[str, tuple[Described, str]] = {
    "kernels": ({"attn_implementation": "evil/repo"}, "has attn_implementation 'evil/repo': encoders have"),
    "a compiler": ({"attn_implementation": "flex_attention"}, "has attn_implementation 'flex_attention'"),
    "flash": ({"attn_implementation": "flash_attention_2"}, "has attn_implementation 'flash_attention_2'"),
    "several": ({"attn_implementation": {"": "evil/repo"}}, "has attn_implementation"),
    "under another name": ({"_attn_implementation": "evil/repo"}, "has '_attn_implementation', which is not passed on"),
    "the internal one": (
        {"_attn_implementation_internal": "evil/repo"},
        "has '_attn_implementation_internal', which is",
    ),
    "experts": ({"experts_implementation": "evil/repo"}, "has 'experts_implementation', which is not passed on"),
    "a backbone": ({"use_pretrained_backbone": True}, "has 'use_pretrained_backbone', which is not passed on"),
    "a named backbone": ({"backbone": "evil/repo"}, "has 'backbone', which is not passed on"),
    "code": ({"auto_map": {"AutoModel": "evil/repo--m.M"}}, "has 'auto_map', which is not passed on"),
    "quantised": (
        {"quantization_config": {"quant_method": "gptq"}},
        "has 'quantization_config', which is not passed on",
    ),
    "fused": ({"fusion_config": {"a": True}}, "has 'fusion_config', which is not passed on"),
    "its weights elsewhere": (
        {"transformers_weights": "evil.bin"},
        "has 'transformers_weights', which is not passed on",
    ),
    "unknown": ({"a" * 5000: 1}, r"has 'aa.*\.\.\..*', which is not passed on"),
    "chunks": ({"chunk_size_feed_forward": 3}, "has chunk_size_feed_forward 3: encoders have 0 here"),
    "a decoder": ({"is_decoder": True}, "has is_decoder True: encoders have false here"),
    "both": ({"is_encoder_decoder": True}, "has is_encoder_decoder True: encoders have false here"),
    "layers": ({"num_hidden_layers": 100_000}, "has num_hidden_layers 100000: encoders have at most 128"),
    "more layers than arrays": ({"num_hidden_layers": 120}, r"has 120 layers, and there are \d+ arrays"),
    "a negative number": ({"num_hidden_layers": -5}, "has num_hidden_layers -5"),
    "words": ({"vocab_size": 10**11}, "has vocab_size 100000000000, and its largest array 5"),
    "wide": ({"intermediate_size": 10**9}, "has intermediate_size 1000000000, and its largest array"),
    "too wide": ({"intermediate_size": 8000}, "has shape|mismatch|does not fit"),
    "long": ({"max_position_embeddings": 10**9}, "has max_position_embeddings 1000000000, and its largest array"),
    "no heads": ({"num_attention_heads": 0}, "cannot be loaded"),
    "text for a number": ({"hidden_size": "16"}, "cannot be loaded"),
    "a table": ({"hidden_act": {"a": 1}}, "has hidden_act .*: this is no setting of an encoder"),
    "a path": ({"hidden_act": "../../evil"}, "has hidden_act '../../evil': this is no setting of an encoder"),
    "no such function": ({"hidden_act": "evil"}, "cannot be loaded"),
    "other positions": ({"rope_parameters": {"rope_type": "dynamic", "factor": 2.0}}, "has rope_parameters"),
    "no such family": ({"model_type": "evil"}, "transformers has no model_type 'evil'"),
    "no family": ({"model_type": ["bert"]}, "names no model_type"),
    "pictures": ({"model_type": "vit"}, "model_type 'vit' is not an encoder of text|which is not passed on"),
    "text and pictures": ({"model_type": "llava"}, "model_type 'llava' is not an encoder of text"),
    "another family": ({"model_type": "electra"}, "does not fit|cannot be loaded"),
}


class Asked(ModuleType):
    """Stands for the package that fetches kernels."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        raise AssertionError(f"kernels.{name} was asked for")


@pytest.fixture(scope="module")
def model(encoder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: F811
    path = tmp_path_factory.mktemp("model") / "whole.lols"
    lols.Tagger(**SMALL | {"passes": 1}, encoder=str(encoder)).fit(SENTENCES, TAGS).save(path)
    return path


def forged(model: Path, path: Path, forge: Callable[[Described], Any], tensors: Any = None) -> Path:
    """A copy with another description."""
    header, arrays = read_tensors(model, "model")
    config, tokenizer = strings_of("task.network.encoder", arrays)
    described = json.loads(config)
    forge(described)
    made = string_tensors("network.encoder", [json.dumps(described), tokenizer])
    arrays |= {f"task.{name}": array for name, array in made.items()}
    if tensors is not None:
        tensors(arrays)
    write_tensors(path, "model", {k: v for k, v in header.items() if k not in ("kind", "format")}, arrays)
    return path


def check_refused(what: Callable[[], Any], says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "kernels", Asked("kernels"))
    began = time.monotonic()
    with pytest.raises(lols.LolsError, match=says) as caught:
        what()
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 800
    assert time.monotonic() - began < 20.0


@pytest.mark.parametrize("what", REFUSED)
def test_in_a_model_file(what: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given, says = REFUSED[what]
    path = forged(model, tmp_path / "m.lols", lambda described: described.update(given))
    check_refused(lambda: lols.load(path), rf"m\.lols: .*({says})", monkeypatch)


@pytest.mark.parametrize("what", REFUSED)
def test_in_a_folder(what: str, encoder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    given, says = REFUSED[what]
    here = tmp_path / "here"
    shutil.copytree(encoder, here)
    described = json.loads((here / "config.json").read_text()) | given
    (here / "config.json").write_text(json.dumps(described))
    check_refused(
        lambda: lols.Tagger(**SMALL, encoder=str(here)).fit(SENTENCES, TAGS), rf"here: .*({says})", monkeypatch
    )


def test_what_is_harmless_is_taken(model: Path, tmp_path: Path) -> None:
    wanted = lols.load(model).predict(SENTENCES)
    more = {
        **{"torch_dtype": "float16", "dtype": "evil", "architectures": ["Evil"], "id2label": {"0": "a"}},
        **{"attn_implementation": "eager", "chunk_size_feed_forward": 0, "is_decoder": False, "use_cache": True},
        **{"gradient_checkpointing": True, "_name_or_path": "evil/repo", "return_dict": False, "torchscript": True},
    }
    path = forged(model, tmp_path / "m.lols", lambda described: described.update(more))
    loaded: Any = lols.load(path)
    assert loaded.predict(SENTENCES) == wanted
    network = loaded.model_.policy.network.encoder.pretrained.model
    assert network.config._attn_implementation == "eager" and {p.dtype.itemsize for p in network.parameters()} == {4}


def test_fewer_positions_than_pieces(model: Path, tmp_path: Path) -> None:
    """The description belongs to the arrays, and neither to what is read."""
    name = "policy.network.encoder.pretrained.model.embeddings.position_embeddings.weight"
    path = forged(
        model,
        tmp_path / "m.lols",
        lambda described: described.update({"max_position_embeddings": 2}),
        lambda arrays: arrays.update({name: arrays[name][:2].copy()}),
    )
    loaded = lols.load(path)
    with pytest.raises(lols.LolsError, match=r"the encoder cannot read 7 pieces of words .*: does its config.json"):
        loaded.predict([["the", "sun", "the"]])


# --- folders ---


@pytest.fixture
def folder(encoder: Path, tmp_path: Path) -> Path:  # noqa: F811
    shutil.copytree(encoder, tmp_path / "here")
    return tmp_path / "here"


def begun(folder: Path) -> Any:
    return lols.Tagger(**SMALL | {"passes": 1}, encoder=str(folder)).fit(SENTENCES, TAGS)


def test_other_files_of_a_folder_are_not_read(folder: Path, encoder: Path) -> None:  # noqa: F811
    wanted = begun(encoder).predict_costs(SENTENCES[:2])
    (folder / "adapter_config.json").write_text('{"base_model_name_or_path": "evil/repo", "peft_type": "LORA"}')
    (folder / "model.safetensors.index.json").write_text('{"weight_map": {"a": "../../evil.bin"}}')
    (folder / "pytorch_model.bin").write_bytes(b"\x80\x04cposix\nsystem\n")
    (folder / "modeling_evil.py").write_text("raise SystemExit('evil')\n")
    (folder / "generation_config.json").write_text("[]")
    assert [np.array_equal(a, b) for a, b in zip(begun(folder).predict_costs(SENTENCES[:2]), wanted, strict=True)] == [
        True
    ] * 2


def test_weights_in_several_files(folder: Path, encoder: Path) -> None:  # noqa: F811
    from safetensors.torch import load_file, save_file

    wanted = begun(encoder).predict_costs(SENTENCES[:2])
    arrays = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    for k in range(2):
        save_file(
            {n: a for j, (n, a) in enumerate(arrays.items()) if j % 2 == k},
            folder / f"model-0000{k + 1}-of-00002.safetensors",
        )
    assert [np.array_equal(a, b) for a, b in zip(begun(folder).predict_costs(SENTENCES[:2]), wanted, strict=True)] == [
        True
    ] * 2


def test_a_folder_needs_all_weights_as_safetensors(folder: Path) -> None:
    from safetensors.torch import load_file, save_file

    arrays = load_file(folder / "model.safetensors")
    dropped = next(name for name in arrays if "query.weight" in name)
    save_file({name: array for name, array in arrays.items() if name != dropped}, folder / "model.safetensors")
    with pytest.raises(lols.LolsError, match=r"here: cannot be loaded .its weights have no '.*query.weight'"):
        begun(folder)
    (folder / "model.safetensors").write_bytes(b"evil")
    with pytest.raises(lols.LolsError, match="here: cannot be loaded"):
        begun(folder)
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(lols.LolsError, match=r"here: cannot be loaded .it has no model\.safetensors"):
        begun(folder)


@pytest.mark.parametrize("family", ["roberta", "distilbert", "electra", "albert", "deberta-v2", "modernbert", "mpnet"])
def test_families_of_encoders_are_taken(family: str, encoder: Path, tmp_path: Path) -> None:  # noqa: F811
    """As `save_pretrained` writes them."""
    from transformers import AutoConfig, AutoModel

    from lols.torch.encoder_settings import settings_in
    from lols.torch.pretrained import PretrainedEncoder

    sizes = {
        "vocab_size": 60,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 8,
    }
    if family == "distilbert":
        sizes = {"vocab_size": 60, "dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 8}
    more = {"embedding_size": 8} if family in ("electra", "albert") else {}
    tokens = {f"{name}_token_id": k for k, name in enumerate(("pad", "bos", "eos", "cls", "sep"))}
    made = AutoModel.from_config(AutoConfig.for_model(family, **sizes, **more, **tokens))
    made.save_pretrained(tmp_path)
    config = (tmp_path / "config.json").read_text()
    assert settings_in(config)["model_type"] == family
    loaded = PretrainedEncoder(config, str(tmp_path)).model
    wanted = made.state_dict()
    assert wanted.keys() == loaded.state_dict().keys()
    assert [name for name, array in loaded.state_dict().items() if not array.equal(wanted[name])] == []
