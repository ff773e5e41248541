"""Running an encoder: vectors and their similarities, classes, and predictions for masked tokens.

Shapes: batch B, tokens T, width D, vocabulary V.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exporters.runtime.exported import Exported
from exporters.runtime.graph import Floats, Ids, host_array
from exporters.runtime.model_inputs import Given, InputBatch, batches, model_inputs
from exporters.runtime.transcripts import best_labels
from specs.base.errors import UserError, option_name
from specs.kinds.head import (
    CTC,
    Classification,
    DistilledClassification,
    MaskedLanguageModeling,
    NoHead,
    Pooled,
    Pooler,
)

# The heads whose outputs can be shown.
VECTORS, CLASSES = (NoHead, Pooler, Pooled), (Classification, DistilledClassification)
MASKS, SPEECH = MaskedLanguageModeling, CTC


@dataclass(frozen=True)
class EncodedVectors:
    """One vector per input, B D, and its kind; ``similarities`` are the cosines between them, B B."""

    kind: str
    values: Floats

    @property
    def similarities(self) -> Floats:
        """The cosine of each pair."""
        unit = self.values / np.maximum(np.linalg.norm(self.values, axis=1, keepdims=True), 1e-12)
        return unit @ unit.T


class EncoderRunner:
    """The graph of an encoder, loaded.

    Raises :class:`specs.base.errors.UserError` where its head has no outputs to show.
    """

    def __init__(self, exported: Exported, threads: int = 0) -> None:
        head = exported.spec.head
        if exported.spec.architecture != "encoder" or not isinstance(
            head, (*VECTORS, *CLASSES, MASKS, SPEECH)
        ):
            raise UserError(
                f"zoo run supports vectors, classes, masked tokens, speech and generation\n"
                f"  value: {exported.spec.architecture}, head {head.kind}\n"
                f"  Run its graph with onnxruntime, or build it with {option_name('set')} head.kind=none."
            )
        self.spec, self._dimensions = exported.spec, exported.sentences.dimensions
        self.graph = exported.open(0, threads)
        self.load_seconds, self.provider = self.graph.load_seconds, self.graph.provider

    def outputs(self, given: InputBatch) -> tuple[dict[str, Floats], Ids | None]:
        """The outputs of the head, and the mask of the tokens that were read, B T; None for images and sounds.

        Raises :class:`specs.base.errors.UserError` for inputs that the model does not take.
        """
        assert self.spec.encoder is not None
        inputs, mask = model_inputs(self.graph, self.spec, self.spec.encoder, given)
        found = self.graph.run(inputs, dict.fromkeys(self.graph.outputs, "cpu"))
        return {name: host_array(value).astype(np.float32) for name, value in found.items()}, mask

    def vectors(self, given: Given) -> EncodedVectors:
        """One vector per input: the head's, or the mean over its tokens, patches or frames."""
        found = [self._vectors(batch) for batch in batches(given)]
        return EncodedVectors(found[0].kind, np.concatenate([each.values for each in found]))

    def _vectors(self, given: InputBatch) -> EncodedVectors:
        (outputs, mask), head = self.outputs(given), self.spec.head
        if isinstance(head, Pooled):
            return EncodedVectors(head.output, outputs[head.output][:, : self._dimensions])
        hidden = outputs["last_hidden_state"]  # B T D
        weights = np.ones(hidden.shape[:2], np.float32) if mask is None else mask.astype(np.float32)
        mean = (hidden * weights[..., None]).sum(1) / weights.sum(1, keepdims=True)
        return EncodedVectors("mean of last_hidden_state", mean)

    def classes(self, given: Given) -> Floats:
        """The probability of each label, B labels: that of a single label, as in rerankers, says whether it holds."""
        return np.concatenate([_probabilities(self.outputs(batch)[0]["logits"]) for batch in batches(given)])

    @property
    def blank(self) -> int:
        """The label between the others of a model of speech."""
        assert isinstance(self.spec.head, SPEECH)
        return self.spec.head.blank

    def spoken(self, given: Given) -> list[list[int]]:
        """The most likely labels of each recording, without repetitions and blanks."""
        return [
            best_labels(logits, self.blank)
            for batch in batches(given)
            for logits in self.outputs(batch)[0]["logits"]
        ]

    def masked(self, prompts: Sequence[Sequence[int]], mask_id: int) -> list[list[Floats]]:
        """For every mask of each prompt the probabilities of all tokens, V."""
        outputs, _ = self.outputs(prompts)
        places = [[at for at, token in enumerate(prompt) if token == mask_id] for prompt in prompts]
        return [
            [_softmax(row[at]) for at in found] for row, found in zip(outputs["logits"], places, strict=True)
        ]


def _probabilities(scores: Floats) -> Floats:
    if scores.shape[-1] == 1:  # the softmax of a score and 0
        return _softmax(np.concatenate([scores, np.zeros_like(scores)], -1))[..., :1]
    return _softmax(scores)


def _softmax(scores: Floats) -> Floats:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)
