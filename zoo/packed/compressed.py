"""compressed-tensors (Neural Magic, vLLM): ``pack-quantized``, ``int-quantized``, ``float-quantized``, ``naive-quantized`` and
``nvfp4-pack-quantized``.

``weight_packed`` N K/8 are int32 words of codes with half their range added, ``weight_scale`` N G, ``weight_zero_point``
N/8 G words in the same form along the rows.  Others store ``weight`` in 8 bits as it is.
Source: https://github.com/vllm-project/compressed-tensors.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor

from zoo.packed.block_floats import block_floats
from zoo.packed.grouped import GroupedMatrix
from zoo.packed.matrix import (
    WHOLE,
    WORDS,
    PackedMatrix,
    Parts,
    check_kind,
    check_shape,
    check_single,
    field,
    group_width,
    grouped_parts,
    option,
    part,
    unpacked,
    values_of,
)
from zoo.packed.scaled import scaled
from zoo.weights.stored import StoredTensor

FORMATS = ("pack-quantized", "int-quantized", "float-quantized", "naive-quantized", "nvfp4-pack-quantized")
PACKED = (
    "weight_packed", "weight_scale", "weight_zero_point", "weight_shape", "weight_g_idx", "weight_global_scale",
)  # fmt: skip
PLAIN = ("weight_scale", "weight", "weight_zero_point")
_RUNTIME = ("input_scale", "input_zero_point", "input_global_scale")
"""Scales of activations, which exports round differently from the checkpoint's own kernels."""


def read_compressed(
    tensors: Mapping[str, StoredTensor], config: Mapping[str, Any], where: str
) -> Iterator[tuple[str, StoredTensor | None]]:
    """The matrices of a compressed-tensors checkpoint, and None for the tensors that they consist of."""
    option(config, "format", FORMATS, where)
    option(config, "kv_cache_scheme", (None,), where)
    option(config.get("sparsity_config") or {}, "format", ("dense", None), where)
    option({"transform_config": config.get("transform_config") or None}, "transform_config", (None,), where)
    for module, parts in grouped_parts(tensors, PACKED).items():
        yield from ((stored.name, None) for stored in parts.values())
        if "weight_global_scale" in parts or config["format"] == "nvfp4-pack-quantized":
            yield f"{module}.weight", _float4(module, parts)
        else:
            yield (
                f"{module}.weight",
                _Packed(module, parts, _scheme_of(module, parts, config, where)).packed(),
            )
    for module, parts in grouped_parts(tensors, PLAIN).items():
        if "weight" not in parts:
            continue
        yield from ((stored.name, None) for stored in parts.values())
        if parts["weight"].kind == "I8":
            yield f"{module}.weight", PlainInt8(module, parts, "compressed-tensors int8").packed()
        else:
            yield f"{module}.weight", scaled(module, parts["weight"], parts["weight_scale"])
    yield from ((name, None) for name in tensors if name.rpartition(".")[2] in _RUNTIME)


def _float4(module: str, parts: Parts) -> PackedMatrix:
    """A matrix of 4-bit floats, whose scales are divided by one per tensor."""
    whole = part(parts, "weight_global_scale", module)
    check_single(whole, f"{module}.weight_packed")
    return block_floats(
        f"{module}.weight", "NVFP4", part(parts, "weight_packed", module), part(parts, "weight_scale", module),
        lambda scales: scales / values_of(whole).float().view(()),
    )  # fmt: skip


def _scheme_of(module: str, parts: Parts, config: Mapping[str, Any], where: str) -> Mapping[str, Any]:
    """The weight scheme that fits a matrix: the group whose number of bits fills the words."""
    packed, shape = part(parts, "weight_packed", module, 2), part(parts, "weight_shape", module)
    check_shape(shape, (2,), f"{packed.name} is a matrix")
    check_kind(shape, WHOLE)
    _, width = values_of(shape).tolist()
    groups = field(config, "config_groups", dict[str, Any](), where)
    for group in groups:
        scheme = field(field(groups, group, dict[str, Any](), where), "weights", dict[str, Any](), where)
        if not scheme:
            continue
        field(scheme, "group_size", 0, where)
        bits = option(scheme, "num_bits", (4, 8), where)
        option(scheme, "type", ("int",), where)
        option(scheme, "strategy", ("group", "channel", "tensor"), where)
        if packed.shape[1] == -(-width * bits // 32):
            return scheme
    check_shape(packed, (packed.shape[0], -(-width * 4 // 32)), f"{shape.name} gives it {width} columns")
    return option(config, "config_groups", (), where)


class _Packed(GroupedMatrix):
    """One matrix in words."""

    def __init__(self, module: str, parts: Parts, scheme: Mapping[str, Any]) -> None:
        bits, group = int(scheme["num_bits"]), scheme.get("group_size") or 0
        self.words, self.scales = part(parts, "weight_packed", module), part(parts, "weight_scale", module)
        self.zero_words, self.index = parts.get("weight_zero_point"), parts.get("weight_g_idx")
        for words in filter(None, (self.words, self.zero_words)):
            check_kind(words, WORDS)
        rows, width = values_of(parts["weight_shape"]).tolist()
        super().__init__(
            self.words.path, module, f"compressed-tensors int{bits}", bits, (rows, width),
            group if scheme["strategy"] == "group" else 0,
        )  # fmt: skip
        because = f"{module}.weight_shape is {rows} x {width}, and group_size is {group or 'none'}"
        per_word = 32 // bits
        check_shape(self.words, (rows, -(-width // per_word)), because)
        if self.scales.shape != (1,) or self.groups > 1:
            check_shape(self.scales, (rows, self.groups), because)
        if self.zero_words is not None:
            check_shape(self.zero_words, (-(-rows // per_word), self.groups), because)

    def order(self) -> Tensor:
        if self.index is None or bool((values_of(self.index) == -1).all()):  # stands for the plain order
            return super().order()
        return self.listed(self.index)

    def codes(self) -> Tensor:
        return unpacked(values_of(self.words), self.bits, 1)[:, : self.width]

    def scale(self) -> Tensor:
        return values_of(self.scales).expand(self.rows, -1)

    def zeros(self) -> Tensor | None:
        if self.zero_words is None:
            return None
        return unpacked(values_of(self.zero_words), self.bits, 0)[: self.rows]


class PlainInt8(GroupedMatrix):
    """One matrix of int8 of a ``form``, with a scale per tensor, row or group."""

    def __init__(self, module: str, parts: Parts, form: str) -> None:
        self.stored, self.scales = part(parts, "weight", module, 2), part(parts, "weight_scale", module)
        self.zero_points = parts.get("weight_zero_point")
        rows, width = self.stored.shape
        by_row = self.scales.shape in ((), (1,), (rows,))
        group = width if by_row else group_width(self.stored, self.scales, rows, width)
        super().__init__(self.stored.path, module, form, 8, (rows, width), group)
        if self.zero_points is not None and self.zero_points.shape not in ((), (1,)):
            check_shape(self.zero_points, self.scales.shape, f"{self.scales.name} has as many values")

    def block_size(self) -> int | None:
        return None if self.group == self.width and self.zero_points is None else super().block_size()

    def codes(self) -> Tensor:
        return values_of(self.stored).view(torch.uint8) ^ 128

    def scale(self) -> Tensor:
        return self._by_group(self.scales)

    def zeros(self) -> Tensor | None:
        if self.zero_points is None:
            return None
        return (self._by_group(self.zero_points).int() + 128).to(torch.uint8)

    def _by_group(self, stored: StoredTensor) -> Tensor:
        """Values per tensor, row or group: N G."""
        values = values_of(stored)
        return (values if values.dim() == 2 else values.view(-1, 1)).expand(self.rows, self.groups)
