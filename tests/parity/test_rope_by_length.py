"""Rotary frequencies that depend on the length of an input, against transformers on either side of the border."""

from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, Phi3Config
from transformers.models.phi3.modeling_phi3 import Phi3RotaryEmbedding

from specs.kinds.rope import Rope
from specs.model.model import Model
from tests.parity.reference import (
    assert_close,
    build,
    llama_spec,
    positions,
    ragged,
    step_through,
    through_checkpoint,
)
from tests.thinned import one_in
from zoo.context import BuildContext
from zoo.registry import build_component

BORDER = 12
SIZES = dict(
    vocab_size=43, hidden_size=24, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=3, head_dim=8,
    intermediate_size=20, tie_word_embeddings=True, bos_token_id=0, eos_token_id=0, pad_token_id=None,
)  # fmt: skip
LONG = {"short_factor": [1.0, 1.1, 1.5, 2.0], "long_factor": [1.2, 2.0, 4.0, 9.0], "rope_theta": 500.0}


@pytest.mark.parametrize("length", [BORDER - 1, BORDER, BORDER + 1, 40])
@torch.no_grad()
def test_dynamic_ntk(length, tmp_path):
    rope = {"rope_type": "dynamic", "rope_theta": 500.0, "factor": 3.0}
    config = LlamaConfig(**SIZES, max_position_embeddings=BORDER, rope_parameters=rope)
    reference = build(LlamaForCausalLM, config, seed=1)
    data = llama_spec(
        LlamaConfig(**SIZES, rope_parameters={"rope_type": "default", "rope_theta": 500.0})
    ).model_dump()
    data["position"]["scaling"] = {"kind": "dynamic_ntk", "factor": 3.0, "original_context_length": BORDER}
    model = through_checkpoint(reference, Model.model_validate(data), tmp_path)
    ids, mask = ragged(3, length, 43, "left", seed=2)
    theirs = reference(ids, attention_mask=mask, position_ids=positions(mask)).logits
    assert_close(model(ids, mask).logits, theirs, mask)
    if length <= BORDER:
        assert_close(step_through(model, ids, mask, prefill=4), theirs, mask)


@one_in(3)
@pytest.mark.parametrize("stated", [None, 1.3])
@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize("length", [BORDER, BORDER + 1])
def test_longrope_of_phi_3(length, share, stated):
    rope = {"rope_type": "longrope", **LONG, "partial_rotary_factor": share, "attention_factor": stated,
            "original_max_position_embeddings": BORDER}  # fmt: skip
    width = int(8 / share)
    sizes = {**SIZES, "hidden_size": 3 * width, "head_dim": width}
    config = Phi3Config(
        **sizes, max_position_embeddings=96, original_max_position_embeddings=BORDER, rope_parameters=rope
    )
    where = torch.stack((torch.arange(length), (torch.arange(length) - 5).clamp(min=0)))  # B T
    cos, sin = Phi3RotaryEmbedding(config)(torch.zeros(1), where)
    scaling = {"kind": "longrope", "original_context_length": BORDER, "attention_factor": stated}
    scaling |= {key: LONG[key] for key in ("short_factor", "long_factor")}
    spec = Rope.model_validate({"theta": 500.0, "dimensions": 8, "scaling": scaling})
    ours: Any = build_component(spec, BuildContext(24, 96, causal=True, cross=False))
    first = torch.zeros(2, 1, length, width)
    first[..., :4] = 1  # turns into cos, then sin
    rotated = ours.rotate(first, where, width)[:, 0]
    assert_close(rotated[..., :4], cos[..., :4])
    assert_close(rotated[..., 4:8], sin[..., :4])
