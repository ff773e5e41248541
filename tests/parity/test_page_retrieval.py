"""Images ranked for queries beside transformers' processors and classes: ColPali, ColQwen2 and ColModernVBERT, from files to scores."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from PIL import Image
from tokenizers import AddedToken

from tests.parity.families.vision_language.test_gemma3_images import SIGLIP
from tests.parity.families.vision_language.test_modernvbert import TEXT as MODERN
from tests.parity.families.vision_language.test_paligemma import TEXT
from tests.parity.families.vision_language.test_qwen2_vl import CONFIGS
from tests.parity.minilm import minilm_directory
from tests.parity.reference import redraw
from tests.parity.test_retrieval import invoke

QUERIES = ("where is the cat", "a table of numbers")
SIZES = ((30, 20), (41, 57), (64, 33))


def tokenizer(*tokens: str) -> Any:
    """MiniLM's tokenizer with further tokens."""
    found = hf.PreTrainedTokenizerFast(
        tokenizer_file=str(minilm_directory() / "tokenizer.json"),
        pad_token="[PAD]",
        bos_token="[CLS]",
        unk_token="[UNK]",
    )
    added = [AddedToken(token, normalized=False, special=True) for token in tokens]
    found.add_special_tokens({"additional_special_tokens": added})
    return found


def colpali() -> tuple[Any, Any]:
    """A model and its processor."""
    words = tokenizer("<image>")
    image = words.convert_tokens_to_ids("<image>")
    side = SIGLIP["image_size"]
    pixels = hf.SiglipImageProcessor(size={"height": side, "width": side})
    pixels.image_seq_length = (side // SIGLIP["patch_size"]) ** 2
    inner = {
        "model_type": "paligemma",
        "vision_config": SIGLIP,
        "text_config": {**TEXT, "vocab_size": image + 1},
    }
    config = hf.ColPaliConfig(
        vlm_config={**inner, "image_token_index": image, "projection_dim": 24}, embedding_dim=10
    )
    return hf.ColPaliForRetrieval(config), hf.ColPaliProcessor(pixels, words)


def colqwen2() -> tuple[Any, Any]:
    """A model and its processor."""
    names = ("im_start", "im_end", "endoftext", "vision_start", "vision_end", "image_pad")
    words = tokenizer(*(f"<|{name}|>" for name in names))
    image = words.convert_tokens_to_ids("<|image_pad|>")
    inner: dict[str, Any] = CONFIGS["qwen2-vl"]
    pixels = hf.Qwen2VLImageProcessor(patch_size=4, merge_size=2, min_pixels=64, max_pixels=1024)
    text = {**inner["text_config"], "vocab_size": image + 1, "max_position_embeddings": 512}
    config = hf.ColQwen2Config(
        vlm_config={"model_type": "qwen2_vl", **inner, "text_config": text, "image_token_id": image},
        embedding_dim=10,
    )
    return hf.ColQwen2ForRetrieval(config), hf.ColQwen2Processor(pixels, words)


def colmodernvbert() -> tuple[Any, Any]:
    """A model and its processor, which cuts images into tiles."""
    cells = [f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7)]
    words = tokenizer("<image>", "<fake_token_around_image>", "<global-img>", "<end_of_utterance>", *cells)
    image, side = words.convert_tokens_to_ids("<image>"), SIGLIP["image_size"]
    pixels = hf.Idefics3ImageProcessor(max_image_size={"longest_edge": side}, size={"longest_edge": 3 * side})
    text = {**MODERN, "vocab_size": len(words), "max_position_embeddings": 512}
    inner = {
        "model_type": "modernvbert",
        "vision_config": SIGLIP,
        "text_config": text,
        "image_token_id": image,
    }
    config = hf.ColModernVBertConfig(vlm_config={**inner, "pixel_shuffle_factor": 2}, embedding_dim=10)
    return hf.ColModernVBertForRetrieval(config), hf.ColModernVBertProcessor(pixels, words, image_seq_len=4)


@pytest.mark.slow
@pytest.mark.parametrize("make", [colpali, colqwen2, colmodernvbert])
@pytest.mark.parametrize("target", ["portable", "cpu"])
def test_images_are_ranked_as_by_the_library(make: Any, target: str, tmp_path: Path) -> None:
    model, processor = make()
    redraw(model.eval(), 1)
    (tmp_path / "pages").mkdir()
    model.save_pretrained(tmp_path / "saved")
    processor.save_pretrained(tmp_path / "saved")
    generator, pages = np.random.default_rng(0), []
    for index, size in enumerate(SIZES):
        pages.append(Image.fromarray(generator.integers(0, 255, (*size, 3), dtype=np.uint8)))
        pages[-1].save(tmp_path / "pages" / f"{index}.png")
    if hasattr(processor, "process_queries"):
        seen, read = processor.process_images(pages), processor.process_queries(list(QUERIES))
    else:
        seen, read = processor(images=pages), processor(text=list(QUERIES))
    with torch.no_grad():
        given = {name: value for name, value in seen.items() if name != "labels"}
        vectors, asked = (model(**inputs).embeddings for inputs in (given, read))
    expected = processor.score_retrieval(asked, vectors)
    told = invoke("export", tmp_path / "saved", "-o", tmp_path / "x", "--target", target)
    assert told.exit_code == 0, told.output
    queries = [argument for query in QUERIES for argument in ("--query", query)]
    told = invoke("run", tmp_path / "x", *queries, "--image", tmp_path / "pages", "--json")
    assert told.exit_code == 0, told.output
    for answer, wanted in zip(json.loads(told.stdout)["queries"], expected, strict=True):
        assert [image["index"] for image in answer["images"]] == wanted.argsort(descending=True).tolist()
        for image in answer["images"]:
            assert image["score"] == pytest.approx(wanted[image["index"]].item(), abs=2e-4)
    shown = invoke("run", tmp_path / "x", *queries, "--image", tmp_path / "pages", "-q")
    assert "2.png" in shown.stdout


@pytest.mark.slow
def test_other_inputs_are_refused(tmp_path: Path) -> None:
    model, processor = colpali()
    model.save_pretrained(tmp_path / "saved")
    processor.save_pretrained(tmp_path / "saved")
    Image.new("RGB", (20, 20)).save(tmp_path / "page.png")
    assert invoke("export", tmp_path / "saved", "-o", tmp_path / "x", "--no-verify").exit_code == 0
    for given, words in (
        (["--query", "a", "--text", "b"], "compares queries with images, which --text does not give"),
        (
            ["--query", "a", "--top-k", "3"],
            "--top-k applies only to models that generate text, and saved ranks images",
        ),
        (["--query", "a"], "and --image is missing\n  Pass both."),
        (["--image", tmp_path / "page.png"], "and --query is missing\n  Pass both."),
    ):
        told = invoke("run", tmp_path / "x", *given)
        assert told.exit_code == 2
        assert words in told.stderr
    words = (tmp_path / "x" / "tokenizer.json").read_text()
    (tmp_path / "x" / "tokenizer.json").write_text(words.replace("<image>", "<other>"))
    told = invoke("run", tmp_path / "x", "--query", "a", "--image", tmp_path / "page.png")
    assert told.exit_code == 0, told.output  # the token is known by its id
    shutil.copy(minilm_directory() / "tokenizer.json", tmp_path / "x")
    told = invoke("run", tmp_path / "x", "--query", "a", "--image", tmp_path / "page.png")
    assert told.exit_code == 2
    assert "must have the token of images (30522) once" in told.stderr
    (tmp_path / "x" / "tokenizer.json").unlink()
    told = invoke("run", tmp_path / "x", "--query", "a", "--image", tmp_path / "page.png")
    assert told.exit_code == 2
    assert "--query needs a tokenizer" in told.stderr
