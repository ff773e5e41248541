"""Additional outputs in the comparison: their reported names, and attention weights by query.

Shapes: batch B, heads H, queries T, keys S.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch.nn.functional as F
from torch import Tensor

from specs.files.layer_outputs import OUTPUT_NAMES
from specs.model.model import Model
from zoo.layer_outputs.choice import LayerOutput

_WEIGHTS = tuple(f"{OUTPUT_NAMES[kind]}." for kind in ("attention", "cross"))


def reported_name(spec: Model, output: LayerOutput) -> str:
    """The name of an output in reports: the stack, unless it is the last, and the name in the graph."""
    own = output.stack == spec.last_stack_name and spec.architecture != "dual-encoder"
    return output.name if own else f"{output.stack} {output.name}"


def is_weights(name: str) -> bool:
    """Whether an output with this reported name holds attention weights."""
    return name.rpartition(" ")[2].startswith(_WEIGHTS)


def by_query(name: str, values: Tensor) -> Tensor:
    """An output with the queries of attention weights as its second axis: B H T S -> B T H S; others are unchanged."""
    return values.transpose(1, 2) if is_weights(name) else values


def with_as_many_keys(parts: Sequence[Tensor]) -> list[Tensor]:
    """The attention weights of several calls with zeros for the keys that follow a call: B T H S each."""
    most = max(part.shape[-1] for part in parts)
    return [F.pad(part, (0, most - part.shape[-1])) for part in parts]


def at_their_keys(weights: Tensor, mask: Tensor) -> Tensor:
    """Move the weights of keys at the front of each row to the positions where the mask is 1, with 0 elsewhere: B T H S, B S."""
    keys = (mask.cumsum(1) - 1).clamp(min=0)[:, None, None]  # B 1 1 S
    moved = weights.gather(3, keys.expand(-1, *weights.shape[1:3], -1))
    return moved * mask[:, None, None].to(weights.dtype)


def reported_outputs(spec: Model, recorded: Mapping[LayerOutput, Tensor]) -> dict[str, Tensor]:
    """The recorded outputs of a full pass by their reported names."""
    named = {reported_name(spec, output): values for output, values in recorded.items()}
    return {name: by_query(name, values) for name, values in named.items()}
