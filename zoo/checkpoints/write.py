"""The tensors of a model as the checkpoints of a family store them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torch import Tensor, nn

from specs.model import Model
from zoo.checkpoints.family import Family, Slot
from zoo.tensors import fixed_values, weight_tensors
from zoo.weights.modules import split_name
from zoo.weights.source import WeightError


def stored_tensors(
    model: nn.Module, spec: Model, family: Family, values: Callable[[str], Tensor] | None = None
) -> Iterator[tuple[str, Tensor]]:
    """Every stored tensor by its full name, one at a time; what the model shares comes once, but for a family's copies.

    Those of modules after the body come last, module by module.

    ``values`` gives those of a parameter, whole and in its own shape (default: what the model holds).  Raises
    :class:`WeightError`, naming them, when the family has no place for some parameters.
    """
    parameters = dict(weight_tensors(model, remove_duplicate=False))
    own = {id(tensor): name for name, tensor in weight_tensors(model)}
    fixed = fixed_values(model)
    table = family.table(spec, {name: tuple(tensor.shape) for name, tensor in parameters.items()})
    slots: dict[str, Slot] = {}
    nameless = []
    for name, _ in weight_tensors(model):
        slot = table.find(name)
        if slot is not None:
            slots[slot.stored[0]] = slot
        elif name not in fixed:
            nameless.append(name)
    if nameless:
        more = f" and {len(nameless) - 8} more" if len(nameless) > 8 else ""
        raise WeightError(f"{family.name} checkpoints have no place for {', '.join(nameless[:8])}{more}")
    for slot in sorted(slots.values(), key=lambda slot: split_name(slot.stored[0])[0]):
        held = [parameters[part].detach() for part in slot.parameters]
        if values is not None:
            held = [values(own[id(parameters[part])]) for part in slot.parameters]
        for copy, stored in enumerate(slot.stored[: 1 + slot.copies]):
            for row, name in enumerate(slot.names(stored)):
                parts = [part[row] for part in held] if slot.field else held
                tensor = slot.transform.join(parts).contiguous()
                yield family.full(name, spec.head.kind), tensor.clone() if copy else tensor
