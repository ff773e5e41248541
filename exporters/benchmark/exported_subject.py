"""An export to be timed, alone or with a draft."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from exporters.benchmark.workload import Workload
from exporters.runtime.decoding import Decoding
from exporters.runtime.encoding import EncoderRunner
from exporters.runtime.exported import open_export
from exporters.runtime.generation import Generator
from exporters.runtime.speculative import SpeculativeGenerator, first_difference, reason_for_difference
from specs.base.errors import UserError


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


class DraftedSubject:
    """An exported directory and its draft, loaded in ONNX Runtime; the rows of a batch are continued one by one."""

    def __init__(
        self, directory: Path, draft: Path, draft_tokens: int, provider: str | None, threads: int
    ) -> None:
        target, drafting = open_export(directory, provider), open_export(draft, provider)
        self._model = SpeculativeGenerator(target, drafting, draft_tokens, threads)
        self.size = target.size + drafting.size
        self.load_seconds, self.provider = self._model.load_seconds, self._model.provider
        self.acceptance: float | None = None

    def call(self, workload: Workload) -> Callable[[], object]:
        """The function to time.  Raises :class:`specs.base.errors.UserError` where the target alone gives other tokens."""
        target = self._model.target
        rows = workload.prompts(target.spec.vocab_size or 1)
        done = self._model.generate(rows, workload.new)
        different = first_difference(done, self._model.without_draft(rows, workload.new))
        if different is not None:
            raise UserError(
                f"without the draft, token {different + 1} differs: {reason_for_difference(target.exported)}."
            )
        self.acceptance = done.acceptance
        return lambda: self._model.generate(rows, workload.new)

    def bytes_read(self, workload: Workload) -> int | None:
        """None: calls read several tokens."""
        return None
