"""A family's checkpoints as llama.cpp's converter writes them: with GGUF names, and for Llama with reordered rows."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import Tensor

from specs.kinds.rope import Rope
from specs.model.model import Model
from zoo.components.rope_frequencies import rope_frequencies
from zoo.families.common.tensors import Rule, Tensors
from zoo.families.common.transforms import SAME, Shape, Transform
from zoo.weights.gguf_header import FACTORS, FREQUENCIES, Header, frequency_divisors
from zoo.weights.source import WeightError

_FIELD = re.compile(r"\{(\w+)\}")
_NORMS = (
    "attn_norm", "attn_q_norm", "attn_k_norm", "post_attention_norm", "ffn_norm", "post_ffw_norm", "output_norm",
)  # fmt: skip
_TOLERANCE = 1e-4  # relative; the converter computes in Python's floats or in float32


@dataclass(frozen=True)
class PairsTogether:
    """Rows of queries or keys with rotated pairs adjacent, where the parameter has them half a head apart."""

    heads: int
    by_rows: ClassVar[bool] = True

    def stored_shape(self, shapes: Sequence[Shape]) -> Shape:
        return shapes[0]

    def split(self, stored: Tensor, shapes: Sequence[Shape]) -> Sequence[Tensor]:
        pairs = stored.unflatten(0, (self.heads, -1, 2))  # H K/2 2 ...
        return (pairs.transpose(1, 2).flatten(0, 2),)

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        halves = parts[0].unflatten(0, (self.heads, 2, -1))  # H 2 K/2 ...
        return halves.transpose(1, 2).flatten(0, 2)


@dataclass(frozen=True)
class Raised:
    """A parameter stored with 1 added, like Gemma's norms for llama.cpp."""

    by_rows: ClassVar[bool] = False

    def stored_shape(self, shapes: Sequence[Shape]) -> Shape:
        return shapes[0]

    def split(self, stored: Tensor, shapes: Sequence[Shape]) -> Sequence[Tensor]:
        return (stored - 1,)

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        return parts[0] + 1


def as_gguf(family: Tensors, header: Header, spec: Model) -> Tensors:
    """Return a family with the tensor names of a GGUF file.

    Raises :class:`WeightError` where the file's scaling of rotary frequencies differs from the spec's.
    """
    _check_frequencies(header, spec)
    names = _Names(family, header.metadata["general.architecture"])
    transforms = _transforms(header, spec)

    def renamed(rules: Iterable[Rule]) -> tuple[Rule, ...]:
        return tuple(rule for old in rules if (rule := names.rule(old, transforms)) is not None)

    optional = (names.of(pattern) for pattern in family.optional)
    return Tensors(
        name=f"{family.name} GGUF",
        rules=renamed(family.rules),
        heads={head: renamed(rules) for head, rules in family.heads.items()},
        optional=tuple(name for name in optional if name is not None),
        unused=(FREQUENCIES, *FACTORS.values(), "blk.*.attn_rot_embd.weight"),
    )


class _Names:
    """Map the names of transformers to GGUF's, by the table in the gguf library."""

    def __init__(self, family: Tensors, architecture: str) -> None:
        import gguf

        (known,) = (key for key, name in gguf.MODEL_ARCH_NAMES.items() if name == architecture)
        self._family = family
        self._table: Any = gguf.get_tensor_name_map(known, 1)

    def rule(self, rule: Rule, transforms: Mapping[str, Transform]) -> Rule | None:
        """A rule for the same parameters, or None where GGUF has no such tensor."""
        stored = self.of(rule.stored)
        if stored is None:
            return None
        also = tuple(name for other in rule.also if (name := self.of(other)) is not None)
        part = stored.rpartition(".")[0].rpartition(".")[2]
        return dataclasses.replace(
            rule, stored=stored, also=also, transform=transforms.get(part, rule.transform)
        )

    def of(self, name: str) -> str | None:
        """A stored name, with its field for the layer."""
        full = name if name.startswith(self._family.outside) else self._family.prefix + name
        module, _, leaf = _FIELD.sub("0", full).rpartition(".")
        mapped: str | None = self._table.get_name(module)
        return None if mapped is None else f"{mapped.replace('blk.0.', 'blk.{layer}.')}.{leaf}"


def _transforms(header: Header, spec: Model) -> dict[str, Transform]:
    """Return the transforms of tensors that differ from the family's own checkpoints: the converter reorders Llama's rows
    and adds 1 to Gemma's norms."""
    if header.metadata["general.architecture"] in ("gemma", "gemma2", "gemma3"):
        return dict.fromkeys(_NORMS, Raised())
    if header.metadata["general.architecture"] != "llama":
        return {}
    if isinstance(spec.position, Rope) and spec.position.layout == "interleaved":
        return {"attn_q": SAME, "attn_k": SAME}  # already the order of such a spec
    heads = header.number("attention.head_count")
    kv_heads = (
        heads if header.get("attention.head_count_kv") is None else header.number("attention.head_count_kv")
    )
    for part, count in (("attn_q", heads), ("attn_k", kv_heads)):
        for name, entry in header.tensors.items():
            if f".{part}." in name and entry.shape[0] % (2 * count):
                raise WeightError(
                    f"{header.path}: {name} has {entry.shape[0]} rows, which are not {count} heads of even width"
                )
    return {"attn_q": PairsTogether(heads), "attn_k": PairsTogether(kv_heads)}


def _check_frequencies(header: Header, spec: Model) -> None:
    """Raise :class:`WeightError` unless the divisors of rotary frequencies match the spec's scaling."""
    divisors = frequency_divisors(header)
    if divisors is None:
        return
    theirs = torch.from_numpy(divisors)
    position = spec.position
    if isinstance(position, Rope):
        dimensions = 2 * len(theirs)
        kept, _ = rope_frequencies(position.model_copy(update={"scaling": None}), None, dimensions)
        scaled, _ = rope_frequencies(position, spec.context_length, dimensions)
        if not callable(kept) and not callable(scaled):
            ours = torch.tensor(kept) / torch.tensor(scaled)
            if torch.allclose(ours, theirs, rtol=_TOLERANCE, atol=0):
                return
    low, high = (f"{value:g}" for value in theirs.aminmax())
    raise WeightError(
        f"{header.path} divides rotary frequencies by {low} to {high} ({FREQUENCIES}), and the spec does otherwise\n"
        "  Set position.scaling to the model's own: Llama 3.1 has {kind: llama3, factor: 8, low_freq_factor: 1, "
        "high_freq_factor: 4, original_context_length: 8192}, and Llama 3.2 factor: 32."
    )
