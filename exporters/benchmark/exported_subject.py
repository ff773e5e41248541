"""An export to be timed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from exporters.benchmark.workload import Workload
from exporters.runtime.decoding import Decoding
from exporters.runtime.encoding import EncoderRunner
from exporters.runtime.exported import open_export
from exporters.runtime.generation import Generator


class ExportedSubject:
    """An exported directory, loaded in ONNX Runtime."""

    acceptance = None

    def __init__(self, directory: Path, provider: str | None, threads: int) -> None:
        self.exported = open_export(directory, provider)
        self.spec = self.exported.spec
        self.size = self.exported.size
        encodes = self.spec.architecture == "encoder"
        self._model = (EncoderRunner if encodes else Generator)(self.exported, threads)
        self.load_seconds = self._model.load_seconds
        self.provider = self._model.provider
        self._stepping: Decoding | None = None

    def call(self, workload: Workload) -> Callable[[], object]:
        """The function to time."""
        model = self._model
        if isinstance(model, EncoderRunner):
            inputs = workload.inputs(self.spec)
            return lambda: model.outputs(inputs)
        rows = workload.prompts(self.spec.vocab_size or 1)
        if workload.kind == "generate":
            return lambda: model.generate(rows, workload.new)
        if workload.kind == "step":
            stepping, first = model.begin(rows, workload.past + 1, 0)
            stepping.pretend(workload.past)
            self._stepping = stepping
            tokens = [[row[-1]] for row in first]
            return lambda: stepping.read(tokens, keep=False)
        if model.encoder is not None:  # the encoder output is projected again

            def read() -> object:
                decoding, first = model.begin(rows, 1, 0)
                return decoding.read(first)

            return read
        decoding, first = model.begin(rows, 1, 0)
        return lambda: decoding.read(first, keep=False)

    def bytes_read(self, workload: Workload) -> int | None:
        """The bytes of the cache that a step reads, if the last call was a step; None for other calls.

        The caller counts the weights in the file: reading the graph would use memory here.
        """
        return self._stepping.bytes_at(workload.past) if workload.kind == "step" and self._stepping else None
