"""GGUF files of families whose converters change more than names: against the models that they were written from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import (
    Gemma2Config,
    Gemma2ForCausalLM,
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    GemmaConfig,
    GemmaForCausalLM,
    Phi3Config,
    Phi3ForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)
from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

from tests.parity.reference import build
from tests.zoo.checkpoints.gguf_files import Kind, write
from tests.zoo.filled import stored_model
from zoo.configs.importing import import_spec
from zoo.weights.gguf_header import FACTORS

SMALL: dict[str, Any] = dict(
    vocab_size=64, hidden_size=32, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1,
    intermediate_size=64, max_position_embeddings=64, rms_norm_eps=1e-5,
)  # fmt: skip
PLAIN = {"rope_type": "default", "rope_theta": 500.0}
GEMMA = {**SMALL, "head_dim": 32, "hidden_activation": "gelu_pytorch_tanh"}
LONG = {
    "rope_type": "longrope", "rope_theta": 500.0, "original_max_position_embeddings": 16, "attention_factor": 1.25,
    "short_factor": [1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5],
    "long_factor": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0],
}  # fmt: skip

CASES: dict[str, tuple[Any, Any, dict[str, Any]]] = {
    "gemma": (GemmaForCausalLM, GemmaConfig(**GEMMA, rope_parameters=PLAIN), {}),
    "gemma2": (
        Gemma2ForCausalLM,
        Gemma2Config(
            **GEMMA, rope_parameters=PLAIN, query_pre_attn_scalar=32, sliding_window=4,
            attn_logit_softcapping=20.0, final_logit_softcapping=10.0,
        ),
        {"attention.sliding_window": 4, "attn_logit_softcapping": 20.0, "final_logit_softcapping": 10.0},
    ),
    "gemma3": (
        Gemma3ForCausalLM,
        Gemma3TextConfig(
            **{**GEMMA, "num_hidden_layers": 7}, query_pre_attn_scalar=32, sliding_window=4,
            rope_parameters={
                "full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e6},
                "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
            },
        ),
        {"attention.sliding_window": 4, "rope.scaling.type": "linear", "rope.scaling.factor": 8.0},
    ),
    "phi3": (
        Phi3ForCausalLM,
        Phi3Config(**SMALL, rope_parameters=PLAIN, sliding_window=None, pad_token_id=0),
        {"attention.sliding_window": 0, "attention.key_length": None, "attention.value_length": None},
    ),
    "qwen2": (Qwen2ForCausalLM, Qwen2Config(**SMALL, rope_parameters=PLAIN), {}),
}  # fmt: skip


def ours(path: Path) -> Any:
    spec = import_spec(path)
    return stored_model(spec, path).eval()


def check(path: Path, reference: Any) -> None:
    tokens = torch.randint(3, 64, (2, 24), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        wanted = reference(tokens).logits
        got = ours(path)(tokens).logits
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-4)


def reference_of(architecture: str) -> Any:
    cls, config, _ = CASES[architecture]
    if not hasattr(config, "head_dim"):
        config.head_dim = config.hidden_size // config.num_attention_heads
    return build(cls, config, seed=1)


@pytest.mark.parametrize("architecture", CASES)
def test_families_compute_what_transformers_does(architecture: str, tmp_path: Path) -> None:
    reference = reference_of(architecture)
    write(reference, tmp_path / "x.gguf", architecture=architecture, metadata=CASES[architecture][2])
    check(tmp_path / "x.gguf", reference)


@pytest.mark.parametrize("architecture", ["gemma2", "phi3", "qwen2"])
def test_quantized_families_load_as_by_transformers(architecture: str, tmp_path: Path) -> None:
    reference = reference_of(architecture)
    held = write(
        reference, tmp_path / "x.gguf", Kind.Q8_0, architecture=architecture, metadata=CASES[architecture][2]
    )
    theirs = load_gguf_checkpoint(tmp_path / "x.gguf", return_tensors=True, model_to_load=reference)[
        "tensors"
    ]
    assert theirs.keys() >= held.keys()
    for name, values in held.items():
        torch.testing.assert_close(theirs[name], values, rtol=0, atol=1e-6)
    reference.load_state_dict(held, strict=False)
    check(tmp_path / "x.gguf", reference)


def test_the_factors_of_long_contexts_are_read(tmp_path: Path) -> None:
    config = Phi3Config(
        **SMALL, rope_parameters=LONG, sliding_window=None, pad_token_id=0, original_max_position_embeddings=16,
    )  # fmt: skip
    config.head_dim = 16
    reference = build(Phi3ForCausalLM, config, seed=1)
    factors = {FACTORS[field]: torch.tensor(LONG[field]) for field in FACTORS}
    metadata = {
        **CASES["phi3"][2],
        "rope.scaling.original_context_length": 16,
        "rope.scaling.attn_factor": 1.25,
    }
    write(reference, tmp_path / "x.gguf", architecture="phi3", extra=factors, metadata=metadata)
    check(tmp_path / "x.gguf", reference)
