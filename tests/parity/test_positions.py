"""Positions against the code that their papers and models came with."""

from typing import Any

import pytest
import torch
from transformers import BloomConfig, BloomModel, GPTJConfig, GPTNeoXConfig, MarianConfig
from transformers.models.bloom.modeling_bloom import build_alibi_tensor
from transformers.models.gpt_neox.modeling_gpt_neox import GPTNeoXRotaryEmbedding
from transformers.models.gpt_neox.modeling_gpt_neox import apply_rotary_pos_emb as rotate_half_split
from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as rotate_interleaved
from transformers.models.gptj.modeling_gptj import create_sinusoidal_positions
from transformers.models.marian.modeling_marian import MarianSinusoidalPositionalEmbedding
from transformers.models.t5.modeling_t5 import T5Attention
from transformers.models.xglm.modeling_xglm import XGLMSinusoidalPositionalEmbedding

from specs.kinds.rope import Rope
from specs.kinds.sinusoidal import Sinusoidal
from specs.model.model import Model
from tests.parity.reference import assert_close, build, load, positions, ragged, redraw
from zoo.components.alibi import alibi_slopes
from zoo.components.relative_bias import t5_buckets
from zoo.context import BuildContext
from zoo.registry import build_component


def component(spec, d_model=32):
    return build_component(spec, BuildContext(d_model, None, causal=True, cross=False))


@pytest.mark.parametrize("heads", [1, 2, 3, 5, 6, 7, 8, 12, 16, 20, 33])
def test_alibi_slopes(heads):
    mask = torch.ones(1, 2)  # the second position is at distance 1 from the first
    theirs = build_alibi_tensor(mask, heads, torch.float32)[:, 0, 1]
    torch.testing.assert_close(torch.tensor(alibi_slopes(heads)), theirs, rtol=1e-6, atol=0)


@pytest.mark.parametrize(
    ("buckets", "max_distance"), [(32, 128), (12, 17), (4, 5), (8, 300), (64, 33), (10, 20), (11, 20), (7, 9)]
)
@pytest.mark.parametrize("bidirectional", [True, False])
def test_t5_buckets(buckets, max_distance, bidirectional):
    distances = torch.arange(-400, 401)
    theirs = T5Attention._relative_position_bucket(distances, bidirectional, buckets, max_distance)
    table = torch.tensor(t5_buckets(buckets, max_distance, bidirectional=bidirectional))
    ours = table[distances.clamp(-max_distance, max_distance) + max_distance]
    assert torch.equal(ours, theirs)


@pytest.mark.parametrize(("width", "share"), [(16, 1.0), (24, 0.25), (20, 0.5)])
def test_partial_rope_of_gpt_neox(width, share):
    rope = {"rope_type": "default", "rope_theta": 300.0, "partial_rotary_factor": share}
    config = GPTNeoXConfig(hidden_size=3 * width, num_attention_heads=3, rope_parameters=rope)
    query, key = torch.randn(2, 2, 3, 7, width).unbind()
    where = torch.tensor([[0, 1, 2, 3, 4, 5, 6], [0, 0, 0, 1, 2, 3, 4]])
    cos, sin = GPTNeoXRotaryEmbedding(config)(query, where)
    ours = component(Rope(theta=300.0, dimensions=int(width * share)))
    for x, theirs in zip((query, key), rotate_half_split(query, key, cos, sin), strict=True):
        assert_close(ours.rotate(x, where, width), theirs)


@pytest.mark.parametrize(("width", "dimensions"), [(16, 16), (24, 8)])
def test_interleaved_rope_of_gpt_j(width, dimensions):
    config = GPTJConfig(rotary_dim=dimensions)
    x = torch.randn(2, 3, 7, width)  # B H T K
    where = torch.tensor([[0, 1, 2, 3, 4, 5, 6], [0, 0, 0, 1, 2, 3, 40]])
    sin, cos = create_sinusoidal_positions(64, config.rotary_dim)[where].chunk(2, -1)  # B T R
    rotated = rotate_interleaved(x[..., :dimensions].transpose(1, 2), sin, cos).transpose(1, 2)
    ours = component(Rope(dimensions=dimensions, layout="interleaved")).rotate(x, where, width)
    assert_close(ours, torch.cat((rotated, x[..., dimensions:]), -1))


@pytest.mark.parametrize("width", [8, 30])
def test_half_split_sinusoids_of_marian(width):
    config = MarianConfig(d_model=width, max_position_embeddings=50)
    theirs = MarianSinusoidalPositionalEmbedding(config.max_position_embeddings, width)
    theirs.weight.data = theirs.create_weight().data
    ours = component(Sinusoidal(layout="half_split"), width)
    where = torch.arange(50)[None]
    assert_close(ours.embed(torch.zeros(1, 50, width), where), theirs.weight[None])


@pytest.mark.parametrize("table", [False, True])
def test_shifted_sinusoids_of_xglm(table):
    theirs = XGLMSinusoidalPositionalEmbedding(50, 24)
    shape = {"layout": "half_split", "spacing": "tensor2tensor", "offset": 2, "table": table}
    context = BuildContext(24, 50, causal=True, cross=False)
    ours: Any = build_component(Sinusoidal.model_validate({"kind": "sinusoidal", **shape}), context)
    where = torch.arange(50)[None]
    if table:
        ours.table.weight.data = ours.table.fixed("weight")
    assert_close(ours.embed(torch.zeros(1, 50, 24), where), theirs(where))


def test_the_table_of_marian_is_the_same_to_the_last_bit():
    config = MarianConfig(d_model=512, max_position_embeddings=512)
    theirs = MarianSinusoidalPositionalEmbedding(config.max_position_embeddings, 512).create_weight()
    context = BuildContext(512, 512, causal=True, cross=False)
    position: Any = build_component(Sinusoidal(layout="half_split", table=True), context)
    ours = position.table
    assert torch.equal(ours.fixed("weight"), theirs)
    assert not ours.weight.requires_grad


def bloom_tensors(reference: BloomModel, heads: int, width: int) -> dict[str, torch.Tensor]:
    """BLOOM's tensors under our names; it stores query, key and value head by head."""
    theirs, ours = reference.state_dict(), {}

    def take(stored: str, name: str) -> None:
        for leaf in ("weight", "bias"):
            ours[f"{name}.{leaf}"] = theirs[f"{stored}.{leaf}"].clone()

    ours["embedding.token.weight"] = theirs["word_embeddings.weight"]
    take("word_embeddings_layernorm", "embedding.norm")
    take("ln_f", "decoder.final_norm")
    for layer in range(reference.config.n_layer):
        stored, block = f"h.{layer}", f"decoder.blocks.{layer}"
        take(f"{stored}.input_layernorm", f"{block}.attention_norm")
        take(f"{stored}.self_attention.dense", f"{block}.attention.output")
        take(f"{stored}.post_attention_layernorm", f"{block}.feed_forward_norm")
        take(f"{stored}.mlp.dense_h_to_4h", f"{block}.feed_forward.up")
        take(f"{stored}.mlp.dense_4h_to_h", f"{block}.feed_forward.down")
        for leaf in ("weight", "bias"):
            fused = theirs[f"{stored}.self_attention.query_key_value.{leaf}"].unflatten(0, (heads, 3, width))
            for index, projection in enumerate(("query", "key", "value")):
                ours[f"{block}.attention.{projection}.{leaf}"] = fused[:, index].flatten(0, 1).contiguous()
    return ours


@pytest.mark.parametrize("heads", [3, 4, 7])
@pytest.mark.parametrize("side", ["right", "left"])
def test_alibi_of_bloom(heads, side, tmp_path):
    from safetensors.torch import save_file

    config = BloomConfig(
        vocab_size=40, hidden_size=heads * 6, n_layer=2, n_head=heads, layer_norm_epsilon=1e-3
    )
    reference = build(BloomModel, config, seed=1)
    redraw(reference, 2)
    norm = {"kind": "layer_norm", "eps": 1e-3}
    spec = Model.model_validate(
        {
            "name": "tiny-bloom", "architecture": "decoder", "vocab_size": 40, "d_model": heads * 6,
            "position": {"kind": "alibi"}, "embedding": {"norm": norm},
            "decoder": {
                "layers": 2,
                "block": {
                    "kind": "pre_norm", "norm": norm,
                    "attention": {"kind": "multi_head", "heads": heads},
                    "feed_forward": {"kind": "mlp", "hidden": heads * 24, "activation": "gelu_tanh"},
                },
            },
        }
    )  # fmt: skip
    save_file(bloom_tensors(reference, heads, 6), tmp_path / "own.safetensors")
    model = load(spec, tmp_path)
    ids, mask = ragged(3, 12, 40, side, 3)
    with torch.no_grad():
        theirs = reference(ids, attention_mask=mask).last_hidden_state
        assert_close(model(ids, mask).last_hidden_state, theirs, mask)
    assert positions(mask).max() == 11
