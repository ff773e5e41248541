"""Classifiers of encoder-decoders, which read the decoder where the encoder is given the end of sequence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from exporters.export import export
from exporters.steps.options import ExportOptions
from tests.parity.reference import assert_close, build, load, ragged
from zoo.checkpoints.converting import convert
from zoo.configs.importing import import_spec


def check_at_end(model_class: Any, config: Any, directory: Path) -> None:
    """Sequences that end with the end of sequence, given to the decoder one place to the right: imported, exported
    and converted back."""
    reference = build(model_class, config, seed=2)
    reference.save_pretrained(directory / "reference")
    spec = import_spec(directory / "reference")
    ids, mask = ragged(3, 11, config.vocab_size - 3, "right", 3)
    ids = (ids + 3) * mask + config.pad_token_id * (1 - mask)
    ids[torch.arange(3), mask.sum(1) - 1] = config.eos_token_id
    shifted = ids.roll(1, 1)
    shifted[:, 0] = config.decoder_start_token_id
    with torch.no_grad():
        expected = reference(ids, mask).logits  # which shifts them itself
        ours = load(spec, directory / "reference")(ids, shifted, mask, mask).logits
    assert_close(ours, expected)
    export(spec, directory / "onnx", ExportOptions(weights=str(directory / "reference")))
    (directory / "converted").mkdir()
    convert(spec, str(directory / "reference"), directory / "converted", model_type=config.model_type)
    back, report = model_class.from_pretrained(directory / "converted", output_loading_info=True)
    assert not report["missing_keys"]
    assert not report["unexpected_keys"]
    with torch.no_grad():
        assert_close(back.eval()(ids, mask).logits, expected)
