"""``zoo convert``: a model as a Hugging Face checkpoint."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cli.options.export_options import flag
from cli.options.options import Assignments, Name, SpecArgument, Weights, complete_family
from cli.terminal.option import option, switch
from cli.terminal.option_groups import OUTPUT, PRECISION
from cli.terminal.screen import Screen

if TYPE_CHECKING:
    from specs.model.model import Model
    from zoo.checkpoints.converting import Conversion
    from zoo.core.progress import Progress


@dataclass(frozen=True)
class CheckpointOptions:
    """The options of a command that writes a checkpoint."""

    name: Name = None
    weights: Weights = None
    seed: Annotated[int, flag("seed")] = 0
    output: Annotated[
        Path | None,
        option(
            "DIR",
            "Output directory; only an earlier conversion in it is replaced.  "
            "[default: build/NAME-checkpoint, with --dtype and --as if given]",
            OUTPUT,
            "--output",
            "-o",
        ),
    ] = None
    family: Annotated[
        str | None,
        option(
            "FAMILY",
            "model_type to write, and to read a checkpoint of an unknown type as.  "
            "[default: that of the weights, or the first that fits]",
            PRECISION,
            "--as",
            autocompletion=complete_family,
        ),
    ] = None
    dtype: Annotated[str, option("fp32|fp16|bf16", "Data type of the weights.", PRECISION)] = "fp32"

    def directory(self, name: str) -> Path:
        """Where the checkpoint of a model goes.  Raises :class:`specs.base.errors.UserError` for an unknown data type."""
        from cli.options.default_directory import checkpoint_directory
        from specs.base.errors import UserError
        from specs.base.suggest import suggestion
        from zoo.checkpoints.converting import DTYPES

        if self.dtype not in DTYPES:
            raise UserError(f"--dtype {self.dtype!r} is unknown\n  {suggestion(self.dtype, DTYPES)}")
        return self.output or checkpoint_directory(name, self.dtype, self.family)

    def show(
        self,
        screen: Screen,
        command: list[str],
        written: Conversion,
        path: Path,
        *,
        remote_code: bool = False,
    ) -> None:
        """Print what was written to a path, and the ``command`` that exports it."""
        from cli.tables.conversion_rows import checkpoint_rows

        checkpoint_rows(screen, written, path, remote_code=remote_code)
        screen.done(f"{path} is ready")
        screen.next(([*command, "--weights", str(path)], "export these weights"))


@dataclass(frozen=True)
class ConvertOptions(CheckpointOptions):
    """The options of ``zoo convert``."""

    remote_code: Annotated[
        bool,
        switch(
            "--remote-code",
            "Write the model's own code with it, for architectures that no family can express; loads with "
            "trust_remote_code=True.",
            PRECISION,
        ),
    ] = False

    def write(self, spec: Model, weights: str, directory: Path, progress: Progress) -> Conversion:
        """Write the checkpoint of a spec into an empty directory.  Raises :class:`specs.base.errors.UserError`."""
        from specs.base.errors import UserError
        from zoo.checkpoints.converting import convert
        from zoo.configs.exporting import NoFamilyError
        from zoo.remote_code.write import convert_with_code

        dtype, seed = self.dtype, self.seed
        if self.remote_code:
            return convert_with_code(spec, weights, directory, dtype=dtype, seed=seed, progress=progress)
        try:
            return convert(
                spec, weights, directory, model_type=self.family, dtype=dtype, seed=seed, progress=progress
            )
        except NoFamilyError as error:
            remedy = "Pass --remote-code, which writes the model's own code with it."
            raise UserError(f"{error.text}\n  {remedy}") from None


def convert(
    spec: SpecArgument,
    assignments: Assignments = None,
    *,
    options: ConvertOptions,
    screen: Screen,
) -> None:
    """Write a model as a Hugging Face checkpoint.

    The result loads with from_pretrained of transformers, or with sentence-transformers. The config is read back and must
    give the same architecture; a spec that no family can express is refused, with its differences from the nearest.
    Tokenizer files beside the weights are copied.

    \b
    Examples:
      zoo convert llama-3.2-1b
      zoo convert my-bert.yaml --weights path/to/checkpoint -o my-bert
      zoo convert gpt2 --weights path/to/gpt2 --dtype fp16 --as gpt2
      zoo convert path/to/checkpoint --dtype bf16 -o my-checkpoint
      zoo convert my-variant.yaml --remote-code -o my-variant
    """
    from cli.options.given import with_set
    from cli.tables.model_rows import read_as_row, title
    from cli.terminal.render import Column, print_json, print_table
    from specs.base.errors import UserError
    from zoo.configs.named_model import named_model, unknown_family
    from zoo.core.units import byte_text
    from zoo.files.destination import CONVERSION, replacing

    named = named_model(spec, assignments or (), options.name, unknown_family(spec, options.family))
    model = named.spec
    destination = options.directory(model.name)
    if options.remote_code and options.family:
        raise UserError("--remote-code and --as are mutually exclusive\n  Remove one of them.")
    weights = named.weights(options.weights)
    with screen.progress() as progress, replacing(destination, CONVERSION) as directory:
        written = options.write(model, weights, directory, progress)
    if screen.as_json:
        print_json({"name": model.name, "directory": str(destination), **written.as_dict()})
        return
    title(screen, model)
    read_as_row(screen, named)
    if screen.tables:
        print_table(
            ["file", Column("size", right=True)],
            [(name, byte_text(size)) for name, size in written.files.items()],
        )
    command = ["build", *with_set(spec, assignments, options.name)]
    options.show(screen, command, written, destination, remote_code=options.remote_code)
