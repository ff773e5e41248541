"""Heads that find things which texts name in images.

Shapes: texts N, images M, vectors of an image T, patches P, width of images D, width of what is compared W.
"""

from __future__ import annotations

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

import specs.kinds.patch_boxes as spec
from zoo import functional
from zoo.components.activation import activation
from zoo.components.linear import Linear
from zoo.components.patch_positions import patch_places
from zoo.components.pooling import TokenSequence
from zoo.context import BuildContext
from zoo.core.precision import wide
from zoo.registry import build_component, builds

_LEAST = 1e-6
"""The number added to the length of a vector before a division by it."""
_EDGE = 1e-4
"""The distance from 0 and 1 of places whose logit is taken."""


def unit(x: Tensor) -> Tensor:
    """Vectors divided by their length: ... W."""
    return x / ((x * x).sum(-1, keepdim=True).sqrt() + _LEAST)


def box_biases(places: list[tuple[int, int]], rows: int, columns: int) -> tuple[float, ...]:
    """The logits of a box at each patch, of the patch's size: x and y of its end, width and height, patch by patch."""
    boxes = [[(column + 1) / columns, (row + 1) / rows, 1 / columns, 1 / rows] for row, column in places]
    part = torch.tensor(boxes, dtype=torch.float32, device="cpu")
    values: list[float] = (torch.log(part + _EDGE) - torch.log1p(-part + _EDGE)).flatten().tolist()
    return tuple(values)


@builds(spec.PatchBoxes)
class PatchBoxes(nn.Module):
    """image_embeds: M P D, class_embeds: M P W, logit_shift and logit_scale: M P 1, pred_boxes: M P 4."""

    output = "class_embeds"
    """The output that texts are compared with."""
    per_token: ClassVar[frozenset[str]] = frozenset()
    """None has an entry for the class token."""

    def __init__(self, spec: spec.PatchBoxes, context: BuildContext) -> None:
        super().__init__()
        d_model = context.d_model
        self.norm = build_component(spec.norm, context)
        self.patch_norm = build_component(spec.norm, context)
        self.projection = Linear(d_model, spec.projection)
        self.shift, self.scale = Linear(d_model, 1), Linear(d_model, 1)
        self.first, self.second, self.box = (
            Linear(d_model, d_model),
            Linear(d_model, d_model),
            Linear(d_model, 4),
        )
        self.activation = activation(spec.activation)
        assert context.patch_grid is not None
        self.before, places = patch_places(context)
        self.biases = box_biases(places, *context.patch_grid[:2])

    def forward(self, x: Tensor, tokens: TokenSequence) -> dict[str, Tensor]:
        x = self.norm(x)  # M T D
        patches = self.patch_norm(x[:, self.before :] * x[:, :1])  # M P D
        scale = wide(self.scale(patches))
        boxes = self.box(self.activation(self.second(self.activation(self.first(patches)))))  # M P 4
        biases = functional.constant(self.biases, boxes).unflatten(0, (-1, 4))  # P 4
        return {
            "image_embeds": patches,
            "class_embeds": unit(wide(self.projection(patches))),
            "logit_shift": self.shift(patches),
            "logit_scale": F.relu(scale) + torch.exp(-F.relu(-scale)),  # elu(scale) + 1
            "pred_boxes": torch.sigmoid(wide(boxes) + biases),
        }

    def handed(self, outputs: dict[str, Tensor]) -> dict[str, Tensor]:
        """All of its outputs go on to the head in which two stacks meet."""
        return outputs


@builds(spec.Detection)
class Detection(nn.Module):
    """logits: M P N, and the outputs of the images."""

    def __init__(self, spec: spec.Detection, context: BuildContext) -> None:
        super().__init__()

    def forward(
        self,
        text: Tensor,
        *,
        image_embeds: Tensor,
        class_embeds: Tensor,
        logit_shift: Tensor,
        logit_scale: Tensor,
        pred_boxes: Tensor,
    ) -> dict[str, Tensor]:
        fits = class_embeds @ unit(wide(text)).transpose(0, 1)  # M P N
        return {
            "logits": (fits + logit_shift) * logit_scale,
            "pred_boxes": pred_boxes,
            "text_embeds": text,
            "image_embeds": image_embeds,
            "class_embeds": class_embeds,
        }
