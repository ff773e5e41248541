"""The tensors of a model in the form that a family's checkpoints store."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torch import Tensor, nn

from specs.model.model import Model
from zoo.core.tensors import fixed_values, weight_tensors
from zoo.families.common.tensors import StoredParameter, Tensors
from zoo.weights.modules import split_name
from zoo.weights.source import WeightError


def stored_tensors(
    model: nn.Module, spec: Model, names: Tensors, values: Callable[[str], Tensor] | None = None
) -> Iterator[tuple[str, Tensor]]:
    """Yield every stored tensor by its full name, one at a time; shared tensors come once, except a family's copies.

    The tensors of modules after the body come last, module by module.

    ``values`` returns a parameter in its own shape (default: the model's own). Raises :class:`WeightError`, naming them,
    where the family has no tensor for some parameters.
    """
    parameters = dict(weight_tensors(model, remove_duplicate=False))
    own = {id(tensor): name for name, tensor in weight_tensors(model)}
    fixed = fixed_values(model)
    table = names.table(spec, {name: tuple(tensor.shape) for name, tensor in parameters.items()})
    slots: dict[str, StoredParameter] = {}
    nameless = []
    for name, _ in weight_tensors(model):
        slot = table.find(name)
        if slot is not None:
            slots[slot.stored[0]] = slot
        elif name not in fixed:
            nameless.append(name)
    if nameless:
        more = f" and {len(nameless) - 8} more" if len(nameless) > 8 else ""
        raise WeightError(f"{names.name} checkpoints have no place for {', '.join(nameless[:8])}{more}")
    for slot in sorted(slots.values(), key=lambda slot: split_name(slot.stored[0])[0]):
        held = [parameters[part].detach() for part in slot.parameters]
        if values is not None:
            held = [values(own[id(parameters[part])]) for part in slot.parameters]
        for copy, stored in enumerate(slot.stored[: 1 + slot.copies]):
            for row, name in enumerate(slot.names(stored)):
                tensor = slot.transform.join(slot.parts(held, row)).contiguous()
                yield names.full(name, spec.head.stored_kind), tensor.clone() if copy else tensor
