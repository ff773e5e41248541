"""How engines cut a model: matrices by columns or rows over devices, layers over stages."""

from __future__ import annotations

from zoo.components.attention import CrossAttention, SelfAttention
from zoo.components.attention_variations import VariedProjections
from zoo.components.feed_forward import MLP, Gated
from zoo.components.linear import Linear
from zoo.models.stack import Stack
from zoo.remote_code.modules import compares, overrides

Stage = tuple[list[str], list[str]]


def tensor_plan(stack: Stack, name: str) -> dict[str, str]:
    """The cuts of matrices, by their place in the base model: by columns into heads or neurons, and by rows out of them.

    Attentions whose parts, or whose positions, need all heads at once are left whole, as are mixtures and other mixers.
    """
    found: dict[str, set[str]] = {}
    for part in ("attention", "cross_attention", "feed_forward"):
        modules = [getattr(block, part) for block in stack.blocks]
        for leaf, style in (pair for module in modules for pair in _cuts(module, stack).items()):
            lacking = [each for each in modules if leaf not in _cuts(each, stack) and hasattr(each, leaf)]
            if not lacking:  # the same in all layers, or not at all
                found.setdefault(f"{name}.blocks.*.{part}.{leaf}", set()).add(style)
    return {path: styles.pop() for path, styles in found.items() if len(styles) == 1}


def _cuts(module: object, stack: Stack) -> dict[str, str]:
    if isinstance(module, SelfAttention | CrossAttention):
        varied = isinstance(module, VariedProjections)
        whole = varied and (module.norm_over in ("width", "each_head") or module.sinks is not None)
        if isinstance(module, SelfAttention):
            adds = overrides(stack.position_of(module), "bias")  # to the scores of every head
            whole = whole or adds or compares(module)
        if whole:
            return {}
        cut = {"query": "colwise", "key": "colwise", "value": "colwise", "output": "rowwise"}
        return cut | ({"gate": "colwise"} if varied and module.gate is not None else {})
    if isinstance(module, MLP | Gated):
        into = {each: "colwise" for each in ("gate", "up") if isinstance(getattr(module, each, None), Linear)}
        return into | {"down": "rowwise"}
    return {}


def pipeline_plan(stack: Stack, name: str) -> dict[str, Stage]:
    """The inputs and outputs of the parts that are on some stages alone."""
    plan: dict[str, Stage] = {
        "embedding": (["input_ids", "position_ids"], ["hidden_states"]),
        f"{name}.blocks": (["hidden_states"], ["hidden_states"]),
    }
    if [*stack.final_norm.parameters()]:
        plan[f"{name}.final_norm"] = (["hidden_states"], ["hidden_states"])
    return plan
