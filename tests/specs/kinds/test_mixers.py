"""The rules of blocks that mix tokens through a state of constant size, or that lack a branch."""

from __future__ import annotations

from typing import Any

import pytest

from specs.base.errors import SpecError
from specs.forms.resolved import resolved
from specs.language.load import load
from specs.language.named_blocks import with_named_blocks
from specs.language.reading import read_text
from specs.language.validation import validate
from specs.language.writing import dump
from specs.model.model import Model

MIXER = "{kind: short_convolution}"
MAMBA2 = "{kind: mamba2, heads: 4, head_dim: 8, state_size: 8}"
MAMBA = "{kind: mamba, width: 64, step_rank: 4}"
RWKV = "{kind: rwkv7, heads: 4, head_dim: 16, decay_rank: 4, update_rank: 4, value_rank: 2, gate_rank: 4}"
LINEAR = "{kind: linear_attention, heads: 4, key_width: 8, value_width: 8}"
HALF = "decoder.block.feed_forward_residual={kind: add, scale: 0.5}"
PLAIN = ("decoder.block.attention=null", f"decoder.block.mixer={MIXER}", "position.kind=none")


def faults(spec: str, *changes: str) -> list[str]:
    with pytest.raises(SpecError) as caught:
        load(spec, list(changes))
    return [problem.render() for problem in caught.value.problems]


@pytest.mark.parametrize(
    ("changes", "rule", "remedy"),
    [
        (
            ("decoder.block.attention=null", "decoder.block.feed_forward=null", "position.kind=none"),
            "decoder.block.attention: must not be null in a block without mixer and feed_forward",
            "Add one of the three.",
        ),
        (
            (*PLAIN, "decoder.block.attention_norm={kind: rms_norm}"),
            "decoder.block.attention_norm: must not be set in a block without attention",
            "Remove it, or add attention.",
        ),
        (
            ("decoder.block.mixer_norm={kind: rms_norm}",),
            "decoder.block.mixer_norm: must not be set in a block without mixer",
            "Remove it, or add mixer.",
        ),
        (
            (f"decoder.block.mixer={MIXER}", "decoder.block.mixer_norm={kind: rms_norm}"),
            "decoder.block.mixer_norm: must not be set, because attention and mixer share a norm",
            "Set attention_norm.",
        ),
        (
            (*PLAIN[:2], "position={kind: rope}"),
            "position.kind: acts inside attention, and no layer of the stack has one",
            "Use none, learned or sinusoidal.",
        ),
        (
            (*PLAIN[:2], "position.kind=none", "decoder.block.mixer.kernel_size=1"),
            "decoder.block.mixer.kernel_size: must be greater than or equal to 2",
            "Use 2 or more.",
        ),
        (
            (PLAIN[0], "position.kind=none", f"decoder.block.mixer={RWKV}"),
            "decoder.block.mixer.value_rank: requires a layer before it with a mixer of kind rwkv7, as wide, without value_rank",
            "Put such a layer before it, or remove it.",
        ),
        (
            (*PLAIN[:2], "position.kind=none", f"decoder.block.mixer={MAMBA2}", "decoder.block.mixer.groups=3"),
            "decoder.block.mixer.groups: must divide heads, which is 4",
            "Use a divisor: 1, 2, 4.",
        ),
        (
            (
                *PLAIN[:2], "position.kind=none", f"decoder.block.mixer={MAMBA2}",
                "decoder.block.mixer.step_limit={least: 0.5, most: 0.1}",
            ),
            "decoder.block.mixer.step_limit.least: must be less than most, which is 0.1",
            "Use 0 for no lower bound.",
        ),
        (
            (
                *PLAIN[:2], "position.kind=none", f"decoder.block.mixer={MAMBA2}",
                "decoder.block.mixer.multipliers.key=0",
            ),
            "decoder.block.mixer.multipliers.key: must be greater than 0",
            "",
        ),
        (
            (*PLAIN[:2], "position.kind=none", f"decoder.block.mixer={MAMBA}", "decoder.block.mixer.heads=3"),
            "decoder.block.mixer.heads: must divide width, which is 64",
            "Use a divisor: 1, 2, 4, 8, 16, 32, 64.",
        ),
        (
            (*PLAIN[:2], "position.kind=none", "decoder.block.mixer={kind: rg_lru, width: 6, heads: 4}"),
            "decoder.block.mixer.heads: must divide width, which is 6",
            "Use a divisor: 1, 2, 3, 6.",
        ),
        (
            (
                *PLAIN[:2], "position.kind=none", f"decoder.block.mixer={MAMBA}",
                "decoder.block.mixer.norm={kind: rms_norm, weight: false, unit_offset: true}",
            ),
            "decoder.block.mixer.norm.unit_offset: must be false in a norm without a weight",
            "Remove it, or set weight: true.",
        ),
        (
            (
                *PLAIN[:2], "position.kind=none", f"decoder.block.mixer={LINEAR}",
                "decoder.block.mixer.output_norm={norm: {kind: rms_norm, weight: false, unit_offset: true}}",
            ),
            "decoder.block.mixer.output_norm.norm.unit_offset: must be false in a norm without a weight",
            "Remove it, or set weight: true.",
        ),
        (
            (*PLAIN, "decoder.block.feed_forward=null", HALF),
            "decoder.block.feed_forward_residual: must not be set in a block without feed_forward",
            "Remove it, or add feed_forward.",
        ),
        (
            ("decoder.block.attention=null", "position.kind=none", HALF),
            "decoder.block.feed_forward_residual: must not be set in a block with feed_forward alone",
            "Set residual.",
        ),
        (
            ("decoder.block.kind=parallel", HALF),
            "decoder.block.feed_forward_residual: must not be set in a parallel block",
            "Set residual.",
        ),
        (
            (
                "decoder.block.attention=null",
                "decoder.block.mixer={kind: gated_delta_net, heads: 6, key_heads: 4}",
                "position.kind=none",
            ),
            "decoder.block.mixer.key_heads: must divide heads, which is 6",
            "Use a divisor: 1, 2, 3, 6.",
        ),
    ],
)  # fmt: skip
def test_each_rule_names_the_place_and_the_remedy(changes: tuple[str, ...], rule: str, remedy: str) -> None:
    (found,) = faults("tiny-gpt", *changes)
    assert rule in found
    assert remedy in found


def test_a_mixer_needs_a_causal_stack() -> None:
    (found,) = faults("bert-tiny", f"encoder.block.mixer={MIXER}")
    assert "encoder.block.mixer.kind: needs a causal stack" in found
    assert "Use attention, or set causal: true on the stack." in found


def test_a_decoder_without_attention_states_that_to_its_encoder() -> None:
    (found,) = faults(
        "t5-small", "decoder.block.attention=null", f"decoder.block.mixer={MIXER}", "decoder.position.kind=none",
    )  # fmt: skip
    assert "decoder.block.cross_attention: must support attention to the encoder output" in found


@pytest.mark.parametrize("missing", ["attention", "feed_forward"])
def test_a_branch_is_left_out_by_saying_so(missing: str) -> None:
    data: dict[str, Any] = resolved(load("tiny-gpt"))
    del data["decoder"]["block"][missing]
    with pytest.raises(ValueError, match=f"decoder.block.{missing}\n.*required"):
        Model.model_validate(data)


def test_a_branch_that_is_left_out_stays_so_when_the_spec_is_written() -> None:
    model = load("tiny-gpt", [*PLAIN, "decoder.block.feed_forward=null"])
    block = resolved(model)["decoder"]["block"]
    assert block["attention"] is None
    assert block["feed_forward"] is None
    assert Model.model_validate(resolved(model)) == model


MULTIPLIED = (
    "decoder.block.attention.multipliers={input: 1, output: 0.5}",
    f"decoder.block.mixer={MAMBA2}",
    "decoder.block.mixer.multipliers={key: 0.5, step: 1.0}",
    "decoder.block.feed_forward={kind: gated, hidden: 8, activation: silu, multipliers: {gate: 2.0}}",
)


def test_multipliers_of_1_are_not_stated() -> None:
    model = load("tiny-gpt", [*MULTIPLIED])
    block = resolved(model)["decoder"]["block"]
    assert block["attention"]["multipliers"] == {"output": 0.5}
    assert block["mixer"]["multipliers"] == {"key": 0.5}
    assert block["feed_forward"]["multipliers"] == {"gate": 2.0}
    assert Model.model_validate(resolved(model)) == model
    plain = load("tiny-gpt", ["decoder.block.attention.multipliers={input: 1.0}"])
    assert "multipliers" not in resolved(plain)["decoder"]["block"]["attention"]
    assert plain.decoder == load("tiny-gpt").decoder


@pytest.mark.parametrize(
    ("block", "other"), [("null", "{gate: after}"), ("{gate: after}", "null"), ("null", "null")]
)
def test_a_norm_that_is_left_out_stays_so_when_the_spec_is_written(block: str, other: str) -> None:
    model = load(
        "tiny-gpt",
        [
            *PLAIN[:2], "position.kind=none", f"decoder.block.mixer={MAMBA2}", f"decoder.block.mixer.norm={block}",
            f"decoder.blocks={{other: {{mixer: {{heads: 2, norm: {other}}}}}}}",
            "decoder.layers=[{}, {use: other}]",
        ],
    )  # fmt: skip
    shown = read_text(dump(resolved(model)), "shown.yaml")
    assert validate(with_named_blocks(shown)) == model
