"""Fusing: operations of a target replace the bodies of semantic functions.

Each rewrite looks for calls of semantic functions of :mod:`zoo.functional` and replaces them by functions of
:mod:`exporters.graph.fusing.functions` if the target has the operation; everything else stays.
"""

from __future__ import annotations

from torch import fx

from exporters.graph.fusing.convolutions import fuse_causal_convolutions
from exporters.graph.fusing.gates import fuse_delta_gates, fuse_gated_norms
from exporters.graph.fusing.group_query_attention import OPERATION, fuse_group_query_attention
from exporters.graph.fusing.last_tokens import fuse_last_tokens
from exporters.graph.fusing.linear_layers import fuse_bias_activations, widen
from exporters.graph.fusing.mixtures import fuse_mixtures
from exporters.graph.fusing.multi_head_attention import fuse_multi_head_attention
from exporters.graph.fusing.norms import fuse_skip_norms, fuse_unit_lengths
from exporters.graph.fusing.packing import pack_tokens
from exporters.graph.fusing.recurrences import unfused_recurrences
from exporters.graph.fusing.rewriter import Rewriter
from exporters.graph.fusing.standard import fuse_standard
from exporters.target.targets import Target
from zoo import functional


def fuse(graph: fx.Graph, target: Target, context_length: int | None) -> list[str]:
    """Rewrite a traced graph for a target; ``context_length`` is its model's.

    Returns a reason for each call that could not be fused.
    """
    rewriter = Rewriter(graph)
    widen(rewriter)
    unfit = fuse_group_query_attention(rewriter, target, context_length)
    mixtures = fuse_mixtures(rewriter, target)
    convolutions = fuse_causal_convolutions(rewriter, target)
    fuse_last_tokens(rewriter, target)
    fuse_multi_head_attention(rewriter, target)
    fuse_skip_norms(rewriter, target)
    fuse_unit_lengths(rewriter)
    fuse_gated_norms(rewriter, target)
    fuse_delta_gates(rewriter, target)
    fuse_bias_activations(rewriter, target)
    unfused = fuse_standard(rewriter, target)
    if unfit and not any(node.users for node, _ in rewriter.semantic_calls(functional.attention)):
        unfit += "; another fused operation replaces it, with a growing cache"
    padded = pack_tokens(rewriter) if target.packs_tokens else None
    rewriter.remove_unused()
    reasons = ((OPERATION, unfit), ("no padding", padded))
    return [
        *(f"{label}: {reason}" for label, reason in reasons if reason),
        *unfused,
        *mixtures,
        *convolutions,
        *unfused_recurrences(rewriter, target),
    ]
