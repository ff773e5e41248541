"""Checks of the additional outputs of an export, and what they ask of its target."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from exporters.steps.options import ExportOptions
from exporters.target.targets import TARGETS, Target
from specs.base.errors import UserError, option_name
from specs.model.model import Model
from zoo.layer_outputs.choice import LayerOutput, chosen_outputs


def attention_of_decoder(outputs: Iterable[LayerOutput]) -> bool:
    """Whether the outputs include weights of a decoder's attention to its own tokens."""
    return any((output.stack, output.kind) == ("decoder", "attention") for output in outputs)


def without_shared_caches(target: Target) -> Target:
    """The target with growing caches: an attention that writes into a shared buffer does not return its weights, and all
    attentions of a decoder hold their caches alike."""
    return replace(target, padding="either", cache_bits=frozenset())


def check_outputs(spec: Model, options: ExportOptions, target: Target) -> None:
    """Raise :class:`specs.base.errors.UserError` where an additional output does not apply to a model or a target."""
    outputs = chosen_outputs(spec, options.outputs)
    option = option_name("outputs")
    if spec.packs_images and any(output.stack == "image" for output in outputs):
        raise UserError(
            f"{option} cannot name the image stack of a model whose images have any size: its graph has patches of all images in one row\n"
            f"  value: {', '.join(options.outputs)}\n  Name layers of the decoder."
        )
    if not attention_of_decoder(outputs):
        return
    if target.static_cache:
        able = [other.name for other in TARGETS.values() if not other.static_cache]
        raise UserError(
            f"{option} attention needs a growing cache: a fixed one has slots without tokens\n"
            f"  value: {option_name('target')} {target.name}\n  Use {option_name('target')} {' or '.join(able)}."
        )
    if options.cache is not None:
        raise UserError(
            f"{option} attention cannot be combined with {option_name('cache_precision')}: attention with a quantized cache does "
            f"not return its weights\n  value: {options.cache.name}\n  Leave one of them out."
        )
