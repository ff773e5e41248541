"""The stacks of a model that is to be written, their embeddings, and where the generated classes have them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from specs.model.model import Model
from zoo.components.embedding import Embedding
from zoo.models.stack import Stack

_PLACES = {
    "encoder_embedding": "encoder.embedding",
    "encoder": "encoder.stack",
    "decoder_embedding": "decoder.embedding",
    "decoder": "decoder.stack",
}


@dataclass(frozen=True)
class EmbeddedStack:
    """A stack with its embedding; ``path`` is the stack's place in the generated model."""

    name: str
    stack: Stack
    embedding: Embedding
    path: str


def parts_of(model: Any, spec: Model) -> list[EmbeddedStack]:
    """The parts of a model in order: the decoder last."""
    if spec.architecture != "encoder-decoder":
        name = spec.architecture
        return [EmbeddedStack(name, getattr(model, name), model.embedding, name)]
    return [
        EmbeddedStack(name, getattr(model, name), getattr(model, f"{name}_embedding"), _PLACES[name])
        for name in ("encoder", "decoder")
    ]


def place_of(name: str, spec: Model) -> str:
    """The name in the generated model of a parameter that is not the head's."""
    if spec.architecture != "encoder-decoder":
        return name
    first, _, rest = name.partition(".")
    return f"{_PLACES[first]}.{rest}"
