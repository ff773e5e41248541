"""Running an encoder: vectors and similarities, classes, transcripts, predictions for masked tokens, and outputs by name.

Shapes: batch B, tokens T, width D, vocabulary V.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from exporters.runtime.exported import Exported
from exporters.runtime.graph import Floats, Ids, host_array
from exporters.runtime.model_inputs import InputBatch, ModelInputs, batches, model_inputs
from exporters.runtime.tokens import token_inputs
from exporters.runtime.transcripts import best_labels
from specs.kinds.head import HeadKind
from specs.kinds.token_heads import CTC


@dataclass(frozen=True)
class EncodedVectors:
    """One vector per input, B D, and the kind of vector; ``similarities`` are their cosines, B B."""

    kind: str
    values: Floats

    @property
    def similarities(self) -> Floats:
        """The cosine of each pair."""
        unit = self.values / np.maximum(np.linalg.norm(self.values, axis=1, keepdims=True), 1e-12)
        return unit @ unit.T


class EncoderRunner:
    """The graph of an encoder, loaded."""

    def __init__(self, exported: Exported, threads: int = 0) -> None:
        self.spec, self._dimensions = exported.spec, exported.sentences.dimensions
        self.graph = exported.open(0, threads)
        self.load_seconds, self.provider = self.graph.load_seconds, self.graph.provider

    def outputs(self, batch: InputBatch) -> tuple[dict[str, Floats], Ids | None]:
        """Return the outputs of the head, and the mask of the tokens, B T (None for images and audio).

        Raises :class:`specs.base.errors.UserError` for inputs that the model does not take.
        """
        inputs, mask = model_inputs(self.graph, self.spec, self.spec.stack("encoder"), batch)
        return self._run(inputs), mask

    def of_words(self, ids: Ids, mask: Ids, words: Mapping[str, Ids]) -> dict[str, Floats]:
        """Return the outputs of a head that scores spans for tokens, B T, and the inputs of their words."""
        return self._run({**token_inputs(self.graph, ids, mask), **words})

    def _run(self, inputs: Mapping[str, Ids | Floats]) -> dict[str, Floats]:
        results = self.graph.run(dict(inputs), dict.fromkeys(self.graph.outputs, "cpu"))
        return {name: host_array(value).astype(np.float32) for name, value in results.items()}

    def named(self, inputs: ModelInputs) -> list[dict[str, Floats]]:
        """All outputs for each input, by name, without the entries of padding."""
        return [
            {name: self._unpadded(name, values[row], mask, row) for name, values in outputs.items()}
            for batch in batches(inputs)
            for outputs, mask in [self.outputs(batch)]
            for row in range(len(batch))
        ]

    def _unpadded(self, name: str, values: Floats, mask: Ids | None, row: int) -> Floats:
        if mask is None:
            return values
        tokens = self.graph.inputs["input_ids"].dims[1]
        for axis, size in enumerate(self.graph.outputs[name].dims[1:]):
            if size == tokens:
                values = np.compress(mask[row] == 1, values, axis)
        return values

    def vectors(self, inputs: ModelInputs) -> EncodedVectors:
        """One vector per input: the head's, or the mean over its tokens, patches or frames."""
        vectors = [self._vectors(batch) for batch in batches(inputs)]
        return EncodedVectors(vectors[0].kind, np.concatenate([part.values for part in vectors]))

    def _vectors(self, batch: InputBatch) -> EncodedVectors:
        return self.sequence_vectors(self.spec.head, *self.outputs(batch))

    def sequence_vectors(
        self, head: HeadKind, outputs: Mapping[str, Floats], mask: Ids | None
    ) -> EncodedVectors:
        """One vector per input of a batch: the head's, or the mean over its tokens, patches or frames."""
        if (name := head.sequence_output) is not None:
            return EncodedVectors(name, outputs[name][:, : self._dimensions])
        hidden = outputs["last_hidden_state"]  # B T D
        weights = np.ones(hidden.shape[:2], np.float32) if mask is None else mask.astype(np.float32)
        mean = (hidden * weights[..., None]).sum(1) / weights.sum(1, keepdims=True)
        return EncodedVectors("mean of last_hidden_state", mean)

    def classes(self, inputs: ModelInputs) -> Floats:
        """The probability of each label, B labels; a single label, as in rerankers, has a sigmoid probability."""
        return np.concatenate([_probabilities(self.outputs(batch)[0]["logits"]) for batch in batches(inputs)])

    @property
    def blank(self) -> int:
        """The blank label of a CTC model."""
        assert isinstance(self.spec.head, CTC)
        return self.spec.head.blank

    def spoken(self, inputs: ModelInputs) -> list[list[int]]:
        """The most likely labels of each recording, without repetitions and blanks."""
        return [
            best_labels(logits, self.blank)
            for batch in batches(inputs)
            for logits in self.outputs(batch)[0]["logits"]
        ]

    def masked(self, prompts: Sequence[Sequence[int]], mask_id: int) -> list[list[Floats]]:
        """The probabilities of all tokens, V, for every mask of each prompt."""
        outputs, _ = self.outputs(prompts)
        places = [
            [position for position, token in enumerate(prompt) if token == mask_id] for prompt in prompts
        ]
        return [
            [_softmax(row[position]) for position in positions]
            for row, positions in zip(outputs["logits"], places, strict=True)
        ]


def late_interaction(queries: Sequence[Floats], texts: Sequence[Floats]) -> Floats:
    """The score of each text for each query: the sum, over a query's vectors, of the largest product with a vector of the text; 0
    for a text without vectors."""
    return np.array(
        [
            [(query @ text.T).max(-1, initial=-np.inf if len(text) else 0).sum() for text in texts]
            for query in queries
        ],
        np.float32,
    )


def _probabilities(scores: Floats) -> Floats:
    if scores.shape[-1] == 1:  # the softmax of a score and 0
        return _softmax(np.concatenate([scores, np.zeros_like(scores)], -1))[..., :1]
    return _softmax(scores)


def _softmax(scores: Floats) -> Floats:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)
