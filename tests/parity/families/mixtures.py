"""What the tests of the families with mixtures of experts have in common."""

from __future__ import annotations

from typing import Any

import torch

from specs.model import Model
from tests.parity.families.harness import check_reference
from tests.parity.reference import build


def check(model_class: type, config: Any, directory: Any, *, seed: int = 1, **options: Any) -> Model:
    """As the harness has it, with one product for each expert, and with what corrects a choice of experts drawn too."""
    config._experts_implementation = "eager"
    reference = build(model_class, config, seed)
    generator = torch.Generator().manual_seed(seed + 1)
    for name, buffer in reference.named_buffers():
        if name.endswith("e_score_correction_bias"):
            buffer.normal_(0.0, 0.1, generator=generator)
    return check_reference(reference, directory, seed=seed, **options)
