"""Distances between structures, and the tree that they make."""

from __future__ import annotations

import pytest

from specs.forms.kinship import Structure, family, family_tree
from specs.language.load import load


def structure(name: str, *assignments: str) -> Structure:
    return Structure.of(load(name, assignments))


def test_sizes_do_not_count_and_parts_do() -> None:
    gpt2 = structure("gpt2")
    assert gpt2.distance(structure("gpt2-xl")) == 0
    assert gpt2.distance(structure("gpt2", "decoder.layers=2", "d_model=96", "vocab_size=100")) == 0
    norm = structure("gpt2", "decoder.block.norm.kind=rms_norm")
    bias = structure("gpt2", "decoder.block.attention.bias=false")
    assert 0 < gpt2.distance(bias) < gpt2.distance(norm) < gpt2.distance(structure("llama-7b"))
    assert gpt2.distance(norm) == norm.distance(gpt2)


def test_an_encoder_and_a_decoder_of_the_same_parts_are_near() -> None:
    bert, gpt2 = structure("bert-base"), structure("gpt2")
    assert bert.distance(gpt2) < bert.distance(structure("mamba-130m"))


def test_changes_name_the_kinds_that_are_new() -> None:
    changes = structure("gpt2").changes(structure("gpt2", "position.kind=rope"))
    assert changes[0] == "stack.layers.attention.position: rope"
    assert not any("theta" in change for change in changes)
    assert structure("gpt2").changes(structure("gpt2-xl")) == []
    window = structure("llama-7b").changes(structure("mistral-7b"))
    assert "stack.layers.attention.window" in window


def test_models_hang_on_earlier_ones_of_the_nearest_structure() -> None:
    names = {"transformer-base": 2017, "gpt2": 2019, "gpt2-xl": 2019, "llama-7b": 2023, "mamba-130m": 2023, "mistral-7b": 2023,
             "qwen3-0.6b": 2025}  # fmt: skip
    nodes = family_tree([(name, year, structure(name)) for name, year in names.items()])
    parents = {node.name: node.parent for node in nodes}
    assert parents == {
        "transformer-base": None,
        "gpt2": "transformer-base",
        "llama-7b": "gpt2",
        "mistral-7b": "llama-7b",
        "mamba-130m": None,
        "qwen3-0.6b": "llama-7b",
    }
    assert {node.name: node.members for node in nodes}["gpt2"] == ("gpt2", "gpt2-xl")
    assert [nodes.index(node) for node in nodes] == sorted(range(len(nodes)))
    years = {node.name: node.year for node in nodes}
    assert all(node.parent is None or years[node.parent] <= node.year for node in nodes)


@pytest.mark.parametrize(
    ("name", "expected"), [("llama-3.1-8b", "llama"), ("gpt2-xl", "gpt"), ("qwen2.5-7b", "qwen"), ("t5", "t")]
)
def test_families_are_told_by_their_letters(name: str, expected: str) -> None:
    assert family(name) == expected
