"""Common parts of Llama and later decoders: the names of their config fields and tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zoo.families.common import fields as f
from zoo.families.common.attention import Heads
from zoo.families.common.decoders import ROTATIONS
from zoo.families.common.layers import Layers, LayerVariation
from zoo.families.common.rope import RopeField
from zoo.families.common.template import Template
from zoo.families.common.tensors import Rule, Tensors, affine, fused, modules, projections, same, weights

WHOLE_HEADS = "the reference rotates whole heads"


class LlamaFields:
    """The fields of a config with Llama's names, with a family's defaults.

    By default there are as many ``kv_heads`` as heads, and ``head_dim`` is the width of the model divided by the heads.
    """

    def __init__(
        self,
        *,
        vocab_size: int = 32000,
        hidden_size: int = 4096,
        intermediate_size: int = 11008,
        layers: int = 32,
        heads: int = 32,
        kv_heads: int | None = None,
        head_dim: int | None = None,
        context: int = 2048,
        eps: float = 1e-6,
        context_names: tuple[str, ...] = ("max_position_embeddings",),
    ) -> None:
        self.vocab_size = f.Int("vocab_size", default=vocab_size)
        self.d_model = f.Int("hidden_size", default=hidden_size)
        self.hidden = f.Int("intermediate_size", default=intermediate_size)
        self.depth = f.Depth("num_hidden_layers", default=layers)
        self.context = f.ContextLength(*context_names, default=context)
        heads_field = f.Int("num_attention_heads", default=heads)
        self.heads = Heads(self.d_model, heads_field, kv_heads=kv_heads, head_dim=head_dim)
        self.eps = f.Float("rms_norm_eps", default=eps)
        self.norm = {"kind": "rms_norm", "eps": self.eps}

    def feed_forward(self, **more: Template) -> dict[str, Template]:
        """A gated feed-forward."""
        default = {"hidden": self.hidden, "activation": f.Activation("hidden_act", "silu"), "bias": False}
        return {"kind": "gated", **default, **more}

    @property
    def qk_norm(self) -> dict[str, Template]:
        """Norms of queries and keys, head by head."""
        return {"norm": self.norm, "over": "head"}

    def mlp(self, bias: Template) -> dict[str, Template]:
        """A feed-forward without gate, by default with a squared rectifier."""
        activation = f.Activation("hidden_act", "relu2")
        return {"kind": "mlp", "hidden": self.hidden, "activation": activation, "bias": bias}

    def rope(self, **more: Any) -> RopeField:
        """A rotary position for the heads; the arguments go to :class:`RopeField`."""
        return RopeField(self.heads.width, self.context, **more)

    def attention(self, **more: Template) -> dict[str, Template]:
        """An attention with these heads."""
        return {"*": self.heads, "dropout": f.Float("attention_dropout", default=0.0), **more}

    def body(
        self,
        *,
        attention: dict[str, Template] | None,
        architecture: str = "decoder",
        position: Template = None,
        feed_forward: Template = None,
        varies: Sequence[LayerVariation] = (),
        more: dict[str, Template] | None = None,
        stack: dict[str, Template] | None = None,
        **block: Template,
    ) -> dict[str, Template]:
        """The template of a decoder, or an encoder: ``attention``, ``block`` and ``stack`` add keys to these parts, ``more`` to
        the model.

        An ``attention`` that states its kind replaces the usual one; None is for layers without.
        """
        if attention is not None and "kind" not in attention:
            attention = self.attention(**attention)
        return {
            "architecture": architecture,
            "vocab_size": self.vocab_size,
            "d_model": self.d_model,
            "context_length": self.context,
            "position": position or self.rope(whole=WHOLE_HEADS),
            **(more or {}),
            architecture: Layers(
                self.depth,
                {
                    "kind": "pre_norm",
                    "norm": self.norm,
                    **block,
                    "attention": attention,
                    "feed_forward": feed_forward or self.feed_forward(),
                },
                varies,
                **(stack or {}),
            ),
            "initialization": f.normal(),
        }


LAYER, BLOCK = "layers.{layer}.", "decoder.blocks.{layer}."
GATE_UP = fused(f"{LAYER}mlp.gate_up_proj", (f"{BLOCK}feed_forward.gate", f"{BLOCK}feed_forward.up"))
"""Gate and up stored as one, in Phi-3 and GLM-4."""

_NORMS = {
    "input_layernorm": "attention_norm",
    "self_attn.q_norm": "attention.query_norm",
    "self_attn.k_norm": "attention.key_norm",
    "post_attention_layernorm": "feed_forward_norm",
}
_LAYER = {
    **projections("self_attn.", "q_proj k_proj v_proj o_proj"),
    "mlp.gate_proj": "feed_forward.gate",
    "mlp.up_proj": "feed_forward.up",
    "mlp.down_proj": "feed_forward.down",
}


def layer_modules(pairs: dict[str, str]) -> tuple[Rule, ...]:
    """Modules of a layer: stored name -> ours."""
    return modules(pairs, LAYER, BLOCK)


def layer_weights(pairs: dict[str, str]) -> tuple[Rule, ...]:
    """Modules of a layer without biases."""
    return weights(pairs, LAYER, BLOCK)


def llama_tensors(
    name: str,
    *rules: Rule,
    stack: str = "decoder",
    without: tuple[str, ...] = (),
    unused: tuple[str, ...] = (),
    final_norm: str = "norm",
    **more: Any,
) -> Tensors:
    """Llama's tensors and further ``rules``, except Llama's modules whose names contain a part in ``without``.

    ``stack`` holds the layers, and ``unused`` are further tensors that no model reads.
    """

    def kept(pairs: dict[str, str]) -> dict[str, str]:
        return {theirs: ours for theirs, ours in pairs.items() if not any(part in theirs for part in without)}

    return Tensors(
        name,
        (
            *modules({"embed_tokens": "embedding.token", final_norm: f"{stack}.final_norm"}),
            *modules(kept({**_NORMS, **_LAYER}), LAYER, f"{stack}.blocks.{{layer}}."),
            *rules,
        ),
        prefix="model.",
        unused=(*ROTATIONS, *unused),
        **{**_HEADS, **more},
    )


_HEADS: dict[str, Any] = {
    "outside": ("lm_head.", "score.", "qa_outputs."),
    "heads": {
        "language_modeling": affine("lm_head", "head.vocabulary"),
        "classification": (same("score.weight", "head.labels.weight"),),
        "token_classification": affine("score", "head.labels"),
        "question_answering": affine("qa_outputs", "head.span"),
    },
    "optional": ("lm_head.weight", "score.*", "qa_outputs.*"),
}


LLAMA = llama_tensors("llama", head_prefixes={"question_answering": "transformer."})
"""Llama, OLMo, Qwen2 and 3 and SmolLM3."""
