"""The request of a verification, and the outputs of its files in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from exporters.graph.precisions import Precision
from exporters.graph.quantization.cache_scales import QuantizedCache
from exporters.target.targets import Padding, Target
from exporters.verification.cases import Case
from exporters.verification.engines.engine import Engine
from exporters.verification.exact.graph import Constants
from exporters.verification.probes import GraphCall, Probe
from exporters.verification.reference import Expected, Reference, TakeStored
from exporters.verification.runtime_outputs import Loaded, RefusalError, load, load_exact, run
from zoo.layer_outputs.choice import LayerOutput
from zoo.tracing.task import Task

RunOutcome = Mapping[str, Tensor] | RefusalError
"""ONNX Runtime's outputs for a case, or its refusal."""

Outcomes = list[RunOutcome] | RefusalError
"""The outcome of every case, or the refusal to load the graphs."""


@dataclass(frozen=True)
class VerificationRequest:
    """The request of a verification: the graphs in files, the reference model, the target and the precision.

    ``unrounded``: the constants of each task before they were stored in half precision. ``written`` waits until the weights
    are in the file; ``take_stored`` gives the model the stored weights, if they are rounded. ``padding``: the side of padding
    of the last graph. ``main_only``: run only the main cases, because a reduced model runs all of them. ``limits``: the largest
    errors of weights in their own blocks, if different from the precision's. ``cache``: the scales of a quantized cache.
    ``record`` takes one case, call by call, after every comparison has passed. ``is_itself``: the files have the weights of the
    model itself, and must not lose an output to rounding. ``engines`` run the cases as well. ``adapter``: the matrices of an
    adapter that is switched on, by the names of the graphs' inputs. ``layer_outputs``: the additional outputs of the graphs.
    """

    graphs: Mapping[Path, Task]
    unrounded: Mapping[str, Constants]
    reference: Reference
    target: Target
    precision: Precision
    subject: str
    progress: Callable[[str], None]
    written: Callable[[], None]
    take_stored: TakeStored | None
    padding: Padding
    main_only: bool
    cache: QuantizedCache | None
    limits: Mapping[str, float] = field(default_factory=dict)
    record: Callable[[Probe], None] | None = None
    is_itself: bool = False
    engines: Sequence[Engine] = ()
    adapter: Mapping[str, Any] = field(default_factory=dict)
    layer_outputs: Sequence[LayerOutput] = ()

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of activations."""
        return self.precision.dtype_on(self.target)


def load_exact_forms(request: VerificationRequest) -> list[Loaded]:
    """Load the exact forms of the files, which round no activations, after their weights are written."""
    request.written()
    # Packing all weights takes longer than running the few main cases without packing.
    packed = not request.main_only
    return [
        replace(
            load_exact(
                path, task, request.target, request.dtype, request.unrounded.get(task.name, {}), packed=packed
            ),
            adapter=request.adapter,
        )
        for path, task in request.graphs.items()
    ]


def load_files(request: VerificationRequest) -> list[Loaded]:
    """Load the files themselves, with packed weights: quantized products round their inputs only then."""
    packed = not request.main_only or request.precision.bits is not None
    return [
        replace(load(path, task, request.target, request.dtype, packed=packed), adapter=request.adapter)
        for path, task in request.graphs.items()
    ]


def outcomes(
    loading: Callable[[], Sequence[Loaded]],
    request: VerificationRequest,
    expected: Expected,
    padding: Padding,
    form: str,
    probed: Case | None,
    calls: list[GraphCall],
) -> tuple[Outcomes, str]:
    """Return the outputs of the graphs in every case, or the refusal to load them, and the provider that ran.

    ``calls`` receives the calls of the ``probed`` case.
    """
    try:
        loaded = loading()
    except RefusalError as refusal:
        return refusal, "none"
    results: list[RunOutcome] = []
    name = None if probed is None else probed.name
    for expected_case in expected.cases:
        request.progress(f"{expected_case.case.name}, ONNX Runtime, {form}")
        try:
            graphs = (
                [replace(graph, calls=calls) for graph in loaded]
                if expected_case.case.name == name
                else loaded
            )
            results.append(run(graphs, expected_case.case, expected.per_token, padding))
        except RefusalError as refusal:
            results.append(refusal)
    return results, loaded[0].session.get_providers()[0]
