"""Mixtures whose experts an export stores in the 4-bit floats of the checkpoint."""

from __future__ import annotations

from collections.abc import Set

from torch import nn

from exporters.graph.fusing.mixtures import activation_attributes
from exporters.graph.quantization.scheme import in_tiles
from exporters.target.targets import Target
from zoo.core.tensors import weight_tensors
from zoo.weights.source import WeightSource


def mxfp4_experts(
    model: nn.Module, source: WeightSource, target: Target, adapted: Set[str] = frozenset()
) -> frozenset[str]:
    """The weights that the target's QMoE reads as 4-bit floats: all matrices of a mixture, or none.

    Products that adapters may change, ``adapted`` by their weights, are computed expert by expert instead.
    """
    if not target.mxfp4_experts:
        return frozenset()
    from zoo.components.mixture import Experts

    names = {id(tensor): name for name, tensor in weight_tensors(model)}
    read = set[str]()
    for experts in model.modules():
        if not isinstance(experts, Experts):
            continue
        matrices = [part.weight for part in (experts.up, experts.gate, experts.down) if part is not None]
        own = [names[id(matrix)] for matrix in matrices]
        stored = [codes for codes in map(source.codes, own) if codes is not None and codes.blocks.floats]
        if (
            len(stored) == len(own)
            and len({codes.blocks for codes in stored}) == 1
            and all(codes.fit_half() for codes in stored)
            and all(in_tiles(tuple(matrix.shape)) for matrix in matrices)
            and activation_attributes(experts.inner) is not None
            and not experts.weighs_input
            and adapted.isdisjoint(own)
        ):
            read.update(own)
    return frozenset(read)
