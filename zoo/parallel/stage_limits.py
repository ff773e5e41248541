"""Whether a model can be cut in stages of a pipeline: what its layers share, and what a stage does not pass on."""

from __future__ import annotations

from collections.abc import Iterator

from specs.base.errors import UserError
from zoo.builder import ZooModel
from zoo.components.per_layer_embedding import PerLayerEmbedding
from zoo.models.stack import Stack
from zoo.weights.ties import tied_names


def check_stages(model: ZooModel, degree: int) -> None:
    """Raise :class:`specs.base.errors.UserError` unless a model can be cut in ``degree`` stages."""
    if degree == 1:
        return
    where = f"value: pp={degree}"
    if not model.in_stages:
        raise UserError(
            f"architecture: a pipeline needs an encoder or a decoder of tokens, not {model.spec.architecture}\n"
            f"  {where}\n  Use dp or tp."
        )
    ((name, _),) = model.spec.stacks()
    stack: Stack = model.get_submodule(name)  # type: ignore[assignment]
    depth = len(stack.blocks)
    if depth < degree:
        fitting = " or ".join(str(count) for count in range(1, depth + 1) if depth % count == 0)
        raise UserError(
            f"{name}.layers: a pipeline needs a layer for each stage, and there are {depth}\n  {where}\n"
            f"  Use pp={fitting}."
        )
    blocks = dict(model.spec.stacks())[name].layer_blocks()
    reading = [layer for layer, block in enumerate(blocks) if block.reads_embedding]
    if reading:
        raise UserError(
            f"{name}.blocks.{reading[0]}: a stage of a pipeline does not pass the embedding on, which this block reads\n"
            f"  {where}\n  Use dp or tp."
        )
    shared = list(_across_stages(model, name, stack))
    if shared:
        raise UserError(
            f"{shared[0]}, and stages of a pipeline share no weights\n  {where}\n"
            "  Use dp or tp, or a spec with weights of their own, such as head.tie_embeddings: false."
        )


def _across_stages(model: ZooModel, name: str, stack: Stack) -> Iterator[str]:
    """The weights and inputs that layers of a stack, or the embedding and the head, share."""
    if len(set(stack.blocks)) < len(stack.blocks):
        yield f"{name}.layers share a block"
    yield from (f"{name}.{tie}" for tie in stack.ties_between_layers())
    blocks = model.spec.last_stack.layer_blocks()
    if any(mixer.reads_first_layer for block in blocks for mixer in block.mixers):
        yield f"{name}.layers read the values of the first"
    if any(isinstance(module, PerLayerEmbedding) for module in stack.modules()):
        yield f"{name}.layers embed the tokens of the first stage"
    for other, first in tied_names(model).items():
        if "blocks" not in first:
            yield f"head and embedding share {first}"
        elif _layer(other) != _layer(first):
            yield f"{other} is {first}"
    for leaf, _ in stack.position.named_parameters():
        yield f"all layers share {name}.position.{leaf}"


def _layer(path: str) -> str:
    """The layer of a weight of a stack, such as ``decoder.blocks.3``."""
    return ".".join(path.split(".")[:3])
