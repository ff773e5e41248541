"""Weights that a checkpoint stores quantized, and those whose codes an export keeps."""

from __future__ import annotations

from collections.abc import Iterable, Set
from dataclasses import asdict

from torch import Tensor, nn

from exporters.graph.fusing.mixtures import activation_attributes
from exporters.graph.precisions import PRECISIONS, Precision, holds
from exporters.graph.quantization.scheme import in_tiles
from exporters.target.targets import Target
from zoo.core.tensors import weight_tensors
from zoo.record.records import BlocksRecord, QuantizedRecord
from zoo.weights.blocks import Blocks
from zoo.weights.source import WeightSource

Key = tuple[str, Blocks | None, tuple[str, ...]]
"""A format, its blocks, and the precisions that keep its codes."""


def prequantized_weights(
    model: nn.Module,
    source: WeightSource,
    target: Target,
    precision: Precision,
    adapted: Set[str],
) -> tuple[QuantizedRecord, ...]:
    """The weights of a model that a source stores quantized, grouped by format; adapters may change the products of those
    ``adapted``."""
    names_by_form: dict[Key, list[str]] = {}
    experts = mxfp4_experts(model, source, target, adapted)
    for name, tensor in weight_tensors(model):
        if (form := source.format(name)) is not None:
            codes = source.codes(name)
            blocks = None if codes is None else codes.blocks
            able: tuple[str, ...] = ()
            if blocks is not None and (
                name in experts if blocks.floats else _is_whole(target, tensor, blocks)
            ):
                able = _precisions_that_keep(target, name, blocks)
            names_by_form.setdefault((form, blocks, able), []).append(name)
    return tuple(
        QuantizedRecord(
            format=form,
            carried=precision.name in able,
            blocks=None if blocks is None else BlocksRecord(**asdict(blocks)),
            carried_by=able,
            weights=tuple(names),
        )
        for (form, blocks, able), names in names_by_form.items()
    )


def _is_whole(target: Target, tensor: Tensor, blocks: Blocks) -> bool:
    """Whether a matrix is in whole blocks, where a target needs that."""
    return target.undivided != "floats" or blocks.divides(tensor.shape[-1])


def _precisions_that_keep(target: Target, name: str, blocks: Blocks) -> tuple[str, ...]:
    return tuple(
        candidate.name
        for candidate in PRECISIONS.values()
        if candidate.name not in target.unsupported_precisions and holds(target, name, blocks, candidate)
    )


def prequantized_blocks(quantized: Iterable[QuantizedRecord]) -> dict[str, Blocks]:
    """The blocks of the weights that an export carries, by name."""
    return {
        name: Blocks(**record.blocks.model_dump())
        for record in quantized
        if record.carried and record.blocks is not None
        for name in record.weights
    }


def weight_limits(quantized: Iterable[QuantizedRecord], source: WeightSource) -> dict[str, float]:
    """The largest errors allowed for weights in their own blocks; 0 where the source provides their codes.

    The weights of a reduced model are rounded to the same blocks, within the limit of the precision with as many
    bits.
    """
    return {
        name: 0.0 if source.codes(name) is not None else _limit(blocks)
        for name, blocks in prequantized_blocks(quantized).items()
    }


def _limit(blocks: Blocks) -> float:
    coarse = blocks.bits == 4 or blocks.base is not None
    return PRECISIONS["int4" if coarse else "int8"].weight_error


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
