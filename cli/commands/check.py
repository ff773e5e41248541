"""``zoo check``: the shapes of all modules, and the behaviour of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from cli.options.options import Assignments, Depth, Seed, SpecArgument, Unfold, Weights
from cli.terminal.screen import Screen

if TYPE_CHECKING:
    from specs.model.model import Model
    from zoo.checks import BehaviourReport, ShapeReport


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
    model_spec = named.spec
    from zoo.builder import assemble
    from zoo.checkpoints.open import open_weights
    from zoo.checks import check_behaviour, check_shapes
    from zoo.core.progress import Stage

    has_weights = weights is not None or named.own_weights is not None
    chosen = named.weights(weights) if has_weights else None
    with screen.progress() as progress:
        progress(Stage("shapes"))
        model = assemble(model_spec)
        source = None if chosen is None else open_weights(chosen, model, model_spec, seed=seed)
        shapes = check_shapes(model, model_spec)
    title(screen, model_spec)
    print_shapes_row(screen, shapes)
    if screen.tables:
        print_shapes(shapes, depth=depth, unfold=unfold)
    behaviour = None
    if shapes.passed:
        with screen.progress() as progress:
            behaviour = check_behaviour(model_spec, source, seed=seed, progress=progress)
    if behaviour is not None:
        print_behaviour_row(screen, behaviour)
        if screen.tables:
            print_behaviour(behaviour)
    if not _print_verdict(context, screen, model_spec, shapes, behaviour):
        raise typer.Exit(FAILED)


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
