"""What of an encoder's description reaches the library that builds it: settings that are known, of sizes that fit.

A description comes in a model file or a folder from elsewhere. Some of its settings would fetch code, compile, or build
what takes minutes and all memory; so it is not passed on as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import Any

from lols.errors import LolsError, shown

PASSED_ON = (
    # of most families
    "model_type vocab_size hidden_size num_hidden_layers num_attention_heads intermediate_size hidden_act "
    "hidden_dropout_prob attention_probs_dropout_prob max_position_embeddings type_vocab_size layer_norm_eps "
    "initializer_range pad_token_id position_embedding_type attn_implementation "
    # of ELECTRA, ALBERT, RemBERT, MPNet, ERNIE
    "embedding_size num_hidden_groups inner_group_num input_embedding_size output_embedding_size "
    "relative_attention_num_buckets task_type_vocab_size use_task_id "
    # of DistilBERT, XLM and FlauBERT
    "n_layers n_heads dim hidden_dim dropout attention_dropout activation emb_dim gelu_activation n_langs use_lang_emb "
    "pre_norm layerdrop asm embed_init_std init_std lang_id unk_index mask_index "
    # of DeBERTa
    "relative_attention max_relative_positions position_buckets norm_rel_ebd share_att_key position_biased_input "
    "pos_att_type conv_kernel_size conv_act conv_groups pooler_dropout pooler_hidden_act pooler_hidden_size legacy "
    # of ModernBERT and EuroBERT
    "hidden_activation norm_eps norm_bias attention_bias mlp_bias mlp_dropout embedding_dropout local_attention "
    "layer_types rope_parameters rope_theta global_rope_theta local_rope_theta global_attn_every_n_layers "
    "initializer_cutoff_factor num_key_value_heads head_dim rms_norm_eps"
)
LEFT_OUT = (  # about files, training, labels, tokens, and what is built above an encoder
    "architectures transformers_version _name_or_path name_or_path _commit_hash _num_labels torch_dtype dtype "
    "use_cache output_attentions output_hidden_states output_past return_dict torchscript gradient_checkpointing "
    "id2label label2id num_labels problem_type finetuning_task task_specific_params language adapters model_max_length "
    "bos_token_id eos_token_id sep_token_id cls_token_id mask_token_id unk_token_id decoder_start_token_id bos_index "
    "eos_index pad_index classifier_dropout classifier_dropout_prob classifier_activation classifier_bias "
    "classifier_pooling classifier_norm decoder_bias tie_word_embeddings tie_weights_ qa_dropout seq_classif_dropout "
    "summary_type summary_use_proj summary_activation summary_last_dropout summary_first_dropout "
    "summary_proj_to_labels start_n_top end_n_top max_embeddings_size amp id2lang lang2id directionality "
    "pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers pooler_size_per_head pooler_type "
    "sparse_prediction sparse_pred_ignore_index repad_logits_with_grad deterministic_flash_attn reference_compile "
    "net_structure_type gap_size num_memory_blocks down_scale_factor pretraining_tp clip_qkv "
    "max_length min_length do_sample top_k top_p temperature num_beams repetition_penalty length_penalty"
)
PASSED, LEFT = frozenset(PASSED_ON.split()), frozenset(LEFT_OUT.split())
ONLY: dict[str, Sequence[Any]] = {  # what some settings must be; they are left out then, but for the first one
    "attn_implementation": ("eager", "sdpa"),
    "chunk_size_feed_forward": (0,),
    "is_decoder": (False,),
    "is_encoder_decoder": (False,),
    "is_encoder": (True,),
    "add_cross_attention": (False,),
    "causal": (False,),
    "sinusoidal_pos_embds": (False,),
    "sinusoidal_embeddings": (False,),
    "use_bfloat16": (False,),
    "pruned_heads": ({}, None),
}
WORD = re.compile(r"[a-zA-Z0-9_|-]{1,60}")
DEPTHS = ("num_hidden_layers", "n_layers", "num_hidden_groups", "inner_group_num")
MOST_DEPTH = 128
USUAL = 1 << 13  # a size that no array needs to have: of positions that are computed, for example


def settings_in(description: str) -> dict[str, Any]:
    """The settings of a `config.json` that are passed on; an error if there is one that is not known to be harmless."""
    try:
        described = json.loads(description)
    except (ValueError, RecursionError) as error:
        raise LolsError(f"its config.json cannot be read ({error})") from None
    if not isinstance(described, dict) or not isinstance(described.get("model_type"), str):
        raise LolsError("its config.json names no model_type")
    made = {}
    for name, value in described.items():
        if name in ONLY and not any(type(value) is type(each) and value == each for each in ONLY[name]):
            usual = " or ".join(json.dumps(each) for each in ONLY[name])
            raise LolsError(f"its config.json has {name} {shown(value)}: encoders have {usual} here")
        if name in PASSED:
            if not _is_plain(name, value):
                raise LolsError(f"its config.json has {name} {shown(value)}: this is no setting of an encoder")
            made[name] = value
        elif name not in LEFT and name not in ONLY:
            raise LolsError(f"its config.json has {shown(name)}, which is not passed on to encoders: remove it")
    return made


def check_sizes(settings: Any, shapes: Iterable[Sequence[int]]) -> None:
    """Raise an error if an encoder of these settings would be larger than its arrays, before it is built."""
    shapes = list(shapes)
    largest, values = max((max(shape, default=0) for shape in shapes), default=0), settings.to_dict()
    for name, value in _numbers(values):
        if name not in DEPTHS and not -1 <= value <= max(USUAL, largest):
            raise LolsError(f"its config.json has {name} {shown(value)}, and its largest array {largest:,}")
    for name in DEPTHS:
        if not 0 <= values.get(name, 1) <= MOST_DEPTH:
            raise LolsError(f"its config.json has {name} {shown(values[name])}: encoders have at most {MOST_DEPTH}")
    layers = prod(values.get(name, 1) for name in DEPTHS[-2:]) if DEPTHS[-1] in values else _depth(values)
    if layers > len(shapes):
        raise LolsError(f"its config.json has {layers:,} layers, and there are {len(shapes):,} arrays")


def _depth(values: dict[str, Any]) -> int:
    return max(values.get(name, 0) for name in DEPTHS[:2])


def _numbers(values: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """The sizes among settings: whole numbers that are not the number of a token, a label or a language."""
    for name, value in values.items():
        if type(value) is int and not name.endswith(("_id", "_index")) and name not in LEFT:
            yield name, value


def _is_plain(name: str, value: Any) -> bool:
    """Whether a setting is a number, a word, or one of the few lists and tables that encoders have."""
    if name == "rope_parameters" and isinstance(value, dict):
        return all(
            _is_plain(name, each)
            if isinstance(each, dict)
            else each == "default"
            if of == "rope_type"
            else _is_real(each)
            for of, each in value.items()
        )
    if isinstance(value, list):
        return name in ("layer_types", "pos_att_type") and len(value) <= MOST_DEPTH and all(map(_is_word, value))
    return value is None or _is_word(value) or _is_real(value)


def _is_real(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) < 1e12


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and WORD.fullmatch(value) is not None
