"""The subject of a verification, and its outputs in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

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
from zoo.tracing.task import Task

RunOutcome = Mapping[str, Tensor] | RefusalError
"""ONNX Runtime's outputs for a case, or its refusal."""


@dataclass(frozen=True)
class VerificationRequest:
    """The subject of a verification: the graphs in files, the reference model, the target and the precision.

    ``unrounded`` are the constants of each task before they were stored in half precision. ``written`` waits until
    the weights are in the file; ``take_stored`` gives the model the stored weights, where they are rounded.
    ``padding`` is the side on which the last graph takes padding. With ``main_only``, only the main cases run: a
    reduced model runs all of them. ``limits`` are the largest errors of weights in their own blocks, where they
    differ from the precision's; ``cache`` are the scales of a quantized cache. ``record`` takes one case, call by call,
    when every comparison has passed. ``engines`` run the cases as well.
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
    engines: Sequence[Engine] = ()

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of activations."""
        return self.precision.dtype_on(self.target)


def load_exact_forms(proof: VerificationRequest) -> list[Loaded]:
    """The exact forms of the files, which round no activations, once their weights are written."""
    proof.written()
    # Packing all weights takes longer than running the few main cases without packing.
    packed = not proof.main_only
    return [
        load_exact(path, task, proof.target, proof.dtype, proof.unrounded.get(task.name, {}), packed=packed)
        for path, task in proof.graphs.items()
    ]


def load_files(proof: VerificationRequest) -> list[Loaded]:
    """The files themselves: quantized products round their inputs only with packed weights."""
    packed = not proof.main_only or proof.precision.bits is not None
    return [load(path, task, proof.target, proof.dtype, packed=packed) for path, task in proof.graphs.items()]


def outcomes(
    loading: Callable[[], Sequence[Loaded]],
    proof: VerificationRequest,
    expected: Expected,
    padding: Padding,
    form: str,
    probed: Case | None,
    calls: list[GraphCall],
) -> tuple[list[RunOutcome] | RefusalError, str]:
    """Return the outputs of the graphs in every case, or the refusal to load them, and the provider that ran.

    ``calls`` receives the calls of the ``probed`` case.
    """
    try:
        loaded = loading()
    except RefusalError as refusal:
        return refusal, "none"
    found: list[RunOutcome] = []
    name = None if probed is None else probed.name
    for each in expected.cases:
        proof.progress(f"{each.case.name}, ONNX Runtime, {form}")
        try:
            graphs = [replace(graph, calls=calls) for graph in loaded] if each.case.name == name else loaded
            found.append(run(graphs, each.case, expected.per_token, padding))
        except RefusalError as refusal:
            found.append(refusal)
    return found, loaded[0].session.get_providers()[0]
