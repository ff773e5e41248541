"""Pipelines of transformers.js, from photographs and recordings on, give what transformers gives; and their default models."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from sklearn.datasets import load_sample_images

from tests.clients.checkpoints import SIZES, TOKENS, VOCABULARY, clip
from tests.clients.client import ENVIRONMENTS, TRANSFORMERS_JS
from tests.clients.pipelines import KINDS, LABELS, SIDE, assert_near, by_label, deployed, piped
from tests.exporters.preprocessing.test_audio import recorded
from tests.zoo.configs.published_pipelines import DEFAULTS

pytestmark = pytest.mark.clients

IMAGES = {**SIZES, "hidden_size": 48, "image_size": SIDE, "patch_size": 8}


def test_the_default_models_are_those_of_the_client() -> None:
    place = (
        ENVIRONMENTS / TRANSFORMERS_JS.environment / "node_modules/@huggingface/transformers/src/pipelines"
    )
    rows = re.findall(
        r"^    '?([\w-]+)'?: \{.*?\bmodel: '([^']+)'", (place / "index.js").read_text("utf-8"), re.M | re.S
    )
    assert dict(rows) == {task: default.model for task, default in DEFAULTS.items()}


def vit() -> transformers.PreTrainedModel:
    """An encoder of images with classes."""
    return transformers.ViTForImageClassification(transformers.ViTConfig(**IMAGES, **LABELS))


def dinov3() -> transformers.PreTrainedModel:
    """An encoder of images that gives features."""
    return transformers.DINOv3ViTModel(transformers.DINOv3ViTConfig(**IMAGES))


def vit_gpt2() -> transformers.PreTrainedModel:
    """An encoder of images and a decoder of captions, of one width."""
    special = {**TOKENS, "decoder_start_token_id": 2}
    images = transformers.ViTConfig(**{**IMAGES, "hidden_size": 64})
    words = transformers.GPT2Config(
        vocab_size=VOCABULARY, n_embd=64, n_layer=2, n_head=4, n_positions=64, is_decoder=True,
        add_cross_attention=True, **special,
    )  # fmt: skip
    config = transformers.VisionEncoderDecoderConfig.from_encoder_decoder_configs(images, words, **special)
    return transformers.VisionEncoderDecoderModel(config)


def owlvit() -> transformers.PreTrainedModel:
    """Texts that end with the highest token, and images whose patches have boxes."""
    words = {**SIZES, "vocab_size": VOCABULARY + 1, "max_position_embeddings": 32, **TOKENS}
    config = transformers.OwlViTConfig(text_config=words, vision_config=IMAGES, projection_dim=64)
    return transformers.OwlViTForObjectDetection(config)


def wav2vec2() -> transformers.PreTrainedModel:
    """An encoder of speech with classes, from a sum of all its layers."""
    config = transformers.Wav2Vec2Config(
        **SIZES, **LABELS, conv_dim=[8, 8], conv_kernel=[40, 20], conv_stride=[20, 16], num_feat_extract_layers=2,
        num_conv_pos_embeddings=8, num_conv_pos_embedding_groups=4, classifier_proj_size=24,
        use_weighted_layer_sum=True,
    )  # fmt: skip
    return transformers.Wav2Vec2ForSequenceClassification(config)


def pictures() -> list[Image.Image]:
    """A temple and a flower at the size of the models: the client resizes in its own way."""
    return [Image.fromarray(each).resize((SIDE, SIDE)) for each in load_sample_images().images]


def pixels(processor: Any) -> torch.Tensor:
    """The photographs as the reference reads them."""
    values: torch.Tensor = processor(pictures(), return_tensors="pt").pixel_values
    return values


def test_classes_of_photographs(tmp_path: Path) -> None:
    processor = transformers.ViTImageProcessorPil(size={"height": SIDE, "width": SIDE})
    origin = deployed(vit, processor, tmp_path)
    found = piped(tmp_path, "image-classification", pictures(), given=[{"top_k": 4}])
    with torch.no_grad():
        expected = by_label(origin.model(pixels(processor)).logits, KINDS)
    assert_near("image-classification", found, expected)


def test_features_of_photographs(tmp_path: Path) -> None:
    processor = transformers.ViTImageProcessorPil(size={"height": SIDE, "width": SIDE})
    origin = deployed(dinov3, processor, tmp_path)
    found = piped(tmp_path, "image-feature-extraction", pictures())
    with torch.no_grad():
        expected = origin.model(pixels(processor)).last_hidden_state
    far = float((torch.tensor(found)[:, 0] - expected).abs().max())
    print(f"image-feature-extraction: transformers.js differs from transformers by at most {far:.1e}")
    assert far < 1e-5 * max(1.0, float(expected.std()))


def test_captions_of_photographs(tmp_path: Path) -> None:
    processor = transformers.ViTImageProcessorPil(size={"height": SIDE, "width": SIDE})
    origin = deployed(vit_gpt2, processor, tmp_path)
    length = {"min_new_tokens": 12, "max_new_tokens": 12, "no_repeat_ngram_size": origin.no_repeat}
    found = piped(tmp_path, "image-to-text", pictures(), given=[length])
    tokens = [origin.generated(12, pixel_values=each[None]) for each in pixels(processor)]
    expected = [origin.tokenizer.decode(each, skip_special_tokens=True).strip() for each in tokens]
    captions = [answer[0]["generated_text"] for answer in found]
    print(f"image-to-text\n  transformers.js {captions}\n  transformers    {expected}")
    assert captions == expected
    assert expected[0] != expected[1]


def test_texts_that_fit_photographs(tmp_path: Path) -> None:
    processor = transformers.CLIPImageProcessorPil(
        size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE}
    )
    origin = deployed(clip, processor, tmp_path)
    labels = ["sentence of words", "The quick brown fox has words"]
    given = [labels, {"hypothesis_template": "A {} words"}]
    found = piped(tmp_path, "zero-shot-image-classification", pictures(), given=given)
    texts = origin.tokenizer([f"A {each} words" for each in labels], padding=True, return_tensors="pt")
    with torch.no_grad():
        logits = origin.model(**texts, pixel_values=pixels(processor)).logits_per_image
    assert_near("zero-shot-image-classification", found, by_label(logits, labels))


def test_boxes_of_what_texts_name(tmp_path: Path) -> None:
    processor = transformers.OwlViTImageProcessorPil(
        size={"height": SIDE, "width": SIDE}, crop_size={"height": SIDE, "width": SIDE}
    )
    origin = deployed(owlvit, processor, tmp_path, "<end>")
    labels = ["sentence of words<end>", "The quick brown fox<end>"]
    all_of_them = {"threshold": 0.0, "percentage": True}
    found = piped(tmp_path, "zero-shot-object-detection", pictures(), given=[labels, all_of_them])
    texts, worst = origin.tokenizer(labels, padding=True, return_tensors="pt"), 0.0
    for answer, image in zip(found, pixels(processor), strict=True):
        with torch.no_grad():
            outputs = origin.model(**texts, pixel_values=image[None])
        centre, size = outputs.pred_boxes[0].split(2, -1)
        corners = torch.cat((centre - size / 2, centre + size / 2), -1)  # patches x 4
        scores, order = outputs.logits[0].sigmoid().flatten().sort(descending=True)
        boxes = corners[order // len(labels)]
        assert [each["label"] for each in answer] == [labels[place % len(labels)] for place in order]
        sides = ("xmin", "ymin", "xmax", "ymax")
        got = torch.tensor([[each["score"], *(each["box"][side] for side in sides)] for each in answer])
        worst = max(worst, float((got - torch.cat((scores[:, None], boxes), -1)).abs().max()))
    print(f"zero-shot-object-detection: transformers.js differs from transformers by at most {worst:.1e}")
    assert worst < 1e-5


def test_classes_of_sounds(tmp_path: Path) -> None:
    extractor = transformers.Wav2Vec2FeatureExtractor(return_attention_mask=False)
    origin = deployed(wav2vec2, extractor, tmp_path)
    sounds = []
    for name, seconds in (("a", 0.9), ("bb", 1.38)):
        wave = recorded(tmp_path / f"{name}.wav", seconds).read_bytes()[44:]
        sounds.append(np.frombuffer(wave, "<i2").astype(np.float32) / 32768)
    recordings = [sound.tolist() for sound in sounds]
    found = piped(tmp_path, "audio-classification", recordings=recordings, given=[{"top_k": 4}])
    rows = []
    for sound in sounds:
        given = extractor(sound, sampling_rate=16000, return_tensors="pt")
        with torch.no_grad():
            rows.append(origin.model(**given).logits)
    assert_near("audio-classification", found, by_label(torch.cat(rows), KINDS))
