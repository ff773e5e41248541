"""An export to be timed with a draft."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from exporters.benchmark.workload import Workload
from exporters.runtime.exported import open_export
from exporters.runtime.speculative import SpeculativeGenerator, first_difference, reason_for_difference
from specs.base.errors import UserError


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
