"""Which position may attend to which, for each kind of layer.

Every picture shows the bias that the model's stack adds to the scores of its layers, on a grid of positions that exceeds the
largest window: a key is visible if its bias is not the one of masked keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Literal

import torch
from torch import Tensor

from specs.model.model import Model
from specs.model.stack import Bidirectional
from specs.model.stack import Stack as StackSpec
from zoo import functional
from zoo.builder import ZooModel
from zoo.components.mixer import AttentionContext, BiasKey
from zoo.models.image_positions import ImagePositions
from zoo.models.stack import Stack
from zoo.pages.chart import coordinate
from zoo.pages.markup import layers_text, section
from zoo.pages.position_drawings import zeroed

CELLS = 48
"""Maximum number of rows and columns in a picture."""
FEWEST = 24
"""Minimum number of positions to show."""
REACH = 2.5
"""The length shown, in multiples of the largest window."""
SIDE = 240
"""The width and height of a picture, in its own units."""

Padding = Literal["none", "left", "right"]
_SPANS: dict[Bidirectional, str] = {
    "image": "an image",
    "prompt": "the prompt",
    "windows": "the prompt and windows",
}

PADDINGS: tuple[Padding, ...] = ("none", "left", "right")


@dataclass(frozen=True)
class VisibilityGrid:
    """The positions along one side of a picture: every ``stride``-th of ``length``."""

    length: int
    stride: int = 1

    @property
    def places(self) -> Tensor:
        return torch.arange(0, self.length, self.stride)

    @property
    def padding_cells(self) -> int:
        """The number of padding cells in padded pictures: a quarter."""
        return len(self.places) // 4

    def span(self, kind: Bidirectional) -> range:
        """The positions of an image, the second quarter, which is never padding, or of a prompt that ends there."""
        quarter = self.padding_cells * self.stride
        return range(quarter if kind == "image" else 0, 2 * quarter)

    def mask(self, padding: Padding) -> Tensor | None:
        """1 for real tokens: 1 length, or None for all."""
        padded, positions = self.padding_cells * self.stride, torch.arange(self.length)
        match padding:
            case "none":
                return None
            case "left":
                return (positions >= padded).to(torch.int64)[None]
            case "right":
                return (positions < len(self.places) * self.stride - padded).to(torch.int64)[None]


@dataclass(frozen=True)
class Sight:
    """The visibility in layers of one kind: for each padding of the keys, a table of queries x keys.

    ``padded_queries``: whether queries are the same tokens as keys, and padded with them. ``block``: the size of the blocks of tokens whose
    sums are seen, too.
    """

    title: str
    layers: tuple[int, ...]
    depth: int
    sinks: bool
    block: int | None
    queries: VisibilityGrid
    keys: VisibilityGrid
    allowed: dict[Padding, Tensor]
    padded_queries: bool


def sights(model: ZooModel, spec: Model) -> list[Sight]:
    """Return the visibility of each kind of layer, encoder first. The trained values of positions are discarded."""
    shown: list[Sight] = []
    for name, stack_spec in spec.stacks():
        stack: Stack = model.get_submodule(name)  # type: ignore[assignment]
        prefix = f"{name}, " if len(list(spec.stacks())) > 1 else ""
        shown += _own_sights(stack, spec, stack_spec, prefix)
        if name == "decoder" and spec.encoder is not None:
            shown.append(_cross_sight(stack, spec, stack_spec, spec.encoder))
    return shown


def _own_sights(stack: Stack, spec: Model, stack_spec: StackSpec, prefix: str) -> Iterator[Sight]:
    """Self-attention visibility in the layers of a stack; equal layers are merged."""
    longest = spec.context_length_of(stack_spec)
    grid = _grid([view.window or view.chunk for view in stack.views], longest)
    if longest and any(position.needs_whole_image for position in spec.positions_in(stack_spec)):
        grid = VisibilityGrid(longest, -(-longest // CELLS))  # its bias is for all patches
    paddings = PADDINGS if spec.embedding_of(stack_spec).takes_tokens else PADDINGS[:1]
    for position in stack.positions:
        zeroed(position)
    both = stack_spec.bidirectional
    scopes = {padding: _attention_context(stack, grid, grid.mask(padding), both=both) for padding in paddings}
    blocks = stack_spec.layer_blocks()
    kinds: dict[tuple[BiasKey, bool, int | None], list[int]] = {}
    for layer, attention in stack.attentions.items():
        own = blocks[layer].attention
        assert own is not None
        kinds.setdefault((stack.view(attention), own.has_sink, own.summarized_tokens), []).append(layer)
    for (view, sinks, block), layers in kinds.items():
        title = prefix + ("causal" if stack.causal else "bidirectional")
        title += (
            f"; both directions within {_SPANS[stack_spec.bidirectional]}" if stack_spec.bidirectional else ""
        )
        title += " within each image" if spec.embedding_of(stack_spec).packed else ""
        title += f", windows of {view.patch_window:,} patches" if view.patch_window else ""
        title += f", window of {view.window:,}" if view.window else ""
        title += f", chunks of {view.chunk:,}" if view.chunk else ""
        allowed = {padding: _allowed(context.biases[view], grid, grid) for padding, context in scopes.items()}
        yield Sight(title, tuple(layers), len(stack.blocks), sinks, block, grid, grid, allowed, True)


def _cross_sight(stack: Stack, spec: Model, decoder: StackSpec, encoder: StackSpec) -> Sight:
    """Cross-attention visibility in the layers of a decoder."""
    queries = _grid([], spec.context_length_of(decoder))
    keys = _grid([], spec.context_length_of(encoder))
    paddings = PADDINGS if spec.embedding_of(encoder).takes_tokens else PADDINGS[:1]
    allowed = {
        padding: _allowed(
            _attention_context(stack, queries, None, keys.mask(padding)).cross_bias, queries, keys
        )
        for padding in paddings
    }
    layers = [i for i, block in enumerate(stack.blocks) if block.cross_attention is not None]
    title = "decoder to encoder (cross)"
    return Sight(title, tuple(layers), len(stack.blocks), False, None, queries, keys, allowed, False)


def _grid(windows: Sequence[int | None], longest: int | None) -> VisibilityGrid:
    """Return the number of positions to show: enough to see windows or chunks end, where they end within the context."""
    ending = [window for window in windows if window and window < (longest or window + 1)]
    length = max([FEWEST, *(int(REACH * window) for window in ending)])
    length = min(length, longest or length)
    return VisibilityGrid(length, -(-length // CELLS))


def _attention_context(
    stack: Stack,
    grid: VisibilityGrid,
    mask: Tensor | None,
    encoder_mask: Tensor | None = None,
    both: Bidirectional | None = None,
) -> AttentionContext:
    """The attention inputs for the queries of a grid and all its keys, some of which see each other in ``both`` directions."""
    every = torch.ones(1, grid.length, dtype=torch.int64) if mask is None else mask
    keys = functional.token_positions(every, grid.length)  # 1 S
    tokens = ImagePositions(keys[:, grid.places], mask=mask)
    if both is not None:
        span = grid.span(both)
        inside = ((grid.places >= span.start) & (grid.places < span.stop))[None]
        last = torch.where(inside, keys[:, span.stop - 1 : span.stop], tokens.positions)
        unlimited = inside if both == "prompt" else None
        tokens = replace(tokens, last=last, unlimited=unlimited, both_sides=both == "windows")
    return stack.mixer_context(torch.zeros(1), tokens, keys, encoder_mask).attention


def _allowed(bias: Tensor | None, queries: VisibilityGrid, keys: VisibilityGrid) -> Tensor:
    """Return where a bias, broadcast to 1 H T S, does not mask, at the grid's queries and keys."""
    if bias is None:
        return torch.ones(len(queries.places), len(keys.places), dtype=torch.bool)
    seen = (bias[0] > functional.forbidden(bias.dtype) / 2).any(0)  # (T or 1) S
    rows = seen[queries.places] if len(seen) == queries.length else seen.expand(len(queries.places), -1)
    return rows[:, keys.places]


def visibility_section(model: ZooModel, spec: Model) -> str:
    """The pictures, with a choice of padding if inputs are tokens."""
    shown = sights(model, spec)
    about = (
        "A filled cell means that the row's position may attend to the column's. "
        "Computed from the model's own attention bias, layer by layer."
    )
    choice = ""
    if any(len(sight.allowed) > 1 for sight in shown):
        boxes = "".join(
            f'<label><input type="radio" name="padding" value="{padding}"{" checked" * (padding == "none")}>'
            f" {padding}</label>"
            for padding in PADDINGS
        )
        choice = f'<fieldset class="choice"><legend>Padding</legend>{boxes}</fieldset>'
    figures = "\n".join(_figure(sight) for sight in shown)
    return section(
        "attention", "Attention visibility", about, f'{choice}<div class="figures">{figures}</div>'
    )


def _figure(sight: Sight) -> str:
    stride = sight.queries.stride
    shown = f"{sight.queries.length:,} positions"
    if stride > 1:
        shown += f", one in {stride:,} shown"
    caption = f"{layers_text(sight.layers, sight.depth)}; {shown}"
    if sight.sinks:
        caption += "; each head also has a sink, which every position may attend to"
    if sight.block:
        caption += (
            f"; every position may also attend to the sums of all full blocks of {sight.block:,} tokens"
        )
    pictures = "".join(_picture(sight, padding) for padding in sight.allowed)
    return f'<figure class="sight"><h3>{escape(sight.title)}</h3>{pictures}<figcaption>{escape(caption)}</figcaption></figure>'


def _picture(sight: Sight, padding: Padding) -> str:
    allowed = sight.allowed[padding]
    rows, columns = allowed.shape
    wide, high = SIDE / columns, SIDE / rows
    runs = "".join(
        f"M{coordinate(start * wide)} {coordinate(row * high)}h{coordinate((end - start) * wide)}v{coordinate(high)}h{coordinate((start - end) * wide)}z"
        for row in range(rows)
        for start, end in _runs(allowed[row].tolist())
    )
    parts = [f'<rect class="ground" width="{SIDE}" height="{SIDE}"/>', f'<path class="seen" d="{runs}"/>']
    if sight.sinks:
        parts.append(f'<rect class="sink" x="-16" width="9" height="{SIDE}"/>')
    if padding != "none":
        parts += _padding_marks(sight, padding)
    parts += _axes(sight)
    label = f"{sight.title}, padding: {padding}. {layers_text(sight.layers, sight.depth)}"
    return (
        f'<svg class="pad-{padding if len(sight.allowed) > 1 else "any"}" viewBox="-84 -28 330 274" role="img"'
        f' aria-label="{escape(label)}">{"".join(parts)}</svg>'
    )


def _runs(row: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """The bounds of runs of true values."""
    edges = [i for i in range(len(row) + 1) if (i > 0 and row[i - 1]) != (i < len(row) and row[i])]
    return zip(edges[::2], edges[1::2], strict=True)


def _padding_marks(sight: Sight, padding: Padding) -> list[str]:
    """Bars along the sides that mark padding."""

    def bar(grid: VisibilityGrid) -> tuple[float, float]:
        size = grid.padding_cells / len(grid.places) * SIDE
        return (0, size) if padding == "left" else (SIDE - size, size)

    start, size = bar(sight.keys)
    marks = [f'<rect class="padding" x="{coordinate(start)}" y="-4" width="{coordinate(size)}" height="3"/>']
    if sight.padded_queries:
        start, size = bar(sight.queries)
        marks.append(
            f'<rect class="padding" x="-4" y="{coordinate(start)}" width="3" height="{coordinate(size)}"/>'
        )
    return marks


def _axes(sight: Sight) -> list[str]:
    """Labels of the first and last positions, rows and columns."""
    left = -22 if sight.sinks else -8
    last_query, last_key = int(sight.queries.places[-1]), int(sight.keys.places[-1])
    key = "keys" if sight.padded_queries else "keys: encoder positions"
    texts = [
        (0, -9, "start", "0"), (SIDE, -9, "end", f"{last_key:,}"), (SIDE / 2, -9, "middle", f"{key} \u2192"),
        (left, 11, "end", "0"), (left, SIDE, "end", f"{last_query:,}"), (left, SIDE / 2, "end", "queries \u2193"),
    ]  # fmt: skip
    if sight.sinks:
        texts.append((-5, -9, "end", "sink"))
    return [
        f'<text x="{coordinate(x)}" y="{coordinate(y)}" text-anchor="{side}">{text}</text>'
        for x, y, side, text in texts
    ]
