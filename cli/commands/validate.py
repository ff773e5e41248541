"""``zoo validate``: check specs for errors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cli.options.options import Assignments, SpecArguments
from cli.terminal.option import AsJson

if TYPE_CHECKING:
    from specs.model.model import Model

_UNCOUNTED = "; expect is not checked, zoo params does"


def validate(
    specs: SpecArguments,
    assignments: Assignments = None,
    as_json: AsJson = False,
) -> None:
    """Check specs for errors without building them.

    Prints one line per spec to stdout, and the problems to stderr. Counts that a spec expects are not compared, because that
    takes a built model: zoo params does.

    \b
    Examples:
      zoo validate my-model.yaml
      zoo validate specs/*.yaml --json
    """
    import typer

    from cli.terminal.command import error_data
    from cli.terminal.exit_status import WRONG_INPUT
    from cli.terminal.render import print_json, say
    from specs.base.errors import UserError, with_flags
    from zoo.configs.named_model import named_model

    results: list[dict[str, Any]] = []
    for spec in specs:
        fault: UserError | None = None
        try:
            model = named_model(spec, assignments or ()).spec
        except UserError as error:
            fault = error
        errors = [] if fault is None else error_data(fault)
        unchecked = ["expect"] if fault is None and _expects(model) else []
        results.append({"name": spec, "passed": fault is None, "unchecked": unchecked, "errors": errors})
        if as_json:
            continue
        if fault is None:
            say(f"{spec}: OK ({_outline(model)}){_UNCOUNTED if _expects(model) else ''}")
            continue
        say(f"{spec}: {len(errors):,} problem{'s' if len(errors) > 1 else ''}")
        say(with_flags(fault.text), "red", err=True)
    if as_json:
        print_json({"passed": all(result["passed"] for result in results), "specs": results})
    if not all(result["passed"] for result in results):
        raise typer.Exit(WRONG_INPUT)


def _expects(model: Model) -> bool:
    """Whether a spec states counts."""
    return bool(model.expect.model_fields_set)


def _outline(model: Model) -> str:
    depths = " + ".join(str(stack.depth) for _, stack in model.stacks())
    return f"{model.name}: {model.architecture}, {depths} layers, {model.widths_text} wide"
