"""Composite families: an encoder and a decoder, each with the config and tensors of its own family."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

from specs.kinds.block import BlockParts
from specs.kinds.head import NoHead
from specs.model.model import Expectation, Model
from specs.model.stack import Stack
from zoo.families.common.template import UnfitError
from zoo.families.common.tensors import Rule


def encoder_of(model: Model) -> Model:
    """The encoder of an encoder-decoder as a model of its own, without a head."""
    assert model.encoder is not None
    takes_tokens = model.embedding_of(model.encoder).takes_tokens
    vocabulary = {} if takes_tokens else {"vocab_size": None, "context_length": None}
    return alone(model, "encoder", model.encoder, {"head": NoHead(), "decoder": None, **vocabulary})


def decoder_of(model: Model) -> Model:
    """The decoder of an encoder-decoder as a model of its own, without its attention to the encoder.

    Raises :class:`UnfitError` where that is not like its attention to itself.
    """
    assert model.decoder is not None

    def without(block: BlockParts) -> BlockParts:
        if block.cross_attention not in (None, block.attention):
            raise UnfitError("attention to the encoder unlike that to the decoder's own tokens")
        return block.model_copy(update={"cross_attention": None})

    decoder = model.decoder.model_copy(
        update={
            "block": without(model.decoder.named_block(None)),
            "blocks": {name: without(model.decoder.named_block(name)) for name in model.decoder.blocks},
        }
    )
    return alone(model, "decoder", decoder, {"encoder": None})


def alone(model: Model, name: Literal["encoder", "decoder"], stack: Stack, changes: dict[str, Any]) -> Model:
    """A stack of a model as a model of its own, with further changes."""
    inherited: dict[str, Any] = dict.fromkeys(("d_model", "embedding", "position", "context_length"))
    return model.model_copy(
        update={
            "architecture": name,
            "d_model": model.width_of(stack),
            "embedding": model.embedding_of(stack),
            "position": model.position_of(stack),
            "context_length": stack.context_length or model.context_length,
            "expect": Expectation(),
            **changes,
            name: stack.model_copy(update=inherited),
        }
    )


def rules_inside(
    side: Literal["encoder", "decoder"],
    rules: tuple[Rule, ...],
    prefix: str = "",
    *,
    under: str | None = None,
    **more: Any,
) -> tuple[Rule, ...]:
    """The rules of a family for its part of an encoder-decoder, where names begin with the side, or ``under``, and a ``prefix``.

    ``more`` are further fields of each rule, such as where it holds.
    """

    def stored(name: str) -> str:
        return f"{under or side}.{prefix}{name}"

    def ours(name: str) -> str:
        return f"{side}_{name}" if name.startswith("embedding.") else name

    return tuple(
        replace(
            rule,
            stored=stored(rule.stored),
            parameters=tuple(map(ours, rule.parameters)),
            copies=tuple(map(stored, rule.copies)),
            also=tuple(map(stored, rule.also)),
            beside=rule.beside and ours(rule.beside),
            **more,
        )
        for rule in rules
    )
