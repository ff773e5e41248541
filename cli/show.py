"""``zoo show``: a spec with ``extends``, ``--set`` and defaults resolved."""

from __future__ import annotations

from cli.options import AsJson, Assignments, SpecArgument


def show(spec: SpecArgument, assignments: Assignments = None, as_json: AsJson = False) -> None:
    """Print a spec with its base, overrides and defaults resolved.

    \b
    Examples:
      zoo show gpt2
      zoo show gpt2 --set decoder.block.norm.kind=rms_norm > my-gpt.yaml
    """
    from cli.render import emit, print_json
    from specs.load import load
    from specs.resolved import resolved
    from specs.writing import dump

    data = resolved(load(spec, assignments or ()))
    if as_json:
        print_json(data)
    else:
        emit(dump(data))
