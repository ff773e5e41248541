"""Drawings of positions, from the values of their modules.

Sinusoids are what the module adds to an embedding of zeros, rotations how it rotates a pair (1, 0), penalties what it adds
to the scores of the last token.  Trained tables have no values yet and are described in text.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from html import escape
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from specs.base.base import LEAST, MOST
from specs.kinds.position import PositionKind
from zoo.components.alibi import Alibi
from zoo.components.disentangled import Disentangled
from zoo.components.patch_positions import AxialRope, RelativeBias2d
from zoo.components.position import Learned, Position
from zoo.components.relative_bias import RelativeBias
from zoo.components.relative_key import RelativeKey
from zoo.components.relative_sinusoidal import RelativeSinusoidal
from zoo.components.rope import Rope
from zoo.components.rope_frequencies import rope_frequencies
from zoo.components.sinusoidal import Sinusoidal
from zoo.core.tensors import fixed_values, weight_tensors
from zoo.pages.chart import Axis, Line, line_chart
from zoo.weights.materialize import put

SIDE = 8
"""The patches in a row of the image that is shown where images have any size."""

POSITIONS = 128
"""Maximum number of positions in a heat map."""
PAIRS = 96
"""Maximum number of dimension pairs in a heat map."""
DIALS = 12
"""Maximum number of rotating pairs shown as dials."""


def zeroed(position: Position) -> None:
    """Move a position off the meta device: constant tables get their values, trained ones zeros."""
    fixed = fixed_values(position)
    put(
        position,
        {
            id(tensor): nn.Parameter(
                fixed[name] if name in fixed else torch.zeros(tensor.shape, device="cpu"), requires_grad=False
            )
            for name, tensor in weight_tensors(position)
        },
    )


@dataclass(frozen=True)
class Use:
    """A position and where it acts; ``width`` is the width of the vectors that it acts on, 0 if unknown."""

    title: str
    position: Position
    spec: PositionKind
    width: int
    context_length: int | None

    @property
    def shown(self) -> int:
        """The number of positions to show."""
        return min(POSITIONS, self.context_length or POSITIONS)


@dataclass(frozen=True)
class Drawing:
    """The figures of a position, and their data for the page's script."""

    title: str
    about: str
    figures: Sequence[str] = ()
    data: Mapping[str, Any] = field(default_factory=dict)


def drawing_of(use: Use) -> Drawing:
    """The drawing of a position."""
    return _drawing(use.position, use)


@singledispatch
def _drawing(position: Position, use: Use) -> Drawing:
    """The drawing of a position by its module."""
    return _without_figures(use)


def _without_figures(use: Use) -> Drawing:
    """The sentence of the spec."""
    return Drawing(use.spec.heading, use.spec.about)


@_drawing.register
def _(learned: Learned, use: Use) -> Drawing:
    rows, width = learned.table.weight.shape
    about = f"Learned vectors of {width:,} numbers for {rows - learned.offset:,} positions"
    if learned.offset:
        about += f", after {learned.offset} unused rows"
    return Drawing("Learned", f"{about}: nothing to plot before training.")


@_drawing.register
def _(sinusoidal: Sinusoidal, use: Use) -> Drawing:
    zeroed(sinusoidal)
    positions = torch.arange(use.shown)[None]
    added = sinusoidal.embed(torch.zeros(1, use.shown, use.width), positions)[0]  # positions x width
    half = use.width // 2
    pairs = torch.arange(0, half, -(-half // PAIRS))
    if sinusoidal.interleaved:
        columns = torch.stack((2 * pairs, 2 * pairs + 1), -1).flatten()
        order = "sine and cosine of each frequency interleaved"
    else:
        columns, order = torch.cat((pairs, half + pairs)), "all sines, then all cosines"
    about = f"Added to the embedding: {order}, of {half:,} frequencies."
    data = _heat_map(added[:, columns], "position", "dimension", columns.tolist())
    figures = [
        _canvas("Added value by position and dimension", "broad"),
        _wavelengths(use, {"": sinusoidal.frequencies}),
    ]
    return Drawing("Sinusoidal", about, figures, {"maps": [data]})


@_drawing.register
def _(rope: Rope, use: Use) -> Drawing:
    if not use.width:
        return _without_figures(use)
    spec = rope.spec
    dimensions = rope.dimensions or use.width
    by_length, amplitude = _frequencies(rope, use)
    turned = _turned(rope, use, dimensions)
    pairs = torch.arange(0, dimensions // 2, -(-dimensions // 2 // PAIRS))
    data = _heat_map(turned[:, pairs], "position", "pair", pairs.tolist())
    theta = f"{spec.theta:{',.0f' if 1 <= spec.theta < 1e12 else 'g'}}"
    part = "all" if dimensions == use.width else f"{dimensions} of"
    about = f"Rotates {part} {use.width} dimensions of each query and key in {dimensions // 2} pairs, "
    about += "neighbours" if rope.interleaved else "each dimension with the one half the width further on"
    about += f"; theta {theta}"
    scaling = spec.scaling
    if scaling is not None:
        about += f"; {scaling.kind} scaling"
        plain, _ = rope_frequencies(spec.model_copy(update={"scaling": None}), use.context_length, dimensions)
        assert isinstance(plain, tuple)
        by_length = {**by_length, "without scaling": plain}
    if amplitude != 1:
        about += f"; cosines and sines are scaled by {amplitude:.3g}"
    chosen = [round(i * (dimensions // 2 - 1) / max(1, DIALS - 1)) for i in range(DIALS)]
    first = next(iter(by_length.values()))
    dials = {
        "pairs": [{"pair": pair, "frequency": first[pair]} for pair in dict.fromkeys(chosen)],
        "last": (use.context_length or 4096) - 1,
    }
    figures = [
        _canvas("Cosine of each pair by position"),
        _wavelengths(use, by_length),
        _dials(),
    ]
    if spec.sections is not None:
        counts = " and ".join(map(str, spec.sections.pairs))
        about += f"; of the vectors of images, {counts} pairs turn with the frame, the row and the column"
    return Drawing("Rotary (RoPE)", f"{about}.", figures, {"maps": [data], "dials": dials})


@_drawing.register
def _(axial: AxialRope, use: Use) -> Drawing:
    if not use.width:
        return _without_figures(use)
    turned = axial.angles(use.width, _grid(SIDE), torch.zeros(1, 1, len(axial.rows))).cos()[
        0
    ]  # vectors x pairs
    shown = range(0, len(turned), -(-len(turned) // POSITIONS))
    pairs = torch.arange(0, use.width // 2, -(-use.width // 2 // PAIRS))
    data = _heat_map(turned[shown][:, pairs], "vector", "pair", pairs.tolist())
    about = (
        f"Rotates the {use.width} dimensions of each query and key in {use.width // 2} pairs, the first half with the row of "
        f"a patch and the second with its column; theta {axial.theta:g}. "
    )
    about += (
        "Vectors beside the patches are not rotated."
        if axial.rows
        else f"Images have any size; shown is one of {SIDE} x {SIDE} patches."
    )
    return Drawing(
        "Axial rotary (2-D RoPE)", about, [_canvas("Cosine of each pair by vector")], {"maps": [data]}
    )


def _grid(side: int) -> Tensor:
    """The rows and columns of the patches of a square: 2 1 T."""
    places = torch.arange(side * side)
    return torch.stack((places // side, places % side))[:, None]


def _frequencies(rope: Rope, use: Use) -> tuple[dict[str, tuple[float, ...]], float]:
    """The frequencies of a module, labelled by the inputs that they apply to, and the amplitude."""
    frequencies, amplitude = rope.frequencies(use.width)
    if isinstance(frequencies, tuple):
        return {"": frequencies}, amplitude
    border = use.spec.switch_length or POSITIONS
    lengths = {f"inputs up to {border:,}": border}
    if use.context_length and use.context_length > border:
        lengths[f"inputs of {use.context_length:,}"] = use.context_length
    return {name: tuple(frequencies(torch.tensor(n)).tolist()) for name, n in lengths.items()}, amplitude


def _turned(rope: Rope, use: Use, dimensions: int) -> Tensor:
    """Return the first component of (1, 0) rotated, for each pair: positions x pairs."""
    x = torch.zeros(1, 1, use.shown, use.width)  # B H T K
    first = slice(0, dimensions, 2) if rope.interleaved else slice(0, dimensions // 2)
    x[..., first] = 1
    return rope.rotate(x, torch.arange(use.shown)[None], use.width)[0, 0, :, first]


def _wavelengths(use: Use, frequencies: Mapping[str, Sequence[float]]) -> str:
    """The wavelength of each pair in positions, against the context length."""
    lines = [
        Line(
            name or "turn", [(pair, 2 * math.pi / _drawable(radians)) for pair, radians in enumerate(values)]
        )
        for name, values in frequencies.items()
    ]
    most = max(length for line in lines for _, length in line.points)
    context = [(float(use.context_length), f"context, {use.context_length:,}")] if use.context_length else []
    x = Axis("pair", 0, max(1, len(lines[0].points) - 1))
    y = Axis("positions per turn", 2 * math.pi, 1.6 * max([most, *(value for value, _ in context)]), log=True)
    if len(lines) > 1 and lines[0].name == "turn":
        lines[0] = Line("with scaling", lines[0].points)
    chart = line_chart("Positions per full turn of each pair", x, y, lines, context)
    return f"<figure><h3>Positions per full turn</h3>{chart}</figure>"


def _drawable(value: float) -> float:
    """A value on a logarithmic axis, clamped to the range of float32."""
    return min(value, MOST) if value > LEAST else LEAST


@_drawing.register
def _(alibi: Alibi, use: Use) -> Drawing:
    keys = torch.arange(use.shown)[None]  # 1 S
    bias = alibi.bias(keys[:, -1:], keys, torch.zeros(()))[0, :, 0]  # H S, of the last token
    bias = (bias - bias[:, -1:]).flip(-1)  # by distance; softmax cancels a constant over all keys
    heads = bias.shape[0]
    data = _heat_map(bias, "head", "distance", list(range(use.shown)))
    slopes = [(head + 1, _drawable(slope * alibi.scale)) for head, slope in enumerate(alibi.slopes)]
    x, y = (
        Axis("head", 1, max(heads, 2)),
        Axis("slope", min(s for _, s in slopes), max(s for _, s in slopes), log=True),
    )
    line = line_chart("Slope of each head", x, y, [Line("slope", slopes)])
    figures = [
        _canvas("Bias added to the score of a key, by head and distance"),
        f"<figure><h3>Slope of each head</h3>{line}</figure>",
    ]
    about = (
        f"Lowers the score of a key by its distance times the slope of the head ({heads} heads); not trained."
    )
    return Drawing("ALiBi", about, figures, {"maps": [data]})


@_drawing.register
def _(disentangled: Disentangled, use: Use) -> Drawing:
    reach = torch.arange(-disentangled.max_distance, disentangled.max_distance + 1)[None]  # 1 S
    rows = disentangled.rows_of(torch.zeros(1, 1, dtype=torch.int64), reach)[0, 0].tolist()
    count, width = disentangled.table.weight.shape
    chart = _by_distance("vector", list(zip(reach[0].tolist(), rows, strict=True)), count)
    about = (
        f"Adds to each score the products of query and key with the projected vector of their distance, one of {count}, "
        f"each of {width:,} numbers. The chart shows which vector each distance has, as the vectors are trained."
    )
    return Drawing("Disentangled attention", about, [chart])


@_drawing.register
def _(relative: RelativeKey, use: Use) -> Drawing:
    count, width = relative.table.weight.shape
    about = (
        f"Adds to each score the product of the query with the vector of its distance from the key, one of {count:,} in every "
        f"layer, each of {width:,} numbers: distances of {relative.before} and more before the query share a vector, as do "
        f"those of {relative.after} and more after it. The vectors are learned: nothing to plot before training."
    )
    return Drawing("Relative keys", about)


@_drawing.register
def _(relative: RelativeSinusoidal, use: Use) -> Drawing:
    about = (
        f"Adds to each score the product of the query, and a trained vector for each of {len(relative.content_bias)} heads, with the "
        f"projection of the sines and cosines of its distance from the key, of {len(relative.frequencies):,} frequencies."
    )
    return Drawing("Relative sinusoidal", about, [_wavelengths(use, {"": relative.frequencies})])


def _by_distance(row: str, points: Sequence[tuple[int, int]], count: int) -> str:
    """A figure of the row of a table that each distance has, as a step function through points."""
    steps = [step for a, b in pairwise(points) for step in (a, (b[0], a[1]), b)]
    x = Axis("key position minus query position", points[0][0], points[-1][0])
    title = f"{row.capitalize()} of each distance"
    chart = line_chart(title, x, Axis(row, 0, count - 1), [Line(row, steps)])
    return f"<figure><h3>{title}</h3>{chart}</figure>"


@_drawing.register
def _(relative: RelativeBias, use: Use) -> Drawing:
    reach = relative.max_distance
    points = [(i - reach, bucket) for i, bucket in enumerate(relative.buckets)]
    two_sided = len({bucket for distance, bucket in points if distance > 0} - {relative.buckets[reach]}) > 0
    points = points if two_sided else points[: reach + 1]
    count, heads = relative.table.weight.shape
    about = (
        f"Adds a trained bias to each score, by head ({heads} heads) and by bucket of the distance ({count} buckets); "
        f"distances of {reach} and more share the last bucket. The chart shows the buckets, as the biases are trained."
    )
    return Drawing("Relative bias", about, [_by_distance("bucket", points, count)])


@_drawing.register
def _(grid: RelativeBias2d, use: Use) -> Drawing:
    count, heads = grid.table.weight.shape
    about = (
        f"Adds a trained bias to each score, by head ({heads} heads) and by the difference in rows and columns of two patches: "
        f"{grid.differences:,} differences"
    )
    about += (
        f", and {count - grid.differences} biases for the vectors before the patches"
        if any(grid.others)
        else ""
    )
    return Drawing("2-D relative bias", f"{about}: nothing to plot before training.")


def _heat_map(values: Tensor, rows: str, columns: str, labels: Sequence[int]) -> dict[str, Any]:
    """Rows x columns for the page's script: each value as one of 255 levels, relative to the largest."""
    values = values.nan_to_num()
    largest = float(values.abs().max()) or 1.0
    levels = (values / largest * 127).round().to(torch.int64) + 127
    return {
        "shape": list(values.shape),
        "largest": largest,
        "names": [rows, columns],
        "columns": list(labels),
        "values": base64.b64encode(bytes(levels.flatten().tolist())).decode("ascii"),
    }


def _canvas(title: str, width: str = "") -> str:
    return (
        f'<figure class="{width}"><h3>{escape(title)}</h3><canvas role="img" aria-label="{escape(title)}"></canvas>'
        '<div class="scale"><span></span><i></i><span></span></div>'
        '<figcaption aria-live="polite"></figcaption></figure>'
    )


def _dials() -> str:
    return (
        '<figure class="dials"><h3>Rotation of each pair</h3>'
        '<label>position <input type="range" min="0" value="0" step="1"> <output></output></label>'
        '<div class="faces"></div></figure>'
    )
