"""The header of a GGUF file: its model and its tensors, without values and without torch.

The format: https://github.com/ggml-org/ggml/blob/master/docs/gguf.md. The library gguf reads it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from specs.base.errors import shorten
from specs.base.suggest import suggestion
from zoo.files.reading import COPY_AGAIN, check_regular, unreadable
from zoo.weights.source import WeightError

MODEL_TYPES = {
    "llama": "llama",
    "qwen2": "qwen2",
    "qwen3": "qwen3",
    "gemma": "gemma",
    "gemma2": "gemma2",
    "gemma3": "gemma3_text",
    "phi3": "phi3",
}
"""The model_type of transformers for each supported GGUF architecture."""

FREQUENCIES = "rope_freqs.weight"
"""The name of the tensor with the divisors of rotary frequencies."""


@dataclass(frozen=True)
class GGUFTensor:
    """A tensor of a GGUF file: ggml's name of its type, and the extent of its bytes."""

    kind: str
    shape: tuple[int, ...]
    offset: int
    nbytes: int


@dataclass(frozen=True)
class Header:
    """The metadata of a GGUF file, with long lists as words unless asked for, the length of its vocabulary, and its tensors by name.

    ``known``: the number of bytes from the file's beginning that are known, where not all are.
    """

    path: Path
    metadata: Mapping[str, Any]
    vocabulary: int
    tensors: Mapping[str, GGUFTensor]
    known: int | None = None

    @property
    def prefix(self) -> str:
        """The prefix of the keys of the file's architecture."""
        return f"{self.metadata['general.architecture']}."

    def get(self, key: str, default: Any = None) -> Any:
        """A value of the file's architecture, such as ``block_count``."""
        return self.metadata.get(self.prefix + key, default)

    def keys(self) -> list[str]:
        """The keys of the file's architecture, without their prefix."""
        return [key.removeprefix(self.prefix) for key in self.metadata if key.startswith(self.prefix)]

    def number(self, key: str) -> int:
        """A positive whole number that the file must have, the same for all layers. Raises :class:`WeightError`
        otherwise."""
        value = self.get(key)
        if isinstance(value, list) and value and value.count(value[0]) == len(value):
            value = value[0]
        if type(value) is not int or value < 1:
            shown = "none" if value is None else shorten(value)
            raise WeightError(
                f"{self.path}: {self.prefix}{key} must be a whole number above 0\n  value: {shown}"
            )
        return value


def _bounded_reader(gguf: Any, known: int | None) -> Any:
    """The reader of the library, bounded by the size of the file, or by the bytes of its header that are known."""

    class Reader(gguf.GGUFReader):  # type: ignore[misc]
        """One that stops at the end of the file, where the library's own reads on as long as a list is announced, and
        at lists that no file has: lists in lists, each a call deeper, and endless ones, each value an object."""

        reads, past_header = 0, False

        def _get(self, offset: int, dtype: Any, count: int = 1, override_order: Any = None) -> Any:
            end = len(self.data) if known is None or self.past_header else known
            if int(offset) + np.dtype(dtype).itemsize * int(count) > end:
                raise EOFError
            self.reads += 1
            if self.reads > _MOST_READS:
                raise ValueError(f"its header has more than {_MOST_READS:,} values")
            return super()._get(offset, dtype, count, override_order)

        def _get_field_parts(self, orig_offs: int, raw_type: int) -> Any:
            if raw_type == gguf.GGUFValueType.ARRAY:
                inner, (count,) = self._get(orig_offs, np.uint32)[0], self._get(orig_offs + 4, np.uint64)
                if inner == gguf.GGUFValueType.ARRAY:
                    raise ValueError("a list holds lists")
                if count > len(self.data):
                    raise EOFError
            return super()._get_field_parts(orig_offs, raw_type)

        def _build_tensors(self, start_offs: int, fields: Any) -> None:
            self.past_header = True
            super()._build_tensors(start_offs, fields)

    return Reader


def read_header(path: Path, whole: Collection[str] = (), known: int | None = None) -> Header:
    """The header of a GGUF file, with long lists only for the keys in ``whole``.

    ``known``: the number of bytes from the file's beginning that are known, where the rest is a hole. Raises
    :class:`WeightError` where the library is missing, or the file is truncated, in parts, or not a GGUF file.
    """
    try:
        import gguf
    except ImportError:
        raise WeightError(f"{path}: reading GGUF needs a library: pip install 'zoo[gguf]'") from None

    try:
        check_regular(path)
    except OSError as error:
        raise WeightError(unreadable(path, error)) from None

    try:
        reader = _bounded_reader(gguf, known)(path)
        metadata = {key: _value(field, whole=key in whole) for key, field in reader.fields.items()}
        tokens = reader.fields.get("tokenizer.ggml.tokens")
        tensors = {
            tensor.name: GGUFTensor(
                tensor.tensor_type.name,
                tuple(int(length) for length in reversed(tensor.shape)),
                int(tensor.data_offset),
                int(tensor.n_bytes),
            )
            for tensor in reader.tensors
        }
    except OSError as error:
        raise WeightError(f"{path} cannot be read: {error.strerror}") from None
    except EOFError:
        raise WeightError(
            f"{path} is truncated: its header declares more data than the file has{COPY_AGAIN}"
        ) from None
    except (ValueError, KeyError, IndexError, OverflowError, TypeError, AttributeError) as error:
        raise WeightError(f"{path} is truncated or not a readable GGUF file: {error}{COPY_AGAIN}") from None
    if reader.byte_order != "I":
        raise WeightError(
            f"{path} has the opposite byte order\n  Use the file for this machine's byte order."
        )
    if metadata.get("split.count", 1) not in (0, 1):
        raise WeightError(
            f"{path} is one of {metadata['split.count']} parts\n  Merge them with llama-gguf-split --merge."
        )
    if not isinstance(metadata.get("general.architecture"), str):
        raise WeightError(f"{path} has no general.architecture")
    return Header(path, metadata, len(tokens.data) if tokens else 0, tensors, known)


def model_type_of(header: Header) -> str:
    """The model_type of transformers for a file's architecture. Raises :class:`WeightError` for an unsupported one."""
    architecture = header.metadata["general.architecture"]
    if architecture not in MODEL_TYPES:
        raise WeightError(
            f"{header.path} has the architecture {architecture!r}, which zoo does not read from GGUF\n"
            f"  {suggestion(architecture, MODEL_TYPES)} Otherwise, use the model's safetensors."
        )
    if header.get("expert_count", 0):
        raise WeightError(
            f"{header.path} is a mixture of {header.get('expert_count')} experts, which zoo does not read from GGUF\n"
            "  Use the model's safetensors."
        )
    return MODEL_TYPES[architecture]


def frequency_divisors(header: Header) -> np.ndarray[Any, np.dtype[np.float32]] | None:
    """The divisors of rotary frequencies, one per pair of dimensions; None where the file has none.

    Raises :class:`WeightError` unless they are a list of float32.
    """
    entry = header.tensors.get(FREQUENCIES)
    if entry is None:
        return None
    if entry.kind != "F32" or len(entry.shape) != 1 or not entry.shape[0]:
        shape = " x ".join(map(str, entry.shape))
        raise WeightError(
            f"{header.path}: {FREQUENCIES} must be a list of F32\n  value: {shape} of {entry.kind}\n  Convert the model again."
        )
    return _floats(header, FREQUENCIES)


def _floats(header: Header, name: str) -> np.ndarray[Any, np.dtype[np.float32]]:
    """The values of a list of float32.  Raises :class:`WeightError` where they are beyond the known bytes."""
    entry = header.tensors[name]
    if header.known is not None and entry.offset + entry.nbytes > header.known:
        raise WeightError(
            f"{header.path}: {name} is beyond the first {header.known:,} bytes\n  Pass the path of the file."
        )
    return np.fromfile(header.path, np.float32, entry.shape[0], offset=entry.offset)


FACTORS = {"long_factor": "rope_factors_long.weight", "short_factor": "rope_factors_short.weight"}
"""The names of the tensors with the factors of LongRoPE."""


def long_rope_factors(header: Header) -> dict[str, list[float]] | None:
    """The factors of LongRoPE, one per pair of dimensions; None where the file has none.

    Raises :class:`WeightError` where only one of the two is there, or is not a list of float32.
    """
    if not any(name in header.tensors for name in FACTORS.values()):
        return None
    fields = {}
    for field, name in FACTORS.items():
        entry = header.tensors.get(name)
        if entry is None or entry.kind != "F32" or len(entry.shape) != 1:
            raise WeightError(f"{header.path}: {name} must be a list of F32\n  Convert the model again.")
        fields[field] = [float(str(value)) for value in _floats(header, name)]
    return fields


_LISTED = 1024
"""The longest list that is kept, in values: longer ones are vocabularies."""

_MOST_READS = 2**22
"""The most values that a header has: a token is two, its length and its text."""


def _value(field: Any, *, whole: bool) -> Any:
    return (
        field.contents() if whole or len(field.data) <= _LISTED else f"a list of {len(field.data):,} values"
    )
