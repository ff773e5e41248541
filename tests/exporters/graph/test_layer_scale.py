"""Encoders of images with LayerScale and registers, exported: for every target, in every kind of block."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from exporters.target.targets import TARGETS
from specs.model.model import Model
from tests.exporters.models import verified
from tests.zoo.tiny import BLOCK, vit

KINDS = ("pre_norm", "post_norm", "parallel", "reordered_norm", "sandwich", "normed_residual")


def seeing(kind: str, **embedding: Any) -> Model:
    """A tiny encoder of images with two registers."""
    return vit(
        embedding={"kind": "patches", "image_size": 7, "patch_size": 3, "registers": 2, **embedding},
        encoder={"layers": 2, "block": {**BLOCK, "kind": kind, "layer_scale": 0.1}},
    )


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["fp32", "fp16", "int8"])
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_block_is_exported_for_every_target(
    kind: str, target: str, precision: str, tmp_path: Path
) -> None:
    model = seeing(kind, class_token=kind != "parallel")
    verified(model, tmp_path / "x", target=target, precision=precision)


def test_registers_without_a_class_token_are_exported(tmp_path: Path) -> None:
    verified(seeing("pre_norm", class_token=False), tmp_path / "x")
