"""What a model returns."""

from __future__ import annotations

from collections.abc import Sequence

from torch import Tensor

from zoo.components.attention import KeyValue


class Outputs(dict[str, Tensor]):
    """The tensors that the head names, also as attributes; ``present_key_values`` is the cache for the next call."""

    present_key_values: list[KeyValue]

    def __init__(self, tensors: dict[str, Tensor], present_key_values: Sequence[KeyValue] = ()) -> None:
        super().__init__(tensors)
        self.present_key_values = list(present_key_values)

    def __getattr__(self, name: str) -> Tensor:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"this model has no output {name!r}; it has {', '.join(self)}") from None
