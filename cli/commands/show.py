"""``zoo show``: a spec with ``extends``, ``--set`` and defaults resolved."""

from __future__ import annotations

from typing import Annotated

from cli.options.options import Assignments, Name, SpecArgument
from cli.terminal.option import AsJson, switch


def show(
    spec: SpecArgument,
    assignments: Assignments = None,
    name: Name = None,
    canonical: Annotated[
        bool,
        switch(
            "--canonical",
            "Write every short form out: runs of layers, norms of branches, positions and embeddings of stacks; and the "
            "graph of stacks, in comments or as JSON.",
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Print a spec with its base, overrides and defaults resolved.

    \b
    Examples:
      zoo show gpt2
      zoo show path/to/checkpoint
      zoo show gpt2 --set position.kind=rope --name my-gpt > my-gpt.yaml
      zoo show llava-1.5-7b --canonical
    """
    from cli.terminal.render import emit, print_json
    from specs.language.writing import dump
    from zoo.configs.named_model import named_model

    model = named_model(spec, assignments or (), name).spec
    graph = None
    if canonical:
        from specs.forms.written_out import written_out
        from specs.model.stack_graph import StackGraph

        data, graph = written_out(model), StackGraph.of(model)
    else:
        from specs.forms.resolved import resolved

        data = resolved(model)
    if as_json:
        print_json(data if graph is None else {"graph": graph.as_dict(), **data})
    else:
        lines = [] if graph is None else str(graph).splitlines()
        emit("".join(f"# {line}\n" for line in lines) + dump(data))
