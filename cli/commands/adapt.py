"""``zoo adapt``: the weights of a checkpoint for a variant of its architecture."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.commands.convert import CheckpointDirectory, Family, WeightType
from cli.options.export_options import flag
from cli.options.options import AsJson, Assignments, Name, Quiet, SpecArgument, Verbose, Weights
from cli.terminal.option_groups import MODEL


def adapt(
    spec: SpecArgument,
    assignments: Assignments = None,
    name: Name = None,
    weights: Weights = None,
    source: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="Spec of the checkpoint.  [default: that of the config.json or spec.yaml in its directory]",
            rich_help_panel=MODEL,
        ),
    ] = None,
    layers: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[STACK=]LIST",
            help="Layers of the checkpoint for the layers of the spec: 0-23,8-31 repeats, 0,2,4 drops, 0+1,2+3 averages; "
            "repeatable, once per stack.  [default: evenly spaced]",
            rich_help_panel=MODEL,
        ),
    ] = None,
    merge: Annotated[
        str | None,
        typer.Option(
            metavar="DIR",
            help="LoRA adapter of PEFT, a directory or a hub repository, to merge into the weights.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    seed: Annotated[int, flag("seed")] = 0,
    output: CheckpointDirectory = None,
    family: Family = None,
    dtype: WeightType = "fp32",
    verbose: Verbose = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
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
    from cli.terminal.screen import Screen

    screen = Screen(verbose, quiet, as_json)
    from cli.commands.convert import check_dtype
    from cli.options.default_directory import checkpoint_directory
    from cli.options.given import with_set
    from cli.tables.adapt_tables import adaptation_rows, print_adaptation
    from cli.tables.conversion_rows import checkpoint_rows
    from cli.tables.model_rows import title
    from cli.terminal.render import print_json
    from specs.base.errors import UserError
    from zoo.adapting.adapt import adapt as adapt_checkpoint
    from zoo.configs.named_model import named_model
    from zoo.files.destination import CONVERSION, replacing

    check_dtype(dtype)
    named = named_model(spec, assignments or (), name)
    model = named.spec
    weights = named.weights(weights)
    if weights == "random":
        raise UserError(
            "No weights to derive from.\n  Pass --weights, or a checkpoint with --set as the spec."
        )
    destination = output or checkpoint_directory(model.name, dtype, family)
    with screen.progress() as progress, replacing(destination, CONVERSION) as directory:
        written = adapt_checkpoint(
            model,
            weights,
            directory,
            source=source,
            layers=layers or (),
            merge=merge,
            model_type=family,
            dtype=dtype,
            seed=seed,
            progress=progress,
        )
    if as_json:
        print_json({"name": model.name, "directory": str(destination), **written.as_dict()})
        return
    title(screen, model)
    if screen.tables:
        print_adaptation(written)
    adaptation_rows(screen, written)
    checkpoint_rows(screen, written.conversion, destination)
    screen.done(f"{destination} is ready")
    screen.next(
        (["build", *with_set(spec, assignments, name), "--weights", str(destination)], "export these weights")
    )
