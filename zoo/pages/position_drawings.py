"""What a kind of position does, drawn from the values of its module.

Sinusoids are what the module adds to an embedding of zeros, rotations what it makes of a pair (1, 0), penalties what it adds
to the scores of the last of some tokens.  Trained tables hold nothing before training, and are told instead.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from specs.base import LEAST, MOST
from specs.position import NoPosition, PositionKind
from specs.position import Rope as RopeSpec
from zoo.components.position import Alibi, Learned, Position, RelativeBias, Rope, Sinusoidal
from zoo.components.rope_frequencies import rope_frequencies
from zoo.pages.chart import Axis, Line, line_chart
from zoo.tensors import fixed_values, weight_tensors
from zoo.weights.materialize import put

POSITIONS = 128
"""Positions of a heat map at most."""
PAIRS = 96
"""Pairs of dimensions of a heat map at most."""
DIALS = 12
"""Rotating pairs that are shown as dials at most."""


def zeroed(position: Position) -> None:
    """Take a position off the meta device: fixed tables get their values, and trained ones zeros."""
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
    """A position where it acts: ``spec`` says what it is, ``width`` is that of the vectors that it acts on, 0 if unknown."""

    place: str
    position: Position
    spec: PositionKind
    width: int
    context_length: int | None

    @property
    def shown(self) -> int:
        """How many positions to show."""
        return min(POSITIONS, self.context_length or POSITIONS)


@dataclass(frozen=True)
class Drawing:
    """What the page shows of a position: its figures, and the data that the page's script draws them from."""

    title: str
    about: str
    figures: Sequence[str] = ()
    data: Mapping[str, Any] = field(default_factory=dict)


def drawing_of(use: Use) -> Drawing:
    """What there is to show of a position."""
    match use.position:
        case Learned() as learned:
            return _learned(use, learned)
        case Sinusoidal() as sinusoidal:
            return _sinusoidal(use, sinusoidal)
        case Rope() as rope if use.width:
            return _rope(use, rope)
        case Alibi() as alibi:
            return _alibi(use, alibi)
        case RelativeBias() as relative:
            return _relative_bias(use, relative)
    if isinstance(use.spec, NoPosition):
        return Drawing(
            "No positions",
            "Attention here sees a set of tokens; a causal mask still tells their order in part.",
        )
    return Drawing(use.spec.kind, "Of this kind nothing is known that could be drawn.")


def _learned(use: Use, learned: Learned) -> Drawing:
    rows, width = learned.table.weight.shape
    about = f"A trained vector of {width:,} numbers for each of {rows - learned.offset:,} positions"
    if learned.offset:
        about += f", after {learned.offset} rows that no position has"
    return Drawing("Learned", f"{about}: there is nothing to draw before training.")


def _sinusoidal(use: Use, sinusoidal: Sinusoidal) -> Drawing:
    zeroed(sinusoidal)
    positions = torch.arange(use.shown)[None]
    added = sinusoidal.embed(torch.zeros(1, use.shown, use.width), positions)[0]  # positions x width
    half = use.width // 2
    pairs = torch.arange(0, half, -(-half // PAIRS))
    if sinusoidal.interleaved:
        columns = torch.stack((2 * pairs, 2 * pairs + 1), -1).flatten()
        order = "sine and cosine of a frequency side by side"
    else:
        columns, order = torch.cat((pairs, half + pairs)), "all sines, then all cosines"
    about = f"Added to the embedding: {order}, of {half:,} frequencies."
    data = _heat_map(added[:, columns], "position", "dimension", columns.tolist())
    figures = [
        _canvas("What is added, by position and dimension", "broad"),
        _wavelengths(use, {"": sinusoidal.frequencies}),
    ]
    return Drawing("Sinusoidal", about, figures, {"maps": [data]})


def _rope(use: Use, rope: Rope) -> Drawing:
    assert isinstance(use.spec, RopeSpec)
    dimensions = rope.dimensions or use.width
    by_length, amplitude = _frequencies(rope, use)
    turned = _turned(rope, use, dimensions)
    pairs = torch.arange(0, dimensions // 2, -(-dimensions // 2 // PAIRS))
    data = _heat_map(turned[:, pairs], "position", "pair", pairs.tolist())
    theta = f"{use.spec.theta:{',.0f' if 1 <= use.spec.theta < 1e12 else 'g'}}"
    part = "all" if dimensions == use.width else f"{dimensions} of"
    about = f"Rotates {part} {use.width} dimensions of each query and key in {dimensions // 2} pairs, "
    about += "neighbours" if rope.interleaved else "each dimension with that half the width further on"
    about += f"; theta {theta}"
    scaling = use.spec.scaling
    if scaling is not None:
        about += f"; {scaling.kind} scaling"
        plain, _ = rope_frequencies(
            use.spec.model_copy(update={"scaling": None}), use.context_length, dimensions
        )
        assert isinstance(plain, tuple)
        by_length = {**by_length, "without scaling": plain}
    if amplitude != 1:
        about += f"; cosines and sines are {amplitude:.3g} times as long"
    chosen = [round(i * (dimensions // 2 - 1) / max(1, DIALS - 1)) for i in range(DIALS)]
    first = next(iter(by_length.values()))
    dials = {
        "pairs": [{"pair": pair, "frequency": first[pair]} for pair in dict.fromkeys(chosen)],
        "last": (use.context_length or 4096) - 1,
    }
    figures = [
        _canvas("The cosine of each pair, by position"),
        _wavelengths(use, by_length),
        _dials(),
    ]
    return Drawing("Rotary (RoPE)", f"{about}.", figures, {"maps": [data], "dials": dials})


def _frequencies(rope: Rope, use: Use) -> tuple[dict[str, tuple[float, ...]], float]:
    """The frequencies of a module, each by what it holds for, and the amplitude."""
    frequencies, amplitude = rope.frequencies(use.width)
    if isinstance(frequencies, tuple):
        return {"": frequencies}, amplitude
    border = getattr(use.spec.scaling, "original_context_length", POSITIONS)  # type: ignore[attr-defined]
    lengths = {f"inputs up to {border:,}": border}
    if use.context_length and use.context_length > border:
        lengths[f"inputs of {use.context_length:,}"] = use.context_length
    return {name: tuple(frequencies(torch.tensor(n)).tolist()) for name, n in lengths.items()}, amplitude


def _turned(rope: Rope, use: Use, dimensions: int) -> Tensor:
    """The first of each pair where (1, 0) was rotated: positions x pairs."""
    x = torch.zeros(1, 1, use.shown, use.width)  # B H T K
    first = slice(0, dimensions, 2) if rope.interleaved else slice(0, dimensions // 2)
    x[..., first] = 1
    return rope.rotate(x, torch.arange(use.shown)[None], use.width)[0, 0, :, first]


def _wavelengths(use: Use, frequencies: Mapping[str, Sequence[float]]) -> str:
    """How many positions a full turn of each pair takes, beside the context."""
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
        lines[0] = Line("as the model has it", lines[0].points)
    chart = line_chart("Positions that a full turn of each pair takes", x, y, lines, context)
    return f"<figure><h3>How many positions a full turn takes</h3>{chart}</figure>"


def _drawable(value: float) -> float:
    """A value on a logarithmic axis: what float32 takes for 0, or for more than it holds, stands at the ends."""
    return min(value, MOST) if value > LEAST else LEAST


def _alibi(use: Use, alibi: Alibi) -> Drawing:
    keys = torch.arange(use.shown)[None]  # 1 S
    bias = alibi.bias(keys[:, -1:], keys, torch.zeros(()))[0, :, 0]  # H S, of the last token
    bias = (bias - bias[:, -1:]).flip(-1)  # by distance; softmax takes no notice of what all keys get
    heads = bias.shape[0]
    data = _heat_map(bias, "head", "distance", list(range(use.shown)))
    slopes = [(head + 1, _drawable(slope * alibi.scale)) for head, slope in enumerate(alibi.slopes)]
    x, y = (
        Axis("head", 1, max(heads, 2)),
        Axis("slope", min(s for _, s in slopes), max(s for _, s in slopes), log=True),
    )
    line = line_chart("The slope of each head", x, y, [Line("slope", slopes)])
    figures = [
        _canvas("What is added to the score of a key, by head and distance"),
        f"<figure><h3>The slope of each head</h3>{line}</figure>",
    ]
    about = f"Lowers the score of a key by its distance times the slope of the head, of {heads}; nothing is trained."
    return Drawing("ALiBi", about, figures, {"maps": [data]})


def _relative_bias(use: Use, relative: RelativeBias) -> Drawing:
    reach = relative.max_distance
    points = [(i - reach, bucket) for i, bucket in enumerate(relative.buckets)]
    two_sided = len({bucket for distance, bucket in points if distance > 0} - {relative.buckets[reach]}) > 0
    points = points if two_sided else points[: reach + 1]
    stepped = [step for a, b in pairwise(points) for step in (a, (b[0], a[1]), b)]
    count, heads = relative.table.weight.shape
    x, y = (
        Axis("key position minus query position", points[0][0], points[-1][0]),
        Axis("bucket", 0, count - 1),
    )
    chart = line_chart("The bucket of each distance", x, y, [Line("bucket", stepped)])
    about = (
        f"Adds to each score a trained number for its head, of {heads}, and for its bucket of distances, of {count}; "
        f"{reach} and beyond share the last. The numbers are trained: the buckets are what there is to draw."
    )
    return Drawing("Relative bias", about, [f"<figure><h3>The bucket of each distance</h3>{chart}</figure>"])


def _heat_map(values: Tensor, rows: str, columns: str, labels: Sequence[int]) -> dict[str, Any]:
    """Rows x columns for the page's script: each value as one of 255 levels of the largest."""
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
        '<figure class="dials"><h3>How far each pair is turned</h3>'
        '<label>position <input type="range" min="0" value="0" step="1"> <output></output></label>'
        '<div class="faces"></div></figure>'
    )
