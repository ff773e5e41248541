"""``zoo check``: the shapes of all modules, and the behaviour of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from cli.options.options import Assignments, Depth, Seed, SpecArgument, Unfold, Weights
from cli.terminal.screen import Screen

if TYPE_CHECKING:
    from specs.model.model import Model
    from zoo.checks import BehaviourReport, ShapeReport
    from zoo.configs.named_model import NamedModel
    from zoo.weights.source import WeightSource


def check(
    context: typer.Context,
    spec: SpecArgument,
    assignments: Assignments = None,
    weights: Weights = None,
    seed: Seed = 0,
    depth: Depth = 4,
    unfold: Unfold = False,
    *,
    screen: Screen,
) -> None:
    """Check the shapes and behaviour of a model.

    Prints the input and output shapes of every module, then tests that the model behaves as its spec says: causality,
    padding, caches, token order and gradients.

    The tests run a few tokens in float64 with random weights; a model too large for memory is reduced to fewer layers.
    --json lists every module regardless of --depth.

    \b
    Examples:
      zoo check bert-base
      zoo check gpt2 --set position.kind=rope
      zoo check t5-small --depth 6
      zoo check llama-3-8b --json
    """
    from cli.options.given import given

    screen.tabulate_if(given(context, "depth", "unfold"))
    from cli.tables.check_screen import print_behaviour_row, print_shapes_row
    from cli.tables.check_tables import print_behaviour, print_shapes
    from cli.tables.model_rows import title
    from cli.terminal.exit_status import FAILED
    from zoo.configs.named_model import named_model

    named = named_model(spec, assignments or ())
    from zoo.checks import check_behaviour

    shapes, source = _checked_shapes(screen, named, weights, seed)
    title(screen, named.spec)
    print_shapes_row(screen, shapes)
    if screen.tables:
        print_shapes(shapes, depth=depth, unfold=unfold)
    behaviour = None
    if shapes.passed:
        with screen.progress() as progress:
            behaviour = check_behaviour(named.spec, source, seed=seed, progress=progress)
    if behaviour is not None:
        print_behaviour_row(screen, behaviour)
        if screen.tables:
            print_behaviour(behaviour)
    if not _print_verdict(context, screen, named.spec, shapes, behaviour):
        raise typer.Exit(FAILED)


def _checked_shapes(
    screen: Screen, named: NamedModel, weights: str | None, seed: int
) -> tuple[ShapeReport, WeightSource | None]:
    """Check the shapes of a model; return them, and its weights if it has any or some are asked for."""
    from zoo.builder import assemble
    from zoo.checkpoints.open_weights import open_weights
    from zoo.checks import check_shapes
    from zoo.core.progress import Stage

    spec, source = named.spec, None
    with screen.progress() as progress:
        progress(Stage("shapes"))
        model = assemble(spec)
        if weights is not None or named.own_weights is not None:
            source = open_weights(named.weights(weights), model, spec, seed=seed)
        return check_shapes(model, spec), source


def _print_verdict(
    context: typer.Context,
    screen: Screen,
    spec: Model,
    shapes: ShapeReport,
    behaviour: BehaviourReport | None,
) -> bool:
    """Print the result as JSON, or what to do next, or the failures; return whether all checks passed."""
    from cli.options.given import typed, with_set
    from cli.tables.failures import failures_of
    from cli.terminal.render import print_json

    passed = behaviour is not None and behaviour.passed
    if screen.as_json:
        results = {
            "shapes": shapes.as_dict(),
            "behaviour": None if behaviour is None else behaviour.as_dict(),
        }
        print_json({"name": spec.name, "passed": passed, **results})
    elif passed:
        screen.done(f"{spec.name} behaves as its spec says, checked")
        again = with_set(context.params["spec"], context.params["assignments"])
        screen.next(
            *([] if screen.tables else [(typed(context, "-v"), "every shape, every figure")]),
            (["build", *again], "export it"),
        )
    else:
        failures = failures_of(shapes=shapes, behaviour=behaviour)
        screen.failed(f"{len(failures)} failed:", failures)
    return passed
