"""Positions.  Each acts in one of three ways: on the embedding, on queries and keys, or on the scores."""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor, nn

import specs.kinds.position as spec
from specs.kinds.rope import Rope as RopeSpec
from zoo import functional
from zoo.components.activation import activation
from zoo.components.convolution import WeightNormConvolution
from zoo.components.linear import EmbeddingTable
from zoo.components.rope_frequencies import Frequencies, rope_frequencies
from zoo.context import BuildContext, PositionContext
from zoo.core.precision import wide
from zoo.core.sharding import COLUMNS, Sharding, counted
from zoo.registry import builds


@builds(spec.NoPosition)
class Position(nn.Module):
    """The base, which does none of the three, and at most scales queries.

    ``name`` identifies a position within its stack.
    """

    name = "of the stack"
    parameter_role = "positions"

    def __init__(self, spec: spec.PositionKind, context: BuildContext) -> None:
        super().__init__()
        self.query_scaling = getattr(spec, "query_scaling", None)

    def prepare(self, width: int) -> None:
        """Prepare, when the model is built, to rotate queries and keys of a width."""

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        """Add to the embedding.  x: B T D, positions: B T -> B T D."""
        return x

    def rotate(self, x: Tensor, positions: Tensor, width: int) -> Tensor:
        """Rotate queries or keys.  x: B H T K with K = width, positions: B T, or along several axes A B T -> B H T K."""
        return x

    def rotate_input(self, x: Tensor, positions: Tensor, width: int) -> Tensor:
        """Rotate what queries and keys are projected from.  x: B T D, in pieces of ``width``, positions: B T -> B T D."""
        return x

    def rotate_queries(self, x: Tensor, positions: Tensor, width: int) -> Tensor:
        """Rotate and scale queries; arguments as for ``rotate``."""
        return self.scale_queries(self.rotate(x, positions, width), positions)

    def scale_queries(self, x: Tensor, positions: Tensor) -> Tensor:
        """Scale rotated queries.  x: B H T K, positions: B T -> B H T K."""
        scaling = self.query_scaling
        if scaling is None:
            return x
        counted = positions + scaling.offset if scaling.offset else positions
        periods = (counted // scaling.length).to(torch.float32)  # B T
        factors = 1.0 + scaling.beta * torch.log(1.0 + periods)
        return x * factors[:, None, :, None].to(x.dtype)

    def bias(self, queries: Tensor, keys: Tensor, like: Tensor) -> Tensor | None:
        """Add to the scores.

        queries and keys: their positions, (B or 1) T and (B or 1) S; padding repeats a neighbour's position
        -> (B or 1) H (T or 1) S in the dtype of ``like``, or None.
        """
        return None

    def distances(self, queries: Tensor, keys: Tensor, like: Tensor) -> Any:
        """The input of ``layer_bias`` that all layers share, or None; arguments as for ``bias``."""
        return None

    def layer_bias(
        self, bias: Tensor | None, distances: Any, attention: Any, x: Tensor, query: Tensor, key: Tensor
    ) -> Tensor | None:
        """The bias of the scores of one attention, from the bias of all layers: both broadcast to B H T S, or None.

        x: B T D, the input of the attention, query: B H T K, key: B G S K.
        """
        return bias


@builds(spec.Learned)
class Learned(Position):
    """A trained table with one row per position."""

    def __init__(self, spec: spec.Learned, context: BuildContext) -> None:
        super().__init__(spec, context)
        assert context.context_length is not None
        self.offset = spec.offset
        self.table = EmbeddingTable(context.context_length + spec.offset, context.d_model)

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        return x + self.table(positions + self.offset)


def sinusoid_frequencies(spec: spec.Sinusoidal, count: int) -> tuple[float, ...]:
    """``count`` frequencies in radians per position, computed as by the reference of each spacing."""
    if spec.spacing == "paper":
        return tuple(spec.base ** (-i / count) for i in range(count))
    step = math.log(spec.base) / max(1, count - 1)  # in float32 from here on, as tensor2tensor and Whisper
    frequencies: list[float] = torch.exp(
        -step * torch.arange(count, dtype=torch.float32, device="cpu")
    ).tolist()
    return tuple(frequencies)


class SinusoidTable(EmbeddingTable):
    """The sines and cosines of all positions, as an untrained weight."""

    def __init__(self, spec: spec.Sinusoidal, rows: int, frequencies: tuple[float, ...]) -> None:
        super().__init__(rows, 2 * len(frequencies))
        self.weight.requires_grad_(False)
        self.spacing, self.offset, self.frequencies = spec.spacing, spec.offset, frequencies
        self.interleaved = spec.layout == "interleaved"

    def fixed(self, leaf: str) -> Tensor:
        """The values if a checkpoint has none: in float64 as the references compute them, or float32 for Whisper."""
        dtype = torch.float64 if self.spacing == "paper" else torch.float32
        frequencies = torch.tensor(self.frequencies, dtype=dtype)
        positions = torch.arange(self.offset, self.offset + self.num_embeddings, dtype=dtype)
        angles = positions[:, None] * frequencies  # rows D/2
        return sines_and_cosines(angles, interleaved=self.interleaved).to(torch.float32)


def sines_and_cosines(angles: Tensor, *, interleaved: bool) -> Tensor:
    """... D/2 -> ... D, side by side or all sines first."""
    sin, cos = angles.sin(), angles.cos()
    return torch.stack((sin, cos), -1).flatten(-2) if interleaved else torch.cat((sin, cos), -1)


@builds(spec.Sinusoidal)
class Sinusoidal(Position):
    """sin(p * f) and cos(p * f) of fixed frequencies f, computed or looked up in a table."""

    def __init__(self, spec: spec.Sinusoidal, context: BuildContext) -> None:
        super().__init__(spec, context)
        self.interleaved, self.offset, self.zero = spec.layout == "interleaved", spec.offset, spec.zero
        self.frequencies = sinusoid_frequencies(spec, context.d_model // 2)
        self.table: SinusoidTable | None = None
        if spec.table:
            assert context.context_length is not None
            self.table = SinusoidTable(spec, context.context_length, self.frequencies)

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        if self.table is not None:
            return x + self.table(positions)
        angles = functional.angles(positions + self.offset, self.frequencies)  # B T D/2
        vectors = sines_and_cosines(angles, interleaved=self.interleaved)
        if self.zero is not None:
            vectors = vectors * (1 - (positions == self.zero).to(vectors.dtype)).unsqueeze(-1)
        return x + vectors.to(x.dtype)


@builds(spec.Convolutional)
class Convolutional(Position):
    """activation(convolution(x)), as long as x."""

    def __init__(self, spec: spec.Convolutional, context: BuildContext) -> None:
        super().__init__(spec, context)
        self.convolution = WeightNormConvolution(context.d_model, spec.kernel, spec.groups)
        self.activation = activation(spec.activation)

    def embed(self, x: Tensor, positions: Tensor) -> Tensor:
        y = self.convolution(x.transpose(1, 2))[
            :, :, : x.shape[1]
        ]  # B D T, without the last of an even kernel
        return x + wide(self.activation(y)).transpose(1, 2)


@builds(RopeSpec)
class Rope(Position):
    """Rotation of queries and keys by angles proportional to the position."""

    def __init__(self, spec: RopeSpec, context: BuildContext) -> None:
        super().__init__(spec, context)
        self.interleaved = spec.layout == "interleaved"
        self.dimensions = spec.dimensions
        self.spec, self.context_length, self.fixed_length = spec, context.context_length, context.fixed_length
        self._prepared: dict[int, tuple[Frequencies, float]] = {}  # by width

    def frequencies(self, width: int) -> tuple[Frequencies, float]:
        """The frequencies of the rotated pairs for queries and keys of a width, and the amplitude of cos and sin."""
        if width not in self._prepared:
            self.prepare(width)
        return self._prepared[width]

    def prepare(self, width: int) -> None:
        self._prepared[width] = rope_frequencies(
            self.spec, self.context_length, self.dimensions or width, fixed_length=self.fixed_length
        )

    def rotate(self, x: Tensor, positions: Tensor, width: int) -> Tensor:
        return x if self.spec.rotates == "input" else self._rotated(x, positions, width)

    def rotate_input(self, x: Tensor, positions: Tensor, width: int) -> Tensor:
        pieces = x.unflatten(-1, (-1, width)).transpose(1, 2)  # B H T K
        return self._rotated(pieces, positions, width).transpose(1, 2).flatten(2)

    def _rotated(self, x: Tensor, positions: Tensor, width: int) -> Tensor:
        if self.spec.sections is not None and positions.ndim == 3:
            return self._rotate_by_axis(x, positions, width)
        frequencies, amplitude = self.frequencies(width)
        return functional.rotate(
            x,
            positions,
            frequencies if isinstance(frequencies, tuple) else frequencies(_longest(positions)),
            amplitude=amplitude,
            dimensions=self.dimensions or width,
            interleaved=self.interleaved,
        )

    def _rotate_by_axis(self, x: Tensor, positions: Tensor, width: int) -> Tensor:
        """Each pair by the axis that it belongs to.  positions: frame, row and column, 3 B T."""
        assert self.spec.sections is not None
        frequencies, amplitude = self.frequencies(width)
        assert isinstance(frequencies, tuple)
        axes = self.spec.sections.axes()
        by_axis = tuple(
            tuple(frequency if own == axis else 0.0 for frequency, own in zip(frequencies, axes, strict=True))
            for axis in range(3)
        )
        turned = functional.angles_by_axis(positions, by_axis)  # B T R
        cos, sin = (turned.cos() * amplitude).to(x.dtype), (turned.sin() * amplitude).to(x.dtype)
        return functional.rotary_embedding(
            x, cos, sin, dimensions=self.dimensions or width, interleaved=self.interleaved
        )


def _longest(positions: Tensor) -> Tensor:
    """The length of the longest row: a scalar."""
    return positions.amax() + 1


def alibi_slopes(heads: int) -> tuple[float, ...]:
    """The slope of each head: a geometric sequence, as in the reference code for any number of heads."""
    power = 2 ** math.floor(math.log2(heads))
    slopes = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    between = [2 ** (-4 * (2 * i + 1) / power) for i in range(heads - power)]
    return tuple(slopes + between)


@builds(spec.Alibi)
class Alibi(Position):
    """-slope * distance, times a scale."""

    def __init__(self, spec: spec.Alibi, context: PositionContext) -> None:
        super().__init__(spec, context)
        assert context.heads is not None
        self.slopes = alibi_slopes(context.heads)
        self.scale = spec.scale
        self.rounded = spec.precision == "bfloat16"
        if self.rounded:
            self.slopes = tuple(
                torch.tensor(self.slopes, dtype=torch.float32, device="cpu").bfloat16().tolist()
            )

    def sharding(self) -> Sharding:
        """By heads."""
        return Sharding(counts={"heads": len(self.slopes)}, divided=counted(slopes=len(self.slopes)))

    def bias(self, queries: Tensor, keys: Tensor, like: Tensor) -> Tensor:
        if not self.rounded:
            return functional.alibi_bias(self.slopes, queries, keys, like, scale=self.scale)
        penalties = self._rounded(keys, like)  # (B or 1) H 1 S
        return (penalties if self.scale == 1.0 else penalties * self.scale).to(like.dtype)

    def _rounded(self, keys: Tensor, like: Tensor) -> Tensor:
        """slope * key position, both factors and the product in bfloat16: (B or 1) S -> (B or 1) H 1 S.

        It differs from slope * -distance by a constant per query, which softmax cancels, and by rounding.
        """
        slopes = functional.constant(self.slopes, like)[:, None, None]  # H 1 1
        product = (
            slopes * functional.rounded_to_bfloat16(keys)[:, None, None]
        )  # (B or 1) H 1 S, exact in float32
        return functional.rounded_to_bfloat16(product)


def t5_buckets(buckets: int, max_distance: int, *, bidirectional: bool) -> tuple[int, ...]:
    """The bucket of each relative position (key minus query) from -max_distance to max_distance.

    Near distances have a bucket each; far ones share buckets of logarithmic width (transformers'
    ``T5Attention._relative_position_bucket``; computed once in float32 as there, so that every runtime agrees).
    """
    relative = torch.arange(-max_distance, max_distance + 1, device="cpu")
    sides = buckets // 2 if bidirectional else buckets
    base = (relative > 0) * sides if bidirectional else torch.zeros_like(relative)
    distance = relative.abs() if bidirectional else (-relative).clamp(min=0)
    exact = sides // 2
    far = torch.log(distance.float() / exact) / math.log(max_distance / exact) * (sides - exact)
    far = (exact + far.clamp(min=0).to(torch.int64)).clamp(max=sides - 1)
    bucket: list[int] = (base + torch.where(distance < exact, distance, far)).tolist()
    return tuple(bucket)


@builds(spec.RelativeBias)
class RelativeBias(Position):
    """A trained bias per distance bucket and head."""

    def __init__(self, spec: spec.RelativeBias, context: PositionContext) -> None:
        super().__init__(spec, context)
        self.max_distance = spec.max_distance
        self.buckets = t5_buckets(spec.buckets, spec.max_distance, bidirectional=not context.causal)
        assert context.heads is not None
        self.table = EmbeddingTable(spec.buckets, context.heads)

    def sharding(self) -> Sharding:
        """By heads."""
        return Sharding({"table": COLUMNS}, {"heads": self.table.embedding_dim})

    def bias(self, queries: Tensor, keys: Tensor, like: Tensor) -> Tensor | None:
        return self.looked_up(self.table, queries, keys, like)

    def looked_up(self, table: nn.Embedding, queries: Tensor, keys: Tensor, like: Tensor) -> Tensor:
        """The biases in a table of buckets: (B or 1) T and (B or 1) S -> (B or 1) H T S."""
        relative = functional.relative_positions(queries, keys)  # (B or 1) T S
        reach = relative.clamp(-self.max_distance, self.max_distance) + self.max_distance
        by_distance = table(functional.constant(self.buckets, like))  # (2 max_distance + 1) H
        return nn.functional.embedding(reach, by_distance).permute(0, 3, 1, 2)  # (B or 1) H T S
