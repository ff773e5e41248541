"""Writing a model as a checkpoint with its own code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from pathlib import Path

from specs.model.model import Model
from zoo.builder import assemble
from zoo.checkpoints.carried import origin_of, token_fields
from zoo.checkpoints.converting import DTYPES, CheckpointContents, Conversion
from zoo.checkpoints.open_weights import open_weights
from zoo.core.progress import Progress
from zoo.families.common.tensors import StoredParameter, TensorRules, Tensors
from zoo.families.common.transforms import Shape
from zoo.remote_code.generate import generate


class _GeneratedTable(TensorRules):
    def __init__(self, names: Mapping[str, str], copies: Mapping[str, tuple[str, ...]]) -> None:
        self._stored, self._copies = names, copies

    def find(self, parameter: str) -> StoredParameter:
        stored = (self._stored[parameter], *self._copies.get(parameter, ()))
        return StoredParameter(stored, (parameter,), copies=len(stored) - 1)


@dataclass(frozen=True)
class _GeneratedNames(Tensors):
    """The names of parameters in the generated classes, and further names of those that are stored again."""

    stored: Mapping[str, str] = field(default_factory=dict)
    copies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def table(self, spec: Model, parameters: Mapping[str, Shape]) -> TensorRules:
        return _GeneratedTable(self.stored, self.copies)


def convert_with_code(
    spec: Model,
    weights: str,
    directory: Path,
    *,
    dtype: str = "fp32",
    seed: int = 0,
    progress: Progress = lambda stage: None,
) -> Conversion:
    """Write config, code, weights and tokenizer into an empty directory.

    Raises :class:`specs.base.errors.UserError`, such as for parts that the code cannot express.
    """
    model = assemble(spec, DTYPES[dtype])
    code = generate(assemble(spec), spec, version("zoo"))
    for name, text in code.files.items():
        (directory / name).write_text(text, encoding="utf-8")
    source = open_weights(weights, model, spec, seed=seed, dtype=DTYPES[dtype])
    names = _GeneratedNames("zoo", (), stored=code.names, copies=code.copies)
    origin = origin_of(weights)
    contents = CheckpointContents(spec, model, source, origin, code.config | token_fields(origin), names)
    written = contents.write(directory, dtype=dtype, progress=progress)
    return replace(written, loader=list(code.config["auto_map"])[-1])
