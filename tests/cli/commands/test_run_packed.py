"""``zoo run`` of Qwen2-VL and Qwen3.5 continues a text about images of any size as the reference and its processor do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from sklearn.datasets import load_sample_images
from transformers import (
    Qwen2VLConfig,
    Qwen2VLForConditionalGeneration,
    Qwen3_5Config,
    Qwen3_5ForConditionalGeneration,
)
from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import Qwen2VLImageProcessorPil

from exporters.runtime.marked_prompts import marked_ids
from exporters.runtime.text import find_text
from specs.language.load import load
from tests.cli.program import done
from tests.exporters.models import written
from tests.exporters.preprocessing.test_tiles import save_tokenizer
from tests.parity.families.vision_language import test_qwen2_vl, test_qwen3_5
from tests.parity.reference import build
from zoo import import_checkpoint

MARKS = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>")  # tokens 257 to 259, after those of bytes
SAID = "<|vision_start|><|image_pad|><|vision_end|> beside <|vision_start|><|image_pad|><|vision_end|>."


def test_a_text_without_marks_begins_with_its_images(tmp_path: Path) -> None:
    save_tokenizer(tmp_path, *MARKS)
    tokenizer = find_text(tmp_path, None, needed=True)
    assert tokenizer is not None
    start, end, placeholder = (tokenizer.plain(mark)[0] for mark in MARKS)
    spec = load("qwen2-vl-2b", ["vocab_size=300", f"connector.token={placeholder}", "expect={}"])
    begun = marked_ids(["Hi"], 2, spec, tokenizer)
    assert begun == [[*[start, placeholder, end] * 2, *tokenizer.plain("Hi")]]
    assert marked_ids([SAID], 2, spec, tokenizer) == tokenizer.ids([SAID])


FAMILIES: dict[str, tuple[type, type, Any]] = {
    "qwen2-vl": (Qwen2VLForConditionalGeneration, Qwen2VLConfig, test_qwen2_vl),
    "qwen3.5": (Qwen3_5ForConditionalGeneration, Qwen3_5Config, test_qwen3_5),
}
"""Classes, their configs, and the tests that have small ones."""


@pytest.mark.slow
@pytest.mark.parametrize("target", ["portable", "cpu", "tensorrt"])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_text_about_images_of_different_sizes(family: str, target: str, tmp_path: Path) -> None:
    model_class, config_class, sizes = FAMILIES[family]
    place = tmp_path / "reference"
    place.mkdir()
    save_tokenizer(place, *MARKS)
    tokenizer = find_text(place, None, needed=True)
    assert tokenizer is not None
    start, end, token = (tokenizer.plain(mark)[0] for mark in MARKS)
    config = config_class(
        text_config={**sizes.TEXT, "vocab_size": 300, "max_position_embeddings": 512}, vision_config=sizes.VISION,
        image_token_id=token, video_token_id=299, vision_start_token_id=start, vision_end_token_id=end,
    )  # fmt: skip
    reference = build(model_class, config, 3)
    reference.save_pretrained(place)
    processor = Qwen2VLImageProcessorPil(patch_size=4, min_pixels=64, max_pixels=1000)
    processor.save_pretrained(place)
    photos = [
        Image.fromarray(image).resize(size)
        for image, size in zip(load_sample_images().images, ((40, 21), (33, 50)), strict=True)
    ]
    seen = processor(photos, return_tensors="pt")
    counts = iter((seen["image_grid_thw"].prod(1) // 4).tolist())
    ids = [
        each
        for given in tokenizer.ids([SAID])[0]
        for each in ([token] * next(counts) if given == token else [given])
    ]
    given = torch.tensor([ids])
    with torch.no_grad():
        told = reference.generate(
            input_ids=given, attention_mask=torch.ones_like(given), mm_token_type_ids=(given == token).int(), **seen,
            max_new_tokens=8, do_sample=False, eos_token_id=None, pad_token_id=0,
        )  # fmt: skip
    options: list[Any] = []
    for i, photo in enumerate(photos):
        photo.save(tmp_path / f"{i}.png")
        options += ["--image", tmp_path / f"{i}.png"]
    written(import_checkpoint(place), tmp_path / "x", weights=str(place), verify=False, target=target)
    arguments = ["run", tmp_path / "x", *options, "--text", SAID, "--max-new-tokens", 8, "--json"]
    (found,) = json.loads(done(*arguments))["sequences"]
    assert found["prompt_ids"] == ids
    assert found["ids"] == told[0, len(ids) :].tolist()
