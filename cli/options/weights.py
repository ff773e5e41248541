"""The weights of a command: those of ``--weights``, or else of the checkpoint that is the spec."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zoo.configs.named_model import NamedModel


def chosen_weights(named: NamedModel, wanted: str | None, *, quiet: bool) -> str:
    """The weights to use; says so, unless ``quiet``, where they are the model's own.

    Raises :class:`specs.base.errors.UserError` for an export without ``wanted``.
    """
    from cli.terminal.render import say

    weights = named.weights(wanted)
    if wanted is None and named.own_weights is not None and not quiet:
        say(f"Weights: those of {weights}. Pass --weights random for others.", err=True)
    return weights
