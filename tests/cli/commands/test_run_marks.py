"""``zoo run`` of models with images continues a text as the reference and its processor do: Gemma 3, PaliGemma, InternVL."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from sklearn.datasets import load_sample_images
from transformers import (
    Gemma3Config,
    Gemma3ForConditionalGeneration,
    Gemma3Processor,
    PaliGemmaProcessor,
    PreTrainedTokenizerFast,
)
from transformers.models.gemma3.image_processing_pil_gemma3 import Gemma3ImageProcessorPil
from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil

from cli.attending.reading import AttendInputs
from exporters.export import export
from exporters.preprocessing.images import Pixels
from exporters.runtime.embedding import with_placeholders
from exporters.runtime.marked_prompts import marked_ids
from exporters.runtime.text import find_text
from exporters.steps.options import ExportOptions
from specs.base.errors import UserError
from specs.language.load import load
from tests.cli.program import done
from tests.exporters.preprocessing.test_tiles import internvl_processor, save_tokenizer
from tests.parity.reference import build
from zoo import import_checkpoint

MARKS = {
    "boi_token": "<start_of_image>",
    "eoi_token": "<end_of_image>",
    "image_token": "<image_soft_token>",
}
TEXT = "user\n<start_of_image>Here, and <start_of_image>\nthere!"


def processor_in(place: Path, side: int, vectors: int) -> Gemma3Processor:
    """The reference's processor with a tokenizer of bytes, whose files are written to a directory."""
    save_tokenizer(place, *MARKS.values())
    (place / "tokenizer_config.json").write_text(json.dumps(MARKS))
    images = Gemma3ImageProcessorPil(size={"height": side, "width": side}, do_pan_and_scan=False)
    images.save_pretrained(place)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_file=str(place / "tokenizer.json"), pad_token=MARKS["eoi_token"], extra_special_tokens=MARKS
    )
    return Gemma3Processor(images, tokenizer, image_seq_length=vectors)


@pytest.mark.parametrize("text", [TEXT, "<start_of_image>\n\n<start_of_image>"])
def test_texts_are_marked_as_by_the_reference(text: str, tmp_path: Path) -> None:
    processor = processor_in(tmp_path, 8, 4)
    tokenizer = find_text(tmp_path, None, needed=True)
    assert tokenizer is not None
    changes = ["vocab_size=300", "connector.token=259", "image.embedding.image_size=112", "expect={}"]
    spec = load("gemma3-4b", changes)
    image = Image.new("RGB", (8, 8))
    expected = processor(text=text, images=[[image, image]])["input_ids"]
    assert marked_ids([text], 2, spec, tokenizer) == expected
    begun = processor(text="<start_of_image>Here!", images=[[image]])["input_ids"]
    assert marked_ids(["Here!"], 1, spec, tokenizer) == begun
    (tmp_path / "tokenizer_config.json").unlink()
    assert marked_ids([text], 2, spec, tokenizer) == tokenizer.ids([text])


def test_zoo_attend_marks_a_text_as_zoo_run_does(tmp_path: Path) -> None:
    processor = processor_in(tmp_path, 8, 4)
    changes = ["vocab_size=300", "connector.token=259", "image.embedding.image_size=112", "expect={}"]
    Image.new("RGB", (8, 8)).save(tmp_path / "a.png")
    given = AttendInputs(["Here!"], None, None, None, image=tmp_path / "a.png")
    read = given._read(load("gemma3-4b", changes), find_text(tmp_path, None, needed=True))
    begun = processor(text="<start_of_image>Here!", images=[[Image.new("RGB", (8, 8))]])["input_ids"]
    assert read == (begun[0], None)


@pytest.mark.parametrize("text", ["caption en", "<image>caption <image>en"])
def test_texts_are_begun_as_by_the_processor_of_paligemma(text: str, tmp_path: Path) -> None:
    settings = {"processor_class": "PaliGemmaProcessor", "bos_token": "<bos>"}
    save_tokenizer(tmp_path, "<bos>", "<image>")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    tokenizer = find_text(tmp_path, None, needed=True)
    assert tokenizer is not None
    theirs = PreTrainedTokenizerFast(
        tokenizer_file=str(tmp_path / "tokenizer.json"),
        bos_token="<bos>",
        eos_token="<bos>",
        pad_token="<bos>",
        extra_special_tokens={"image_token": "<image>"},
    )
    images = SiglipImageProcessorPil(size={"height": 8, "width": 8})
    images.image_seq_length = 4
    processor = PaliGemmaProcessor(images, theirs)
    changes = ["vocab_size=300", "connector.token=258", "image.embedding.image_size=28", "expect={}"]
    spec, count = load("paligemma-3b-224", changes), max(1, text.count("<image>"))
    found = with_placeholders(spec, marked_ids([text], count, spec, tokenizer), count)
    expected = processor(text=[text], images=[[Image.new("RGB", (8, 8))] * count])["input_ids"]
    assert found == expected


@pytest.mark.parametrize(
    "text", ["what is this?", "<IMG_CONTEXT>\nwhat is <IMG_CONTEXT>?", "<img><IMG_CONTEXT></img> is it?"]
)
def test_placeholders_are_marked_as_by_the_processor_of_internvl(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processor = internvl_processor(tmp_path, 8, monkeypatch)
    tokenizer = find_text(tmp_path, None, needed=True)
    assert tokenizer is not None
    changes = ["vocab_size=300", "connector.token=259", "image.embedding.image_size=56", "expect={}"]
    spec, count = load("internvl3-1b", changes), max(1, text.count("<IMG_CONTEXT>"))
    found = with_placeholders(spec, marked_ids([text], count, spec, tokenizer), count)
    given = text if "<IMG_CONTEXT>" in text else f"<IMG_CONTEXT>{text}"
    given = given.replace("<img><IMG_CONTEXT></img>", "<IMG_CONTEXT>")  # which the processor marks
    whole = [Image.new("RGB", (8, 8))] * count
    assert found == processor(text=[given], images=[whole], crop_to_patches=False)["input_ids"]


def test_crops_beside_an_image_are_refused(tmp_path: Path) -> None:
    (tmp_path / "preprocessor_config.json").write_text('{"do_pan_and_scan": true, "do_resize": true}')
    with pytest.raises(
        UserError, match="do_pan_and_scan must be false, as crops beside an image are not supported"
    ):
        Pixels.beside(tmp_path)


@pytest.mark.slow
def test_a_text_about_images(tmp_path: Path) -> None:
    config = Gemma3Config(
        vision_config=dict(
            hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8,
            model_type="siglip_vision_model", vision_use_head=False,
        ),
        text_config=dict(
            model_type="gemma3_text", vocab_size=300, hidden_size=48, num_hidden_layers=2, num_attention_heads=4,
            num_key_value_heads=2, head_dim=12, intermediate_size=96, max_position_embeddings=1024, pad_token_id=0,
        ),
        image_token_index=259,
        mm_tokens_per_image=4,
    )  # fmt: skip
    place = tmp_path / "reference"
    reference = build(Gemma3ForConditionalGeneration, config, 3)
    reference.save_pretrained(place)
    processor = processor_in(place, 32, 4)
    photos = [Image.fromarray(image) for image in load_sample_images().images]
    given = processor(text=TEXT, images=[photos], return_tensors="pt")
    with torch.no_grad():
        told = reference.generate(
            **given, max_new_tokens=8, do_sample=False, eos_token_id=None, pad_token_id=0
        )
    expected = told[0, given["input_ids"].shape[1] :].tolist()
    options: list[Any] = []
    for i, photo in enumerate(photos):
        photo.save(tmp_path / f"{i}.png")
        options += ["--image", tmp_path / f"{i}.png"]
    export(import_checkpoint(place), tmp_path / "x", ExportOptions(weights=str(place), verify=False))
    arguments = ["run", tmp_path / "x", *options, "--text", TEXT, "--max-new-tokens", 8, "--json"]
    (found,) = json.loads(done(*arguments))["sequences"]
    assert found["prompt_ids"] == given["input_ids"][0].tolist()
    assert found["ids"] == expected
