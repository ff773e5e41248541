"""``zoo validate``: whether specs are right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cli.options import AsJson, Assignments, SpecArguments

if TYPE_CHECKING:
    from specs.model import Model


def validate(specs: SpecArguments, assignments: Assignments = None, as_json: AsJson = False) -> None:
    """Check specs without building them.

    Each gets a line, and its problems, if any, go to stderr.

    \b
    Examples:
      zoo validate my-model.yaml
      zoo validate specs/*.yaml --json
    """
    import typer

    from cli.command import WRONG_INPUT, error_data
    from cli.render import print_json
    from specs.errors import UserError
    from specs.load import load

    results: list[dict[str, Any]] = []
    for spec in specs:
        errors: list[dict[str, Any]] = []
        try:
            model = load(spec, assignments or ())
        except UserError as error:
            errors = error_data(error)
        results.append({"spec": spec, "valid": not errors, "errors": errors})
        if as_json:
            continue
        if not errors:
            typer.echo(f"{spec}: OK ({_outline(model)})")
            continue
        typer.echo(f"{spec}: {len(errors)} problem{'s' if len(errors) > 1 else ''}")
        for each in errors:
            typer.secho(each["message"], fg=typer.colors.RED, err=True)
    if as_json:
        print_json({"specs": results})
    if not all(result["valid"] for result in results):
        raise typer.Exit(WRONG_INPUT)


def _outline(model: Model) -> str:
    depths = " + ".join(str(stack.depth) for _, stack in model.stacks())
    return f"{model.name}: {model.architecture}, {depths} layers, {model.d_model} wide"
