"""Images as pixels: those of the reference's processors, and clear errors for what is no such image."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers
from PIL import Image
from sklearn.datasets import load_sample_images

from exporters.preprocessing import Preprocessing
from exporters.preprocessing.images import Pixels, image_files, read_images
from exporters.quality.inputs import representative
from specs.base.errors import UserError
from specs.language.load import load
from specs.model.model import Model

FLOWER = Image.fromarray(load_sample_images().images[1])
"""A photograph of 640 x 427 pixels."""

PROCESSORS: dict[str, tuple[str, dict[str, Any]]] = {
    "ViT": ("ViTImageProcessorPil", {"size": {"height": 40, "width": 40}}),
    "CLIP": ("CLIPImageProcessorPil", {"size": {"shortest_edge": 48}, "crop_size": {"height": 40, "width": 40}}),
    "unequal": ("ViTImageProcessorPil", {"size": {"height": 32, "width": 56}, "resample": 3, "do_normalize": False}),
    "as it is": ("ViTImageProcessorPil", {"do_resize": False, "do_rescale": False, "image_mean": [100, 90.5, 80]}),
}  # fmt: skip


@pytest.fixture
def sees() -> Model:
    """A ViT of small images."""
    return load("vit-base-16", ["embedding.image_size=32", "expect={}"])


@pytest.mark.parametrize("name", PROCESSORS)
def test_pixels_are_those_of_the_reference(name: str, tmp_path: Path) -> None:
    kind, values = PROCESSORS[name]
    processor = getattr(transformers, kind)(**values)
    processor.save_pretrained(tmp_path)
    form = Pixels.beside(tmp_path)
    assert form is not None
    expected = processor(FLOWER, return_tensors="np")["pixel_values"][0]
    found = form.values(FLOWER)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() < 2e-6 * np.abs(expected).max()


@pytest.mark.parametrize(
    ("stated", "form"),
    [
        ({"do_resize": True, "size": 40}, Pixels(size=(40, 40))),
        ({"do_resize": True, "size": 40, "do_center_crop": True, "crop_size": 32}, Pixels(size=40, crop=(32, 32))),
        ({"image_mean": [0.4, 0.5, 0.6], "image_std": [0.1, 0.2, 0.3]}, Pixels(mean=(0.4, 0.5, 0.6), std=(0.1, 0.2, 0.3))),
        ({"do_rescale": False, "do_normalize": False}, Pixels(factor=1.0, mean=(0.0,), std=(1.0,))),
        ({"sampling_rate": 16000}, None),
    ],
)  # fmt: skip
def test_settings_as_old_and_new_checkpoints_state_them(
    stated: dict[str, Any], form: Pixels | None, tmp_path: Path
) -> None:
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(stated))
    assert Pixels.beside(tmp_path / "missing", tmp_path) == form


def test_settings_in_a_section_of_the_processor(tmp_path: Path) -> None:
    """As transformers 5 saves processors; the older file comes first."""
    section = {
        "do_resize": True,
        "size": {"height": 12, "width": 14},
        "resample": 3,
        "image_mean": [0.1, 0.2, 0.3],
    }
    (tmp_path / "processor_config.json").write_text(json.dumps({"image_processor": section}))
    found = Pixels.beside(tmp_path)
    assert found is not None
    assert (found.size, found.resample, found.mean) == ((12, 14), 3, (0.1, 0.2, 0.3))
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({**section, "resample": 2}))
    older = Pixels.beside(tmp_path)
    assert older is not None
    assert older.resample == 2


def test_without_settings_an_image_is_resized_to_the_model(sees: Model, tmp_path: Path) -> None:
    FLOWER.convert("L").save(tmp_path / "gray.png")
    pixels, _ = read_images([tmp_path / "gray.png"], None, sees)
    assert pixels.shape == (1, 3, 32, 32)
    assert -1 <= pixels.min() < pixels.max() <= 1


def test_a_directory_of_images_calibrates(sees: Model, tmp_path: Path) -> None:
    for turned in (0, 90, 180, 270):
        FLOWER.rotate(turned).save(tmp_path / f"{turned}.jpg")
    (tmp_path / "notes.txt").write_text("four flowers")
    found = representative(sees, tmp_path, None, Preprocessing())
    assert (len(found.calibration), len(found.judged)) == (1, 3)
    assert found.calibration[0]["pixel_values"].shape == (1, 3, 32, 32)


def test_unsuitable_images_are_refused(sees: Model, tmp_path: Path) -> None:
    def refused(path: Path, form: Pixels | None = None, model: Model = sees) -> str:
        with pytest.raises(UserError) as caught:
            read_images(image_files(path), form, model)
        return str(caught.value)

    noise, flower = tmp_path / "noise.png", tmp_path / "flower.png"
    noise.write_bytes(b"noise")
    FLOWER.save(flower)
    assert "noise.png is not an image that Pillow reads\n  Save it as PNG or JPEG." in refused(noise)
    assert "absent.png cannot be read: No such file or directory" in refused(tmp_path / "absent.png")
    assert "an image must become 3 x 32 x 32 for vit-base-16" in refused(flower, Pixels(size=(8, 8)))
    assert "value: 3 x 8 x 8, from the preprocessor_config.json" in refused(flower, Pixels(size=(8, 8)))
    (tmp_path / "empty").mkdir()
    assert "empty: must have images\n  value: none" in refused(tmp_path / "empty")
    flower.write_bytes(flower.read_bytes()[:5000])
    assert "flower.png cannot be read: " in refused(flower)
    many = load("vit-base-16", ["embedding.channels=9", "expect={}"])
    assert "image files have 1, 3 or 4 channels, and the model takes 9" in refused(flower, model=many)


def test_images_need_inputs(sees: Model, tmp_path: Path) -> None:
    for given in (None, tmp_path / "text.txt"):
        with pytest.raises(UserError, match=r"Give images, or a \.npz file"):
            representative(sees, given, None)
