"""The weights that a module holds."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from torch import Tensor, nn

from zoo.core.tensors import weight_tensors
from zoo.weights.blocks import Codes
from zoo.weights.input_scales import InputScales
from zoo.weights.source import WeightSource


class HeldWeights(WeightSource):
    """A source with the weights of a filled module, so that none is drawn or converted twice.

    ``origin`` is the source that filled it, if any: bytes that its files hold in the wanted form are still copied
    from there.
    """

    def __init__(self, module: nn.Module, origin: WeightSource | None = None) -> None:
        self.description = "a module in memory" if origin is None else origin.description
        self._tensors = dict(weight_tensors(module))
        self._origin = origin

    def pieces(self, name: str) -> Iterator[Tensor]:
        yield self._tensors[name].detach().cpu().reshape(-1)

    def raw(self, name: str) -> tuple[Path, int, int] | None:
        return None if self._origin is None else self._origin.raw(name)

    def codes(self, name: str) -> Codes | None:
        return None if self._origin is None else self._origin.codes(name)

    def input_scales(self, names: tuple[str, ...]) -> InputScales | None:
        return None if self._origin is None else self._origin.input_scales(names)

    def format(self, name: str) -> str | None:
        return None if self._origin is None else self._origin.format(name)
