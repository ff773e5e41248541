"""An encoder of texts and one of images, whose vectors are compared, such as CLIP and SigLIP."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

import specs.model.model as spec
from specs.model.stack import StackName
from zoo.components.contrastive import Contrastive
from zoo.components.embedding import Embedding
from zoo.components.patch_boxes import Detection, PatchBoxes
from zoo.components.pooling import TokenSequence
from zoo.components.sequence_heads import Pooled
from zoo.context import StackContext
from zoo.models.built_model import BuiltModel
from zoo.models.outputs import Outputs
from zoo.models.token_positions import TokenPositions
from zoo.models.varied_stack import stack_of
from zoo.registry import build_component


class DualEncoder(BuiltModel):
    """head(text vectors, image vectors); each stack has its own embedding and its own head."""

    entries: ClassVar[tuple[str, ...]] = ("forward", "encode", "vector")
    head: Contrastive | Detection
    image_head: Pooled | PatchBoxes

    def __init__(self, spec: spec.Model) -> None:
        super().__init__()
        self.spec = spec
        for name, stack in spec.stacks():
            context = StackContext.of(spec, name)
            embedding: Embedding = build_component(spec.embedding_of(stack), context)  # type: ignore[assignment]
            assert stack.head is not None
            self.add_module(f"{name}_embedding", embedding)
            self.add_module(name, stack_of(stack, context))
            self.add_module(f"{name}_head", build_component(stack.head, context))
        self.head = build_component(spec.head, StackContext.of(spec, "text"))  # type: ignore[assignment]

    def encode(
        self,
        name: StackName,
        inputs: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
    ) -> Outputs:
        """The outputs of one stack's head for its inputs: token ids, B T, or images, B channels height width."""
        embedding: Embedding = self.get_submodule(f"{name}_embedding")  # type: ignore[assignment]
        mask, positions = embedding.mask_and_positions(inputs, attention_mask)  # B T
        x = embedding(inputs, positions, token_type_ids, attention_mask)  # B T D
        x, _ = self.get_submodule(name)(x, TokenPositions.all(positions, mask))
        ids = inputs if embedding.token is not None else None
        return Outputs(self.get_submodule(f"{name}_head")(x, TokenSequence(ids, mask)))

    def vector(
        self,
        name: StackName,
        inputs: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
    ) -> Tensor:
        """The vector of each input, B W, or of each patch with a box, B P W."""
        head: Pooled | PatchBoxes = self.get_submodule(f"{name}_head")  # type: ignore[assignment]
        return self.encode(name, inputs, attention_mask, token_type_ids)[head.output]

    def forward(
        self,
        input_ids: Tensor,
        pixel_values: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
    ) -> Outputs:
        """input_ids: N T, attention_mask (1 for real tokens; default: all) and token_type_ids: N T, pixel_values: M
        channels height width; N texts and M images."""
        text = self.vector("text", input_ids, attention_mask, token_type_ids)  # N W
        return Outputs(self.head(text, **self.image_head.handed(self.encode("image", pixel_values))))
