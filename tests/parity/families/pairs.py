"""The checks of every dual encoder, as :mod:`tests.parity.families.harness` has them for others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import torch
from torch import Tensor

from exporters.export import export
from exporters.steps.options import ExportOptions
from specs.model.model import Model
from tests.parity.families.family import FamilyTests
from tests.parity.families.harness import TOLERANCE, Prepare, converted, prepared
from tests.parity.families.in_memory import check_in_memory_layout
from tests.parity.families.recorded import RECORDED, Parity
from tests.parity.reference import difference, load
from zoo.configs.importing import import_spec

OUTPUTS = ("logits_per_image", "logits_per_text", "text_embeds", "image_embeds")


def check(
    model_class: type,
    config: Any,
    directory: Path,
    *,
    seed: int = 1,
    prepare: Prepare | None = None,
    onnx: bool = True,
    verify: bool = False,
    fuzzed: bool = False,
) -> Model:
    """Compare one configuration with its reference: PyTorch, ONNX Runtime, gradients and conversion."""
    reference = prepared(model_class, config, seed, prepare)
    with torch.no_grad():  # a drawn factor makes all scores alike
        reference.logit_scale.fill_(1.3)
    reference.save_pretrained(directory / "reference")
    spec = import_spec(directory / "reference")
    ours = load(spec, directory / "reference")
    given = drawn_inputs(spec, seed)
    expected = outputs_of(reference, given)
    check_in_memory_layout(reference, spec, ours, directory / "in-memory", directory / "reference")
    result = Parity(reference.config.model_type, fuzzed=fuzzed)
    result.pytorch = largest(outputs_of(ours, given), expected)
    assert result.pytorch <= TOLERANCE
    _check_gradients(reference, ours, given)
    if onnx:
        export(spec, directory / "onnx", ExportOptions(weights=str(directory / "reference"), verify=verify))
        whole = run(directory / "onnx/model.onnx", given)
        parts = {
            name: value
            for task in ("text_model", "vision_model")
            for name, value in run(directory / f"onnx/{task}.onnx", given).items()
        }
        result.onnx = max(largest(whole, expected), largest(parts, expected))
        assert result.onnx <= TOLERANCE
    back = converted(spec, directory, reference)
    assert largest(outputs_of(back, given), expected) <= 1e-6
    RECORDED.results.append(result)
    return spec


def drawn_inputs(spec: Model, seed: int) -> dict[str, Tensor]:
    """Three texts of full length and two images."""
    assert spec.text is not None
    assert spec.image is not None
    assert spec.text.head is not None
    generator = torch.Generator().manual_seed(seed)
    length = min(9, spec.context_length_of(spec.text) or 9)
    ids = torch.randint(1, spec.vocab_size or 1, (3, length), generator=generator)
    end = spec.text.head.token_to_find
    if end is not None:
        ids = torch.where(ids == end, 0, ids)
        ids[torch.arange(3), torch.tensor([length - 1, length // 2, length - 1])] = end
    shape = spec.embedding_of(spec.image).input_shape(None)
    pixels = torch.randn((2, *shape), generator=generator)
    count = spec.embedding_of(spec.text).segment_count
    types = {"token_type_ids": torch.randint(count, ids.shape, generator=generator)} if count else {}
    return {"input_ids": ids, "pixel_values": pixels, "attention_mask": torch.ones_like(ids), **types}


@torch.no_grad()
def outputs_of(model: Any, given: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The outputs that both have."""
    found = model(**given)
    return {name: found[name] for name in OUTPUTS}


def largest(ours: Mapping[str, Tensor], expected: Mapping[str, Tensor]) -> float:
    """The largest difference at unit scale."""
    common = [name for name in ours if name in expected]
    assert common
    return max(difference(ours[name], expected[name]) for name in common)


def run(path: Path, given: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The outputs of a file."""
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    feeds = {each.name: np.ascontiguousarray(given[each.name].numpy()) for each in session.get_inputs()}
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, map(torch.from_numpy, session.run(names, feeds)), strict=True))


def _check_gradients(reference: Any, ours: Any, given: Mapping[str, Tensor]) -> None:
    """The gradient of a sum of all scores, by the inputs of the images' encoder and by the factor."""
    found = []
    for model, factor in ((reference, "logit_scale"), (ours, "head.scale")):
        pixels = given["pixel_values"].clone().requires_grad_()
        scores = model(**{**given, "pixel_values": pixels})["logits_per_image"]
        weights = torch.linspace(-1, 1, scores.numel()).reshape(scores.shape)
        by = dict(model.named_parameters())[factor]
        grads = torch.autograd.grad((scores * weights).sum(), [pixels, by])
        found.append([grad.flatten() for grad in grads])
    for theirs, own in zip(*found, strict=True):
        assert difference(own, theirs) <= TOLERANCE


class PairTests(FamilyTests):
    """A dual encoder."""

    defaults = {}
    run = staticmethod(check)
