"""``zoo adapt``: the weights of a checkpoint for a variant of its architecture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cli.commands.convert import CheckpointOptions
from cli.options.options import Assignments, SpecArgument
from cli.terminal.option import option
from cli.terminal.option_groups import MODEL
from cli.terminal.screen import Screen

if TYPE_CHECKING:
    from specs.model.model import Model
    from zoo.adapting.adapt import AdaptedModel


@dataclass(frozen=True)
class AdaptOptions(CheckpointOptions):
    """The options of ``zoo adapt``."""

    source: Annotated[
        str | None,
        option(
            "SPEC",
            "Spec of the checkpoint.  [default: that of the config.json or spec.yaml in its directory]",
            MODEL,
        ),
    ] = None
    layers: Annotated[
        list[str] | None,
        option(
            "[STACK=]LIST",
            "Layers of the checkpoint for the layers of the spec: 0-23,8-31 repeats, 0,2,4 drops, 0+1,2+3 averages; "
            "repeatable, once per stack.  [default: evenly spaced]",
            MODEL,
        ),
    ] = None
    merge: Annotated[
        str | None,
        option(
            "DIR", "LoRA adapter of PEFT, a directory or a hub repository, to merge into the weights.", MODEL
        ),
    ] = None

    def adapted(self, spec: Model, weights: str) -> AdaptedModel:
        """The model of a spec with weights derived from a checkpoint.  Raises :class:`specs.base.errors.UserError`."""
        from zoo.adapting.adapt import AdaptedModel

        return AdaptedModel.of(
            spec,
            weights,
            source=self.source,
            layers=self.layers or (),
            merge=self.merge,
            model_type=self.family,
            dtype=self.dtype,
            seed=self.seed,
        )


def adapt(
    spec: SpecArgument,
    assignments: Assignments = None,
    *,
    options: AdaptOptions,
    screen: Screen,
) -> None:
    """Derive the weights of a variant from a checkpoint.

    Layers are dropped, repeated or averaged, key and value heads averaged or repeated, vocabularies and tables of positions cut
    or grown, feed-forwards widened or made into mixtures of experts. The origin of each tensor is printed; weights that cannot
    be derived are drawn by the initialization of the spec. The result is a checkpoint for --weights, in the format of
    Hugging Face where a family can express the spec.

    \b
    Examples:
      zoo adapt grouped.yaml --weights path/to/checkpoint -o grouped
      zoo adapt path/to/gpt2 --set decoder.layers=6 --layers 0,2,4,7,9,11
      zoo adapt deeper.yaml --weights path/to/llama --layers 0-23,8-31
      zoo adapt path/to/t5-small --set vocab_size=32200
      zoo adapt path/to/llama --merge path/to/adapter -o merged
    """
    from cli.options.given import with_set
    from cli.tables.adapt_tables import adaptation_rows, print_adaptation
    from cli.tables.model_rows import title
    from cli.terminal.render import print_json
    from specs.base.errors import UserError
    from zoo.configs.named_model import named_model, unknown_family
    from zoo.files.destination import CONVERSION, replacing

    named = named_model(spec, assignments or (), options.name, unknown_family(spec, options.family))
    model = named.spec
    weights = named.weights(options.weights)
    if weights == "random":
        raise UserError(
            "No weights to derive from.\n  Pass --weights, or a checkpoint with --set as the spec."
        )
    destination = options.directory(model.name)
    with screen.progress() as progress, replacing(destination, CONVERSION) as directory:
        written = options.adapted(model, weights).write(directory, progress)
    if screen.as_json:
        print_json({"name": model.name, "directory": str(destination), **written.as_dict()})
        return
    title(screen, model)
    if screen.tables:
        print_adaptation(written)
    adaptation_rows(screen, written)
    command = ["build", *with_set(spec, assignments, options.name)]
    options.show(screen, command, written.conversion, destination)
