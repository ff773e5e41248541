"""The outputs of a model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch import Tensor
from torch.utils._pytree import register_pytree_node

from zoo.components.mixer import State
from zoo.core.precision import wide


class Outputs(dict[str, Tensor]):
    """The head's named outputs, in float32 or wider, also as attributes.

    ``present_key_values`` is the state of each layer for the next call.
    """

    present_key_values: list[State]

    def __init__(self, tensors: dict[str, Tensor], present_key_values: Sequence[State] = ()) -> None:
        super().__init__({name: wide(tensor) for name, tensor in tensors.items()})
        self.present_key_values = list(present_key_values)

    def __getattr__(self, name: str) -> Tensor:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(
                f"This model has no output {name!r}; its outputs are {', '.join(self)}."
            ) from None


def _flatten(outputs: Outputs) -> tuple[list[object], list[str]]:
    return [*outputs.values(), outputs.present_key_values], [*outputs]


def _unflatten(values: Iterable[object], names: list[str]) -> Outputs:
    *tensors, present = values
    outputs = Outputs({})
    outputs.update(zip(names, tensors, strict=True))  # type: ignore[arg-type]
    outputs.present_key_values = present  # type: ignore[assignment]
    return outputs


# Makes the tensors visible to torch.export.
register_pytree_node(Outputs, _flatten, _unflatten, serialized_type_name="zoo.models.outputs.Outputs")
