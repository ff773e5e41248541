"""The graph of stacks that ``zoo show --canonical`` prints."""

from __future__ import annotations

import json
from typing import Any

import pytest

from specs.language.load import load
from specs.language.preset_files import preset_names
from specs.model.stack_graph import StackGraph
from tests.cli.program import done

CAPTIONED = """\
Stacks:
  encoder: reads pixel_values of 3 x 384 x 384, context_length 577; d_model 768, 12 layers, bidirectional, position learned
  decoder: reads input_ids, context_length 512; d_model 1024, 12 layers, causal, position learned
Edges:
  encoder -> decoder: cross-attention of every layer, from width 768 to 1024
  decoder -> head: language_modeling, of width 1024"""

SEEING = """\
Stacks:
  image: reads pixel_values of 3 x 336 x 336, context_length 577; d_model 1024, 23 layers, bidirectional, position learned
  decoder: reads input_ids, context_length 4096; d_model 4096, 32 layers, causal, position rope
Edges:
  image -> decoder: 576 vectors of an image replace tokens 32000, through connector mlp from width 1024 to 4096
  decoder -> head: language_modeling, of width 4096"""

MATCHED = """\
Stacks:
  text: reads input_ids, context_length 77; d_model 768, 12 layers, causal, position learned
  image: reads pixel_values of 3 x 224 x 224, context_length 257; d_model 1024, 24 layers, bidirectional, position learned
Edges:
  text -> head: one vector, through head pooled from width 768 to 768
  image -> head: one vector, through head pooled from width 1024 to 768"""

ALONE = """\
Stacks:
  encoder: reads input_ids, context_length 512; d_model 768, 12 layers, bidirectional, position learned
Edges:
  encoder -> head: pooler, of width 768"""


@pytest.mark.parametrize(
    ("name", "graph"),
    [("trocr-base", CAPTIONED), ("llava-1.5-7b", SEEING), ("clip-vit-l14", MATCHED), ("bert-base", ALONE)],
)
def test_stacks_and_edges(name: str, graph: str) -> None:
    assert str(StackGraph.of(load(name))) == graph


def shown(name: str, *assignments: str) -> Any:
    options = [option for assignment in assignments for option in ("--set", assignment)]
    result = done("show", name, "--canonical", "--json", *options)
    return json.loads(result)["graph"]


def test_as_json() -> None:
    graph = shown("smolvlm-256m", "connector.shuffle=2")
    assert list(graph["stacks"]) == ["image", "decoder"]
    image = graph["stacks"]["image"]
    assert (image["input"], image["sizes"], image["d_model"], image["layers"]) == (
        "pixel_values",
        [3, 512, 512],
        768,
        12,
    )
    joined, scored = graph["edges"]
    assert joined == {
        "source": "image",
        "target": "decoder",
        "by": "placeholder",
        "source_width": 768,
        "target_width": 576,
        "kind": "linear",
        "token": 49190,
        "vectors": 256,
    }
    assert (scored["source"], scored["target"], scored["kind"]) == ("decoder", "head", "language_modeling")


@pytest.mark.slow
def test_every_preset_has_a_way_from_each_stack_to_the_head() -> None:
    for name in preset_names():
        graph = StackGraph.of(load(name))
        ways = {edge.source: edge.target for edge in graph.edges}
        assert ways.keys() == graph.stacks.keys(), name
        assert all(ways.get(target, target) == "head" for target in ways.values()), name
