"""How many bytes the weights of a model come to in a file, without writing it.

A twin with one layer of each kind is lowered, and for each kind one with a layer more.
"""

from __future__ import annotations

from exporters.data_file import stored_bytes
from exporters.precisions import PRECISIONS, Precision, quantization_of
from exporters.quantization.blocks import Blocks
from exporters.targets import TARGETS, Target
from exporters.writing import trace_and_lower
from specs.model import Model
from zoo.builder import assemble
from zoo.reports.layers import layer_kinds, with_another
from zoo.tracing.tasks import tasks
from zoo.twin import twin

BLOCK = Blocks(4, 32)
"""How int4 rounds where nothing else is asked for."""


def stored_size(spec: Model, precision: str, target: str = "cuda") -> int:
    """Bytes of all weights as ``zoo export`` stores them for a target, without the gaps that align them."""
    small, chosen, place = twin(spec, layers=1), PRECISIONS[precision], TARGETS[target]
    size = total = _size(small, chosen, place)
    for kind, layers in layer_kinds(spec, small).items():
        owners = set(getattr(spec, kind.split(".")[0]).owners())
        more = sum(layer in owners for layer in layers) - 1
        if more:
            total += more * (_size(with_another(small, kind), chosen, place) - size)
    return total


def _size(spec: Model, precision: Precision, target: Target) -> int:
    model, decodes = assemble(spec, precision.dtype_on(target)), spec.architecture != "encoder"
    sizes = {}
    for task in tasks(model, spec):
        quantization = quantization_of(
            precision,
            target,
            decodes=decodes,
            graph_decodes=decodes and task.name != "encoder_model",
            blocks=BLOCK,
            table_bits=8,
        )
        graph = trace_and_lower(model, task, target, spec.context_length, quantization)
        for parameter in graph.parameters.values():
            sizes[parameter.content, parameter.part] = stored_bytes(parameter.shape, parameter.dtype)
    return sum(sizes.values())
