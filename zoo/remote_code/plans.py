"""Plans by which engines cut a model: matrices by columns or rows over devices, layers over stages."""

from __future__ import annotations

from collections.abc import Mapping

from torch import nn

from zoo.components.linear import Linear
from zoo.components.mixer import Mixer
from zoo.core.facts import SHARDING
from zoo.models.stack import Stack
from zoo.remote_code.attentions import Attentions

Stage = tuple[list[str], list[str]]
_STYLES = {"columns": "colwise", "rows": "rowwise"}


def tensor_plan(stack: Stack, name: str, attentions: Attentions) -> dict[str, str]:
    """The cuts of matrices, by their place in the base model: by columns into heads or neurons, and by rows out of them.

    Attentions whose parts, or whose biases, need all heads at once are left whole, as are mixtures and other mixers.
    """
    leaf_styles: dict[str, set[str]] = {}
    blocks = [*stack.blocks]
    parts = dict.fromkeys(part for block in blocks for part, _ in block.named_children())
    for part in parts:
        modules = [block._modules.get(part) for block in blocks]
        cuts = [_cuts(module, attentions) for module in modules]
        for leaf, style in (pair for cut in cuts for pair in cut.items()):
            pairs = zip(modules, cuts, strict=True)
            if not [m for m, cut in pairs if leaf not in cut and m and m._modules.get(leaf)]:
                leaf_styles.setdefault(f"{name}.blocks.*.{part}.{leaf}", set()).add(style)
    return {path: styles.pop() for path, styles in leaf_styles.items() if len(styles) == 1}


def _cuts(module: nn.Module | None, attentions: Attentions) -> Mapping[str, str]:
    """The cuts of the layers of an attention or feed-forward, by their names: as its ``sharding`` states them, all or none."""
    sharding = None if module is None else SHARDING.of(module)()
    called = attentions.calls.get(id(module))
    if module is None or sharding is None or (called is None and isinstance(module, Mixer)):
        return {}
    if called is not None and (called.adds_per_head or called.has_sinks):
        return {}
    styles: dict[str, str] = {}
    for path, child in module.named_children():
        cut = sharding.cuts.get(path)
        if not [*child.parameters()]:
            continue
        if cut is not None and cut.kind in _STYLES and not cut.sections and type(child) is Linear:
            styles[path] = _STYLES[cut.kind]
        elif cut is None or cut.kind != "shared":
            return {}
    return {} if [*module.parameters(recurse=False)] or sharding.last not in styles else styles


def pipeline_plan(stack: Stack, name: str) -> dict[str, Stage]:
    """The inputs and outputs of the parts that are on some stages alone."""
    plan: dict[str, Stage] = {
        "embedding": (["input_ids", "position_ids"], ["hidden_states"]),
        f"{name}.blocks": (["hidden_states"], ["hidden_states"]),
    }
    if [*stack.final_norm.parameters()]:
        plan[f"{name}.final_norm"] = (["hidden_states"], ["hidden_states"])
    return plan
