"""The norm that ends a stack: the blocks' or another."""

from __future__ import annotations

from typing import Any

import pytest

from specs.base.errors import SpecError
from specs.forms.canonical import canonical
from specs.forms.resolved import resolved
from specs.kinds.norm import LayerNorm, RMSNorm
from specs.language.load import load
from specs.model.model import Model
from tests.zoo.tiny import gpt2
from zoo.builder import assemble

OTHER = "decoder.final_norm={kind: rms_norm}"


def test_a_stack_ends_with_another_norm() -> None:
    spec = load("gpt2", [OTHER, "expect={}"])
    assert spec.decoder is not None
    assert spec.decoder.end_norm == RMSNorm()
    assert canonical(spec) == canonical(Model.model_validate(resolved(spec)))
    assert canonical(spec) != canonical(load("gpt2"))
    block = load("gpt2").decoder.block.norm
    assert canonical(load("gpt2", [f"decoder.final_norm={block.model_dump()}"])) == canonical(load("gpt2"))


def test_the_module_is_the_norm() -> None:
    data = gpt2().model_dump()
    data["decoder"]["final_norm"] = LayerNorm(bias=False).model_dump()
    model: Any = assemble(Model.model_validate(data))
    assert model.decoder.final_norm.bias is None
    assert model.decoder.blocks[1].attention_norm.bias is not None


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("3", "must be true, false, or a mapping with a `kind` of norm\n  value: 3"),
        ("rms_norm", "value: 'rms_norm'\n  Write a mapping, such as {kind: rms_norm}."),
        ("{kind: rms_nrom}", "decoder.final_norm.kind: must be a registered norm kind\n  value: 'rms_nrom'\n  Did you mean"),
    ],
)  # fmt: skip
def test_other_values_are_refused(value: str, said: str) -> None:
    with pytest.raises(SpecError) as caught:
        load("gpt2", [f"decoder.final_norm={value}"])
    assert said in str(caught.value)
