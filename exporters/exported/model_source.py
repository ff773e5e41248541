"""A model with weights from any reference of a user: a spec, a checkpoint or an export."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from specs.base.errors import UserError, option_name
from specs.model.model import Model
from zoo.configs.named_model import named_model
from zoo.configs.spec_beside import SPEC

if TYPE_CHECKING:
    from exporters.runtime.exported import Exported
    from zoo.builder import ZooModel


@dataclass(frozen=True)
class ModelSource:
    """A spec and the source of its weights: ``weights`` is random or a path, unless ``exported`` has them.

    ``origin`` is the directory of the tokenizer and the generation settings, or the GGUF file that holds them.
    """

    spec: Model
    weights: str
    origin: Path
    exported: Exported | None = None

    @property
    def settings(self) -> Mapping[str, Any]:
        """The special tokens in the checkpoint's config and generation settings, with those that end a turn of a chat."""
        from zoo.checkpoints.carried import special_tokens
        from zoo.checkpoints.turns import with_ends_of_turns

        return with_ends_of_turns(special_tokens(self.origin), self.origin)

    @property
    def ends(self) -> list[int]:
        """The tokens that end generation."""
        ends = self.settings.get("eos_token_id")
        return ends if isinstance(ends, list) else [] if ends is None else [ends]

    def model(self, seed: int = 0) -> tuple[ZooModel, str]:
        """The model in float32, and a description of the source of its weights.

        Raises :class:`specs.base.errors.UserError` where the weights do not fit the model, or the model does not fit in memory.
        """
        from exporters.verification.verified_model import check_memory
        from zoo.builder import assemble
        from zoo.checkpoints.open_weights import open_weights
        from zoo.core.tensors import weight_bytes
        from zoo.weights.materialize import materialize

        model = assemble(self.spec)
        stack = next(name for name, _ in self.spec.stacks())
        fewer = f"use fewer layers, such as {option_name('set')} {stack}.layers=2"
        check_memory(f"{self.spec.name} in float32", weight_bytes(model), fewer)
        if self.exported is not None:
            from exporters.exported.load_export import load_export

            return load_export(self.exported), f"those in {self.exported.directory}"
        source = open_weights(self.weights, model, self.spec, seed=seed)
        materialize(model, source)
        return model, source.description


def model_source(reference: str, assignments: Sequence[str] = (), weights: str | None = None) -> ModelSource:
    """The model that a reference names, with its own weights unless ``weights`` names others; no weights are read yet.

    Raises :class:`specs.base.errors.UserError` for a wrong reference, and for options that do not apply to it.
    """
    named = named_model(reference, assignments)
    if named.kind == "export":
        from exporters.runtime.exported import open_export

        for option, value in (("weights", weights), ("set", [*assignments])):
            if value:
                raise UserError(
                    f"{reference} is an export and has a spec and weights of its own.\n  Leave out {option_name(option)}, or name "
                    f"{named.path / SPEC}."
                )
        exported = open_export(named.path)
        return ModelSource(exported.spec, "", named.path, exported)
    chosen = named.weights(weights)
    if chosen == "random":
        origin = named.path if named.path.is_dir() else named.path.parent
    else:
        from zoo.checkpoints.carried import tokenizer_origin

        origin = tokenizer_origin(chosen)
    return ModelSource(named.spec, chosen, origin)
