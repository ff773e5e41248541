"""Weights derived for a variant: what must stay the same does, and the origin of every tensor is stated."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

import zoo
from specs.base.errors import UserError
from specs.model.model import Model
from tests.thinned import one_in
from tests.zoo.stored import stored
from tests.zoo.tiny import BLOCK, NORM, bert, clip, gpt2, t5, vit
from zoo.adapting.adapt import Adaptation
from zoo.adapting.layers import evenly_spaced

IDS = torch.tensor([[1, 5, 2, 7, 19, 3], [4, 4, 0, 11, 6, 8]])


def adapted(
    source: Model, variant: Model, directory: Path, layers: Sequence[str] = ()
) -> tuple[torch.nn.Module, torch.nn.Module, Adaptation]:
    """The two models and the result; both with their weights."""
    held = stored(source, directory / "source")
    written = zoo.adapt(variant, held, directory / "variant", layers=layers)
    return (
        zoo.build(source, str(held)),
        zoo.build(variant, str(directory / "variant")),
        written,
    )


def logits(model: torch.nn.Module, ids: Tensor = IDS) -> Tensor:
    with torch.no_grad():
        outputs = model(ids)
    return outputs["logits"] if "logits" in outputs else outputs["last_hidden_state"]


def rules(written: Adaptation) -> dict[str, str]:
    return {origin.tensor: origin.text for origin in written.plan.origins}


def decoder(layers: Any = 2, **attention: object) -> Model:
    """A GPT-2 with other attention."""
    block = {**BLOCK, "attention": {"kind": "multi_head", "heads": 4, **attention}}
    return gpt2(decoder={"layers": layers, "block": block})


GATED = {"kind": "gated", "hidden": 12, "activation": "silu"}
MIXTURE = {"kind": "mixture", "experts": 4, "top_k": 2, "expert": GATED, "router": {"normalize": True}}
WIDER = {**BLOCK, "feed_forward": {**BLOCK["feed_forward"], "hidden": 20}}

SAME: dict[str, tuple[Model, Model, tuple[str, ...]]] = {
    "the spec itself": (gpt2(), gpt2(), ()),
    "no layer dropped": (gpt2(), gpt2(), ("0-1",)),
    "the mean of a layer with itself": (gpt2(), gpt2(), ("0+0,1+1+1",)),
    "heads repeated": (decoder(kind="grouped_query", kv_heads=2), decoder(), ()),
    "one head repeated": (decoder(kind="multi_query"), decoder(kind="grouped_query", kv_heads=2), ()),
    "untied": (gpt2(), gpt2(head={"kind": "language_modeling", "tie_embeddings": False}), ()),
    "a bias of the scores": (gpt2(), gpt2(head={"kind": "language_modeling", "bias": True}), ()),
    "biases": (decoder(bias=False), decoder(), ()),
    "more neurons": (gpt2(), gpt2(decoder={"layers": 2, "block": WIDER}), ()),
    "a longer table": (gpt2(), gpt2(context_length=32), ()),
    "norms that add 1": (
        gpt2(),
        gpt2(decoder={"layers": 2, "block": {**BLOCK, "norm": {**NORM, "unit_offset": True}}}),
        (),
    ),
    "a mixture of equal experts": (
        gpt2(decoder={"layers": 2, "block": {**BLOCK, "feed_forward": GATED}}),
        gpt2(decoder={"layers": 2, "block": {**BLOCK, "feed_forward": MIXTURE}}),
        (),
    ),
    "of a shared layer": (gpt2(decoder={"layers": [{"repeat": 2, "shared": True}], "block": BLOCK}), gpt2(), ()),
    "an encoder alone": (bert(), bert(head={"kind": "none"}), ()),
    "an encoder-decoder": (t5(), t5(), ("encoder=0-1", "decoder=0,1")),
}  # fmt: skip
"""A source, a variant that computes the same, and lists of layers."""


@one_in(8)
@pytest.mark.parametrize("case", SAME)
def test_what_changes_nothing_gives_equal_outputs(case: str, tmp_path: Path) -> None:
    source, variant, layers = SAME[case]
    if source.architecture == "encoder-decoder":
        held, made, _ = adapted(source, variant, tmp_path, layers)
        with torch.no_grad():
            ours, theirs = held(IDS, IDS)["logits"], made(IDS, IDS)["logits"]
    else:
        held, made, _ = adapted(source, variant, tmp_path, layers)
        ours, theirs = logits(held), logits(made)
    torch.testing.assert_close(theirs, ours, atol=1e-6, rtol=1e-5)


def test_heads_of_equal_groups_keep_the_outputs_when_grouped(tmp_path: Path) -> None:
    grouped, whole = decoder(kind="grouped_query", kv_heads=2), decoder()
    held = stored(grouped, tmp_path / "grouped")
    zoo.adapt(whole, held, tmp_path / "whole")
    written = zoo.adapt(grouped, tmp_path / "whole", tmp_path / "back")
    assert " tensors derived, 0 of the source unused; print() for the table>" in repr(written)
    assert "decoder.blocks.0.attention.key.weight " in str(written)
    assert rules(written)["decoder.blocks.1.attention.value.bias"] == "mean of 2 heads each"
    torch.testing.assert_close(
        logits(zoo.build(grouped, str(tmp_path / "back"))), logits(zoo.build(grouped, str(held)))
    )


def test_grouped_heads_are_the_means_of_neighbours(tmp_path: Path) -> None:
    held, made, _ = adapted(decoder(), decoder(kind="grouped_query", kv_heads=2), tmp_path)
    key, grouped = (
        dict(model.named_parameters())["decoder.blocks.0.attention.key.weight"] for model in (held, made)
    )
    torch.testing.assert_close(grouped[:2], (key[0:2] + key[2:4]) / 2)
    torch.testing.assert_close(grouped[2:], (key[4:6] + key[6:8]) / 2)


def test_layers_are_dropped_repeated_and_averaged(tmp_path: Path) -> None:
    source = gpt2(decoder={"layers": 4, "block": BLOCK})
    variant = gpt2(decoder={"layers": 5, "block": BLOCK})
    held, made, written = adapted(source, variant, tmp_path, ["0,2-3,0+3,2"])
    up = "decoder.blocks.{}.feed_forward.up.weight"
    theirs, ours = dict(held.named_parameters()), dict(made.named_parameters())
    for layer, origin in enumerate([0, 2, 3]):
        assert torch.equal(ours[up.format(layer)], theirs[up.format(origin)])
    torch.testing.assert_close(ours[up.format(3)], (theirs[up.format(0)] + theirs[up.format(3)]) / 2)
    assert torch.equal(ours[up.format(4)], theirs[up.format(2)])
    assert rules(written)[up.format(3)] == "mean of 2 layers"
    assert up.format(1) in written.plan.unused


def test_evenly_spaced_layers_keep_the_ends_or_repeat_in_place() -> None:
    assert evenly_spaced(12, 6) == ((0,), (2,), (4,), (7,), (9,), (11,))
    assert evenly_spaced(12, 12) == tuple((layer,) for layer in range(12))
    assert evenly_spaced(3, 1) == ((0,),)
    assert evenly_spaced(2, 4) == ((0,), (0,), (1,), (1,))


def test_a_vocabulary_grows_by_its_mean_and_is_cut_at_its_end(tmp_path: Path) -> None:
    held, made, written = adapted(gpt2(), gpt2(vocab_size=23), tmp_path)
    torch.testing.assert_close(logits(made)[..., :20], logits(held))
    table = dict(made.named_parameters())["embedding.token.weight"]
    torch.testing.assert_close(table[20:], table[:20].mean(0).expand(3, -1))
    assert rules(written)["embedding.token.weight"] == "copied; 3 new tokens are the mean of all"
    cut = zoo.adapt(gpt2(vocab_size=15), tmp_path / "variant", tmp_path / "cut")
    assert rules(cut)["embedding.token.weight"] == "first 15 of 23 tokens"


def test_positions_are_repeated(tmp_path: Path) -> None:
    held, made, written = adapted(gpt2(), gpt2(context_length=24), tmp_path)
    name = "embedding.position.table.weight"
    theirs, ours = dict(held.named_parameters())[name], dict(made.named_parameters())[name]
    assert torch.equal(ours, theirs.repeat(3, 1)[:24])
    assert rules(written)[name] == "10 positions repeated to 24"


def test_positions_of_patches_are_interpolated(tmp_path: Path) -> None:
    name = "embedding.position.table.weight"
    finer = vit(embedding={"kind": "patches", "image_size": 12, "patch_size": 3})
    held, made, written = adapted(vit(), finer, tmp_path)
    assert rules(written)[name] == "interpolated from 2 x 2 to 4 x 4 patches"
    theirs, ours = dict(held.named_parameters())[name], dict(made.named_parameters())[name]
    assert torch.equal(ours[0], theirs[0])
    torch.testing.assert_close(ours[1:].mean(0), theirs[1:].mean(0), atol=0.1, rtol=0)


def test_another_position_drops_the_table_and_an_encoder_starts_both_stacks(tmp_path: Path) -> None:
    _, _, written = adapted(gpt2(), gpt2(position={"kind": "rope"}), tmp_path)
    assert written.plan.unused == ("embedding.position.table.weight",)
    both = t5(
        position={"kind": "none"},
        encoder={"layers": 2, "block": BLOCK},
        decoder={"layers": 2, "block": BLOCK},
    )
    (tmp_path / "b").mkdir()
    _, _, written = adapted(gpt2(), both, tmp_path / "b")
    origins = {origin.tensor: origin for origin in written.plan.origins}
    for stack in ("encoder", "decoder"):
        found = origins[f"{stack}.blocks.1.attention.query.weight"]
        assert found.sources == ("decoder.blocks.1.attention.query.weight",)
    assert origins["decoder.blocks.0.cross_attention.query.weight"].text.startswith(
        "drawn, standard deviation"
    )


@pytest.mark.slow
def test_what_means_something_else_is_drawn_though_its_shape_fits(tmp_path: Path) -> None:
    _, _, written = adapted(decoder(), decoder(heads=2), tmp_path)
    found = rules(written)
    assert found["decoder.blocks.0.attention.query.weight"].startswith("drawn")
    assert found["decoder.blocks.0.feed_forward.up.weight"] == "copied"
    (tmp_path / "g").mkdir()
    _, _, written = adapted(
        gpt2(), gpt2(decoder={"layers": 2, "block": {**BLOCK, "feed_forward": GATED}}), tmp_path / "g"
    )
    assert rules(written)["decoder.blocks.0.feed_forward.up.weight"].startswith("drawn")


def test_what_is_drawn_follows_the_seed(tmp_path: Path) -> None:
    source, variant = stored(gpt2(), tmp_path / "source"), decoder(heads=1)
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        zoo.adapt(variant, source, tmp_path / name, seed=seed, dtype="bf16")
    a, b, c = (zoo.build(variant, str(tmp_path / name)).state_dict() for name in "abc")
    assert all(torch.equal(a[name], b[name]) for name in a)
    differing = {name.split(".")[-2] for name in a if not torch.equal(a[name], c[name])}
    assert differing == {"query", "key", "value", "output"}


REFUSED = {
    "width": (gpt2(d_model=16), (), "d_model of decoder must equal the width of the weights, 8, not 16"),
    "beyond": (gpt2(), ("0,2",), "layers of decoder: layer 2 is beyond the 2 layers of the weights\n  Use 0 to 1."),
    "count": (gpt2(), ("0,1,1",), "layers of decoder: 3 layers are listed, and the spec has 2\n  List 2, or set decoder.layers to 3."),
    "syntax": (gpt2(), ("0..1",), "layers of decoder: '0..1' is neither a layer, a range nor a sum"),
    "stack": (gpt2(), ("encoder=0,1",), "layers 'encoder=0,1' names an unknown stack"),
    "which stack": (
        t5(position={"kind": "none"}),
        ("0,1",),
        "layers '0,1' must name its stack, because the spec has encoder and decoder\n  Write decoder=0,1.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_adapted_is_refused(case: str, tmp_path: Path) -> None:
    variant, layers, message = REFUSED[case]
    held = stored(gpt2(), tmp_path / "source")
    with pytest.raises(UserError) as caught:
        zoo.adapt(variant, held, tmp_path / "out", layers=layers)
    assert message in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_a_checkpoint_without_config_needs_its_spec(tmp_path: Path) -> None:
    held = stored(gpt2(), tmp_path / "source")
    (held / "spec.yaml").unlink()
    with pytest.raises(UserError, match="Set source to the spec of the weights"):
        zoo.adapt(gpt2(), held, tmp_path / "out")
    with pytest.raises(UserError, match="'nowhere' does not exist"):
        zoo.adapt(gpt2(), "nowhere", tmp_path / "out")
    two = stored(t5(), tmp_path / "two")
    with pytest.raises(UserError, match="text has no counterpart among the stacks of the weights"):
        zoo.adapt(clip(), two, tmp_path / "out")
