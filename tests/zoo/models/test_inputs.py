"""Models of images and sounds: how they run, and that the checks see what is wrong with them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.thinned import one_in
from tests.zoo.filled import random_model
from tests.zoo.tiny import bert, vit, whisper
from zoo import functional
from zoo.builder import assemble
from zoo.checks import check_behaviour, check_shapes
from zoo.components import position as positions
from zoo.components.patches import Patches
from zoo.components.sinusoidal import Sinusoidal
from zoo.components.spectrogram import Spectrogram
from zoo.core.reduced import reduced_models, small_tables

Patch = pytest.MonkeyPatch


def statuses(spec) -> dict[str, str]:
    return {check.name: check.status for check in check_behaviour(spec).checks}


def test_correct_models_pass_and_inapplicable_checks_are_skipped() -> None:
    found = statuses(vit())
    assert found == {
        "bidirectional": "passed",
        "order": "passed",
        "batch": "passed",
        "padding": "skipped",
        "finite": "passed",
        "gradients": "passed",
    }
    found = statuses(whisper())
    skipped = {name for name, status in found.items() if status == "skipped"}
    assert skipped == {"encoder: order", "encoder: padding", "encoder padding"}
    assert set(found.values()) == {"passed", "skipped"}


@pytest.mark.parametrize(("kernel", "stride"), [(1, 1), (1, 2), (1, 4), (3, 5), (5, 2)])
def test_the_ends_of_a_sound_are_heard_whatever_the_convolutions_skip(kernel: int, stride: int) -> None:
    embedding = {"kind": "spectrogram", "mel_bins": 4, "kernel": kernel, "stride": stride}
    encoder = {**whisper().model_dump()["encoder"], "embedding": embedding}
    assert statuses(whisper(encoder=encoder))["encoder: bidirectional"] == "passed"


def test_an_image_without_positions_is_a_set_of_patches() -> None:
    check = next(c for c in check_behaviour(vit(position={"kind": "none"})).checks if c.name == "order")
    assert check.status == "info"
    assert check.figure is not None
    assert check.figure < 1e-12


def positions_dropped(patch: Patch) -> None:
    patch.setattr(positions.Learned, "embed", lambda self, x, places: x)
    patch.setattr(Sinusoidal, "embed", lambda self, x, places: x)


def only_the_past(patch: Patch) -> None:
    original = functional.attention_bias

    def bias(mask, position, queries: Tensor | None, *rest, causal: bool, **options):
        own = queries is not None  # and not that of attention to an encoder
        return original(None if own else mask, position, queries, *rest, causal=causal or own, **options)

    patch.setattr(functional, "attention_bias", bias)


def rows_mixed(patch: Patch) -> None:
    for kind in (Patches, Spectrogram):
        patch.setattr(kind, "forward", mixed(kind.forward))


def mixed(forward: Callable[..., Tensor]) -> Callable[..., Tensor]:
    def mean_of_rows(self, *given) -> Tensor:
        x = forward(self, *given)
        return x + x.mean(0)

    return mean_of_rows


def sound_unheard(patch: Patch) -> None:
    forward = Spectrogram.forward
    patch.setattr(Spectrogram, "forward", lambda self, x, *rest: forward(self, torch.ones_like(x), *rest))


def zeros_divided(patch: Patch) -> None:
    for kind in (Patches, Spectrogram):
        forward = kind.forward
        patch.setattr(
            kind,
            "forward",
            lambda self, x, *rest, forward=forward: forward(
                self, x / x.abs().flatten(1).amax(1).view(-1, *[1] * (x.dim() - 1)), *rest
            ),
        )


@one_in(4)
@pytest.mark.parametrize(
    ("spec", "sabotage", "caught"),
    [
        (vit(), positions_dropped, "order"),
        (vit(), only_the_past, "bidirectional"),
        (whisper(), only_the_past, "encoder: bidirectional"),
        (vit(), rows_mixed, "batch"),
        (whisper(), rows_mixed, "encoder: batch"),
        (vit(), zeros_divided, "finite"),
        (whisper(), zeros_divided, "encoder: finite"),
        (whisper(), sound_unheard, "cross-attention"),
    ],
)
def test_faulty_models_are_caught(spec, sabotage: Callable[[Patch], None], caught: str, monkeypatch) -> None:
    sabotage(monkeypatch)
    assert statuses(spec)[caught] == "failed"


def test_shapes() -> None:
    rows = {row.path: row for row in check_shapes(assemble(vit()), vit()).modules}
    assert rows["embedding.patch"].inputs == ("B x 3 x 7 x 7",)
    assert rows["embedding.patch"].outputs == ("B x 8 x 2 x 2",)
    assert rows["embedding"].outputs == ("B x 5 x 8",)
    rows = {row.path: row for row in check_shapes(assemble(whisper()), whisper()).modules}
    assert rows["encoder_embedding"].inputs == ("B x 4 x 12", "1 x 6")
    assert rows["encoder_embedding.second"].outputs == ("B x 8 x 6",)
    assert rows["decoder"].outputs == ("B x T x 8", "2 x 2 x (B x 2 x P+T x 4)")


@pytest.mark.parametrize(("spec", "shape"), [(vit(), (2, 3, 7, 7)), (whisper(), (2, 4, 12))])
def test_a_mask_is_refused(spec, shape: tuple[int, ...]) -> None:
    model: Any = assemble(spec)
    encode = model.encode if spec.decoder else model
    with pytest.raises(TypeError, match="are never padded: this model takes no attention_mask"):
        encode(torch.empty(shape, device="meta"), torch.ones(2, 5, device="meta"))


def test_the_table_of_sinusoids_is_counted_not_trained_and_not_drawn() -> None:
    spec = whisper()
    tables = {}
    for seed in (1, 2):
        model: Any = random_model(spec, seed)
        tables[seed] = model.encoder_embedding.position.table.weight
    assert torch.equal(tables[1], tables[2])
    assert torch.equal(tables[1][0], torch.tensor([0.0] * 4 + [1.0] * 4))
    assert not tables[1].requires_grad
    without = whisper(encoder={**spec.encoder.model_dump(), "position": {"kind": "none"}})
    counts = [sum(p.numel() for p in assemble(each).parameters()) for each in (spec, without)]
    assert counts[0] == counts[1] + 6 * 8


def test_tabulated_positions_equal_computed_ones() -> None:
    for layout in ("interleaved", "half_split"):
        for spacing in ("paper", "tensor2tensor"):
            position = {"kind": "sinusoidal", "layout": layout, "spacing": spacing}
            specs = [bert(position={**position, "table": table}) for table in (False, True)]
            outputs = []
            for spec in specs:
                model = random_model(spec)
                outputs.append(model(torch.arange(10)[None]).last_hidden_state)
            torch.testing.assert_close(outputs[0], outputs[1], atol=1e-5, rtol=0)


def test_the_projection_is_where_the_spec_places_it() -> None:
    places = {}
    for place in ("first", "last"):
        embedding = {
            "width": 4,
            "projection": {"bias": False, "place": place},
            "norm": {"kind": "layer_norm"},
        }
        model = assemble(bert(embedding=embedding))
        assert model.embedding.projection.weight.shape == (8, 4)
        assert model.embedding.projection.bias is None
        places[place] = model.embedding.position.table.weight.shape, model.embedding.norm.weight.shape
    assert places == {"first": ((10, 8), (8,)), "last": ((10, 4), (4,))}
    assert assemble(bert(embedding={"width": 4})).embedding.projection.bias is not None
    assert isinstance(assemble(bert(embedding={"width": 8})).embedding.projection, torch.nn.Identity)
    square = assemble(bert(embedding={"projection": {}})).embedding.projection
    assert square.weight.shape == (8, 8)


def test_the_stacks_share_a_token_table_where_both_read_tokens() -> None:
    model = assemble(whisper())
    assert model.encoder_embedding.token is None
    assert model.head.vocabulary.weight is model.decoder_embedding.token.weight


def test_reduced_models_shorten_long_sounds() -> None:
    spec = whisper()
    long = spec.model_copy(update={"encoder": spec.encoder.model_copy(update={"context_length": 3000})})
    assert small_tables(long).encoder.context_length == 1024
    sounds = vit(
        embedding={"kind": "spectrogram", "mel_bins": 4}, context_length=3000, position={"kind": "none"}
    )
    assert [description for _, description in reduced_models(sounds)][1].endswith("with a shorter context")
