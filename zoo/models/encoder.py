"""An encoder, such as BERT or ViT."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

import specs.model.model as spec
from zoo.components.embedding import Embedding
from zoo.components.pooling import TokenSequence, Words
from zoo.context import StackContext
from zoo.models.built_model import BuiltModel
from zoo.models.outputs import Outputs
from zoo.models.token_positions import TokenPositions
from zoo.models.varied_stack import stack_of
from zoo.registry import build_component


class Encoder(BuiltModel):
    """head(encoder(embedding(inputs))); every token, or patch of an image, attends to every other."""

    in_stages: ClassVar[bool] = True

    def __init__(self, spec: spec.Model) -> None:
        super().__init__()
        self.spec = spec
        context = StackContext.of(spec, "encoder")
        embedding = spec.embedding_of(spec.stack("encoder"))
        self.takes_tokens, self.token_inputs = embedding.takes_tokens, embedding.token_inputs
        self.reads_words = spec.head.span_width is not None
        self.embedding: Embedding = build_component(embedding, context)  # type: ignore[assignment]
        self.encoder = stack_of(spec.stack("encoder"), context)
        self.head = build_component(spec.head, context.with_token(self.embedding.token))

    def forward(
        self,
        inputs: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        **beside: Tensor | None,
    ) -> Outputs:
        """inputs: the embedding's inputs, mostly token ids, B T.

        attention_mask (1 for real tokens or samples; default: all), for embeddings that take one, and token_type_ids and the
        further inputs of the embedding (``token_inputs``; default: 0), for tokens only: all as long as the inputs. words_mask (B T),
        text_lengths (B 1), span_idx (B S 2) and span_mask (B S) are together the words and spans of a head that scores spans
        (default: each token is a word). Raises TypeError for inputs that the model does not read.
        """
        words = Words.taken_from(beside) if self.reads_words else None
        for name in beside.keys() - {token_input.name for token_input in self.token_inputs}:
            raise TypeError(
                f"unexpected keyword argument {name!r}: the embedding of {self.spec.name} reads no such input"
            )
        mask, positions = self.embedding.mask_and_positions(inputs, attention_mask)  # B T
        x = self.embedding(inputs, positions, token_type_ids, attention_mask, **beside)  # B T D
        x, _ = self.encoder(x, TokenPositions.all(positions, mask))
        return Outputs(self.head(x, TokenSequence(inputs if self.takes_tokens else None, mask, words)))
