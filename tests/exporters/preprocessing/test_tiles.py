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
from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil
from transformers.models.smolvlm.image_processing_pil_smolvlm import SmolVLMImageProcessorPil
from transformers.models.smolvlm.processing_smolvlm import get_image_prompt_string

from exporters.preprocessing.images import Pixels, read_images
from exporters.preprocessing.tiles import Grid
from exporters.runtime.embedding import with_placeholders
from exporters.runtime.text import find_text
from exporters.runtime.tiled_prompts import image_ids
from specs.errors import UserError
from specs.load import load

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
