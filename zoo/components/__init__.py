"""The built-in components; importing this package registers the builder of every built-in kind."""

from zoo.components import (
    attention,
    block,
    delta,
    embedding,
    feed_forward,
    head,
    latent,
    linear_attention,
    mamba,
    mamba2,
    mixture,
    norm,
    position,
    residual,
    rg_lru,
    short_convolution,
)

__all__ = [
    "attention",
    "block",
    "delta",
    "embedding",
    "feed_forward",
    "head",
    "latent",
    "linear_attention",
    "mamba",
    "mamba2",
    "mixture",
    "norm",
    "position",
    "residual",
    "rg_lru",
    "short_convolution",
]
