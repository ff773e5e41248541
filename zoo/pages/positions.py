"""The positions of a model: on embeddings, or in the attention of some layers."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from typing import Any

from specs.kinds.position import NoPosition
from specs.model.model import Model
from specs.model.stack import Stack as StackSpec
from zoo.builder import ZooModel
from zoo.components.position import Position
from zoo.models.stack import Stack
from zoo.pages.markup import layers_text, section
from zoo.pages.position_drawings import Drawing, Use, drawing_of


def positions_section(model: ZooModel, spec: Model) -> tuple[str, list[dict[str, Any]]]:
    """The drawings of all positions, equal ones merged, with the data of each for the page's script."""
    alike: dict[tuple[str, str, tuple[str, ...]], tuple[list[str], Drawing]] = {}
    for use in uses(model, spec):
        drawing = drawing_of(use)
        key = drawing.title, drawing.about, tuple(drawing.figures)
        alike.setdefault(key, ([], drawing))[0].append(use.title)
    parts, data = [], []
    for places, drawing in alike.values():
        figures = "".join(drawing.figures)
        parts.append(
            f'<article class="position"><h3>{escape(drawing.title)} <span class="quiet">{escape("; ".join(places))}</span></h3>'
            f'<p>{escape(drawing.about)}</p><div class="figures">{figures}</div></article>'
        )
        data.append(dict(drawing.data))
    about = "Computed with the modules of the model, scaling included."
    return section("positions", "Positions", about, "\n".join(parts)), data


def uses(model: ZooModel, spec: Model) -> list[Use]:
    """Every position of a model, stack by stack; a stack without positions is listed with none."""
    positions: list[Use] = []
    for name, stack_spec in spec.stacks():
        positions += _stack_uses(model, spec, name, stack_spec)
    return positions


def _stack_uses(model: ZooModel, spec: Model, name: str, stack_spec: StackSpec) -> Iterator[Use]:
    stack_position, length = spec.position_of(stack_spec), spec.context_length_of(stack_spec)
    both = len(list(spec.stacks())) > 1
    if stack_position.embedded:
        embedding: Any = model.get_submodule(f"{name}_embedding" if both else "embedding")
        width = spec.embedding_of(stack_spec).position_width(spec.width_of(stack_spec))
        yield Use(
            f"{name}'s embedding" if both else "embedding", embedding.position, stack_position, width, length
        )
    stack: Stack = model.get_submodule(name)  # type: ignore[assignment]
    attentions = [block.attention for block in stack_spec.layer_blocks()]
    layers: dict[Position, list[int]] = {}
    for layer, attention in stack.attentions.items():
        layers.setdefault(stack.position_of(attention), []).append(layer)
    for position, indices in layers.items():
        own = attentions[indices[0]]
        assert own is not None
        kind = own.own_position or (NoPosition() if stack_position.embedded else stack_position)
        if stack_position.embedded and kind.is_none:
            continue
        width = own.head_width(spec.width_of(stack_spec))
        text = layers_text(indices, len(stack.blocks))
        yield Use(f"{name}, {text}" if both else text, position, kind, width, length)
