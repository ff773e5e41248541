"""Images in tiles: those of the reference's processors, with its tokens around them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_sample_images
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import InternVLProcessor, PreTrainedTokenizerFast
from transformers.models.got_ocr2.image_processing_pil_got_ocr2 import GotOcr2ImageProcessorPil
from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil
from transformers.models.smolvlm.image_processing_pil_smolvlm import SmolVLMImageProcessorPil
from transformers.models.smolvlm.processing_smolvlm import get_image_prompt_string

from exporters.preprocessing.images import Pixels, read_images
from exporters.preprocessing.tiles import Grid
from exporters.runtime.embedding import with_placeholders
from exporters.runtime.marked_prompts import image_ids, marked_ids
from exporters.runtime.text import find_text
from specs.base.errors import UserError
from specs.language.load import load

WIDE = Image.fromarray(load_sample_images().images[1])
"""A photograph of 640 x 427 pixels."""

IMAGES = {
    "wide": WIDE,
    "tall": WIDE.rotate(90, expand=True),
    "square": WIDE.crop((0, 0, 400, 400)),
    "narrow": WIDE.crop((0, 0, 600, 3)),
}
MARKS = ["<image>", "<fake_token_around_image>", "<global-img>"]


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize(
    "values",
    [
        {"size": {"longest_edge": 150}, "max_image_size": {"longest_edge": 32}},
        {"size": {"longest_edge": 32}, "max_image_size": {"longest_edge": 32}, "resample": 3},
        {"do_resize": False, "max_image_size": {"longest_edge": 100}, "image_mean": [0.4, 0.5, 0.6]},
        {"size": {"longest_edge": 99}, "max_image_size": {"longest_edge": 40}, "do_image_splitting": False},
    ],
    ids=["grid", "one tile", "as it is", "whole"],
)
def test_tiles_are_those_of_the_reference(values: dict[str, Any], name: str, tmp_path: Path) -> None:
    kind = Idefics3ImageProcessorPil if name == "tall" else SmolVLMImageProcessorPil
    processor = kind(**values)
    processor.save_pretrained(tmp_path)
    form = Pixels.beside(tmp_path)
    assert form is not None
    expected = processor(IMAGES[name], return_tensors="np", return_row_col_info=True)
    found, grid = form.tiled(IMAGES[name])
    assert [[grid.rows]] == expected["rows"]
    assert [[grid.columns]] == expected["cols"]
    assert np.stack(found).shape == expected["pixel_values"][0].shape
    assert np.abs(np.stack(found) - expected["pixel_values"][0]).max() < 2e-6


def save_tokenizer(directory: Path, *marks: str) -> Path:
    """A tokenizer of bytes, in which row and column of a tile are text, as in SmolVLM 2.2B."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(
        models.BPE({**{each: i for i, each in enumerate(alphabet)}, "ĊĊ": 256}, [("Ċ", "Ċ")])
    )
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.add_special_tokens(list(marks))
    tokenizer.save(str(directory / "tokenizer.json"))
    return directory


@pytest.mark.parametrize("marks", [MARKS, ["<image>", "<around>", "<all>", "<row_1_col_1>"]])
def test_tokens_of_tiles_are_those_of_the_reference(marks: list[str], tmp_path: Path) -> None:
    tokenizer = find_text(save_tokenizer(tmp_path, *marks), None, needed=True)
    assert tokenizer is not None
    if marks != MARKS:
        stated = {"fake_image_token": marks[1], "global_image_token": marks[2]}
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(stated))
    changes = ["vocab_size=300", "connector.token=257", "image.embedding.image_size=128", "expect={}"]
    spec = load("smolvlm-256m", changes)
    grids = [Grid(2, 3), Grid(), Grid(1, 2)]
    prompt = "Here: <image>, <image>\nand <image>?"
    found = with_placeholders(spec, tokenizer.ids([prompt]), 3, image_ids=image_ids(grids, spec, tokenizer))
    image, mark, whole = marks[:3]
    for grid in grids:
        text = get_image_prompt_string(grid.rows, grid.columns, 4, mark, "<there>", whole)
        prompt = prompt.replace("<image>", text, 1)
    assert found == tokenizer.ids([prompt.replace("<there>", image)])
    assert found[0].count(257) == 4 * (7 + 1 + 3)


def test_whole_images_are_not_read_with_settings_for_tiles(tmp_path: Path) -> None:
    form = Pixels.beside(_stated(tmp_path, max_image_size={"longest_edge": 512}))
    with pytest.raises(
        UserError,
        match=r"cuts images into tiles, which only generating text reads\n  value: max_image_size 512",
    ):
        read_images([tmp_path / "any.png"], form, load("smolvlm-256m"))


def _stated(directory: Path, **settings: Any) -> Path:
    (directory / "preprocessor_config.json").write_text(json.dumps({"do_resize": True, **settings}))
    return directory


AROUND = {
    "start_image_token": "<img>",
    "end_image_token": "</img>",
    "context_image_token": "<IMG_CONTEXT>",
    "video_token": "<video>",
}


def internvl_processor(place: Path, side: int, monkeypatch: pytest.MonkeyPatch) -> InternVLProcessor:
    """The reference's processor with a tokenizer of bytes, whose files are written to a directory; 4 vectors are of an image."""
    # its processor of videos needs torchvision
    monkeypatch.setattr(InternVLProcessor, "check_argument_for_proper_class", lambda *arguments: None)
    save_tokenizer(place, *AROUND.values())
    (place / "tokenizer_config.json").write_text(json.dumps(AROUND))
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(place / "tokenizer.json"), pad_token="<video>", extra_special_tokens=AROUND
    )
    images = GotOcr2ImageProcessorPil(size={"height": side, "width": side})
    images.save_pretrained(place)
    stated = json.loads((place / "preprocessor_config.json").read_text())
    (place / "preprocessor_config.json").write_text(
        json.dumps({**stated, "processor_class": "InternVLProcessor"})
    )
    return InternVLProcessor(images, tokenizer, image_seq_length=4)


INTERNVL = {
    "processor_class": "InternVLProcessor",
    "size": {"height": 32, "width": 32},
    "image_mean": [0.4, 0.5, 0.6],
}


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize(
    "values",
    [{}, {"max_patches": 6, "resample": 2}, {"min_patches": 4, "max_patches": 5}, {"size": {"height": 300, "width": 300}}],
    ids=["twelve", "six", "four or five", "large tiles"],
)  # fmt: skip
def test_tiles_of_the_nearest_shape_are_those_of_the_reference(
    values: dict[str, Any], name: str, tmp_path: Path
) -> None:
    settings = {**INTERNVL, **values}
    processor = GotOcr2ImageProcessorPil(
        **{key: settings[key] for key in settings if key != "processor_class"}
    )
    processor.save_pretrained(tmp_path)
    saved = json.loads((tmp_path / "preprocessor_config.json").read_text())
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({**saved, **settings}))
    form = Pixels.beside(tmp_path)
    assert form is not None
    expected = processor(IMAGES[name], crop_to_patches=True, return_tensors="np")
    found, grid = form.tiled(IMAGES[name])
    assert [grid.images] == list(expected["num_patches"])
    assert np.abs(np.stack(found) - np.stack(expected["pixel_values"])).max() < 2e-6


def test_tiles_of_a_grid_of_many_are_read_by_generation_alone(tmp_path: Path) -> None:
    settings = {**INTERNVL, "do_resize": True}
    (tmp_path / "preprocessor_config.json").write_text(json.dumps(settings))
    with pytest.raises(
        UserError, match=r"value: max_patches 12\n  Set max_patches to 1 there to read whole images"
    ):
        read_images([tmp_path / "a.png"], Pixels.beside(tmp_path), load("internvl3-1b"))
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({**settings, "max_patches": 1}))
    whole = Pixels.beside(tmp_path)
    assert whole is not None
    assert whole.tiles is None


def test_tokens_of_a_grid_of_many_are_those_of_the_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processor = internvl_processor(tmp_path, 32, monkeypatch)
    tokenizer = find_text(tmp_path, None, needed=True)
    assert tokenizer is not None
    changes = ["vocab_size=300", "connector.token=259", "image.embedding.image_size=56", "expect={}"]
    spec, text = load("internvl3-1b", changes), "<IMG_CONTEXT>what is in it?"
    form = Pixels.beside(tmp_path)
    assert form is not None
    ids = image_ids([form.tiled(WIDE)[1]], spec, tokenizer)
    found = with_placeholders(spec, marked_ids([text], 1, spec, tokenizer), 1, image_ids=ids)
    assert found == processor(text=[text], images=[[WIDE]])["input_ids"]
