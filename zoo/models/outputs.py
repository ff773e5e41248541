"""What a model returns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch import Tensor
from torch.utils._pytree import register_pytree_node

from zoo.components.attention import KeyValue
from zoo.precision import wide


class Outputs(dict[str, Tensor]):
    """The tensors that the head names, in float32 at least, also as attributes.

    ``present_key_values`` is the cache for the next call, in the dtype of the weights.
    """

    present_key_values: list[KeyValue]

    def __init__(self, tensors: dict[str, Tensor], present_key_values: Sequence[KeyValue] = ()) -> None:
        super().__init__({name: wide(tensor) for name, tensor in tensors.items()})
        self.present_key_values = list(present_key_values)

    def __getattr__(self, name: str) -> Tensor:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"this model has no output {name!r}; it has {', '.join(self)}") from None


def _flatten(outputs: Outputs) -> tuple[list[object], list[str]]:
    return [*outputs.values(), outputs.present_key_values], [*outputs]


def _unflatten(values: Iterable[object], names: list[str]) -> Outputs:
    *tensors, present = values
    found = Outputs({})
    found.update(zip(names, tensors, strict=True))  # type: ignore[arg-type]
    found.present_key_values = present  # type: ignore[assignment]
    return found


# What lets torch.export see the tensors.
register_pytree_node(Outputs, _flatten, _unflatten, serialized_type_name="zoo.models.outputs.Outputs")
