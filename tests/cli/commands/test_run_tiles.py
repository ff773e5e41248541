"""``zoo run`` of a model that reads images in tiles continues a text as the reference and its processor do."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from PIL import Image
from sklearn.datasets import load_sample_images
from transformers import (
    Idefics3Config,
    Idefics3ForConditionalGeneration,
    Idefics3Processor,
    InternVLConfig,
    InternVLForConditionalGeneration,
    PreTrainedTokenizerFast,
)
from transformers.models.idefics3.image_processing_pil_idefics3 import Idefics3ImageProcessorPil

from exporters.export import export
from exporters.steps.options import ExportOptions
from tests.cli.program import done, refused
from tests.exporters.preprocessing.test_tiles import MARKS, internvl_processor, save_tokenizer
from tests.parity.reference import build
from zoo import import_checkpoint

TEXT = "Here: <image>\nand <image>!"


@pytest.mark.slow
def test_a_text_about_images_in_tiles(tmp_path: Path) -> None:
    config = Idefics3Config(
        vision_config=dict(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8,
        ),
        text_config=dict(
            model_type="llama", vocab_size=300, hidden_size=48, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, intermediate_size=96, max_position_embeddings=1024, pad_token_id=0,
        ),
        image_token_id=257,
    )  # fmt: skip
    place = tmp_path / "reference"
    reference = build(Idefics3ForConditionalGeneration, config, 3)
    reference.save_pretrained(place)
    save_tokenizer(place, *MARKS)
    images = Idefics3ImageProcessorPil(size={"longest_edge": 64}, max_image_size={"longest_edge": 32})
    images.save_pretrained(place)
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(place / "tokenizer.json"), pad_token="<image>")
    processor = Idefics3Processor(images, tokenizer, image_seq_len=4)
    photos = [Image.fromarray(image) for image in load_sample_images().images]
    photos[1] = photos[1].crop((0, 0, 400, 150))
    given = processor(text=TEXT, images=[photos], return_tensors="pt")
    assert given["pixel_values"].shape == (1, 5 + 3, 3, 32, 32)
    with torch.no_grad():
        told = reference.generate(
            **given, max_new_tokens=8, do_sample=False, eos_token_id=None, pad_token_id=0
        )
    expected = told[0, given["input_ids"].shape[1] :].tolist()

    options = [
        part for i, photo in enumerate(photos) for part in ("--image", _saved(photo, tmp_path / f"{i}.png"))
    ]
    export(import_checkpoint(place), tmp_path / "x", ExportOptions(weights=str(place), verify=False))
    result = done("run", tmp_path / "x", *options, "--text", TEXT, "--max-new-tokens", 8, "--json")
    (found,) = json.loads(result)["sequences"]
    assert found["prompt_ids"] == given["input_ids"][0].tolist()
    assert found["ids"] == expected

    (tmp_path / "x/tokenizer.json").unlink()
    message = refused("run", tmp_path / "x", *options, "--ids", "257,257", "--max-new-tokens", 8)
    assert "--image needs a tokenizer, whose tokens mark the tiles of an image" in message


@pytest.mark.slow
def test_a_text_about_images_in_tiles_of_internvl(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = InternVLConfig(
        vision_config=dict(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8,
        ),
        text_config=dict(
            model_type="qwen2", vocab_size=300, hidden_size=48, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, intermediate_size=96, max_position_embeddings=1024,
        ),
        image_token_id=259,
    )  # fmt: skip
    place = tmp_path / "reference"
    reference = build(InternVLForConditionalGeneration, config, 3)
    reference.save_pretrained(place)
    processor = internvl_processor(place, 32, monkeypatch)
    photo = Image.fromarray(load_sample_images().images[0]).crop((0, 0, 400, 150))
    text = "Here: <IMG_CONTEXT>\nand?"
    given = processor(text=[text], images=[[photo]], return_tensors="pt")
    assert given["pixel_values"].shape == (5 * 2 + 1, 3, 32, 32)
    with torch.no_grad():
        told = reference.generate(
            **given, max_new_tokens=8, do_sample=False, eos_token_id=None, pad_token_id=0
        )
    export(import_checkpoint(place), tmp_path / "x", ExportOptions(weights=str(place), verify=False))
    image = _saved(photo, tmp_path / "a.png")
    result = done("run", tmp_path / "x", "--image", image, "--text", text, "--max-new-tokens", 8, "--json")
    (found,) = json.loads(result)["sequences"]
    assert found["prompt_ids"] == given["input_ids"][0].tolist()
    assert found["ids"] == told[0, given["input_ids"].shape[1] :].tolist()


def _saved(photo: Image.Image, path: Path) -> Path:
    photo.save(path)
    return path
