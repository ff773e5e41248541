"""``zoo build``: from a spec to verified ONNX files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from cli.options.export_options import Output, with_export_options
from cli.options.options import AsJson, Assignments, Depth, Name, Quiet, ReadAs, SpecArgument, Verbose


@with_export_options
def build(
    spec: SpecArgument,
    assignments: Assignments = None,
    name: Name = None,
    family: ReadAs = None,
    output: Output = None,
    *,
    options: Mapping[str, Any],
    depth: Depth = 4,
    verbose: Verbose = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
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
    from cli.terminal.screen import Screen

    screen = Screen(verbose, quiet, as_json)
    from cli.commands.export import advice_on, run_export, show_export
    from cli.options.default_directory import export_directory
    from cli.options.given import with_set
    from cli.options.sizes import file_sizes
    from cli.tables.check_tables import print_behaviour, print_shapes
    from cli.tables.failures import failures_of
    from cli.tables.model_rows import behaviour_row, parameter_row, read_as_row, shape_row, title
    from cli.tables.parameter_table import print_parameters
    from cli.terminal.exit_status import FAILED
    from cli.terminal.render import print_json, say
    from specs.language.catalog import preset_names
    from zoo.configs.named_model import named_model

    named = named_model(spec, assignments or (), name, family)
    model_spec = named.spec
    from exporters.steps.options import ExportOptions
    from exporters.steps.request import Request
    from zoo.builder import assemble
    from zoo.checks import check_behaviour, check_shapes
    from zoo.core.progress import Stage
    from zoo.reports.folding import Folded
    from zoo.reports.parameters import folded_report
    from zoo.reports.roles import roles

    model = assemble(model_spec)
    weights = named.weights(options.get("weights"))
    checked = ExportOptions(**{**options, "weights": weights})
    destination = output or export_directory(model_spec.name, checked)
    Request.of_spec(model_spec, checked, destination)
    folded = Folded.of(model_spec)
    parameters = folded_report(folded)
    title(screen, model_spec)
    read_as_row(screen, named)
    parameter_row(
        screen,
        parameters,
        roles(folded),
        published=spec in preset_names() and not assignments and name is None,
    )
    if screen.tables:
        sizes = file_sizes(model_spec, checked.target)
        print_parameters(parameters, (), sizes, checked.target, depth=depth)
        say()
    with screen.progress() as progress:
        progress(Stage("check shapes"))
        shapes = check_shapes(model, model_spec)
    shape_row(screen, shapes)
    if screen.tables:
        print_shapes(shapes, depth=depth)
    behaviour = None
    if shapes.passed:
        with screen.progress() as progress:
            behaviour = check_behaviour(model_spec, seed=checked.seed, progress=progress)
        behaviour_row(screen, behaviour)
        if screen.tables:
            print_behaviour(behaviour)
            say()
    passed = parameters.met and behaviour is not None and behaviour.passed
    written = run_export(screen, model_spec, destination, checked) if passed else None
    if as_json:
        print_json(
            {
                "name": model_spec.name,
                "passed": passed,
                "parameters": parameters.as_dict(),
                "shapes": shapes.as_dict(),
                "behaviour": None if behaviour is None else behaviour.as_dict(),
                "export": None
                if written is None
                else {"directory": str(written.directory), **written.as_dict()},
            }
        )
    elif written is not None:
        command = ["build", *with_set(spec, assignments, name, family)]
        show_export(
            screen,
            model_spec,
            written,
            checked,
            command,
            output,
            advice_on(model_spec, written, checked),
            named.own_weights,
        )
    else:
        failures = failures_of(parameters, shapes, behaviour, named.document)
        screen.failed(f"Nothing was exported. {len(failures)} failed:", failures)
    if not passed:
        raise typer.Exit(FAILED)
