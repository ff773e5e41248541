"""The class of a stack of blocks."""

from __future__ import annotations

import textwrap
from itertools import groupby
from typing import Any

from torch import nn

from zoo.components.norm import NoNorm
from zoo.components.position import Position
from zoo.models.stack import Stack
from zoo.models.varied_stack import VariedStack
from zoo.remote_code import template
from zoo.remote_code.modules import INDENT, Modules, overrides

NUMBERED = "            block.attention.layer_idx = layer"
NUMBERED_BY_KIND = """\
            for name, part in block.named_children():
                if name in ("attention", "mixer"):
                    part.layer_idx = layer"""

CROSSED = """\
        like = in_dtype(x, next(self.parameters()).dtype)
        context.cross_bias = attention_bias(encoder_mask, None, None, None, like, causal=False)
"""


def carries_state(stack: Stack) -> bool:
    """Whether layers keep something else than the keys and values of one attention: states, or nothing."""
    blocks: Any = stack.blocks
    return any(block.mixer is not None or block.attention is None for block in blocks)


def cached_windows(stack: Stack) -> dict[int, int | None]:
    """The window of each layer with attention beyond which its cache keeps nothing; caches keep a token at least."""
    windows = {layer: getattr(each, "window", None) for layer, each in stack.attentions.items()}
    return {layer: None if window == 1 else window for layer, window in windows.items()}


def stack_class(stack: Stack, name: str, modules: Modules) -> str:
    """The class of a stack, which makes its blocks and what they share."""
    init = []
    if not _is_plain(stack.position) or any(
        getattr(each, "position", None) is None for each in stack.attentions.values()
    ):
        init.append(f"self.position = {modules.constructed(stack.position)}")
    blocks = [modules.constructed(block) for block in stack.blocks]
    runs = [(text, len(list(group))) for text, group in groupby(blocks)]
    listed = ", ".join(text if count == 1 else f"*({text} for _ in range({count}))" for text, count in runs)
    init.append(f"self.blocks = nn.ModuleList([{listed}])")
    if _norms(stack.final_norm):
        init.append(f"self.final_norm = {modules.constructed(stack.final_norm)}")
    if isinstance(stack, VariedStack) and stack.layer_sum is not None:
        init.append(f"self.layer_sum = {modules.constructed(stack.layer_sum)}")
    views: list[tuple[Any, str]] = []
    for layer, mixer in stack.attentions.items():
        own = getattr(mixer, "position", None)
        path = "self.position" if own is None else f"self.blocks[{layer}].attention.position"
        key = stack.view(mixer)
        if key not in [each[0] for each in views]:
            views.append((key, f"({path}, {key.window}, {layer})"))
    result = "self.final_norm(x)" if _norms(stack.final_norm) else "x"
    kept = stack.sums_layers
    cross = any(block.cross_attention is not None for block in stack.blocks)
    positions = stack.positions
    return template.STACK.format(
        title=name.capitalize(),
        doc=", then a norm" if _norms(stack.final_norm) else "",
        init=textwrap.indent("\n".join(init), 2 * INDENT),
        cross=", encoded, encoder_mask" if cross else "",
        crossed=CROSSED if cross else "",
        encoded=", keys_values" if cross else "",
        item="block, keys_values" if cross else "block",
        items="zip(self.blocks, encoded, strict=True)" if cross else "self.blocks",
        before=f"{2 * INDENT}outputs = []\n" if kept else "",
        keep=f"{3 * INDENT}outputs.append(x)\n" if kept else "",
        result=f"self.layer_sum([*outputs, {result}])" if kept else result,
        views=f"({', '.join(text for _, text in views)},)" if views else "()",
        added=_added(positions),
        gate=_gate(positions),
        compare=_compare(positions),
        causal=stack.causal,
        numbered=NUMBERED_BY_KIND if carries_state(stack) else NUMBERED,
        context="StateContext" if carries_state(stack) else "Context",
        real=", real=None if mask is None else mask[:, -x.shape[1] :]" if carries_state(stack) else "",
        position="self.position"
        if any("self.position" in line.partition(" =")[0] for line in init)
        else "None",
    )


def _norms(norm: nn.Module) -> bool:
    return not isinstance(norm, nn.Identity) and not isinstance(norm, NoNorm)


def _is_plain(position: Position) -> bool:
    return type(position) is Position


def _added(positions: list[Position]) -> str:
    """The expression of what a position adds to the scores."""
    able = [overrides(each, "bias") for each in positions]
    if all(able):
        return "position.bias(queries, keys, like)"
    return (
        'position.bias(queries, keys, like) if hasattr(position, "bias") else None' if any(able) else "None"
    )


def _gate(positions: list[Position]) -> str:
    return ""


def _compare(positions: list[Position]) -> str:
    if not any(overrides(each, "distances") for each in positions):
        return ""
    return (
        f'{3 * INDENT}if hasattr(position, "distances"):\n'
        f"{4 * INDENT}distances[position.name] = position.distances(queries, keys, like)\n"
    )
