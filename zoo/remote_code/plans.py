"""How engines cut a model: matrices by columns or rows over devices, layers over stages."""

from __future__ import annotations

from zoo.components.attention import SelfAttention
from zoo.components.feed_forward import MLP, Gated
from zoo.components.linear import Linear
from zoo.models.stack import Stack

Stage = tuple[list[str], list[str]]


def tensor_plan(stack: Stack, name: str) -> dict[str, str]:
    """The cuts of matrices, by their place in the base model: by columns into heads or neurons, and by rows out of them.

    Attentions whose parts need all heads at once are left whole, as are mixtures.
    """
    found: dict[str, set[str]] = {}
    for block in stack.blocks:
        for part in ("attention", "feed_forward"):
            for leaf, style in _cuts(getattr(block, part)).items():
                found.setdefault(f"{name}.blocks.*.{part}.{leaf}", set()).add(style)
    for path in list(found):  # the same in all layers, or not at all
        leaf = path.rpartition(".")[2]
        part = path.split(".")[-2]
        if any(
            leaf not in _cuts(getattr(block, part)) and hasattr(getattr(block, part), leaf)
            for block in stack.blocks
        ):
            del found[path]
    return {path: styles.pop() for path, styles in found.items() if len(styles) == 1}


def _cuts(module: object) -> dict[str, str]:
    if isinstance(module, SelfAttention):
        whole = (
            module.norm_over in ("width", "each_head")
            or module.sinks is not None
            or module.bias_gate is not None
        )
        if whole or getattr(module, "compared", False):
            return {}
        cut = {"query": "colwise", "key": "colwise", "value": "colwise", "output": "rowwise"}
        return cut | ({"gate": "colwise"} if module.gate is not None else {})
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
