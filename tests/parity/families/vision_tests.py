"""The tests of encoders of images."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from tests.parity.families.draws import FEW_LAYERS
from tests.parity.reference import ACTIVATIONS

ACTIVATION = st.sampled_from(list(ACTIVATIONS))


def draw_patches(data: st.DataObject, **more: Any) -> dict[str, Any]:
    """Any fields of a config with ViT's names."""
    heads, patch = data.draw(st.integers(1, 6), "heads"), data.draw(st.integers(1, 6), "patch_size")
    return dict(
        hidden_size=heads * data.draw(st.integers(2, 8), "head_width"), num_hidden_layers=FEW_LAYERS,
        num_attention_heads=heads, intermediate_size=st.integers(1, 60), hidden_act=ACTIVATION,
        layer_norm_eps=st.sampled_from([1e-12, 1e-2]), image_size=patch + data.draw(st.integers(0, 12), "more"),
        patch_size=patch, num_channels=st.integers(1, 4),
    ) | more  # fmt: skip
