"""Rounding to few bits, how it lies in the data file, and what ONNX Runtime reads from there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from onnxruntime.capi._pybind_state import quantize_matmul_4bits
from torch import Tensor

from exporters.graph.quantization.matrix import QuantizedMatrix, whole_rows
from exporters.graph.quantization.scheme import Quantization
from zoo.weights.blocks import Blocks
from zoo.weights.source import WeightSource

LAYOUTS: list[tuple[str, Blocks]] = [
    *[("blocks", Blocks(bits, size, symmetric))
      for bits, size, symmetric in ((4, 32, True), (4, 64, False), (8, 32, True), (8, 128, True))],
    *[("columns", blocks) for blocks in (Blocks(4, 32), Blocks(4, 32, False), Blocks(8, 128), Blocks(8, None))],
    ("rows", Blocks(8, None)),
]  # fmt: skip


class Held(WeightSource):
    """A weight in pieces that end anywhere."""

    description = "for testing"

    def __init__(self, values: Tensor, piece: int) -> None:
        self.values, self.piece = values, piece

    def pieces(self, name: str) -> Iterator[Tensor]:
        yield from self.values.reshape(-1).split(self.piece)


def drawn(rows: int, width: int, seed: int = 0) -> Tensor:
    return torch.randn(rows, width, generator=torch.Generator().manual_seed(seed))


def read(matrix: QuantizedMatrix, source: Held) -> list[Tensor]:
    """The bytes of each tensor of a matrix, as they would lie in the data file."""
    parts = zip(*matrix.pieces(source), strict=True)
    return [torch.cat([piece.view(torch.uint8) for piece in pieces]) for pieces in parts]


@given(
    st.sampled_from(LAYOUTS),
    st.integers(1, 40),
    st.sampled_from([1, 7, 31, 32, 33, 40, 64, 100]),
    st.integers(1, 900),
)
def test_weights_read_back_equal_the_rounded_ones(
    layout: tuple[Any, Blocks], rows: int, width: int, piece: int
) -> None:
    name, blocks = layout
    values = drawn(rows, width)
    matrix = QuantizedMatrix(("w",), width, blocks, name)
    expected = blocks.restore(blocks.quantize(values), width)
    assert torch.equal(matrix.restored(read(matrix, Held(values, piece))).view(rows, width), expected)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("size", [32, 64, 128])
def test_values_are_as_near_as_those_of_onnx_runtimes_own_quantizer(size: int, symmetric: bool) -> None:
    rows, width = 48, 256
    values = drawn(rows, width).numpy()
    count = width // size
    packed = np.zeros((rows, count, size // 2), np.uint8)
    scales = np.zeros(rows * count, np.float32)
    zeros = np.full(rows * ((count + 1) // 2), 0x88 if symmetric else 0, np.uint8)
    quantize_matmul_4bits(packed, np.ascontiguousarray(values.T), scales, zeros, size, rows, width, symmetric)
    codes = np.stack((packed & 15, packed >> 4), -1).reshape(rows, count, size).astype(np.float32)
    points = np.stack((zeros & 15, zeros >> 4), -1).reshape(rows, -1)[:, :count].astype(np.float32)
    theirs = ((codes - points[..., None]) * scales.reshape(rows, count, 1)).reshape(rows, width)
    blocks = Blocks(4, size, symmetric)
    ours = blocks.restore(blocks.quantize(torch.from_numpy(values)), width).numpy()
    assert np.square(ours - values).sum() <= 1.001 * np.square(theirs - values).sum()


@given(
    st.sampled_from([Blocks(4, 32), Blocks(4, 64, False), Blocks(8, None), Blocks(8, 128)]), st.integers(0, 9)
)
def test_no_value_is_further_than_half_a_step(blocks: Blocks, seed: int) -> None:
    values = drawn(8, 128, seed) * 10.0 ** (seed - 4)
    quantized = blocks.quantize(values)
    steps = quantized.scales.abs().repeat_interleave(128 // quantized.scales.shape[1], 1)
    distances = (blocks.restore(quantized, 128) - values).abs()
    far = (distances > 0.5001 * steps).float().mean()
    assert far <= (0.02 if blocks.symmetric else 0.0)  # the end opposite to the furthest has one code less
    assert bool((distances <= 1.0001 * steps).all())


@pytest.mark.parametrize("blocks", [Blocks(4, 32), Blocks(4, 32, False), Blocks(8, None)])
def test_rows_of_zeros_and_of_one_value_are_exact(blocks: Blocks) -> None:
    values = torch.stack([torch.zeros(64), torch.full((64,), -0.7), torch.full((64,), 1e-30)])
    torch.testing.assert_close(blocks.restore(blocks.quantize(values), 64), values)


def test_scales_in_half_are_the_scales_that_codes_are_for() -> None:
    quantized = Blocks(4, 32).quantize(drawn(16, 64), torch.float16)
    assert quantized.scales.dtype == torch.float16
    error = (Blocks(4, 32).restore(quantized, 64) - drawn(16, 64)).abs()
    assert bool((error.unflatten(1, (2, 32)) <= 1.001 * quantized.scales.abs().float()[..., None]).all())


@given(st.lists(st.integers(1, 50), min_size=1), st.integers(1, 20))
def test_pieces_come_as_whole_rows(lengths: list[int], width: int) -> None:
    total = sum(lengths) // width * width
    values = torch.arange(float(total))
    pieces = iter(values.split([min(n, total) for n in [1] * total])) if total else iter(())
    rows = list(whole_rows(pieces, width))
    assert all(part.shape[1] == width for part in rows)
    if total:
        assert torch.equal(torch.cat(rows).reshape(-1), values)


def test_routers_and_small_matrices_are_not_quantized() -> None:
    scheme = Quantization(Blocks(4, 128), Blocks(8, None))
    assert scheme.of(("decoder.blocks.0.feed_forward.router.weight",), (64, 512)) is None
    assert scheme.of(("head.labels.weight",), (3, 512)) is None
    assert scheme.of(("decoder.final_norm.weight",), (512,)) is None
    assert scheme.of(("a.query.weight", "a.key.weight"), (1024, 512)) == Blocks(4, 128)
    assert scheme.of(("embedding.token.weight",), (1000, 512)) == Blocks(8, None)


def test_blocks_are_no_larger_than_divide_a_width_where_some_do() -> None:
    scheme = Quantization(Blocks(4, 128), Blocks(8, 128))
    assert scheme.of(("a.up.weight",), (64, 576)) == Blocks(4, 64)
    assert scheme.of(("a.up.weight",), (64, 96)) == Blocks(4, 32)
    assert scheme.of(("a.up.weight",), (64, 100)) == Blocks(4, 128)  # the last is filled up
    small = replace(scheme, undivided="rows")
    assert small.of(("a.up.weight",), (64, 96)) == Blocks(4, 32)
    assert small.of(("a.up.weight",), (64, 4304)) == Blocks(4, 16)  # of SigLIP
    assert small.of(("a.up.weight",), (64, 100)) == Blocks(8, None)
