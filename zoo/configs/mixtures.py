"""What the configs of mixtures of experts have in common."""

from __future__ import annotations

from collections.abc import Collection

from specs.feed_forward import Gated, TwoLayer
from specs.mixture import Mixture
from specs.model import Model
from zoo.configs.config import Config
from zoo.configs.decoders import stack_of
from zoo.configs.family import Data, UnfitError


def training_alone(config: Config) -> None:
    """Pass over the fields that say how routers are trained, or whether their scores are given out."""
    config.ignore(
        "output_router_logits", "router_aux_loss_coef", "router_jitter_noise", "aux_loss_alpha", "seq_aux"
    )


def read_dense_layers(config: Config, layers: int) -> list[bool]:
    """Which layers have an ordinary feed-forward, of a config with decoder_sparse_step and mlp_only_layers (Qwen)."""
    step = config.int("decoder_sparse_step", default=1)
    if step < 1:
        config.refuse("decoder_sparse_step", "must be at least 1")
    dense: Collection[int] = config.list("mlp_only_layers", default=[])
    if not all(type(layer) is int for layer in dense):
        config.refuse("mlp_only_layers", "must be a list of layers by number, from 0")
    return [layer in dense or (layer + 1) % step != 0 for layer in range(layers)]


def mixtures_of(model: Model) -> list[Mixture | None]:
    """The mixture of every layer, None where its feed-forward is an ordinary one."""
    parts = [block.feed_forward for block in stack_of(model).layer_blocks()]
    return [part if isinstance(part, Mixture) else None for part in parts]


def mixture_of(model: Model) -> Mixture:
    """The first mixture of a model, which has to have one: where others differ, reading back tells."""
    mixture = next(filter(None, mixtures_of(model)), None)
    if mixture is None:
        raise UnfitError("layers that all have an ordinary feed-forward")
    return mixture


def expert_of(mixture: Mixture) -> Gated:
    """What every expert of a mixture is, which has to be gated."""
    if not isinstance(mixture.expert, Gated):
        raise UnfitError(f"experts of kind {mixture.expert.kind}")
    return mixture.expert


def dense_of(model: Model) -> TwoLayer:
    """The ordinary feed-forward of a model, or where it has none that of its experts."""
    parts = [block.feed_forward for block in stack_of(model).layer_blocks()]
    dense = next((part for part in parts if isinstance(part, TwoLayer)), None)
    return dense or expert_of(mixture_of(model))


def shared_width(mixture: Mixture) -> int | None:
    """The hidden width of the feed-forward that every token passes."""
    return mixture.shared.hidden if isinstance(mixture.shared, TwoLayer) else None


def write_dense_layers(model: Model) -> Data:
    """The fields of :func:`read_dense_layers`."""
    mixtures = mixtures_of(model)
    return {
        "decoder_sparse_step": 1,
        "mlp_only_layers": [layer for layer, mixture in enumerate(mixtures) if mixture is None],
    }
