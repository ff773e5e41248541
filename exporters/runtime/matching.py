"""Running a dual encoder: scores of texts for images.

Shapes: texts N, images M.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from exporters.runtime.exported import Exported
from exporters.runtime.graph import Floats, host_array
from exporters.runtime.model_inputs import model_inputs
from specs.base.errors import UserError
from specs.kinds.contrastive import Contrastive


@dataclass(frozen=True)
class PairScores:
    """The score of each text for each image, M N, and its probability.

    ``alone``: each pair is scored independently (SigLIP); otherwise the probabilities of an image's texts add up to 1.
    """

    scores: Floats
    alone: bool

    @property
    def probabilities(self) -> Floats:
        """M N."""
        if self.alone:
            return np.reciprocal(1 + np.exp(-self.scores))
        powers = np.exp(self.scores - self.scores.max(1, keepdims=True))
        shares: Floats = powers / powers.sum(1, keepdims=True)
        return shares


class DualEncoderRunner:
    """The graph of a whole dual encoder, loaded."""

    def __init__(self, exported: Exported) -> None:
        self.spec, head = exported.spec, exported.spec.head
        if not isinstance(head, Contrastive):
            raise UserError(
                f"{self.spec.name} finds boxes, and only scores of whole images are shown here\n"
                "  Export it in the layout transformers-js, and run its client's zero-shot-object-detection."
            )
        self.pairs_alone = head.bias is not None
        self.graph = exported.open(-1)
        self.load_seconds, self.provider = self.graph.load_seconds, self.graph.provider

    def match(self, texts: Sequence[Sequence[int]], images: Floats) -> PairScores:
        """Compare N texts with M images.

        Raises :class:`specs.base.errors.UserError` for inputs that the model does not take.
        """
        read, _ = model_inputs(self.graph, self.spec, self.spec.stack("text"), texts)
        seen, _ = model_inputs(self.graph, self.spec, self.spec.stack("image"), images)
        results = self.graph.run({**read, **seen}, {"logits_per_image": "cpu"})
        return PairScores(host_array(results["logits_per_image"]).astype(np.float32), self.pairs_alone)
