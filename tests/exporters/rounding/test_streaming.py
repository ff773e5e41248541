"""A streaming pass computes what the model computes, with the weights of one layer at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from exporters.rounding.calibrated_weights import Rounding
from exporters.rounding.calibration import pass_over
from exporters.rounding.quantized_cache.calibrate import random_case
from exporters.rounding.streaming import calibrate
from specs.model.model import Model
from tests.exporters.mixtures import MIXTURES
from tests.zoo.tiny import bert, gpt2
from zoo.builder import assemble
from zoo.core.tensors import weight_tensors
from zoo.weights.blocks import Blocks
from zoo.weights.materialize import materialize
from zoo.weights.random import RandomWeights

DECODERS = {
    **{name: spec for name, spec in MIXTURES.items() if spec.architecture == "decoder"},
    "gpt2": gpt2(),
    "gpt2 with soft-capped scores": gpt2(head={"kind": "language_modeling", "softcap": 30.0}),
    "head with a bias": gpt2(head={"kind": "language_modeling", "tie_embeddings": False, "bias": True}),
}


def hidden(model: Any, run: Any) -> torch.Tensor:
    """The output of the decoder stack."""
    seen: list[torch.Tensor] = []
    handle = model.decoder.register_forward_hook(lambda module, args, result: seen.append(result[0]))
    with torch.no_grad():
        run()
    handle.remove()
    return seen[0]


@pytest.mark.parametrize("name", DECODERS)
def test_a_pass_without_rounding_is_that_of_the_model(name: str) -> None:
    spec: Model = DECODERS[name]
    whole, streamed = assemble(spec), assemble(spec)
    source = RandomWeights(whole, spec)
    materialize(whole, source)
    case = random_case(spec)
    expected = hidden(whole, lambda: whole(case.batch.inputs, case.batch.mask))
    found = hidden(
        streamed, lambda: calibrate(streamed, source, {}, pass_over(case), Path(), lambda done, count: None)
    )
    real = case.batch.mask == 1
    torch.testing.assert_close(found[real], expected[real], atol=2e-6, rtol=1e-4)
    assert not any(vars(module).get("forward") for module in streamed.modules())


def test_the_vocabulary_is_not_scored() -> None:
    spec = gpt2()
    streamed = assemble(spec)
    scores: list[dict[str, torch.Tensor]] = []
    streamed.head.register_forward_hook(lambda module, args, result: scores.append(result))
    source = RandomWeights(streamed, spec)
    calibrate(streamed, source, {}, pass_over(random_case(spec)), Path(), lambda done, count: None)
    (result,) = scores
    assert all(tensor.is_meta for tensor in result.values())


def test_tables_read_no_inputs_that_are_searched_for_faults(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    spec, checked = gpt2(), list[str]()
    monkeypatch.setattr("exporters.rounding.streaming.check_finite", lambda rows, name: checked.append(name))
    streamed = assemble(spec)
    names = [
        name for name, tensor in weight_tensors(streamed) if tensor.dim() == 2 and "position" not in name
    ]
    roundings = dict.fromkeys(names, Rounding(Blocks(4, 16), torch.float32))
    calibrate(
        streamed, RandomWeights(streamed, spec), roundings, pass_over(random_case(spec)), tmp_path,
        lambda *_: None,
    )  # fmt: skip
    assert checked
    assert all(".blocks." in name for name in checked)


def test_a_masked_language_model_is_passed_through_to_its_scores() -> None:
    spec = bert()
    streamed = assemble(spec)
    calibrate(
        streamed, RandomWeights(streamed, spec), {}, pass_over(_encoder_case(spec)), Path(), lambda *_: None
    )
    assert all(parameter.is_meta for parameter in streamed.parameters())


def _encoder_case(spec: Model) -> Any:
    from exporters.verification.cases import cases

    return max(cases(spec, "right"), key=lambda case: case.batch.inputs.numel())
