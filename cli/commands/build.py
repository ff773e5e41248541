"""``zoo build``: from a spec to verified ONNX files."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.options.export_options import (
    Activations,
    Asymmetric,
    BlockSize,
    Budget,
    CacheLength,
    CachePrecision,
    Calibrate,
    CudaGraph,
    Engines,
    HeadPrecision,
    LayoutName,
    Logits,
    MaxKl,
    MinCosine,
    Opset,
    Output,
    PrecisionName,
    Rounding,
    Seed,
    TargetName,
    Verify,
    Via,
    Weights,
)
from cli.options.options import AsJson, Assignments, ProviderName, SpecArgument


def build(
    spec: SpecArgument,
    assignments: Assignments = None,
    output: Output = None,
    weights: Weights = "random",
    seed: Seed = 0,
    target: TargetName = "portable",
    logits: Logits = "all",
    precision: PrecisionName = "fp32",
    block_size: BlockSize = 32,
    asymmetric: Asymmetric = False,
    head_precision: HeadPrecision = "int8",
    rounding: Rounding = None,
    budget: Budget = None,
    activations: Activations = None,
    verify: Verify = True,
    cuda_graph: CudaGraph = False,
    engine: Engines = None,
    provider: ProviderName = None,
    via: Via = "fx",
    opset: Opset = None,
    layout: LayoutName = "onnx",
    cache_length: CacheLength = None,
    cache_precision: CachePrecision = "float",
    calibrate: Calibrate = None,
    max_kl: MaxKl = None,
    min_cosine: MinCosine = None,
    depth: Annotated[int, typer.Option(min=0, metavar="N", help="Levels of the module tree to print.")] = 4,
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
      zoo build my-model.yaml --weights model.safetensors -o out
      zoo build bert-base --target cpu --precision int8
      zoo build gpt3-175b --weights none
    """
    from cli.commands.export import advice_on, export_settings, run_export
    from cli.options.sizes import file_sizes
    from cli.tables.check_tables import print_behaviour, print_shapes
    from cli.tables.export_tables import print_export
    from cli.tables.failures import print_failures
    from cli.tables.parameter_table import print_parameters
    from cli.terminal.exit_status import FAILED
    from cli.terminal.render import print_json, say
    from specs.language.load import load

    model_spec = load(spec, assignments or ())
    from exporters.steps.preconditions import check_exportable
    from zoo.builder import assemble
    from zoo.checks import check_behaviour, check_shapes
    from zoo.reports.parameters import parameter_report

    model = assemble(model_spec)
    destination, options = export_settings(
        model_spec,
        output,
        target=target,
        weights=weights,
        seed=seed,
        verify=verify,
        engines=tuple(engine or ()),
        provider=provider,
        cuda_graph=cuda_graph,
        via=via,
        opset=opset,
        logits=logits,
        layout=layout,
        cache_length=cache_length,
        cache_precision=cache_precision,
        calibrate=calibrate,
        max_kl=max_kl,
        min_cosine=min_cosine,
        precision=precision,
        block_size=block_size,
        asymmetric=asymmetric,
        head_precision=head_precision,
        rounding=rounding,
        budget=budget,
        activations=activations,
    )
    check_exportable(model, model_spec, destination, options)
    parameters = parameter_report(model_spec)
    if not as_json:
        say(f"{model_spec.name}: {model_spec.summary}" if model_spec.summary else model_spec.name, "bold")
        print_parameters(parameters, (), file_sizes(model_spec, target), target, depth=depth)
        say()
    shapes = check_shapes(model, model_spec)
    if not as_json:
        print_shapes(shapes, depth=depth)
    behaviour = check_behaviour(model_spec, seed=seed) if shapes.passed else None
    if not as_json and behaviour is not None:
        print_behaviour(behaviour)
        say()
    passed = parameters.met and behaviour is not None and behaviour.passed
    written = run_export(model_spec, destination, options, as_json) if passed else None
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
        print_export(written, advice_on(model_spec, written, options))
    else:
        print_failures(parameters, shapes, behaviour, outcome="Nothing was exported. ")
    if not passed:
        raise typer.Exit(FAILED)
