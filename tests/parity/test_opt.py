"""OPT-350m's embedding, narrower than the model and projected before positions are added, against transformers."""

import torch
from transformers import OPTConfig, OPTModel

from specs.model.model import Model
from tests.parity.reference import assert_close, build, ragged
from zoo.builder import assemble

CONFIG = dict(
    vocab_size=41, hidden_size=24, word_embed_proj_dim=10, num_hidden_layers=2, num_attention_heads=3, ffn_dim=30,
    max_position_embeddings=19, do_layer_norm_before=False, activation_function="relu", dropout=0.0,
    pad_token_id=1, bos_token_id=2, eos_token_id=2,
)  # fmt: skip

SPEC = {
    "name": "tiny-opt", "architecture": "decoder", "vocab_size": 41, "d_model": 24, "context_length": 19,
    "position": {"kind": "learned", "offset": 2},
    "embedding": {"width": 10, "projection": {"bias": False, "place": "first"}},
    "decoder": {
        "layers": 2,
        "block": {
            "kind": "post_norm", "norm": {"kind": "layer_norm"},
            "attention": {"kind": "multi_head", "heads": 3},
            "feed_forward": {"kind": "mlp", "hidden": 30, "activation": "relu"},
        },
    },
}  # fmt: skip

NAMES = {
    "decoder.embed_tokens": "embedding.token",
    "decoder.project_in": "embedding.projection",
    "decoder.embed_positions": "embedding.position.table",
    "decoder.layers.": "decoder.blocks.",
    "self_attn_layer_norm": "attention_norm",
    "self_attn.q_proj": "attention.query",
    "self_attn.k_proj": "attention.key",
    "self_attn.v_proj": "attention.value",
    "self_attn.out_proj": "attention.output",
    "final_layer_norm": "feed_forward_norm",
    "fc1": "feed_forward.up",
    "fc2": "feed_forward.down",
}


def test_the_projection_comes_first_and_positions_are_as_wide_as_the_model():
    reference = build(OPTModel, OPTConfig(**CONFIG), seed=1)
    tensors = {}
    for name, tensor in reference.state_dict().items():
        for theirs, ours in NAMES.items():
            name = name.replace(theirs, ours)
        tensors[name] = tensor
    out = tensors.pop("decoder.project_out.weight")  # of the head, as far as we are concerned
    model = assemble(Model.model_validate(SPEC))
    model.load_state_dict(tensors, assign=True)
    ids, mask = ragged(3, 12, 41, "left", seed=2)
    with torch.no_grad():
        theirs = reference(ids, mask).last_hidden_state
        assert_close(model(ids, mask).last_hidden_state @ out.t(), theirs, mask)
