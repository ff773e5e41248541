"""The gate on the output of an attention, as specs state it."""

from typing import Any

import pytest

from specs.base.errors import SpecError
from specs.kinds.attention import MultiHead
from specs.kinds.output_gate import OutputGate
from specs.language.load import load

DECODER = "tiny-gpt"


@pytest.mark.parametrize(
    ("stated", "gate", "written"),
    [
        (True, OutputGate(), True),
        (False, None, None),
        ({}, OutputGate(), True),
        ({"over": "head"}, OutputGate(over="head"), {"over": "head", "activation": "sigmoid", "bias": False}),
    ],
)
def test_true_stands_for_a_gate_by_channel(stated: Any, gate: OutputGate | None, written: Any) -> None:
    attention = MultiHead.model_validate({"kind": "multi_head", "heads": 2, "output_gate": stated})
    assert attention.output_gate == gate
    assert attention.model_dump(mode="json").get("output_gate") == written


def test_other_words_are_refused_with_what_works() -> None:
    with pytest.raises(SpecError) as caught:
        load(DECODER, ["decoder.block.attention.output_gate=yess"])
    assert "must be true, false, or a mapping of over, activation and bias" in str(caught.value)
