"""A process that times one of zoo's models, in ONNX Runtime or PyTorch: ``python -m exporters.benchmark.worker``."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from exporters.benchmark.serving import Call, Data, serve
from exporters.benchmark.workload import Workload
from specs.base.errors import UserError, reason_of
from zoo.machine.memory import peak_memory


class TimedModel(Protocol):
    """A model to time: its provider, the seconds it took to load, the bytes of its weights, and the accepted share of a draft's
    tokens in the last workload."""

    provider: str
    load_seconds: float
    size: int

    @property
    def acceptance(self) -> float | None: ...

    def call(self, workload: Workload) -> Callable[[], object]: ...

    def bytes_read(self, workload: Workload) -> int | None: ...


def load(request: Data) -> TimedModel:
    """The model that a request names."""
    if request.get("draft") is not None:
        from exporters.benchmark.exported_subject import DraftedSubject

        target, draft, threads = Path(request["path"]), request["draft"], request["threads"]
        return DraftedSubject(target, Path(draft["path"]), draft["tokens"], request["provider"], threads)
    if request["runtime"] == "onnxruntime":
        from exporters.benchmark.exported_subject import ExportedSubject

        return ExportedSubject(Path(request["path"]), request["provider"], request["threads"])
    from exporters.benchmark.torch_subject import TorchSubject
    from specs.language.load import load as load_spec

    return TorchSubject(
        load_spec(request["path"]),
        request["precision"],
        request["device"],
        request["threads"],
        compiled=request["runtime"] == "compiled",
    )


def main() -> None:
    """Serve on standard input and output."""
    facts: Data = {}

    def loaded(request: Data) -> Callable[[Data], Callable[[], Call]]:
        model = load(request)
        facts.update(provider=model.provider, load_seconds=model.load_seconds, size=model.size)

        def prepare(data: Data) -> Callable[[], Call]:
            workload = Workload(**{**data, "lengths": tuple(data["lengths"])})
            call = model.call(workload)
            call()
            facts.update(bytes_read=model.bytes_read(workload), acceptance=model.acceptance)
            return lambda: call

        return prepare

    serve(loaded, lambda: {**facts, "peak": peak_memory()}, _reason)


def _reason(error: Exception) -> str:
    reason = reason_of(error)
    return reason if isinstance(error, UserError) else f"{type(error).__name__}: {reason}"


if __name__ == "__main__":
    main()
