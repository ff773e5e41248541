"""Layers that share weights: against layers with weights of their own, and what reports say of them."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from specs.model.model import Model
from tests.zoo.filled import random_model
from tests.zoo.tiny import BLOCK, gpt2
from zoo.builder import assemble
from zoo.components.sharing import AdaptedLinear
from zoo.core.reduced import fewer_layers
from zoo.drawing.diagram import parts_of
from zoo.drawing.reading import read
from zoo.reports.parameters import parameter_report

SHARING = {"sets": 2, "adapters": {"rank": 3, "attention": True}}
MIXER = {"kind": "mamba2", "heads": 2, "head_dim": 8, "state_size": 4}


def side(**sharing: Any) -> dict[str, Any]:
    """A transformer beside the stream."""
    attention = {**BLOCK["attention"], "head_dim": 6}
    return {**BLOCK, "kind": "side_transformer", "attention": attention, "mixer": MIXER, **sharing}


def model(block: dict[str, Any], layers: int = 5) -> Model:
    return gpt2(decoder={"layers": layers, "block": block}, position={"kind": "rope"})


def drawn(spec: Model) -> Any:
    return random_model(spec).double().eval()


BLOCKS = {"pre_norm": BLOCK, "parallel": {**BLOCK, "kind": "parallel"}, "side_transformer": side()}


@pytest.mark.parametrize("kind", BLOCKS)
def test_layers_are_those_of_a_model_whose_weights_are_equal(kind: str) -> None:
    """A projection with an adapter is one whose weight is the sum of the shared weight and the product of the adapter."""
    shared = drawn(model({**BLOCKS[kind], "sharing": SHARING}))
    plain = drawn(model(BLOCKS[kind]))
    weights = dict(shared.named_parameters(remove_duplicate=False))
    for path, module in shared.named_modules():
        if isinstance(module, AdaptedLinear):
            product = module.adapter.up.weight @ module.adapter.down.weight
            weights[f"{path}.weight"] = module.weight + product
    own = {name: weights[name] for name, _ in plain.named_parameters(remove_duplicate=False)}
    plain.load_state_dict(own, strict=False)
    ids = torch.randint(0, 9, (2, 7), generator=torch.Generator().manual_seed(0))
    mask = torch.tensor([[1] * 7, [0, 0, 1, 1, 1, 1, 1]])
    with torch.no_grad():
        found, expected = shared(ids, mask)["logits"], plain(ids, mask)["logits"]
    real = mask.bool()
    torch.testing.assert_close(found[real], expected[real], rtol=1e-11, atol=1e-11)


def test_sets_are_used_in_turn() -> None:
    blocks = drawn(model({**BLOCK, "sharing": SHARING})).decoder.blocks
    owners = [next(i for i in range(5) if blocks[i].feed_forward.down.weight is each.feed_forward.down.weight)
              for each in blocks]  # fmt: skip
    assert owners == [0, 1, 0, 1, 0]
    norms = [block.attention_norm.weight for block in blocks]
    assert norms[0] is norms[2]
    assert norms[0] is not norms[1]
    ups = {id(block.feed_forward.up.adapter.up.weight) for block in blocks}
    assert len(ups) == 5


@pytest.mark.parametrize("kind", BLOCKS)
@pytest.mark.parametrize("layers", [3, 4, 7])
def test_shared_weights_are_counted_once(kind: str, layers: int) -> None:
    """Reports build only some of the layers."""
    spec = model({**BLOCKS[kind], "sharing": SHARING}, layers)
    built = assemble(spec)
    report = parameter_report(spec)
    assert report.total_parameters == sum(weight.numel() for weight in built.parameters())
    last = f"decoder.blocks.{layers - 1}.feed_forward.down"
    owner = f"decoder.blocks.{(layers - 1) % 2}.feed_forward.down.weight"
    assert report.module(last).shared["weight"] == owner


def test_reduced_models_share_weights() -> None:
    reduced = fewer_layers(model({**BLOCK, "sharing": SHARING}, 9))
    module: Any = assemble(reduced)
    blocks = module.decoder.blocks
    assert len(blocks) == 4
    assert blocks[2].feed_forward.down.weight is blocks[0].feed_forward.down.weight


def test_the_embedding_reaches_every_layer() -> None:
    """The mixer's input has more than the stream of it."""
    module = drawn(model(side(sharing=SHARING), 2))
    ids = torch.arange(6)[None]
    seen = []
    hook = module.decoder.blocks[1].beside.register_forward_hook(lambda *call: seen.append(call[-1]))
    with torch.no_grad():
        module(ids)
        hook.remove()
        torch.testing.assert_close(seen[0][..., 8:], module.embedding(ids, ids, None))


def test_the_drawing_says_what_layers_share() -> None:
    (column,) = read(model(side(sharing=SHARING))).columns
    parts = {part.title: part.details for part in parts_of(column.way)}
    assert parts["Multi-head attention"][-2:] == ("2 shared sets in turn", "adapters of rank 3")
    assert parts["Feed-forward"][-2:] == ("2 shared sets in turn", "adapters of rank 3")
    assert "Concatenate embedding" in parts
