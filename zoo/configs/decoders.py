"""What the configs of decoders after Llama have in common."""

from __future__ import annotations

from typing import Any

from specs.attention import MultiHeadShape
from specs.base import Component
from specs.block import BlockParts
from specs.embedding import Tokens
from specs.feed_forward import MLP, Gated
from specs.model import Model
from specs.stack import Stack
from zoo.configs.activations import write_activation
from zoo.configs.config import Config
from zoo.configs.family import Data, UnfitError

CONTEXT = 2048
"""max_position_embeddings of a spec without a context_length."""


def grouped_query(
    config: Config, *, heads: int, width: int, d_model: int, kv_heads: int | None = None
) -> Data:
    """The attention of a config with num_key_value_heads, head_dim and attention_dropout; biases are the family's.

    ``kv_heads`` is what the family has where a config does not say (default: ``heads``).
    """
    kv_heads = config.int("num_key_value_heads", default=kv_heads or heads)
    attention: Data = {"kind": "multi_head", "heads": heads}
    if kv_heads != heads:
        attention = {"kind": "grouped_query", "heads": heads, "kv_heads": kv_heads}
    if width * heads != d_model:
        attention["head_dim"] = width
    dropout = config.float("attention_dropout", default=0.0)
    return {**attention, "dropout": dropout} if dropout else attention


def stack_of(model: Model) -> Stack:
    """The decoder of a decoder, or the encoder of an encoder."""
    stacks = [stack for _, stack in model.stacks()]
    if len(stacks) != 1:
        raise UnfitError(f"architecture {model.architecture}")
    return stacks[0]


def only_block(model: Model) -> BlockParts:
    """The block of the first layer: where others differ, reading back tells."""
    return stack_of(model).layer_blocks()[0]


def tokens_of(model: Model) -> Tokens:
    """The embedding of a model, which has to be of tokens."""
    if not isinstance(model.embedding, Tokens):
        raise UnfitError(f"embedding kind {model.embedding.kind}")
    return model.embedding


def attention_of(block: BlockParts) -> MultiHeadShape:
    """The attention of a block, which has to have heads."""
    if not isinstance(block.attention, MultiHeadShape):
        raise UnfitError(f"attention kind {block.attention.kind}")
    return block.attention


def gated_of(block: BlockParts) -> Gated:
    """The feed-forward of a block, which has to be gated."""
    if not isinstance(block.feed_forward, Gated):
        raise UnfitError(f"feed_forward kind {block.feed_forward.kind}")
    return block.feed_forward


def mlp_of(block: BlockParts) -> MLP:
    """The feed-forward of a block, which has to have two layers."""
    if not isinstance(block.feed_forward, MLP):
        raise UnfitError(f"feed_forward kind {block.feed_forward.kind}")
    return block.feed_forward


def eps_of(norm: Component | None) -> float:
    """The eps of a norm, which has to have one."""
    eps: Any = getattr(norm, "eps", None)
    if eps is None:
        raise UnfitError(f"norm kind {norm.kind}" if norm is not None else "no norm")
    return float(eps)


def std_of(model: Model) -> Data:
    """initializer_range, where the recipe is a normal one."""
    std = getattr(model.initialization, "std", None)
    return {} if std is None else {"initializer_range": std}


def write_attention(attention: MultiHeadShape, model: Model) -> Data:
    """The heads of an attention."""
    return {
        "num_attention_heads": attention.heads,
        "num_key_value_heads": attention.key_value_heads,
        "head_dim": attention.head_width(model.d_model),
        "attention_dropout": attention.dropout,
    }


def write_sizes(model: Model, block: BlockParts, feed_forward: Component | None = None) -> Data:
    """The fields that a config has under the names of most families: sizes, hidden layer, longest input.

    ``feed_forward`` is what the hidden layer is of (default: the block's).
    """
    feed_forward = feed_forward or block.feed_forward
    if not isinstance(feed_forward, Gated | MLP):
        raise UnfitError(f"feed_forward kind {feed_forward.kind}")
    return {
        "vocab_size": model.vocab_size,
        "hidden_size": model.d_model,
        "num_hidden_layers": stack_of(model).depth,
        "num_attention_heads": attention_of(block).heads,
        "intermediate_size": feed_forward.hidden,
        "hidden_act": write_activation(feed_forward.activation),
        "max_position_embeddings": model.context_length or CONTEXT,
        **std_of(model),
    }


def write_common(model: Model, block: BlockParts, feed_forward: Component | None = None) -> Data:
    """The fields that a config has under Llama's names: sizes, heads, norm."""
    return {
        **write_sizes(model, block, feed_forward),
        **write_attention(attention_of(block), model),
        "rms_norm_eps": eps_of(block.norm),
    }
