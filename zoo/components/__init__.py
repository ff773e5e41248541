"""The built-in components; importing this package registers the builder of every built-in kind."""

from zoo.components import (
    attention,
    block,
    embedding,
    feed_forward,
    head,
    latent,
    mixture,
    norm,
    position,
    residual,
)

__all__ = [
    "attention",
    "block",
    "embedding",
    "feed_forward",
    "head",
    "latent",
    "mixture",
    "norm",
    "position",
    "residual",
]
