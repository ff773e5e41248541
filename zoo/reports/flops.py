"""FLOPs of traced calls, from the entries of their operations."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from torch import fx

from zoo.ops import TensorInfo, operation_of, target_name
from zoo.ops.flops import Flops
from zoo.ops.saved import NodeInfos
from zoo.ops.tensor_info import element_count, info_on_meta


def flops_at(node: fx.Node, infos: NodeInfos) -> Flops:
    """FLOPs of a call, with ``infos`` of every value at some sizes.

    For an operation without an entry, torch counts the matrix products, and each element of the result counts one FLOP.
    """
    result = infos[node]
    if not isinstance(result, TensorInfo | tuple):
        return Flops()
    args: Any = fx.map_arg(node.args, infos.__getitem__)
    kwargs: Any = fx.map_arg(node.kwargs, infos.__getitem__)
    entry = operation_of(node.target)
    if entry is None:
        return Flops(_counted_by_torch(node.target, args, kwargs), element_count(result))
    return entry.flops(result, *args, **kwargs)


def operations_without_entry(calls: Iterable[fx.Node]) -> tuple[str, ...]:
    """The names of the operations whose FLOPs and saved tensors are estimates."""
    unknown = (call.target for call in calls if operation_of(call.target) is None)
    return tuple(sorted({target_name(target) for target in unknown}))


def _counted_by_torch(target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    from torch.utils.flop_counter import FlopCounterMode

    with FlopCounterMode(display=False) as counter:
        info_on_meta(target, args, kwargs)
    return int(counter.get_total_flops())
