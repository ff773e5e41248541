"""``torch.nn.Transformer``, ``nn.TransformerEncoder`` and one ``nn.TransformerEncoderLayer``, which have no config.

``nn.MultiheadAttention`` stores queries, keys and values as one.  A single stack or layer is read as a model without other
parts.  The stacks take vectors; the embedding is stored as ``embedding`` and an untied head as ``generator``.
"""

from __future__ import annotations

from dataclasses import replace

from zoo.families.common.family import Family
from zoo.families.common.tensors import Rule, Tensors, affine, same
from zoo.families.common.transforms import STACKED

_ALONE = {
    "layers.": "encoder.",
    "norm.": "encoder.",
    **dict.fromkeys(("self_attn.", "linear1.", "linear2.", "norm1.", "norm2."), "encoder.layers.0."),
}
"""The prefixes that a single stack or layer has, and those that it lacks."""


class _TorchNames(Tensors):
    def plain(self, name: str) -> str:
        name = name.removeprefix("transformer.")
        return next((prefix + name for start, prefix in _ALONE.items() if name.startswith(start)), name)


def _attention(stored: str, module: str) -> tuple[Rule, ...]:
    projections = [f"{module}.{projection}" for projection in ("query", "key", "value")]
    fused = (
        Rule(f"{stored}.in_proj_{leaf}", tuple(f"{projection}.{leaf}" for projection in projections), STACKED)
        for leaf in ("weight", "bias")
    )
    return *fused, *affine(f"{stored}.out_proj", f"{module}.output")


def _stack(stored: str, stack: str) -> tuple[Rule, ...]:
    layer, block = f"{stored}.layers.{{layer}}", f"{stack}.blocks.{{layer}}"
    return (
        *_attention(f"{layer}.self_attn", f"{block}.attention"),
        *_attention(f"{layer}.multihead_attn", f"{block}.cross_attention"),
        *affine(f"{layer}.linear1", f"{block}.feed_forward.up"),
        *affine(f"{layer}.linear2", f"{block}.feed_forward.down"),
        *affine(f"{layer}.norm1", f"{block}.attention_norm"),
        *affine(f"{layer}.norm2", f"{block}.cross_attention_norm"),
        *affine(f"{layer}.norm2", f"{block}.feed_forward_norm"),
        *(
            same(f"{layer}.norm3.{leaf}", f"{block}.feed_forward_norm.{leaf}", beside=f"{block}.cross_attention_norm.{leaf}")
            for leaf in ("weight", "bias")
        ),
        *affine(f"{stored}.norm", f"{stack}.final_norm"),
    )  # fmt: skip


_DECODER_ALONE = tuple(
    replace(rule, where=lambda spec: spec.encoder is None) for rule in _stack("encoder", "decoder")
)
"""A decoder without an encoder is an encoder with a causal mask: nn.TransformerDecoder always attends to one."""

TORCH = _TorchNames(
    name="torch",
    rules=(
        same("embedding.weight", "embedding.token.weight"),
        same("embedding.weight", "encoder_embedding.token.weight"),
        *_DECODER_ALONE,
        *_stack("encoder", "encoder"),
        *_stack("decoder", "decoder"),
    ),
    heads={"language_modeling": affine("generator", "head.vocabulary")},
    remedies={
        "embedding.weight": "torch.nn's stacks take vectors: store the table that gives them beside them, as embedding.weight",
        "generator.weight": "a head of its own is to be stored as generator.weight; head.tie_embeddings: true needs none",
    },
)

FAMILIES = (Family("torch", TORCH),)
