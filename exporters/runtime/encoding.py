"""Running an encoder: vectors of texts and their similarities, classes, and predictions for masked tokens.

Shapes: batch B, tokens T, width D, vocabulary V.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exporters.runtime.exported import Exported
from exporters.runtime.graph import Floats, host_array
from exporters.runtime.tokens import padded, token_inputs
from specs.errors import UserError, option_name
from specs.head import Classification, MaskedLanguageModeling, NoHead, Pooled, Pooler
from zoo.generation.prompts import check_prompts

VECTORS, CLASSES, MASKS = (NoHead, Pooler, Pooled), Classification, MaskedLanguageModeling
"""The heads whose outputs can be shown."""


@dataclass(frozen=True)
class TextVectors:
    """One vector per text, B D, and its kind; ``similarities`` are the cosines between them, B B."""

    kind: str
    values: Floats

    @property
    def similarities(self) -> Floats:
        """The cosine of each pair."""
        unit = self.values / np.maximum(np.linalg.norm(self.values, axis=1, keepdims=True), 1e-12)
        return unit @ unit.T


class EncoderRunner:
    """The graph of an encoder, loaded.

    Raises :class:`specs.errors.UserError` where its head has no outputs to show.
    """

    def __init__(self, exported: Exported, threads: int = 0) -> None:
        head = exported.spec.head
        if exported.spec.architecture != "encoder" or not isinstance(head, (*VECTORS, CLASSES, MASKS)):
            raise UserError(
                f"zoo run supports vectors, classes, masked tokens and generation\n"
                f"  value: {exported.spec.architecture}, head {head.kind}\n"
                f"  Run its graph with onnxruntime, or build it with {option_name('set')} head.kind=none."
            )
        self.spec = exported.spec
        self.graph = exported.open(0, threads)
        self.load_seconds, self.provider = self.graph.load_seconds, self.graph.provider

    def outputs(self, prompts: Sequence[Sequence[int]]) -> dict[str, Floats]:
        """The outputs of the head for some prompts, padded on the right.

        Raises :class:`specs.errors.UserError` for prompts that the model does not take.
        """
        assert self.spec.encoder is not None
        check_prompts(self.spec, self.spec.encoder, prompts)
        ids, mask = padded(prompts, right=True)
        found = self.graph.run(token_inputs(self.graph, ids, mask), dict.fromkeys(self.graph.outputs, "cpu"))
        return {name: host_array(value).astype(np.float32) for name, value in found.items()}

    def vectors(self, prompts: Sequence[Sequence[int]]) -> TextVectors:
        """One vector per prompt: the head's, or the mean over its tokens."""
        outputs, head = self.outputs(prompts), self.spec.head
        if isinstance(head, Pooled):
            return TextVectors(head.output, outputs[head.output])
        _, mask = padded(prompts, right=True)
        hidden, weights = outputs["last_hidden_state"], mask[..., None].astype(np.float32)
        return TextVectors("mean of last_hidden_state", (hidden * weights).sum(1) / weights.sum(1))

    def classes(self, prompts: Sequence[Sequence[int]]) -> Floats:
        """The probability of each label, B labels."""
        return _softmax(self.outputs(prompts)["logits"])

    def masked(self, prompts: Sequence[Sequence[int]], mask_id: int) -> list[list[Floats]]:
        """For every mask of each prompt the probabilities of all tokens, V."""
        scores = self.outputs(prompts)["logits"]  # B T V
        places = [[at for at, token in enumerate(prompt) if token == mask_id] for prompt in prompts]
        return [[_softmax(row[at]) for at in found] for row, found in zip(scores, places, strict=True)]


def _softmax(scores: Floats) -> Floats:
    powers = np.exp(scores - scores.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)
