"""``zoo draw``: a diagram of the architecture."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cli.options.options import Assignments, SpecArgument
from cli.terminal.option import AsJson, Quiet, option
from cli.terminal.option_groups import OUTPUT
from cli.terminal.screen import Screen
from zoo.drawing import FORMATS

if TYPE_CHECKING:
    from specs.model.model import Model

LARGEST_SCALE = 16.0


@dataclass(frozen=True)
class DrawOptions:
    """The options of ``zoo draw``."""

    output: Annotated[
        str | None,
        option(
            "FILE",
            "Output file: .svg, .png, .mmd or .md (Mermaid), or - for standard output.  [default: build/NAME.svg]",
            OUTPUT,
            "--output",
            "-o",
        ),
    ] = None
    format_: Annotated[
        str | None,
        option(
            "svg|png|mermaid",
            "Output format.  [default: from the suffix of FILE, else svg]",
            OUTPUT,
            "--format",
        ),
    ] = None
    scale: Annotated[
        float, option("X", "Scale of a PNG, in pixels per SVG unit.", min=0.1, max=LARGEST_SCALE)
    ] = 2.0
    quiet: Quiet = False
    as_json: AsJson = False


def draw(spec: SpecArgument, assignments: Assignments = None, *, options: DrawOptions) -> None:
    """Draw an architecture as SVG, PNG or Mermaid.

    Shows the residual stream, norms, attention and feed-forward of each distinct block, cross-attention, shapes, shared
    weights and parameter counts. --json prints the diagram as data, and writes a file only with --output.

    \b
    Examples:
      zoo draw gpt2
      zoo draw t5-small -o t5.png --scale 3
      zoo draw gemma2-2b -o gemma.md
      zoo draw gpt2 --set decoder.block.kind=post_norm -o - > post-norm.svg
    """
    from cli.options.given import with_set

    screen = Screen(False, options.quiet, options.as_json)
    from cli.terminal.render import print_json
    from specs.base.errors import UserError
    from zoo.configs.named_model import named_model

    kind = _format(options.output, options.format_)
    if kind == "png" and options.output == "-" and is_terminal():
        raise UserError(
            "A PNG cannot be printed to a terminal.\n  Pass --output FILE, or redirect the output."
        )
    model = named_model(spec, assignments or ()).spec
    if options.as_json:
        from zoo.drawing import draw_scene

        print_json({"name": model.name, **draw_scene(model).as_dict()})
        if options.output in (None, "-"):
            return
    if options.output == "-":
        _print_drawing(screen, model, kind, options.scale)
        return
    path = _write_drawing(screen, model, options.output, kind, options.scale)
    from cli.tables.model_rows import title

    title(screen, model)
    screen.done(f"{path} is drawn")
    page = str(path.with_suffix(".html"))
    screen.next(
        (["report", *with_set(spec, assignments), "--html", page], "a page of the drawing and its costs")
    )


def _print_drawing(screen: Screen, model: Model, kind: str, scale: float) -> None:
    """Write a drawing to standard output."""
    from cli.terminal.render import emit
    from zoo.core.progress import Stage
    from zoo.drawing import content_of

    with screen.progress() as progress:
        progress(Stage(f"draw {model.name}"))
        content = content_of(model, kind, scale)
    if is_terminal():
        emit(content.decode())
    else:
        typer.get_binary_stream("stdout").write(content)


def _write_drawing(screen: Screen, model: Model, output: str | None, kind: str, scale: float) -> Path:
    """Write a drawing to a file, and return its path."""
    from cli.options.default_directory import BUILD
    from cli.options.files import check_place, write_own
    from zoo.core.progress import Stage
    from zoo.drawing import drawn

    suffix = next(suffix for suffix, meant in FORMATS.items() if meant == kind)
    path = Path(output) if output else BUILD / f"{model.name}{suffix}"
    if path.suffix.lower() == ".md":
        suffix = ".md"
    check_place(path, suffix, "--output")
    with screen.progress() as progress:
        progress(Stage(f"draw {model.name}"))
        content = drawn(model, path.with_suffix(suffix), scale)
    write_own(path, content, suffix)
    return path


def is_terminal() -> bool:
    """Whether standard output is a terminal."""
    return sys.stdout.isatty()


def _format(output: str | None, name: str | None) -> str:
    """The format to draw.  Raises :class:`specs.base.errors.UserError` if the options name none, or two."""
    from specs.base.errors import UserError
    from specs.base.suggest import suggestion

    if name is not None and name not in FORMATS.values():
        formats = list(dict.fromkeys(FORMATS.values()))
        raise UserError(f"--format {name!r} is unknown\n  {suggestion(name, formats)}")
    if output in (None, "-"):
        return name or "svg"
    suffix = Path(output or "").suffix
    meant = FORMATS.get(suffix.lower())
    if meant is None and name is None:
        raise UserError(
            f"{output} has no known format.\n  Use a suffix of {', '.join(FORMATS)}, or pass --format."
        )
    if meant is not None and name not in (None, meant):
        raise UserError(
            f"{output} has the suffix of {meant}, but --format is {name}.\n  Drop --format, or rename the file."
        )
    return name or meant or "svg"
