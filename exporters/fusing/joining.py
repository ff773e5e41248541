"""Linear layers of the same input as one product."""

from __future__ import annotations

from collections.abc import Sequence

import torch.nn.functional as F
from torch import fx

from exporters.fusing.functions import joined_linear
from exporters.fusing.rewriter import Rewriter


def join(rewriter: Rewriter, linears: Sequence[fx.Node]) -> fx.Node | None:
    """One product with the weights of several linear layers, in front of the first of them.

    None where they are not linear layers of one input, or only some have biases.
    """
    if any(node.target is not F.linear for node in linears):
        return None
    given = [[*node.args, *node.kwargs.values()] for node in linears]
    inputs, weights, biases = zip(*[[*args, None][:3] for args in given], strict=True)
    if len(set(inputs)) > 1 or len({bias is None for bias in biases}) > 1:
        return None
    first = min(linears)
    path = first.meta["path"].rpartition(".")[0]
    present = [] if None in biases else [[*biases]]
    return rewriter.insert(first, joined_linear, inputs[0], [*weights], *present, path=path)
