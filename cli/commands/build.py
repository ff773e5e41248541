"""``zoo build``: from a spec to verified ONNX files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from cli.options.export_options import ExportFlags, Output
from cli.options.options import Assignments, Depth, Name, ReadAs, SpecArgument
from cli.terminal.screen import Screen

if TYPE_CHECKING:
    from specs.model.model import Model
    from zoo.checks import BehaviourReport, ShapeReport
    from zoo.configs.named_model import NamedModel
    from zoo.reports.parameters import ParameterReport


def build(
    spec: SpecArgument,
    assignments: Assignments = None,
    name: Name = None,
    family: ReadAs = None,
    output: Output = None,
    *,
    options: ExportFlags,
    depth: Depth = 4,
    screen: Screen,
) -> None:
    """Count, check, export and verify a model.

    Runs zoo params, zoo check and zoo export: counts the parameters by module, checks shapes and behaviour, writes ONNX
    files, and verifies them against PyTorch. Counts and checks run to the end even if one fails, but nothing is then
    exported: failures are listed last, and the exit status is 1.

    \b
    Examples:
      zoo build bert-base
      zoo build bert-base --set position.kind=rope
      zoo build path/to/checkpoint
      zoo build bert-base --target cpu --precision int8
      zoo build gpt3-175b --weights none
    """
    from cli.commands.export import RequestedExport
    from cli.options.given import with_set
    from cli.tables.failures import failures_of
    from cli.terminal.exit_status import FAILED
    from cli.terminal.render import print_json
    from specs.language.preset_files import preset_names
    from zoo.configs.named_model import named_model

    named = named_model(spec, assignments or (), name, family)
    from exporters.steps.request import Request

    requested = RequestedExport.of(
        named, options, output, ["build", *with_set(spec, assignments, name, family)]
    )
    Request.of_spec(named.spec, requested.options, requested.destination)
    published = spec in preset_names() and not assignments and name is None
    parameters = _counted(screen, named, requested.options.target, depth, published=published)
    shapes, behaviour = _checked(screen, named.spec, requested.options.seed, depth)
    passed = parameters.met and behaviour is not None and behaviour.passed
    written = requested.write(screen) if passed else None
    if screen.as_json:
        exported = None if written is None else {"directory": str(written.directory), **written.as_dict()}
        results = {
            "parameters": parameters.as_dict(),
            "shapes": shapes.as_dict(),
            "behaviour": None if behaviour is None else behaviour.as_dict(),
        }
        print_json({"name": named.spec.name, "passed": passed, **results, "export": exported})
    elif written is not None:
        requested.show(screen, written)
    else:
        failures = failures_of(parameters, shapes, behaviour, named.document)
        screen.failed(f"Nothing was exported. {len(failures)} failed:", failures)
    if not passed:
        raise typer.Exit(FAILED)


def _counted(
    screen: Screen, named: NamedModel, target: str, depth: int, *, published: bool
) -> ParameterReport:
    """Count the parameters, and print them; ``published``: whether the spec's expected count was published."""
    from cli.options.sizes import file_sizes
    from cli.tables.model_rows import parameter_row, read_as_row, title
    from cli.tables.parameter_table import print_parameters
    from cli.terminal.render import say
    from zoo.reports.folding import Folded
    from zoo.reports.parameters import folded_report
    from zoo.reports.roles import roles

    spec = named.spec
    folded = Folded.of(spec)
    report = folded_report(folded)
    title(screen, spec)
    read_as_row(screen, named)
    parameter_row(screen, report, roles(folded), published=published)
    if screen.tables:
        print_parameters(report, (), file_sizes(spec, target), target, depth=depth)
        say()
    return report


def _checked(
    screen: Screen, spec: Model, seed: int, depth: int
) -> tuple[ShapeReport, BehaviourReport | None]:
    """Check shapes and, if they pass, behaviour, and print the results."""
    from cli.tables.check_tables import print_behaviour, print_shapes
    from cli.tables.model_rows import behaviour_row, shape_row
    from cli.terminal.render import say
    from zoo.builder import assemble
    from zoo.checks import check_behaviour, check_shapes
    from zoo.core.progress import Stage

    with screen.progress() as progress:
        progress(Stage("check shapes"))
        shapes = check_shapes(assemble(spec), spec)
    shape_row(screen, shapes)
    if screen.tables:
        print_shapes(shapes, depth=depth)
    if not shapes.passed:
        return shapes, None
    with screen.progress() as progress:
        behaviour = check_behaviour(spec, seed=seed, progress=progress)
    behaviour_row(screen, behaviour)
    if screen.tables:
        print_behaviour(behaviour)
        say()
    return shapes, behaviour
