"""GGUF files against the models of transformers that they were made of."""

from typing import Any

import pytest
import torch
import transformers
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

from specs.model.model import Model
from tests.parity.families.decoders import test_llama
from tests.parity.families.llamas import LLAMA3
from tests.parity.reference import assert_close, build, llama_spec, load, positions, ragged
from tests.thinned import one_in
from tests.zoo.checkpoints.gguf_files import Kind, write
from zoo.configs.gguf import config_of_gguf

PLAIN = {"rope_type": "default", "rope_theta": 500.0}
SIZES = dict(
    vocab_size=96, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, head_dim=32,
    intermediate_size=96, rms_norm_eps=1e-5, max_position_embeddings=128, tie_word_embeddings=False,
)  # fmt: skip
KINDS = [
    Kind.F32, Kind.F16, Kind.BF16, Kind.Q8_0, Kind.Q4_0, Kind.Q4_1, Kind.Q5_0, Kind.Q5_1,
]  # fmt: skip


def reference(seed: int = 1, **changes) -> LlamaForCausalLM:
    return build(
        LlamaForCausalLM, test_llama.TestLlama.config(**{**SIZES, "rope_parameters": PLAIN, **changes}), seed
    )


def same_logits(ours, theirs, vocab: int = 96) -> None:
    for side in ("right", "left"):
        ids, mask = ragged(3, 11, vocab, side, 1)
        with torch.no_grad():
            expected = theirs(ids, attention_mask=mask, position_ids=positions(mask)).logits
            assert_close(ours(ids, mask).logits, expected, mask)


@one_in(3)
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("tied", [True, False])
def test_logits_are_those_of_the_values_in_the_file(kind, tied, tmp_path):
    theirs = reference(tie_word_embeddings=tied)
    held = write(theirs, tmp_path / "model.gguf", kind)
    theirs.load_state_dict(held, strict=not tied)
    same_logits(load(llama_spec(theirs.config), tmp_path / "model.gguf"), theirs)


def test_a_spec_that_rotates_neighbours_reads_the_same_file(tmp_path):
    theirs = reference()
    write(theirs, tmp_path / "model.gguf")
    spec = llama_spec(theirs.config)
    position = spec.position.model_copy(update={"layout": "interleaved"})
    same_logits(load(spec.model_copy(update={"position": position}), tmp_path), theirs)


def test_biases_have_their_rows_in_the_same_order(tmp_path):
    theirs = reference(attention_bias=True, mlp_bias=True)
    write(theirs, tmp_path / "model.gguf")
    same_logits(load(llama_spec(theirs.config), tmp_path), theirs)


def test_other_architectures_keep_the_order_of_rows(tmp_path):
    config = transformers.Qwen2Config(**{**SIZES, "head_dim": 16}, rope_parameters=dict(PLAIN))
    theirs = build(transformers.Qwen2ForCausalLM, config, seed=1)
    write(theirs, tmp_path / "model.gguf", architecture="qwen2")
    as_llama = test_llama.TestLlama.config(
        **{**SIZES, "head_dim": 16, "rope_parameters": PLAIN, "attention_bias": True}
    )
    spec = llama_spec(as_llama).model_dump()
    bias = {"query": True, "key": True, "value": True, "output": False}
    spec["decoder"]["block"]["attention"]["bias"] = bias
    same_logits(load(Model.model_validate(spec), tmp_path), theirs)


def scaled_by(config: LlamaConfig) -> torch.Tensor:
    """The divisors of a config's rotary frequencies."""
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    frequencies, _ = ROPE_INIT_FUNCTIONS["llama3"](config, torch.device("cpu"))
    exponents = torch.arange(0, config.head_dim, 2).float() / config.head_dim
    return config.rope_parameters["rope_theta"] ** -exponents / frequencies


def test_llama3_scaling_is_read_from_the_frequencies(tmp_path):
    theirs = reference(rope_parameters=LLAMA3)
    write(theirs, tmp_path / "model.gguf", extra={"rope_freqs.weight": scaled_by(theirs.config)})
    same_logits(load(llama_spec(theirs.config), tmp_path), theirs)
    assert config_of_gguf(tmp_path / "model.gguf")["rope_scaling"] == {
        key: value for key, value in LLAMA3.items() if key != "rope_theta"
    }


@pytest.mark.parametrize("kind", [Kind.F32, Kind.F16, Kind.Q8_0, Kind.Q4_0], ids=lambda kind: kind.name)
def test_transformers_reads_the_same(kind, tmp_path):
    theirs = reference()
    write(theirs, tmp_path / "model.gguf", kind)
    ours = load(llama_spec(theirs.config), tmp_path / "model.gguf")
    read = load_gguf_checkpoint(tmp_path / "model.gguf", return_tensors=True, model_to_load=theirs)
    theirs.load_state_dict(read["tensors"])
    same_logits(ours, theirs)


def test_config_is_that_of_the_model(tmp_path):
    linear = {"rope_type": "linear", "rope_theta": 1000.0, "factor": 2.5}
    yarn = {"rope_type": "yarn", "rope_theta": 700.0, "factor": 4.0, "original_max_position_embeddings": 32}
    cases: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({}, {}),
        ({"tie_word_embeddings": True, "num_key_value_heads": 4}, {"attention.head_count_kv": None}),
        ({"attention_bias": True, "mlp_bias": True}, {}),
        ({"head_dim": 16}, {"attention.key_length": None}),
        ({"rope_parameters": linear}, {"rope.scaling.type": "linear", "rope.scaling.factor": 2.5}),
        (
            {"rope_parameters": yarn},
            {"rope.scaling.type": "yarn", "rope.scaling.factor": 4.0, "rope.scaling.original_context_length": 32},
        ),
    ]  # fmt: skip
    for changes, fields in cases:
        theirs = reference(**changes)
        write(theirs, tmp_path / "model.gguf", metadata=fields)
        found = config_of_gguf(tmp_path / "model.gguf")
        assert found["eos_token_id"] == 2
        again = LlamaConfig(**{**found, "eos_token_id": 0, "bos_token_id": 0, "pad_token_id": 0})
        assert again.architectures == ["LlamaForCausalLM"]
        left, right = again.to_dict(), theirs.config.to_dict()
        differing = {key for key in right if left.get(key) != right[key]}
        assert differing <= {"architectures", "dtype", "_attn_implementation_internal"}, changes


@pytest.mark.parametrize(
    ("architecture", "config_class", "model_class"),
    [
        ("qwen2", transformers.Qwen2Config, transformers.Qwen2ForCausalLM),
        ("qwen3", transformers.Qwen3Config, transformers.Qwen3ForCausalLM),
    ],
)
def test_configs_of_other_architectures(architecture, config_class, model_class, tmp_path):
    config = config_class(**{**SIZES, "head_dim": 16}, rope_parameters=dict(PLAIN))
    config.head_dim = 16
    write(model_class(config), tmp_path / "model.gguf", architecture=architecture)
    found = config_of_gguf(tmp_path / "model.gguf")
    assert (found["model_type"], found["architectures"]) == (architecture, [model_class.__name__])
    again = config_class(**found)
    for key in (*SIZES, "rope_parameters"):
        assert getattr(again, key) == getattr(config, key), key
