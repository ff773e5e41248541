"""``zoo compile``: compile the graphs of an export ahead of time."""

from __future__ import annotations

from typing import Annotated

import typer

from cli.options.options import ExportDirectory
from cli.terminal.option import AsJson, Quiet, option
from cli.terminal.option_groups import RUNS


def compile_(
    directory: ExportDirectory,
    architectures: Annotated[str, option("SM,..", "GPU architectures, such as sm89,sm120.", RUNS, "--for")],
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Compile the graphs of an export for GPUs that this machine need not have.

    Takes exports with --target tensorrt. TensorRT for RTX compiles each graph once for all architectures, for the sizes
    in tensorrt.json; model.engine is beside model.onnx, and export.json has its digest. Nothing runs: an engine is not
    verified before a GPU runs it.

    \b
    Examples:
      zoo compile build/bert-base --for sm89
      zoo compile build/gpt2 --for sm86,sm89,sm120 --json
    """
    from cli.terminal.screen import Screen

    screen = Screen(False, quiet, as_json)
    from cli.terminal.exit_status import FAILED
    from cli.terminal.render import print_json
    from exporters.verification.engines.compile_export import compile_export
    from exporters.verification.engines.process import EngineError
    from zoo.core.units import byte_text
    from zoo.record.manifest import read_manifest

    wanted = [name.strip() for name in architectures.split(",")]
    try:
        with screen.progress() as progress:
            compiled = compile_export(directory, wanted, progress)
    except EngineError as error:
        node = f" at node {error.node}" if error.node else ""
        message = f"The compiler refuses a graph{node}: {error.words}"
        if as_json:
            print_json({"directory": str(directory), "errors": [{"message": message}]})
        screen.failed(f"{message}\nNothing was written.")
        raise typer.Exit(FAILED) from None
    files = read_manifest(directory).files
    if as_json:
        print_json(
            {
                "directory": str(directory),
                "engines": {
                    graph.path: {
                        **files[graph.path].model_dump(),
                        **graph.record.model_dump(),
                        "seconds": graph.seconds,
                    }
                    for graph in compiled
                },
            }
        )
        return
    screen.title(str(directory), "", ", ".join(wanted))
    for graph in compiled:
        size, names = byte_text(files[graph.path].size), ", ".join(graph.record.architectures)
        screen.row("engine", f"{graph.path}: {size}, {names}, compiled in {graph.seconds} s, not run")
    screen.done(f"{directory} is compiled")
    screen.next((["verify", str(directory)], "compare the files with their digests"))
