"""The variants of models that are compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from exporters.benchmark.workload import Workload, WorkloadGrid
from exporters.quality.texts import corpus
from exporters.runtime.exported import Exported, open_export
from exporters.runtime.text import find_text
from exporters.target.providers import device_of
from specs.forms.resolved import resolved
from specs.language.writing import dump
from specs.model.model import Model
from zoo.configs.named_model import named_model
from zoo.core.progress import Progress, Stage

if TYPE_CHECKING:
    from exporters.steps.options import ExportOptions

Runtime = Literal["onnxruntime", "eager", "compiled"]

AGAINST: tuple[Runtime, ...] = ("eager", "compiled")
"""The ways to run PyTorch."""


@dataclass(frozen=True)
class DraftChoice:
    """The export that proposes ``tokens`` tokens at a time to each target."""

    exported: Exported
    tokens: int

    @property
    def name(self) -> str:
        """The name of its directory."""
        return self.exported.directory.resolve().name


@dataclass(frozen=True, eq=False)
class Variant:
    """A model in a runtime: an exported directory in ONNX Runtime, or a spec in PyTorch; ``path`` points to either.

    ``name`` is the name of the model, or of its directory. ``text`` are the tokens to generate from, if not any.
    """

    name: str
    spec: Model
    runtime: Runtime
    path: Path
    target: str = ""
    precision: str = "fp32"
    draft: DraftChoice | None = None
    text: tuple[int, ...] = ()

    def workloads(self, grid: WorkloadGrid) -> list[Workload]:
        """Its workloads: with a draft, it only generates."""
        return [
            work.beginning(self.text) if work.kind == "generate" else work
            for work in grid.workloads(self.spec)
            if self.draft is None or work.kind == "generate"
        ]

    @property
    def label(self) -> str:
        """A label such as ``gpt2: cpu int8``, or ``gpt2: PyTorch eager``."""
        way = (
            f"{self.target} {self.precision}" if self.runtime == "onnxruntime" else f"PyTorch {self.runtime}"
        )
        other = f" {self.precision}" if self.runtime != "onnxruntime" and self.precision != "fp32" else ""
        draft = "" if self.draft is None else f", draft {self.draft.name}"
        return f"{self.name}: {way}{other}{draft}"


@dataclass(frozen=True)
class VariantChoice:
    """The variants to compare for each model: exports for targets in precisions, and PyTorch in the ways of ``against``, in the
    float precisions, or float32.

    ``logits`` selects the tokens that a decoder scores, as in :class:`exporters.steps.options.ExportOptions`. With a ``draft``, exports
    are compared with themselves and the draft.
    """

    targets: Sequence[str] = ("portable",)
    precisions: Sequence[str] = ("fp32",)
    logits: str = "all"
    against: Sequence[Runtime] = ()
    draft: DraftChoice | None = None

    def options(self) -> list[ExportOptions]:
        """The export options. Raises :class:`specs.base.errors.UserError` for an unknown target or precision."""
        from exporters.steps.options import ExportOptions

        return [
            ExportOptions.of(target=target, precision=precision, verify=False, logits=self.logits)
            for target in self.targets
            for precision in self.precisions
        ]

    def pytorch_precisions(self) -> list[str]:
        """The precisions in which PyTorch runs."""
        from exporters.graph.precisions import PRECISIONS

        return [name for name in self.precisions if PRECISIONS[name].bits is None] or ["fp32"]


@dataclass(frozen=True)
class BenchModel:
    """A model that a user named: its spec, and its export if the name is a directory of one."""

    name: str
    spec: Model
    exported: Exported | None = None


def referred(names: Sequence[str], assignments: Sequence[str]) -> list[BenchModel]:
    """The models of some names.  Raises :class:`specs.base.errors.UserError` for a name of neither a spec nor an export."""
    models = []
    for name in names:
        named = named_model(name, assignments)
        if named.kind == "export":
            exported = open_export(named.path)
            models.append(BenchModel(name, exported.spec, exported))
        else:
            models.append(BenchModel(name, named.spec))
    return models


def variants(
    references: Sequence[BenchModel], choice: VariantChoice, folder: Path, progress: Progress
) -> Iterator[Variant]:
    """Yield the variants of each model; specs are exported below ``folder``.

    Raises :class:`specs.base.errors.UserError` for a model that cannot be exported.
    """
    for number, reference in enumerate(references):
        spec, own = reference.spec, folder / str(number)
        if reference.exported is None:
            yield from _exports(spec, choice, own, progress)
        else:
            exported = reference.exported
            facts = exported.directory, exported.manifest.target, exported.manifest.precision
            text = () if choice.draft is None else _prose(exported)
            alone = Variant(reference.name, spec, "onnxruntime", *facts, text=text)
            yield from (alone,) if choice.draft is None else (alone, replace(alone, draft=choice.draft))
        for runtime in choice.against:
            own.mkdir(exist_ok=True)
            path = own / "spec.yaml"
            path.write_text(dump(resolved(spec)), encoding="utf-8")
            for precision in choice.pytorch_precisions():
                yield Variant(spec.name, spec, runtime, path, precision=precision)


def _prose(exported: Exported) -> tuple[int, ...]:
    """The tokens of the corpus' prose; empty without a tokenizer beside the export."""
    text = find_text(exported.directory, None, needed=False)
    return () if text is None else tuple(text.plain(corpus()["prose"]))


def usual_device(variants: Sequence[Variant]) -> str:
    """The device that the exports are for, if all that this machine has of them agree, or else the CPU."""
    exports = [variant for variant in variants if variant.runtime == "onnxruntime"]
    devices = {device_of(open_export(variant.path).providers[0]) for variant in exports}
    return devices.pop() if len(devices) == 1 else "cpu"


def _exports(spec: Model, choice: VariantChoice, folder: Path, progress: Progress) -> Iterator[Variant]:
    from exporters.export import export

    for options in choice.options():
        directory = folder / f"{options.target}-{options.precision}"
        variant = Variant(spec.name, spec, "onnxruntime", directory, options.target, options.precision)
        progress(Stage(f"export {variant.label}"))
        export(spec, directory, options)
        yield variant
