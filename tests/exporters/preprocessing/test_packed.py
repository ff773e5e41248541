"""Images of any size as patches, against the processor of Qwen2-VL."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_sample_images
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from exporters.preprocessing.images import Pixels
from exporters.preprocessing.packed import Packing, read_packed
from specs.base.errors import UserError
from specs.language.load import load
from specs.model.model import Model

SIZES = ((40, 21), (33, 200), (7, 5))


def qwen(**patches: int) -> Model:
    return load("qwen2-vl-2b", [f"image.embedding.{name}={value}" for name, value in patches.items()])


def files(directory: Path) -> list[Path]:
    paths = []
    for number, size in enumerate(SIZES):
        photo = Image.fromarray(load_sample_images().images[number % 2]).resize(size)
        photo.save(directory / f"{number}.png")
        paths.append(directory / f"{number}.png")
    return paths


@pytest.mark.parametrize(
    ("settings", "sizes"),
    [
        ({"min_pixels": 64, "max_pixels": 1000}, {"patch_size": 4}),
        ({"size": {"shortest_edge": 900, "longest_edge": 40_000}, "patch_size": 5, "temporal_patch_size": 1}, {"patch_size": 5, "frames": 1}),
        ({"resample": 2, "image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.3, 0.4]}, {}),
    ],
)  # fmt: skip
def test_patches_are_those_of_the_processor(settings, sizes, tmp_path):
    processor = Qwen2VLImageProcessorPil(**{"patch_size": sizes.get("patch_size", 14), **settings})
    processor.save_pretrained(tmp_path)
    paths, spec = files(tmp_path), qwen(**sizes)
    theirs = processor([Image.open(path) for path in paths], return_tensors="np")
    ours = read_packed(paths, Pixels.beside(tmp_path), Packing.beside(tmp_path), spec)
    assert ours.grids.tolist() == theirs["image_grid_thw"].tolist()
    assert np.abs(ours.pixels - theirs["pixel_values"]).max() < 1e-5
    assert ours.vectors(spec) == [int(rows * columns) // 4 for _, rows, columns in ours.grids]


def test_without_settings_colors_are_those_of_clip(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    paths, spec = files(tmp_path), qwen()
    assert Pixels.beside(tmp_path / "elsewhere") is None
    ours = read_packed(paths, None, Packing.beside(tmp_path / "elsewhere"), spec)
    theirs = Qwen2VLImageProcessorPil()([Image.open(path) for path in paths], return_tensors="np")
    assert np.abs(ours.pixels - theirs["pixel_values"]).max() < 1e-5


def test_stated_sizes_that_are_no_numbers_are_those_of_qwen2_vl(tmp_path):
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({"min_pixels": "few", "size": [1]}))
    assert Packing.beside(tmp_path) == Packing()


def test_very_long_images_are_refused(tmp_path):
    Image.new("RGB", (402, 2)).save(tmp_path / "line.png")
    with pytest.raises(
        UserError, match="the longer side of an image must be at most 200 times the shorter"
    ) as caught:
        read_packed([tmp_path / "line.png"], None, Packing(), qwen())
    assert "value: 402 x 2" in str(caught.value)
