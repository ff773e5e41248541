"""``zoo build``: from a spec to verified ONNX files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from cli.options.export_options import Output, with_export_options
from cli.options.options import AsJson, Assignments, Depth, Name, SpecArgument


@with_export_options
def build(
    spec: SpecArgument,
    assignments: Assignments = None,
    name: Name = None,
    output: Output = None,
    *,
    options: Mapping[str, Any],
    depth: Depth = 4,
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
    from cli.commands.export import advice_on, run_export
    from cli.options.default_directory import export_directory
    from cli.options.sizes import file_sizes
    from cli.options.weights import chosen_weights
    from cli.tables.check_tables import print_behaviour, print_shapes
    from cli.tables.export_tables import print_export
    from cli.tables.failures import print_failures
    from cli.tables.parameter_table import print_parameters
    from cli.terminal.exit_status import FAILED
    from cli.terminal.render import print_json, say
    from zoo.configs.named_model import named_model

    named = named_model(spec, assignments or (), name)
    model_spec = named.spec
    from exporters.steps.options import ExportOptions
    from exporters.steps.request import Request
    from zoo.builder import assemble
    from zoo.checks import check_behaviour, check_shapes
    from zoo.reports.parameters import parameter_report

    model = assemble(model_spec)
    weights = chosen_weights(named, options.get("weights"), quiet=as_json)
    checked = ExportOptions(**{**options, "weights": weights})
    destination = output or export_directory(model_spec.name, checked)
    Request.of_spec(model_spec, checked, destination)
    parameters = parameter_report(model_spec)
    if not as_json:
        say(f"{model_spec.name}: {model_spec.summary}" if model_spec.summary else model_spec.name, "bold")
        print_parameters(parameters, (), file_sizes(model_spec, checked.target), checked.target, depth=depth)
        say()
    shapes = check_shapes(model, model_spec)
    if not as_json:
        print_shapes(shapes, depth=depth)
    behaviour = check_behaviour(model_spec, seed=checked.seed) if shapes.passed else None
    if not as_json and behaviour is not None:
        print_behaviour(behaviour)
        say()
    passed = parameters.met and behaviour is not None and behaviour.passed
    written = run_export(model_spec, destination, checked, as_json) if passed else None
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
        print_export(written, advice_on(model_spec, written, checked))
    else:
        print_failures(parameters, shapes, behaviour, outcome="Nothing was exported. ")
    if not passed:
        raise typer.Exit(FAILED)
