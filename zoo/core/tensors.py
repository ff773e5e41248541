"""The tensors that make up a model's weights: its parameters, and the persistent buffers beside them.

A buffer is stored, read and exported as a parameter is, but neither trained nor counted.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import Tensor, nn

from zoo.core.facts import FIXED


def weight_tensors(model: nn.Module, *, remove_duplicate: bool = True) -> Iterator[tuple[str, Tensor]]:
    """Every parameter by name, then every persistent buffer; tied ones come once, or under each of their names."""
    yield from model.named_parameters(remove_duplicate=remove_duplicate)
    seen = set()
    for path, module in model.named_modules(remove_duplicate=remove_duplicate):
        for leaf, buffer in module._buffers.items():
            passed_over = buffer is None or leaf in module._non_persistent_buffers_set
            if passed_over or (remove_duplicate and id(buffer) in seen):
                continue
            seen.add(id(buffer))
            yield f"{path}.{leaf}" if path else leaf, buffer


def weight_bytes(model: nn.Module) -> int:
    """The size of the weights in the model's own dtypes."""
    return sum(tensor.nbytes for _, tensor in weight_tensors(model))


def weight_count(model: nn.Module) -> int:
    """The number of values of all weights."""
    return sum(tensor.numel() for _, tensor in weight_tensors(model))


def fixed_values(model: nn.Module) -> dict[str, Tensor]:
    """The values that are known without drawing or reading them, by name.

    A module states them with a method ``fixed(leaf) -> Tensor | None``, such as a table of sinusoids: they hold
    wherever weights are drawn, and in a checkpoint that does not store them.
    """
    modules = dict(model.named_modules())
    tensors = {}
    for name, _ in weight_tensors(model):
        path, _, leaf = name.rpartition(".")
        if (values := FIXED.of(modules[path])(leaf)) is not None:
            tensors[name] = values
    return tensors
