"""``zoo check``: the shapes of all modules, and the behaviour of the model."""

from __future__ import annotations

import typer

from cli.options.options import AsJson, Assignments, Depth, Seed, SpecArgument, Unfold, Weights


def check(
    spec: SpecArgument,
    assignments: Assignments = None,
    weights: Weights = None,
    seed: Seed = 0,
    depth: Depth = 4,
    unfold: Unfold = False,
    as_json: AsJson = False,
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
    from cli.options.weights import chosen_weights
    from cli.tables.check_tables import print_behaviour, print_shapes
    from cli.tables.failures import print_failures
    from cli.terminal.exit_status import FAILED
    from cli.terminal.progress import stage_progress
    from cli.terminal.render import print_json
    from zoo.configs.named_model import named_model

    named = named_model(spec, assignments or ())
    model_spec = named.spec
    from zoo.builder import assemble
    from zoo.checkpoints.open import open_weights
    from zoo.checks import check_behaviour, check_shapes
    from zoo.core.progress import Stage

    has_weights = weights is not None or named.own_weights is not None
    chosen = chosen_weights(named, weights, quiet=as_json) if has_weights else None
    with stage_progress(quiet=as_json) as progress:
        progress(Stage("shapes"))
        model = assemble(model_spec)
        source = None if chosen is None else open_weights(chosen, model, model_spec, seed=seed)
        shapes = check_shapes(model, model_spec)
    if not as_json:
        print_shapes(shapes, depth=depth, unfold=unfold)
    behaviour = None
    if shapes.passed:
        with stage_progress(quiet=as_json) as progress:
            behaviour = check_behaviour(model_spec, source, seed=seed, progress=progress)
    if as_json:
        print_json(
            {
                "name": model_spec.name,
                "passed": behaviour is not None and behaviour.passed,
                "shapes": shapes.as_dict(),
                "behaviour": None if behaviour is None else behaviour.as_dict(),
            }
        )
    else:
        if behaviour is not None:
            print_behaviour(behaviour)
        print_failures(shapes=shapes, behaviour=behaviour)
    if behaviour is None or not behaviour.passed:
        raise typer.Exit(FAILED)
