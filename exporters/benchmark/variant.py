"""The variants of models that are compared."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from exporters.runtime.exported import Exported, open_export
from exporters.target.providers import device_of
from specs.forms.resolved import resolved
from specs.language.load import load
from specs.language.writing import dump
from specs.model.model import Model
from zoo.configs.reference_kind import reference_kind
from zoo.core.progress import Progress, Stage

if TYPE_CHECKING:
    from exporters.steps.options import Options

Runtime = Literal["onnxruntime", "eager", "compiled"]

AGAINST: tuple[Runtime, ...] = ("eager", "compiled")
"""The ways to run PyTorch."""


@dataclass(frozen=True, eq=False)
class Variant:
    """A model in a runtime: an exported directory in ONNX Runtime, or a spec in PyTorch; ``path`` points to either.

    ``name`` is the model's, or that of its directory.
    """

    name: str
    spec: Model
    runtime: Runtime
    path: Path
    target: str = ""
    precision: str = "fp32"

    @property
    def label(self) -> str:
        """A label such as ``gpt2: cpu int8``, or ``gpt2: PyTorch eager``."""
        way = (
            f"{self.target} {self.precision}" if self.runtime == "onnxruntime" else f"PyTorch {self.runtime}"
        )
        other = f" {self.precision}" if self.runtime != "onnxruntime" and self.precision != "fp32" else ""
        return f"{self.name}: {way}{other}"


@dataclass(frozen=True)
class VariantChoice:
    """What to compare for each model: exports for targets in precisions, and PyTorch in the ways of ``against``, in those of
    the precisions that are floats, or float32.

    ``logits`` selects the tokens that a decoder scores, as in :class:`exporters.steps.options.Options`.
    """

    targets: Sequence[str] = ("portable",)
    precisions: Sequence[str] = ("fp32",)
    logits: str = "all"
    against: Sequence[Runtime] = ()

    def options(self) -> list[Options]:
        """The export options. Raises :class:`specs.base.errors.UserError` for an unknown target or precision."""
        from exporters.steps.options import Options

        return [
            Options(target=target, precision=precision, verify=False, logits=self.logits)
            for target in self.targets
            for precision in self.precisions
        ]

    def pytorch_precisions(self) -> list[str]:
        """The precisions in which PyTorch runs."""
        from exporters.graph.precisions import PRECISIONS

        return [name for name in self.precisions if PRECISIONS[name].bits is None] or ["fp32"]


@dataclass(frozen=True)
class NamedModel:
    """A model that a user named: its spec, and its export where the name is that of one."""

    name: str
    spec: Model
    exported: Exported | None = None


def referred(names: Sequence[str], assignments: Sequence[str]) -> list[NamedModel]:
    """The models of some names.  Raises :class:`specs.base.errors.UserError` for a name of neither a spec nor an export."""
    found = []
    for name in names:
        if reference_kind(name) == "export":
            exported = open_export(Path(name))
            found.append(NamedModel(name, exported.spec, exported))
        else:
            found.append(NamedModel(name, load(name, assignments)))
    return found


def variants(
    references: Sequence[NamedModel], choice: VariantChoice, place: Path, progress: Progress
) -> Iterator[Variant]:
    """Yield the variants of each model; specs are exported below ``place``.

    Raises :class:`specs.base.errors.UserError` for a model that cannot be exported.
    """
    for number, reference in enumerate(references):
        spec, own = reference.spec, place / str(number)
        if reference.exported is None:
            yield from _exports(spec, choice, own, progress)
        else:
            exported = reference.exported
            facts = exported.directory, exported.manifest.target, exported.manifest.precision
            yield Variant(reference.name, spec, "onnxruntime", *facts)
        for runtime in choice.against:
            own.mkdir(exist_ok=True)
            path = own / "spec.yaml"
            path.write_text(dump(resolved(spec)), encoding="utf-8")
            for precision in choice.pytorch_precisions():
                yield Variant(spec.name, spec, runtime, path, precision=precision)


def usual_device(variants: Sequence[Variant]) -> str:
    """The device that the exports are for, if all that this machine has of them agree, or else the CPU."""
    exports = [each for each in variants if each.runtime == "onnxruntime"]
    devices = {device_of(open_export(each.path).providers[0]) for each in exports}
    return devices.pop() if len(devices) == 1 else "cpu"


def _exports(spec: Model, choice: VariantChoice, place: Path, progress: Progress) -> Iterator[Variant]:
    from exporters.export import export

    for options in choice.options():
        directory = place / f"{options.target}-{options.precision}"
        variant = Variant(spec.name, spec, "onnxruntime", directory, options.target, options.precision)
        progress(Stage(f"export {variant.label}"))
        export(spec, directory, options)
        yield variant
