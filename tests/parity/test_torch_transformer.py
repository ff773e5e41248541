"""The original Transformer against torch.nn's, whose checkpoints fuse the projections of self-attention."""

import dataclasses
import math

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from specs.model import Model
from tests.parity.reference import assert_close, ragged, redraw
from zoo.builder import assemble
from zoo.checkpoints.family import Family, affine, fused, same
from zoo.checkpoints.source import CheckpointWeights
from zoo.weights.files import TensorFiles
from zoo.weights.materialize import materialize

WIDTH, HEADS, HIDDEN, VOCAB = 24, 3, 40, 37


def attention(stored: str, module: str):
    projections = tuple(f"{module}.{projection}" for projection in ("query", "key", "value"))
    in_projection = fused(f"{stored}.in_proj_weight", f"{stored}.in_proj_bias", projections)
    return *in_projection, *affine(f"{stored}.out_proj", f"{module}.output")


def stack(name: str, norms: tuple[str, ...]):
    layer, block = f"{name}.layers.{{layer}}", f"{name}.blocks.{{layer}}"
    rules = [
        *attention(f"{layer}.self_attn", f"{block}.attention"),
        *affine(f"{name}.norm", f"{name}.final_norm"),
    ]
    rules += [*affine(f"{layer}.linear1", f"{block}.feed_forward.up")]
    rules += [*affine(f"{layer}.linear2", f"{block}.feed_forward.down")]
    for index, norm in enumerate(norms, 1):
        rules += affine(f"{layer}.norm{index}", f"{block}.{norm}")
    return rules


TORCH = Family(
    name="torch.nn",
    model_types=(),
    rules=(
        *stack("encoder", ("attention_norm", "feed_forward_norm")),
        *stack("decoder", ("attention_norm", "cross_attention_norm", "feed_forward_norm")),
        *attention("decoder.layers.{layer}.multihead_attn", "decoder.blocks.{layer}.cross_attention"),
        same("embedding.weight", "embedding.token.weight"),
        same("embedding.weight", "encoder_embedding.token.weight"),
    ),
    heads={"language_modeling": affine("scores", "head.vocabulary")},
)


def block(kind: str, activation: str, eps: float) -> dict:
    return {
        "kind": kind,
        "norm": {"kind": "layer_norm", "eps": eps},
        "attention": {"kind": "multi_head", "heads": HEADS},
        "feed_forward": {"kind": "mlp", "hidden": HIDDEN, "activation": activation},
    }


def model_of(spec: dict, reference: nn.Module, directory):
    spec = Model.model_validate({"name": "stack", "vocab_size": VOCAB, "d_model": WIDTH, **spec})
    save_file(reference.state_dict(), directory / "model.safetensors")
    model = assemble(spec)
    materialize(model, CheckpointWeights(TensorFiles.open(directory), TORCH, model, spec))
    return model


def vaswani(length: int, width: int) -> torch.Tensor:
    """The sinusoids as section 3.5 of the paper writes them: length x width."""
    table = torch.zeros(length, width)
    for position in range(length):
        for i in range(width // 2):
            angle = position / 10000 ** (2 * i / width)
            table[position, 2 * i], table[position, 2 * i + 1] = math.sin(angle), math.cos(angle)
    return table


@pytest.mark.parametrize("final_norm", [True, False])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("kind", ["post_norm", "pre_norm"])
def test_encoder_stack(kind, activation, final_norm, tmp_path):
    layer = nn.TransformerEncoderLayer(
        WIDTH, HEADS, HIDDEN, 0.0, activation, 1e-4, batch_first=True, norm_first=kind == "pre_norm"
    )
    norm = nn.LayerNorm(WIDTH, eps=1e-4) if final_norm else None
    reference = nn.ModuleDict(
        {
            "embedding": nn.Embedding(VOCAB, WIDTH),
            "encoder": nn.TransformerEncoder(layer, 2, norm, enable_nested_tensor=False),
        }
    ).eval()
    redraw(reference, 1)
    stack = {"layers": 2, "block": block(kind, activation, 1e-4), "final_norm": final_norm}
    model = model_of({"architecture": "encoder", "encoder": stack}, reference, tmp_path)
    ids, mask = ragged(3, 9, VOCAB, "right", 2)
    with torch.no_grad():
        theirs = reference["encoder"](reference["embedding"](ids), src_key_padding_mask=mask == 0)
        assert_close(model(ids, mask).last_hidden_state, theirs, mask)


@pytest.mark.parametrize("kind", ["post_norm", "pre_norm"])
def test_decoder_stack_is_a_causal_encoder_stack(kind, tmp_path):
    layer = nn.TransformerEncoderLayer(
        WIDTH, HEADS, HIDDEN, 0.0, batch_first=True, norm_first=kind == "pre_norm"
    )
    layers = nn.TransformerEncoder(layer, 3, nn.LayerNorm(WIDTH), enable_nested_tensor=False)
    reference = nn.ModuleDict({"embedding": nn.Embedding(VOCAB, WIDTH), "decoder": layers}).eval()
    redraw(reference, 3)
    family = dataclasses.replace(
        TORCH, rules=(same("embedding.weight", "embedding.token.weight"), *stack("decoder", NORMS))
    )
    spec = Model.model_validate(
        {
            "name": "stack",
            "vocab_size": VOCAB,
            "d_model": WIDTH,
            "architecture": "decoder",
            "decoder": {"layers": 3, "block": block(kind, "relu", 1e-5), "final_norm": True},
        }
    )
    save_file(reference.state_dict(), tmp_path / "model.safetensors")
    model = assemble(spec)
    materialize(model, CheckpointWeights(TensorFiles.open(tmp_path), family, model, spec))
    ids, mask = ragged(3, 9, VOCAB, "right", 4)
    causal = torch.ones(9, 9, dtype=torch.bool).triu(1)
    with torch.no_grad():
        embedded = reference["embedding"](ids)
        theirs = layers(embedded, causal, src_key_padding_mask=mask == 0)
        assert_close(model(ids, mask).last_hidden_state, theirs, mask)


NORMS = ("attention_norm", "feed_forward_norm")


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@pytest.mark.parametrize("kind", ["post_norm", "pre_norm"])
def test_encoder_decoder(kind, activation, tmp_path):
    class Reference(nn.Transformer):
        def __init__(self) -> None:
            super().__init__(
                WIDTH, HEADS, 2, 3, HIDDEN, 0.0, activation, None, None, 1e-4, True, kind == "pre_norm"
            )
            self.embedding = nn.Embedding(VOCAB, WIDTH)
            self.scores = nn.Linear(WIDTH, VOCAB)

    reference = Reference().eval()
    redraw(reference, 5)
    part = {"block": block(kind, activation, 1e-4), "final_norm": True}
    spec = {
        "architecture": "encoder-decoder",
        "position": {"kind": "sinusoidal"},
        "embedding": {"scale": "sqrt_d_model"},
        "encoder": {"layers": 2, **part},
        "decoder": {"layers": 3, **part},
        "head": {"kind": "language_modeling", "tie_embeddings": False, "bias": True},
    }
    model = model_of(spec, reference, tmp_path)
    ids, mask = ragged(3, 9, VOCAB, "right", 6)
    targets, target_mask = ragged(3, 7, VOCAB, "right", 7)
    causal = torch.ones(7, 7, dtype=torch.bool).triu(1)

    def embedded(tokens):
        return reference.embedding(tokens) * math.sqrt(WIDTH) + vaswani(tokens.shape[1], WIDTH)

    with torch.no_grad():
        hidden = reference(
            embedded(ids), embedded(targets), tgt_mask=causal, src_key_padding_mask=mask == 0,
            tgt_key_padding_mask=target_mask == 0, memory_key_padding_mask=mask == 0,
        )  # fmt: skip
        assert_close(model(ids, targets, mask, target_mask).logits, reference.scores(hidden), target_mask)
