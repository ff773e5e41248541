"""Attentions of blocks that are narrower inside: what reads which input."""

from pathlib import Path

import pytest

from specs.base.errors import SpecError
from specs.language.load import load
from specs.model.model import Model
from tests.exporters.models import verified
from tests.zoo.tiny import BLOCK, bert
from zoo.checks import check_behaviour

ATTENTION = "encoder.block.attention"


def narrow(**attention: object) -> Model:
    """A small encoder whose blocks are narrower inside."""
    heads = {"kind": "multi_head", "heads": 2, "head_dim": 6, **attention}
    return bert(
        encoder={"layers": 1, "block": {**BLOCK, "kind": "bottleneck", "width": 10, "attention": heads}}
    )


@pytest.mark.parametrize("over", ["channel", "head"])
def test_a_gate_reads_what_queries_read(over: str, tmp_path: Path) -> None:
    spec = narrow(output_gate={"over": over}, value_dim=5)
    assert {check.status for check in check_behaviour(spec).checks} == {"passed"}
    verified(spec, tmp_path / "x")


@pytest.mark.parametrize(
    ("assignments", "message"),
    [
        (
            [f"{ATTENTION}={{kind: latent, heads: 4, kv_rank: 8, head_dim: 4, rope_dim: 2, value_dim: 4}}"],
            f"{ATTENTION}.kind: must project queries, keys and values by heads in a bottleneck\n"
            "  value: 'latent'\n  Use multi_head, grouped_query or multi_query.",
        ),
        (
            [f"{ATTENTION}.values=keys"],
            f"{ATTENTION}.values: must be projected in a bottleneck, whose keys read another input\n"
            "  value: 'keys'\n  Remove it.",
        ),
        (
            [f"{ATTENTION}.position={{kind: relative_bias, gated: true}}", f"{ATTENTION}.heads=4"],
            f"{ATTENTION}: must not have a gated position in a bottleneck, whose queries and values read "
            "different inputs\n  value: 'multi_head'\n  Set gated: false in the position.",
        ),
    ],
)
def test_attentions_that_read_one_input_are_refused(assignments: list[str], message: str) -> None:
    with pytest.raises(SpecError) as caught:
        load("mobilebert-uncased", assignments)
    assert message in str(caught.value)
