"""A model with weights, from whatever a user names: a spec, a checkpoint, or what was exported."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specs.catalog import preset_names
from specs.errors import UserError, option_name
from specs.load import load
from specs.model import Model
from zoo.configs.config import CONFIG
from zoo.destination import MANIFEST

if TYPE_CHECKING:
    from exporters.runtime.exported import Exported
    from zoo.builder import ZooModel


@dataclass(frozen=True)
class Opened:
    """A spec, and where its weights are from: ``weights`` is random or a path, unless there is an export.

    ``origin`` is the directory where a tokenizer and the settings of generation would lie, or the GGUF file that holds them.
    """

    spec: Model
    weights: str
    origin: Path
    exported: Exported | None = None

    @property
    def settings(self) -> Mapping[str, Any]:
        """The special tokens of the checkpoint, as its config and its settings of generation say."""
        from zoo.checkpoints.carried import special_tokens

        return special_tokens(self.origin)

    @property
    def ends(self) -> list[int]:
        """The tokens that end what is written."""
        ends = self.settings.get("eos_token_id")
        return ends if isinstance(ends, list) else [] if ends is None else [ends]

    def model(self, seed: int = 0) -> tuple[ZooModel, str]:
        """The model in float32, and where its weights are from, in words.

        Raises :class:`specs.errors.UserError` where they do not fit, or memory is too small for them.
        """
        from exporters.subject import check_memory
        from zoo.builder import assemble
        from zoo.checkpoints.open import open_weights
        from zoo.tensors import weight_bytes
        from zoo.weights.materialize import materialize

        model = assemble(self.spec)
        stack = next(name for name, _ in self.spec.stacks())
        fewer = f"take fewer layers, such as {option_name('set')} {stack}.layers=2"
        check_memory(f"{self.spec.name} in float32", weight_bytes(model), fewer)
        if self.exported is not None:
            from exporters.reopened import reopened

            return reopened(self.exported), f"those in {self.exported.directory}"
        source = open_weights(self.weights, model, self.spec, seed=seed)
        materialize(model, source)
        return model, source.description


def opened(reference: str, assignments: Sequence[str] = (), weights: str | None = None) -> Opened:
    """What a user named, a preset before a directory of the same name; no weights are read yet.

    Raises :class:`specs.errors.UserError` for what is none of these, and for what does not go together.
    """
    path = Path(reference)
    is_file = path.suffix == ".gguf" and path.is_file()
    if reference in preset_names() or not (path.is_dir() or is_file):
        from zoo.checkpoints.carried import tokenizer_origin

        spec = load(reference, assignments)
        origin = tokenizer_origin(weights) if weights and weights != "random" else path.parent
        return Opened(spec, weights or "random", origin)
    is_export = (path / MANIFEST).is_file()
    if assignments:
        own = (
            "give its spec.yaml"
            if is_export
            else "write its spec to a file with zoo import -o, and give that"
        )
        raise UserError(
            f"{option_name('set')} changes a spec, and {reference} has its own\n  value: {assignments[0]}\n  {own}, with {option_name('weights')}"
        )
    if is_export:
        from exporters.runtime.exported import open_export

        if weights:
            raise UserError(
                f"{reference} is an export, and has weights of its own\n  leave out {option_name('weights')}"
            )
        exported = open_export(path)
        return Opened(exported.spec, "", path, exported)
    if is_file or (path / CONFIG).is_file():
        from zoo.configs.importing import import_spec

        return Opened(import_spec(path), weights or reference, path)
    raise UserError(
        f"{reference} has neither an {MANIFEST} nor a {CONFIG}\n"
        "  give a directory that zoo export wrote, or that of a checkpoint"
    )
