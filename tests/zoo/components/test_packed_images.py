"""Images of any size: places of patches, what they see, and where their vectors get among tokens."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torch import Tensor

from specs.forms.resolved import resolved
from specs.language.writing import dump
from tests.cli.program import refused
from tests.zoo.tiny import of_patches, packed
from zoo import functional
from zoo.builder import assemble
from zoo.checks.behaviour import check_behaviour
from zoo.models.vision_language import VisionLanguage
from zoo.weights.materialize import materialize
from zoo.weights.random import RandomWeights

GRIDS = torch.tensor([[1, 4, 6], [2, 2, 4], [1, 8, 2]])


def model_of(**changes: Any) -> VisionLanguage:
    model = assemble(packed(**changes), torch.float64)
    assert isinstance(model, VisionLanguage)
    materialize(model, RandomWeights(model, model.spec, 3))
    return model


def one_by_one(square: int) -> list[tuple[int, int, int, int, int]]:
    """Image, frame, row, column and first patch of the frame, patch by patch."""
    found: list[tuple[int, int, int, int, int]] = []
    for image, (frames, rows, columns) in enumerate(GRIDS.tolist()):
        for frame in range(frames):
            first = len(found)
            found += [
                (image, frame, down * square + row, across * square + column, first)
                for down in range(rows // square)
                for across in range(columns // square)
                for row in range(square)
                for column in range(square)
            ]
    return found


@pytest.mark.parametrize("square", [1, 2])
def test_places_of_patches(square: int) -> None:
    wanted = one_by_one(square)
    places = functional.packed_places(GRIDS, torch.zeros(len(wanted), 1), square)
    found = (places.frame, places.row, places.column, places.first)
    assert [each[1:] for each in wanted] == list(zip(*(part[0].tolist() for part in found), strict=True))
    assert places.last[0].nonzero().flatten().tolist() == [23, 39, 55]


@pytest.mark.parametrize("window", [1, 2, 3, 8])
def test_patches_of_a_window_have_a_number_of_their_own(window: int) -> None:
    wanted = one_by_one(2)
    groups = functional.packed_places(GRIDS, torch.zeros(len(wanted), 1), 2).groups(window)[0].tolist()
    windows = [(image, frame, row // window, column // window) for image, frame, row, column, _ in wanted]
    assert len(set(zip(windows, groups, strict=True))) == len(set(windows)) == len(set(groups))


def test_text_goes_on_after_the_longer_side_of_an_image() -> None:
    ids = torch.tensor([[5, 9, 9, 9, 9, 9, 9, 6, 9, 9, 9, 9, 7, 7]])
    grids = torch.tensor([[1, 4, 6], [2, 2, 4]])  # of 2 x 3 vectors, and of two frames of 1 x 2
    found = functional.image_coordinates(9, ids, torch.ones_like(ids), grids, 2)[:, 0].tolist()
    assert found == [
        [0, 1, 1, 1, 1, 1, 1, 4, 5, 5, 6, 6, 7, 8],
        [0, 1, 1, 1, 2, 2, 2, 4, 5, 5, 5, 5, 7, 8],
        [0, 1, 2, 3, 1, 2, 3, 4, 5, 6, 5, 6, 7, 8],
    ]


def pictures(*shapes: tuple[int, int]) -> tuple[Tensor, Tensor]:
    grids = torch.tensor([[1, rows, columns] for rows, columns in shapes])
    generator = torch.Generator().manual_seed(2)
    count = int(grids.prod(1).sum())
    return torch.randn(count, 4, generator=generator, dtype=torch.float64), grids


def test_images_together_have_the_vectors_of_each_alone() -> None:
    model, (pixels, grids) = model_of(), pictures((4, 6), (2, 2), (6, 4))
    with torch.no_grad():
        together = model.encode_images(pixels, grids)
        parts = pixels.split(grids.prod(1).tolist())
        alone = [model.encode_images(part, grid[None]) for part, grid in zip(parts, grids, strict=True)]
    torch.testing.assert_close(together, torch.cat(alone))
    assert together.shape == (13, 16)  # each with what is added after the first layer of the decoder


def test_patches_of_another_window_are_not_seen_by_a_layer_with_windows() -> None:
    image = {
        "d_model": 8,
        "position": {"kind": "none"},
        "embedding": {"kind": "packed_patches", "patch_size": 2, "channels": 1},
        "layers": 1,
        "block": of_patches(patch_window=2),
    }
    model, (pixels, grids) = model_of(image=image), pictures((2, 4))
    with torch.no_grad():
        whole = model.image_output(pixels, grids)
        changed = pixels.clone()
        changed[4:] += 1.0
        found = model.image_output(changed, grids)
    torch.testing.assert_close(found[:, :4], whole[:, :4])
    assert float((found[:, 4:] - whole[:, 4:]).abs().min()) > 0


def test_steps_after_images_continue_their_positions() -> None:
    model, (pixels, grids) = model_of(), pictures((4, 6), (2, 2))
    ids = torch.tensor([[1, *[19] * 6, 2, 3, 19, 4, 5, 6]])
    with torch.no_grad():
        whole = model(ids, pixel_values=pixels, image_grid_thw=grids).logits
        places = model.coordinates(ids, None, grids)
        found = model(ids[:, :10], pixel_values=pixels, image_grid_thw=grids)
        parts = [found.logits]
        for step in (10, 11, 12):
            past, at = found.present_key_values, places[:, :, step : step + 1]
            found = model(ids[:, step : step + 1], None, past, position_ids=at)
            parts.append(found.logits)
    torch.testing.assert_close(torch.cat(parts, 1), whole)


@pytest.mark.parametrize(
    ("left_out", "failed"),
    [(None, set()), ("groups", {"image: batch", "image: bidirectional"})],
)
def test_the_checks_notice_images_that_see_each_other(
    left_out: str | None, failed: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = functional.attention_bias
    if left_out:
        monkeypatch.setattr(
            functional, "attention_bias", lambda *args, groups=None, **named: whole(*args, **named)
        )
    found = check_behaviour(packed()).checks
    assert {check.name for check in found if check.status == "failed"} == failed


def test_attention_to_images_of_any_size_is_not_shown(tmp_path: Path) -> None:
    (tmp_path / "packed.yaml").write_text(dump(resolved(packed())))
    Image.new("RGB", (8, 8)).save(tmp_path / "black.png")
    arguments = ["attend", tmp_path / "packed.yaml", "--ids", "1,2", "--image", tmp_path / "black.png"]
    assert "tiny-packed reads images of any size, which zoo attend does not show" in refused(*arguments)
