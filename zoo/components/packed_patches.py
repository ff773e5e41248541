"""Images of any size: the patches of all of them in one sequence.

Shapes: patches of all images N, values of a patch V, width D.
"""

from __future__ import annotations

from torch import Tensor, nn

import specs.kinds.packed_patches as spec
from zoo.components.embedding import Embedding
from zoo.components.linear import Linear
from zoo.context import StackContext
from zoo.core.precision import wide
from zoo.registry import builds


@builds(spec.PackedPatches)
class PackedPatches(Embedding):
    """The projected patches, plus position."""

    def __init__(self, spec: spec.PackedPatches, context: StackContext) -> None:
        super().__init__(spec, context)
        self.patch = Linear(spec.patch_width, context.d_model, bias=spec.bias)
        self.dropout = nn.Dropout(spec.dropout)

    def forward(
        self, pixel_values: Tensor, positions: Tensor, token_type_ids: None = None, mask: None = None
    ) -> Tensor:
        """pixel_values: N V, positions: row and column of each patch, and rows and columns of its image, 4 1 N -> 1 N D."""
        x = wide(self.patch(pixel_values))[None]  # 1 N D
        return self.dropout(self.position.embed(x, positions))
