"""Kinds under the names of other libraries: what is suggested, and that the rest of their keys is checked at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from specs.base import registry
from specs.base.errors import SpecError
from specs.base.kind_synonyms import KIND_SYNONYMS
from specs.language.load import load


@pytest.mark.parametrize("slot", KIND_SYNONYMS)
def test_synonyms_are_of_registered_kinds_and_hide_none(slot: str) -> None:
    kinds = registry.kinds(slot)
    for word, meant in KIND_SYNONYMS[slot].items():
        assert meant["kind"] in kinds
        assert word not in kinds
        assert set(meant) <= {"kind"} | set(kinds[meant["kind"]].spec.model_fields)


def test_all_faults_of_a_hand_written_llama_are_told_at_once_and_once_per_cause(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        "name: mine\narchitecture: decoder\nvocab_size: 1000\nd_model: 64\nposition: {kind: rotary}\n"
        "decoder:\n  n_layers: 4\n  block:\n    kind: prenorm\n    norm: {kind: rmsnorm}\n"
        "    attention: {kind: gqa, n_heads: 8, num_kv_heads: 2, sliding_window: 12}\n"
        "    feed_forward: {kind: swiglu, intermediate_size: 128}\nhead: {kind: lm}\n"
    )
    with pytest.raises(SpecError) as refused:
        load(path)
    remedies = [(".".join(map(str, problem.path)), problem.remedy) for problem in refused.value.problems]
    assert remedies == [
        ("position.kind", "Did you mean {kind: rope}?"),
        ("decoder.n_layers", "Did you mean 'layers'?"),
        ("decoder.block.kind", "Did you mean {kind: pre_norm}?"),
        ("decoder.block.norm.kind", "Did you mean 'rms_norm'?"),
        ("decoder.block.attention.kind", "Did you mean {kind: grouped_query}?"),
        ("decoder.block.attention.n_heads", "Did you mean 'heads'?"),
        ("decoder.block.attention.num_kv_heads", "Did you mean 'kv_heads'?"),
        ("decoder.block.attention.sliding_window", "Did you mean 'window'?"),
        ("decoder.block.feed_forward.kind", "Did you mean {kind: gated, activation: silu}?"),
        ("decoder.block.feed_forward.intermediate_size", "Did you mean 'hidden'?"),
        ("head.kind", "Did you mean {kind: language_modeling}?"),
    ]


@pytest.mark.parametrize(
    ("assignment", "remedy"),
    [
        ("decoder.block.norm=rmsnorm", "Write a mapping, such as {kind: rms_norm}."),
        ("decoder.block.attention=gqa", "Write a mapping, such as {kind: grouped_query}."),
        ("decoder.block.feed_forward=geglu", "Write a mapping, such as {kind: gated, activation: gelu}."),
        (
            "decoder.block.feed_forward=other",
            "Write a mapping with a kind: mlp, gated, mixture, side_by_side.",
        ),
        ("decoder.block.feed_forward.activation=swiglu", "Did you mean {kind: gated, activation: silu}?"),
        ("decoder.block.feed_forward.activation=relu_squared", "Did you mean 'relu2'?"),
        ("decoder.block.feed_forward.activation=swish", "Did you mean 'silu'?"),
        ("decoder.block.feed_forward.activation=reluu", "Did you mean 'relu'?"),
    ],
)
def test_a_word_of_another_library_is_understood(assignment: str, remedy: str) -> None:
    with pytest.raises(SpecError) as refused:
        load("tiny-gpt", [assignment])
    assert [problem.remedy for problem in refused.value.problems] == [remedy]
