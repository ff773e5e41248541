"""Fields of Qwen's configs: windows, which a separate field switches on, and mixtures in some layers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.layer_lists import SLIDING, read_numbers
from zoo.families.common.llama_like import LlamaFields
from zoo.families.common.mixtures import DenseLayers, mixture
from zoo.families.common.template import Data, Field, FieldContext, Template, UnfitError
from zoo.families.common.windowed_layers import Windows


class QwenWindow(Field):
    """A window that applies only with use_sliding_window."""

    def read(self, config: Config) -> int | None:
        default = None if config.null("sliding_window") else 4096
        window: int | None = config.int("sliding_window", default=default)
        return window if config.bool("use_sliding_window", default=False) else None

    def write(self, value: int | None, context: FieldContext) -> Data:
        return {"use_sliding_window": value is not None, "sliding_window": value}


class QwenWindows(Windows):
    """The layers with such a window.  Without ``layer_types``, ``default`` decides from the layer and max_window_layers."""

    def __init__(
        self,
        default: Callable[[int, int], bool],
        written: Callable[[Sequence[bool]], Data] = lambda where: {},
    ) -> None:
        def windowed(config: Config, depth: int) -> list[bool]:
            bound = config.int("max_window_layers", default=28)
            has_window = self.window.read(config) is not None
            return [has_window and default(layer, bound) for layer in range(depth)]

        missing = (
            "layer_types",
            f"has {SLIDING} without a window",
            "set use_sliding_window and sliding_window",
        )
        super().__init__("windowed", QwenWindow(), windowed, missing, written)


def _first(where: Sequence[bool]) -> Data:
    """The first layer with a window."""
    return {"max_window_layers": where.index(True) if any(where) else len(where)}


LAST_LAYERS = QwenWindows(lambda layer, first: layer >= first, _first)
"""Windows from the layer max_window_layers on."""


class SparseStep(DenseLayers):
    """The layers without a mixture: mlp_only_layers, and all but every decoder_sparse_step-th; ``default`` are the former."""

    def __init__(self, feed_forward: Template, default: Sequence[int] = ()) -> None:
        super().__init__(feed_forward)
        self.default = default

    def read(self, config: Config, depth: int) -> list[bool]:
        step = f.Positive("decoder_sparse_step", default=1).read(config)
        dense = read_numbers(config, "mlp_only_layers", self.default) or []
        return [layer in dense or (layer + 1) % step != 0 for layer in range(depth)]

    def write(self, where: Sequence[bool], context: FieldContext) -> Data:
        if all(where):
            raise UnfitError("layers that all have an ordinary feed-forward")
        dense = [layer for layer, ordinary in enumerate(where) if ordinary]
        return {"decoder_sparse_step": 1, "mlp_only_layers": dense}


def qwen_mixture(
    fields: LlamaFields, experts: int, top_k: int, hidden: int, *, normalize: bool = False, **more: Template
) -> Template:
    """The mixture whose experts are as the ordinary feed-forward, but narrower."""
    expert = fields.feed_forward(hidden=f.Int("moe_intermediate_size", default=hidden))
    router = {"normalize": f.Bool("norm_topk_prob", default=normalize)}
    count = f.Int("num_experts", "num_local_experts", default=experts)
    return mixture(count, top_k, expert, **{"router": router, **more})
