"""Taking the last token of each row where no row has padding."""

from __future__ import annotations

from typing import Any

from exporters.graph.fusing.functions import entry
from exporters.graph.fusing.rewriter import Rewriter
from exporters.target.targets import Target
from zoo import functional
from zoo.ops import TensorInfo


def last_unless_padded(x: Any, mask: Any) -> Any:
    """:func:`zoo.functional.last_real`, which looks for the last real tokens only if there is padding."""
    raise NotImplementedError


@entry(last_unless_padded)
def _last_unless_padded(x: TensorInfo, mask: TensorInfo) -> TensorInfo:
    return x.with_shape(x.shape[0], x.shape[2])


def fuse_last_tokens(rewriter: Rewriter, target: Target) -> None:
    """Branch on the padding among the new tokens of a decoder, whose mask is the end of the mask of all tokens."""
    for node, call in rewriter.semantic_calls(functional.last_real):
        if target.branches_on_padding and call.args[1].target == "narrow":
            rewriter.replace(node, rewriter.insert(node, last_unless_padded, *call.args))
