"""The vectors of an image, or the tokens of a prompt, that see each other in both directions in a causal decoder."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from specs.model.model import Model
from tests.zoo.tiny import BLOCK, llava
from zoo import functional
from zoo.builder import assemble
from zoo.checks import check_behaviour
from zoo.models.image_positions import ImagePositions
from zoo.models.vision_language import VisionLanguage
from zoo.pages.visibility import sights
from zoo.weights.materialize import materialize
from zoo.weights.random import RandomWeights

TOKEN = 19
IDS = [19, 1, 19, 19, 19, 2, 3, 19, 19]
BLOCKS = [0, -1, 2, 2, 2, -2, -3, 3, 3]
"""The run of each token, or a number of its own."""


def bidirectional(of: str = "image", window: int | None = None, layers: int = 1) -> Model:
    attention = {"kind": "multi_head", "heads": 2, "window": window}
    return llava(decoder={"layers": layers, "block": {**BLOCK, "attention": attention}, "bidirectional": of})


def filled(spec: Model) -> VisionLanguage:
    model = assemble(spec, torch.float64)
    materialize(model, RandomWeights(model, spec, dtype=torch.float64))
    assert isinstance(model, VisionLanguage)
    return model


@pytest.mark.parametrize(
    ("ids", "rest"),
    [
        (IDS, [0, 0, 2, 1, 0, 0, 0, 1, 0]),
        ([TOKEN] * 3, [2, 1, 0]),
        ([1, 2, 3], [0, 0, 0]),
        ([TOKEN], [0]),
        ([4, 19, 19, 19, 4], [0, 2, 1, 0, 0]),
    ],
)
def test_the_rest_of_a_run(ids: list[int], rest: list[int]) -> None:
    rows = torch.tensor([ids, [5] * len(ids)])
    assert functional.rest_of_run(TOKEN, rows).tolist() == [rest, [0] * len(ids)]


def dependence(model: VisionLanguage, mask: Tensor) -> Tensor:
    """Which outputs of IDS depend on which embeddings: queries x keys."""
    ids = torch.tensor([IDS])
    x = model.embed(ids) + torch.randn(1, len(IDS), 8, generator=torch.Generator().manual_seed(0))
    x = x.detach().requires_grad_()
    at = model.positions(x, mask, None, None).with_lookahead(model.ahead(ids))
    outputs = model.decode(x, at, None).logits[0].sum(-1)  # T
    rows = [torch.autograd.grad(output, x, retain_graph=True)[0][0].abs().sum(-1) for output in outputs]
    return torch.stack(rows) > 1e-12


@pytest.mark.parametrize("window", [None, 2])
def test_tokens_see_their_own_image_and_those_before_them(window: int | None) -> None:
    at, blocks = torch.arange(len(IDS)), torch.tensor(BLOCKS)
    causal = at[:, None] >= at[None]
    expected = causal | (blocks[:, None] == blocks[None])
    if window is not None:
        expected &= at[None] > at[:, None] - window
    mask = torch.ones(1, len(IDS), dtype=torch.int64)
    assert torch.equal(dependence(filled(bidirectional(window=window)), mask), expected)
    assert dependence(filled(bidirectional("prompt", window)), mask).all()
    near = (at[:, None] - at[None]).abs() < (window or len(IDS))
    assert torch.equal(dependence(filled(bidirectional("windows", window)), mask), near)


@pytest.mark.parametrize("static", [False, True])
@pytest.mark.parametrize("of", ["image", "prompt", "windows"])
def test_steps_after_an_image_equal_a_full_pass(of: str, static: bool) -> None:
    model = filled(bidirectional(of, window=3, layers=2))
    ids = torch.tensor([[4, *[19] * 4, 5, 6, 7], [*[19] * 4, 8, 9, 10, 11]])
    images = torch.randn((2, 3, 7, 7), generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    with torch.no_grad():
        x = model.embed(ids, model.encode_images(images))
        at = model.positions(x, None, None, None).with_lookahead(model.ahead(ids))
        whole = model.decode(
            x, at if of == "image" else model.in_prompt(at, torch.tensor([[6]])), None
        ).logits
        given: dict[str, Any] = {}
        past = None
        if static:
            shape = (2, 2, 10, 4)
            past = [(torch.full(shape, 3.0).double(), torch.full(shape, 3.0).double()) for _ in range(2)]
            given = {"position_ids": torch.arange(6).expand(2, -1)}
        found = model(ids[:, :6], None, past, pixel_values=images, **given)
        parts = [found.logits]
        for step in (6, 7):
            given = {"position_ids": torch.full((2, 1), step)} if static else {}
            found = model(ids[:, step : step + 1], None, found.present_key_values, **given)
            parts.append(found.logits)
    torch.testing.assert_close(torch.cat(parts, 1), whole)


def test_the_checks_tell_such_images_from_causal_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    name, spec = "decoder: bidirectional within images", bidirectional(layers=2)
    found = {check.name: check.status for check in check_behaviour(spec).checks}
    assert found[name] == found["decoder: causal"] == found["decoder: cache, ragged prefill"] == "passed"
    assert "failed" not in found.values()
    assert name not in {check.name for check in check_behaviour(llava()).checks}
    whole = functional.attention_bias
    monkeypatch.setattr(functional, "attention_bias", lambda *args, last=None, **named: whole(*args, **named))
    assert {check.name for check in check_behaviour(spec).checks if check.status == "failed"} == {name}


@pytest.mark.parametrize(("of", "window"), [("prompt", 1), ("windows", 2)])
def test_the_checks_of_a_prompt_are_those_of_both_directions(
    of: str, window: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = bidirectional(of, window=window, layers=2)
    found = {check.name: check.status for check in check_behaviour(spec).checks}
    assert found["decoder: bidirectional"] == found["decoder: cache, ragged prefill"] == "passed"
    assert "decoder: causal" not in found
    assert "failed" not in found.values()
    monkeypatch.setattr(ImagePositions, "first_call", lambda at, past: at.positions.amax(1, keepdim=True) + 1)
    failed = {check.name for check in check_behaviour(spec).checks if check.status == "failed"}
    assert failed == {"decoder: cache, token by token", "decoder: cache, ragged prefill"}


def test_the_picture_of_visibility_has_a_prompt() -> None:
    spec = bidirectional("prompt", window=2)
    seen = sights(assemble(spec), spec)[-1]
    assert seen.title == "decoder, causal; both directions within the prompt, window of 2"
    allowed = seen.allowed["none"]
    assert allowed[:10, :10].all()
    assert not allowed[:10, 10:].any()
    assert allowed[10:].sum() == 2 * 10
    spec = bidirectional("windows", window=2)
    seen = sights(assemble(spec), spec)[-1]
    assert seen.title == "decoder, causal; both directions within the prompt and windows, window of 2"
    near = torch.ones(20, 20).tril(1).triu(-1).bool()
    assert torch.equal(seen.allowed["none"][:9], near[:9])
    assert not seen.allowed["none"][9:, 10:].triu(2).any()


def test_the_picture_of_visibility_has_an_image() -> None:
    spec = bidirectional()
    seen = sights(assemble(spec), spec)[-1]
    assert seen.title == "decoder, causal; both directions within an image"
    for allowed in seen.allowed.values():
        assert allowed.shape == (20, 20)
        assert allowed[5:10, 5:10].all()
        assert not allowed[5:10, 10:].any()
        assert not allowed[10, 11:].any()
    assert not seen.allowed["none"][4, 5:].any()
