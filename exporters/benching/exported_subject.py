"""An export as something to time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from exporters.benching.traffic import weights_read
from exporters.benching.workload import Workload, token_rows
from exporters.runtime.encoding import Encoder
from exporters.runtime.exported import open_export
from exporters.runtime.generation import Generator


class ExportedSubject:
    """A directory that was exported, loaded in ONNX Runtime."""

    def __init__(self, directory: Path, threads: int) -> None:
        self.exported = open_export(directory)
        self.spec = self.exported.spec
        self.size = self.exported.size
        encodes = self.spec.architecture == "encoder"
        self._model = (Encoder if encodes else Generator)(self.exported, threads)
        self.load_seconds = self._model.load_seconds
        self.provider = self._model.provider

    def call(self, workload: Workload) -> Callable[[], object]:
        """What is timed."""
        rows = token_rows(workload.lengths, self.spec.vocab_size or 1)
        model = self._model
        if isinstance(model, Encoder):
            return lambda: model.outputs(rows)
        if workload.kind == "generate":
            return lambda: model.generate(rows, workload.new)
        if workload.kind == "step":
            decoding, first = model.begin(rows, workload.past + 1, 0)
            decoding.pretend(workload.past)
            tokens = [[row[-1]] for row in first]
            return lambda: decoding.read(tokens, keep=False)
        if model.encoder is not None:  # what an encoder reads is projected anew

            def read() -> object:
                decoding, first = model.begin(rows, 1, 0)
                return decoding.read(first)

            return read
        decoding, first = model.begin(rows, 1, 0)
        return lambda: decoding.read(first, keep=False)

    def bytes_read(self, workload: Workload) -> int | None:
        """The bytes of weights and of the cache that a step reads; None for calls that memory does not bound."""
        model = self._model
        if workload.kind != "step" or isinstance(model, Encoder):
            return None
        rows = token_rows(workload.lengths, self.spec.vocab_size or 1)
        decoding, _ = model.begin(rows, workload.past + 1, 0)
        return weights_read(self.exported.graphs[-1]) + decoding.bytes_at(workload.past)
