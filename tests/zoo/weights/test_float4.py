"""4-bit floats in blocks with powers of 2 as scales."""

from __future__ import annotations

import torch

from zoo.weights import float4
from zoo.weights.blocks import Blocks, Codes

MXFP4 = Blocks(4, 32, half=True, floats=True)


def test_every_code_is_its_own_nearest() -> None:
    codes = torch.arange(16, dtype=torch.uint8)
    assert torch.equal(float4.encoded(float4.decoded(codes)), codes)
    assert torch.equal(float4.apart(float4.in_pairs(codes)), codes)
    assert float4.in_pairs(torch.tensor([1, 2], dtype=torch.uint8)).tolist() == [0x21]


def test_codes_are_the_nearest() -> None:
    values = torch.linspace(-6, 6, 4001)
    every = float4.decoded(torch.arange(16))
    nearest = (values[:, None] - every).abs().amin(1)
    assert torch.equal((float4.decoded(float4.encoded(values)) - values).abs(), nearest)


def test_scales_are_the_least_powers_of_2_without_clipping() -> None:
    rows = torch.randn(64, 96, generator=torch.Generator().manual_seed(1))
    rows[0, :32], rows[1, :32] = 6.0, 0.0
    quantized = MXFP4.quantize(rows)
    scales = quantized.scales.float()
    assert torch.equal(scales, torch.exp2(torch.log2(scales).round()))
    largest = rows.view(64, 3, 32).abs().amax(-1)
    assert (6 * scales >= largest).all()
    assert (3 * scales < largest)[1:].logical_or(largest[1:] == 0).all()
    assert scales[0, 0] == 1
    restored = Codes(MXFP4, lambda: iter([quantized])).values(96)
    assert torch.equal(restored[1, :32], torch.zeros(32))
    assert (restored - rows).norm() < 0.15 * rows.norm()
    assert torch.equal(MXFP4.restore(MXFP4.quantize(restored), 96), restored)
