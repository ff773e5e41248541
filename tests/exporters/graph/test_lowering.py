"""A trace that is lowered once tells which weights its files hold in every precision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import torch

from exporters.graph.precisions import PRECISIONS, quantization_of
from exporters.graph.quantization.scheme import Quantization
from exporters.graph.trace import TracedTask
from exporters.graph.values import Parameter
from exporters.target.targets import TARGETS
from specs.language.load import load
from zoo.builder import assemble
from zoo.core.reduced import fewer_layers
from zoo.tracing.tasks import tasks
from zoo.weights.blocks import Blocks

QUICK = ("gpt2", "whisper-tiny")
SLOW = (
    "llama-3-8b", "gemma2-2b", "deepseek-v3", "gpt-oss-20b", "mixtral-8x7b", "qwen3.5-0.8b", "jamba-v0.1", "bert-base",
    "t5-small", "vit-base-16", "clip-vit-b32", "rwkv7-1.5b", "mamba-130m",
)  # fmt: skip


def cases() -> list[Any]:
    quick = [pytest.param(name, "portable") for name in QUICK]
    slow = [pytest.param(name, target, marks=pytest.mark.slow) for name in SLOW for target in TARGETS]
    return quick + slow


def quantizations(target: str, dtype: torch.dtype, decodes: bool) -> list[Quantization]:
    row = TARGETS[target]
    found = (
        quantization_of(
            precision, row, decodes=decodes, graph_decodes=decodes, blocks=Blocks(4, 32), table_bits=8
        )
        for precision in PRECISIONS.values()
        if precision.dtype_on(row) == dtype
    )
    return [quantization for quantization in found if quantization is not None]


def stored(parameters: Mapping[str, Parameter]) -> list[tuple[object, ...]]:
    """The tensors of a data file in order; the content of a computed table equals only itself."""
    return [
        (name, each.name, each.shape, each.dtype, type(each.content), each.content.names, each.part)
        for name, each in parameters.items()
    ]


@pytest.mark.parametrize(("name", "target"), cases())
def test_weights_in_another_quantization_are_those_of_a_graph_of_its_own(name: str, target: str) -> None:
    spec = fewer_layers(load(name), 1)
    for dtype in (torch.float32, torch.float16):
        model = assemble(spec, dtype)
        for task in tasks(model, spec):
            traced = TracedTask.of(model, task, TARGETS[target], spec.context_length_of(spec.last_stack))
            lowering = traced.lowering()
            for quantization in (None, *quantizations(target, dtype, spec.decodes)):
                told = stored(lowering.parameters(quantization))
                assert told == stored(traced.graph(quantization).parameters), (dtype, quantization)
                assert told
