"""Positions of patches by row and column, exported for every target."""

from __future__ import annotations

from pathlib import Path

import pytest

from exporters.target.targets import TARGETS
from tests.exporters.models import verified
from tests.thinned import one_in
from tests.zoo.tiny import vit

POSITIONS = {
    "axial_rope": {"kind": "axial_rope"},
    "relative_bias_2d": {"kind": "relative_bias_2d"},
    "relative_bias_2d of layers": {"kind": "relative_bias_2d", "per_layer": True},
}


@one_in(36)
@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("position", POSITIONS)
def test_positions_of_patches_are_exported(
    position: str, target: str, precision: str, tmp_path: Path
) -> None:
    embedding = {"kind": "patches", "image_size": 7, "patch_size": 3, "registers": 1}
    head = {"kind": "classification", "labels": 3, "pooling": "patches", "norm": {"kind": "layer_norm"}}
    spec = vit(position=POSITIONS[position], embedding=embedding, head=head)
    verified(spec, tmp_path / "x", target=target, precision=precision)
