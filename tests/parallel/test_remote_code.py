"""Models with their own code are cut by the plans in their configs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers
from torch.distributed.tensor import DTensor

import zoo
from specs.model.model import Model
from tests.parallel.models import GROUPED, LAYER_NORM, MODELS, decoder, encoder_decoder
from tests.parallel.processes import on_processes

IDS = torch.tensor([[1, 5, 2, 7, 19, 3], [4, 4, 9, 11, 6, 8]])
TARGETS = torch.tensor([[0, 5, 2, 7], [0, 4, 9, 11]])


def without_bias() -> Model:
    """An encoder-decoder with rotary positions, so that every attention is cut."""
    return Model.model_validate(encoder_decoder().model_dump() | {"position": {"kind": "rope"}})


CASES = {
    "attention": (decoder({"kind": "sandwich", "attention": GROUPED}), 3),
    "states": (MODELS["hybrid"], 1),
    "alibi": (decoder(LAYER_NORM, position={"kind": "alibi"}), 0),
    "encoder-decoder": (without_bias(), 6),
    "relative-bias": (encoder_decoder(), 2),
}
"""A spec, and the number of query projections that are cut."""


def agrees(auto: str, directory: str, inputs: dict[str, torch.Tensor], cut: int) -> None:
    """Scores and greedy tokens on all processes are those of one."""
    load = getattr(transformers, auto).from_pretrained
    whole = load(directory, trust_remote_code=True).eval()
    model = load(directory, trust_remote_code=True, tp_plan="auto").eval()
    names = [name for name, each in model.named_parameters() if isinstance(each, DTensor)]
    assert len([name for name in names if name.endswith("query.weight")]) == cut, names
    with torch.no_grad():
        expected, found = whole(IDS, **inputs).logits, model(IDS, **inputs).logits
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
    how = {"max_new_tokens": 6, "do_sample": False, "pad_token_id": 0}
    assert torch.equal(model.generate(IDS, **how), whole.generate(IDS, **how))


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_a_plan_cuts_the_model_of_the_code(case: str, tmp_path: Path) -> None:
    spec, cut = CASES[case]
    zoo.convert(spec.model_copy(update={"name": f"tp-{case}"}), "random", tmp_path / "code", remote_code=True)
    auto = "AutoModelForCausalLM" if spec.encoder is None else "AutoModelForSeq2SeqLM"
    inputs = {} if spec.encoder is None else {"decoder_input_ids": TARGETS}
    on_processes(2, agrees, auto, str(tmp_path / "code"), inputs, cut)
