"""Rewriting a traced graph: what a target has an operation for takes the place of what it means.

Each rewrite looks at the functions of :mod:`zoo.functional` that nodes mean, and puts a function of
:mod:`exporters.fusing.functions` in their place where the target takes its operation; everything else stays.
"""

from __future__ import annotations

from torch import fx

from exporters.fusing.activations import fuse_bias_activations
from exporters.fusing.group_query_attention import OPERATION, fuse_group_query_attention
from exporters.fusing.multi_head_attention import fuse_multi_head_attention
from exporters.fusing.norms import fuse_skip_norms
from exporters.fusing.packing import pack_tokens
from exporters.fusing.rewriter import Rewriter
from exporters.fusing.standard import fuse_standard
from exporters.fusing.widening import widen
from exporters.targets import Target
from zoo import functional


def fuse(graph: fx.Graph, target: Target, context_length: int | None) -> list[str]:
    """Rewrite a traced graph for a target; ``context_length`` is that of its model.

    Returns what could not be fused, and why.
    """
    rewriter = Rewriter(graph)
    widen(rewriter)
    unfit = fuse_group_query_attention(rewriter, target, context_length)
    fuse_multi_head_attention(rewriter, target)
    fuse_skip_norms(rewriter, target)
    fuse_bias_activations(rewriter, target)
    unfused = fuse_standard(rewriter, target)
    if unfit and not any(node.users for node, _ in rewriter.meant(functional.attention)):
        unfit += "; another operation does it, with a cache that grows"
    padded = pack_tokens(rewriter) if target.packs_tokens else None
    rewriter.finish()
    reasons = ((OPERATION, unfit), ("no padding", padded))
    return [*(f"{label}: {reason}" for label, reason in reasons if reason), *unfused]
