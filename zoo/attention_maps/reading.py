"""The input of a model whose attention is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from specs.model.model import Model
from zoo.attention_maps.choice import Reader

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


@dataclass(frozen=True)
class AttentionInput:
    """The inputs of the stacks of a model: token ids, an image or audio, or of a dual encoder both.

    types: token types, if not all 0; target: ids of an encoder-decoder's decoder; values: an image, 1 C H W, a
    spectrogram, 1 M T or 1 N M, or samples, 1 N; column_seconds: the time from one column of audio to the next.
    """

    ids: Sequence[int] = ()
    types: Sequence[int] | None = None
    target: Sequence[int] = ()
    values: NDArray[np.float32] | None = None
    column_seconds: float | None = None

    def ids_of(self, spec: Model, reader: Reader) -> Sequence[int]:
        """The token ids that a stack reads."""
        return self.target if reader == "decoder" and spec.encoder is not None else self.ids

    def names_of(self, spec: Model, reader: Reader) -> list[str]:
        """The names of the patches or frames that a stack reads; none for tokens."""
        stack = spec.stack(reader)
        embedding = spec.embedding_of(stack)
        if embedding.takes_tokens or self.values is None:
            return []
        count = spec.context_length_of(stack)
        if embedding.any_length or count is None:
            count = embedding.vector_count(self.values.shape[1])
        return embedding.vector_names(count, self.column_seconds)

    def length_of(self, spec: Model, reader: Reader) -> int:
        """The number of tokens, patches or frames that a stack reads."""
        return len(self.names_of(spec, reader) or self.ids_of(spec, reader))
