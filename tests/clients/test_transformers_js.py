"""transformers.js, in Node, generates from an export what transformers generates from the checkpoint, and gives the same vectors."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import Tokenizer, decoders, models
from transformers import (
    Idefics3Config,
    Idefics3ForConditionalGeneration,
    LlavaConfig,
    LlavaForConditionalGeneration,
    PaliGemmaConfig,
    PaliGemmaForConditionalGeneration,
    Qwen2_5_VLConfig,
    Qwen2_5_VLForConditionalGeneration,
    Qwen2VLConfig,
    Qwen2VLForConditionalGeneration,
    Qwen3_5Config,
    Qwen3_5ForConditionalGeneration,
    Qwen3_5MoeConfig,
    Qwen3_5MoeForConditionalGeneration,
    Qwen3VLConfig,
    Qwen3VLForConditionalGeneration,
    SmolVLMConfig,
    SmolVLMForConditionalGeneration,
)

from exporters.export import export
from exporters.steps.options import ExportOptions
from tests.clients.checkpoints import Checkpoint, checkpoint, encoder, encoder_of_images
from tests.clients.client import TRANSFORMERS_JS
from tests.clients.conftest import NEW_TOKENS, TEXTS, Agree, Fits, Hears, Near, photos
from tests.clients.spectrograms import whisper
from tests.exporters.preprocessing.test_audio import recorded
from tests.parity.reference import build, difference
from tests.parity.speech import (
    WORDS,
    parakeet_of,
    parakeet_processor,
    processor_of,
    reference_of,
    wav2vec2_bert_of,
    wav2vec2_bert_processor,
)
from zoo import import_checkpoint

pytestmark = pytest.mark.clients


@pytest.mark.parametrize(("target", "head"), [("portable", "pooler"), ("cpu", "pooler"), ("cpu", "pooled")])
def test_vectors(target: str, head: str, near: Near) -> None:
    near(TRANSFORMERS_JS, "transformers-js", target, head, class_name="AutoModel")


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("gpt2", "portable"),
        ("llama", "portable"),
        ("mistral", "portable"),
        ("llama", "cpu"),
        ("qwen3_moe", "portable"),
        ("qwen3_moe", "cpu"),
    ],
)
def test_a_decoder(name: str, target: str, agrees: Agree) -> None:
    agrees(TRANSFORMERS_JS, name, "transformers-js", target, class_name="AutoModelForCausalLM")


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("lfm2", "portable"),
        ("granite_hybrid", "portable"),
        ("qwen3_next", "portable"),
        ("qwen3_5", "portable"),
        ("nemotron_h", "portable"),
        ("lfm2", "cpu"),
    ],
)
def test_a_decoder_with_states_of_constant_size(name: str, target: str, agrees: Agree) -> None:
    agrees(TRANSFORMERS_JS, name, "transformers-js", target, class_name="AutoModelForCausalLM")


def test_additional_outputs_are_passed_over(agrees: Agree) -> None:
    outputs = ["encoder.hidden:1", "decoder.hidden:1", "decoder.attention:0", "cross:0"]
    agrees(TRANSFORMERS_JS, "t5", "transformers-js", class_name="AutoModelForSeq2SeqLM", outputs=outputs)


@pytest.mark.parametrize(("name", "target"), [("t5", "portable"), ("bart", "portable"), ("t5", "cpu")])
def test_an_encoder_decoder(name: str, target: str, agrees: Agree) -> None:
    agrees(TRANSFORMERS_JS, name, "transformers-js", target, class_name="AutoModelForSeq2SeqLM")


@pytest.mark.parametrize(
    "name",
    [
        "apertus", "arcee", "codegen", "cohere", "cohere2", "ernie4_5", "falcon_h1", "glm", "gpt_bigcode",
        "granite", "helium", "hunyuan_v1_dense", "modernbert_decoder", "mpt", "olmo3", "starcoder2",
    ],
)  # fmt: skip
def test_other_decoders(name: str, agrees: Agree) -> None:
    client, call = "transformers-js", {"class_name": "AutoModelForCausalLM"}
    agrees(TRANSFORMERS_JS, name, client, verify=False, **call)


@pytest.mark.parametrize("name", ["m2m_100", "longt5"])
def test_other_encoder_decoders(name: str, agrees: Agree) -> None:
    client, call = "transformers-js", {"class_name": "AutoModelForSeq2SeqLM"}
    agrees(TRANSFORMERS_JS, name, client, verify=False, **call)


DISTANCES = {
    "relative_attention": True, "pos_att_type": ["p2c", "c2p"], "position_buckets": 8, "share_att_key": True,
}  # fmt: skip


@pytest.mark.parametrize(
    ("model_type", "more"),
    [("camembert", {}), ("deberta-v2", DISTANCES), ("eurobert", {}), ("mpnet", {}), ("nomic_bert", {})],
)
def test_encoders_of_texts(model_type: str, more: dict[str, Any], tmp_path: Path) -> None:
    origin = checkpoint(partial(encoder, model_type, **more), tmp_path / "reference")
    deploy(origin, tmp_path)
    answers = TRANSFORMERS_JS(
        tmp_path / "deployed", class_name="AutoModel", batches=[[text] for text in TEXTS]
    )
    for text, answer in zip(TEXTS, answers, strict=True):
        with torch.no_grad():
            expected = origin.model(**origin.tokenizer(text, return_tensors="pt")).last_hidden_state
        far = difference(torch.tensor(answer["vectors"]), expected)
        print(f"{model_type}, {text!r}: transformers.js differs from transformers by at most {far:.1e}")
        # transformers itself differs by 1.5e-5 from float64 (EuroBERT), more or less on another processor.
        assert far < 2e-5


@pytest.mark.parametrize("model_type", ["beit", "deit", "dinov2", "dinov3_vit"])
def test_encoders_of_images(model_type: str, tmp_path: Path) -> None:
    origin = checkpoint(partial(encoder_of_images, model_type), tmp_path / "reference")
    deploy(origin, tmp_path)
    images = photos(32)
    (answer,) = TRANSFORMERS_JS(
        tmp_path / "deployed",
        class_name="AutoModel",
        seen={"sizes": list(images.shape), "values": images.flatten().tolist()},
    )
    with torch.no_grad():
        expected = origin.model(images).last_hidden_state
    far = difference(torch.tensor(answer["vectors"]), expected)
    print(f"{model_type}: transformers.js differs from transformers by at most {far:.1e}")
    assert far < 1e-5


def deploy(origin: Checkpoint, directory: Path) -> None:
    """Export a checkpoint for the client; its graphs are proven elsewhere."""
    options = ExportOptions(weights=str(origin.directory), layout="transformers-js", verify=False)
    export(import_checkpoint(origin.directory), directory / "deployed", options)


def letters_of(words: list[str]) -> Any:
    """A tokenizer.json of a vocabulary: the client reads no vocab.json."""
    letters = Tokenizer(models.WordLevel({word: place for place, word in enumerate(words)}, "<unk>"))
    letters.decoder = decoders.CTC("<pad>", "|", cleanup=True)
    return letters


@pytest.mark.parametrize("target", ["portable", "cpu"])
def test_words_from_recordings(target: str, tmp_path: Path) -> None:
    origin = tmp_path / "reference"
    origin.mkdir()
    reference = reference_of(origin)
    processor = processor_of(origin)
    letters_of(WORDS).save(str(origin / "tokenizer.json"))
    spec = import_checkpoint(origin)
    export(
        spec,
        tmp_path / "deployed",
        ExportOptions(weights=str(origin), layout="transformers-js", target=target),
    )
    generator = torch.Generator().manual_seed(2)
    recordings = [torch.randn(count, generator=generator) * 0.1 for count in (5000, 9000)]
    expected = []
    for samples in recordings:
        given = processor(samples.numpy(), sampling_rate=16000, return_tensors="pt")
        with torch.no_grad():
            labels = reference(given.input_values).logits.argmax(-1)
        expected.append(processor.batch_decode(labels)[0])
    (answer,) = TRANSFORMERS_JS(
        tmp_path / "deployed",
        class_name="AutoModelForCTC",
        recordings=[samples.tolist() for samples in recordings],
    )
    print(f"wav2vec2 for {target}\n  transformers.js {answer['texts']}\n  transformers    {expected}")
    assert answer["texts"] == expected
    assert expected[0] != expected[1]


@pytest.mark.parametrize(
    ("name", "target"), [("parakeet", "portable"), ("parakeet", "cpu"), ("bert", "portable")]
)
def test_words_from_spectrograms(name: str, target: str, tmp_path: Path) -> None:
    origin = tmp_path / "reference"
    origin.mkdir()
    reference: Any = parakeet_of(origin) if name == "parakeet" else wav2vec2_bert_of(origin)
    processor: Any = parakeet_processor() if name == "parakeet" else wav2vec2_bert_processor(origin)
    if name == "bert":
        letters_of(WORDS).save(str(origin / "tokenizer.json"))
    spec = import_checkpoint(origin)
    export(
        spec,
        tmp_path / "deployed",
        ExportOptions(weights=str(origin), layout="transformers-js", target=target),
    )
    recordings, expected = [], []
    for file, seconds in (
        ("a", 0.9),
        ("bb", 1.38),
    ):  # of which none leaves half a frame, which the client keeps
        path = recorded(tmp_path / f"{file}.wav", seconds)
        recordings.append(np.frombuffer(path.read_bytes()[44:], "<i2").astype(np.float32) / 32768)
        given = processor(recordings[-1], sampling_rate=16000, return_tensors="pt")
        with torch.no_grad():
            labels = reference(**given).logits.argmax(-1)[0]
        expected.append(
            processor.tokenizer.decode(labels.tolist(), skip_special_tokens=name == "parakeet").strip()
        )
    (answer,) = TRANSFORMERS_JS(
        tmp_path / "deployed",
        class_name="AutoModelForCTC",
        recordings=[samples.tolist() for samples in recordings],
    )
    print(f"{name} for {target}\n  transformers.js {answer['texts']}\n  transformers    {expected}")
    assert answer["texts"] == expected
    assert expected[0] != expected[1]


@pytest.mark.parametrize("target", ["portable", "cpu"])
def test_tokens_from_recordings(target: str, hears: Hears) -> None:
    hears(TRANSFORMERS_JS, "transformers-js", target, class_name="AutoModelForSpeechSeq2Seq")


@pytest.mark.parametrize("target", ["portable", "cpu"])
def test_tokens_from_spectrograms(target: str, tmp_path: Path) -> None:
    origin = tmp_path / "reference"
    features, expected = whisper(origin, NEW_TOKENS)
    options = ExportOptions(weights=str(origin), layout="transformers-js", target=target)
    export(import_checkpoint(origin), tmp_path / "deployed", options)
    answers = TRANSFORMERS_JS(
        tmp_path / "deployed", class_name="AutoModelForSpeechSeq2Seq",
        spectrograms=[{"sizes": [*each.shape], "values": each.flatten().tolist()} for each in features],
        new_tokens=NEW_TOKENS, options={"no_repeat_ngram_size": 1},
    )  # fmt: skip
    found = [tokens for each in answers for tokens in each["tokens"]]
    print(f"Whisper for {target}\n  transformers.js {found}\n  transformers    {expected}")
    assert found == expected


@pytest.mark.parametrize("target", ["portable", "cpu"])
def test_texts_fit_images(target: str, fits: Fits) -> None:
    fits(TRANSFORMERS_JS, "transformers-js", target, class_name="AutoModel")


IMAGE_FEATURES = dict(
    hidden_size=32, num_hidden_layers=3, num_attention_heads=4, intermediate_size=64, image_size=32, patch_size=8,
)  # fmt: skip
SAID = dict(
    model_type="llama", vocab_size=90, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
    intermediate_size=96, max_position_embeddings=128, pad_token_id=0,
)  # fmt: skip
READERS: dict[str, tuple[type, Any, int]] = {
    "llava": (
        LlavaForConditionalGeneration,
        LlavaConfig(
            vision_config={**IMAGE_FEATURES, "model_type": "clip_vision_model", "projection_dim": 16},
            text_config=SAID,
            image_token_index=7,
        ),
        16,
    ),
    "idefics3": (
        Idefics3ForConditionalGeneration,
        Idefics3Config(vision_config=IMAGE_FEATURES, text_config=SAID, image_token_id=7),
        4,
    ),
    "paligemma": (
        PaliGemmaForConditionalGeneration,
        PaliGemmaConfig(
            vision_config={**IMAGE_FEATURES, "model_type": "siglip_vision_model", "vision_use_head": False},
            text_config={**SAID, "model_type": "gemma", "head_dim": 12},
            image_token_index=7,
            projection_dim=48,
        ),
        16,
    ),
    "smolvlm": (
        SmolVLMForConditionalGeneration,
        SmolVLMConfig(vision_config=IMAGE_FEATURES, text_config=SAID, image_token_id=7, scale_factor=4),
        1,
    ),
}
"""Classes that read images, with a config, and the number of vectors of an image."""


PACKED_TEXT = dict(
    vocab_size=90, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
    intermediate_size=96, max_position_embeddings=128, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    rope_parameters={"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 2, 2]},
)  # fmt: skip
PACKED_VISION = dict(
    depth=3, num_heads=4, patch_size=4, in_channels=3, spatial_merge_size=2, temporal_patch_size=2
)
HYBRID_TEXT = dict(
    head_dim=12, layer_types=["linear_attention", "full_attention"], linear_num_key_heads=2, linear_num_value_heads=2,
    linear_key_head_dim=16, linear_value_head_dim=16,
    rope_parameters={
        "rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 2, 2], "partial_rotary_factor": 1.0
    },
)  # fmt: skip
MARKS = dict(image_token_id=7, video_token_id=8, vision_start_token_id=9, vision_end_token_id=10)
PACKED: dict[str, tuple[type, Any]] = {
    "qwen2_vl": (
        Qwen2VLForConditionalGeneration,
        Qwen2VLConfig(
            text_config=PACKED_TEXT,
            vision_config={**PACKED_VISION, "embed_dim": 32, "hidden_size": 48, "mlp_ratio": 2},
            **MARKS,
        ),
    ),
    "qwen2_5_vl": (
        Qwen2_5_VLForConditionalGeneration,
        Qwen2_5_VLConfig(
            text_config=PACKED_TEXT,
            vision_config={
                **PACKED_VISION, "hidden_size": 32, "out_hidden_size": 48, "intermediate_size": 40,
                "window_size": 16, "fullatt_block_indexes": [1],
            },
            **MARKS,
        ),
    ),
    "qwen3_vl": (
        Qwen3VLForConditionalGeneration,
        Qwen3VLConfig(
            text_config={**PACKED_TEXT, "head_dim": 12},
            vision_config={
                **PACKED_VISION, "hidden_size": 32, "out_hidden_size": 48, "intermediate_size": 40,
                "num_position_embeddings": 49, "deepstack_visual_indexes": [0, 1],
            },
            **MARKS,
        ),
    ),
    "qwen3_5": (
        Qwen3_5ForConditionalGeneration,
        Qwen3_5Config(
            text_config={**PACKED_TEXT, **HYBRID_TEXT},
            vision_config={
                **PACKED_VISION, "hidden_size": 32, "out_hidden_size": 48, "intermediate_size": 40,
                "num_position_embeddings": 49,
            },
            **MARKS,
        ),
    ),
    "qwen3_5_moe": (
        Qwen3_5MoeForConditionalGeneration,
        Qwen3_5MoeConfig(
            text_config={
                **{name: value for name, value in PACKED_TEXT.items() if name != "intermediate_size"},
                **HYBRID_TEXT,
                "moe_intermediate_size": 24,
                "num_experts": 6,
                "num_experts_per_tok": 2,
                "shared_expert_intermediate_size": 32,
            },
            vision_config={
                **PACKED_VISION, "hidden_size": 32, "out_hidden_size": 48, "intermediate_size": 40,
                "num_position_embeddings": 49,
            },
            **MARKS,
        ),
    ),
}  # fmt: skip
"""Classes that read images of any size."""


@pytest.mark.parametrize("target", ["portable", "cpu"])
@pytest.mark.parametrize("name", PACKED)
def test_what_is_said_about_images_of_any_size(name: str, target: str, tmp_path: Path) -> None:
    model_class, config = PACKED[name]
    reference = build(model_class, config, 3)
    reference.save_pretrained(tmp_path / "reference")
    spec = import_checkpoint(tmp_path / "reference")
    options = ExportOptions(weights=str(tmp_path / "reference"), layout="transformers-js", target=target)
    export(spec, tmp_path / "deployed", options)
    grids = [[1, 4, 6], [1, 2, 10]]
    pixels = torch.randn(44, 96, generator=torch.Generator().manual_seed(4))
    ids = [1, 9, *[7] * 6, 10, 40, 41, 9, *[7] * 5, 10, 50, 51]
    given = torch.tensor([ids])
    with torch.no_grad():
        whole = reference.generate(
            input_ids=given, attention_mask=torch.ones_like(given), pixel_values=pixels,
            image_grid_thw=torch.tensor(grids), mm_token_type_ids=(given == 7).int(),
            min_new_tokens=NEW_TOKENS, max_new_tokens=NEW_TOKENS, do_sample=False, pad_token_id=0,
        )  # fmt: skip
    expected = whole[:, len(ids) :].tolist()
    (answer,) = TRANSFORMERS_JS(
        tmp_path / "deployed",
        class_name="AutoModelForImageTextToText",
        asked={"ids": ids, "sizes": list(pixels.shape), "values": pixels.flatten().tolist(), "grids": grids},
        new_tokens=NEW_TOKENS,
    )
    print(f"{name} for {target}\n  transformers.js {answer['tokens']}\n  transformers    {expected}")
    assert answer["tokens"] == expected


@pytest.mark.parametrize("target", ["portable", "cpu"])
@pytest.mark.parametrize("name", READERS)
def test_what_is_said_about_images(name: str, target: str, tmp_path: Path) -> None:
    model_class, config, vectors = READERS[name]
    reference = build(model_class, config, 3)
    reference.save_pretrained(tmp_path / "reference")
    spec, images = import_checkpoint(tmp_path / "reference"), photos(32)
    if name in ("idefics3", "smolvlm"):  # others take images in order, and these those of each row
        images = images[None]
    options = ExportOptions(weights=str(tmp_path / "reference"), layout="transformers-js", target=target)
    export(spec, tmp_path / "deployed", options)
    ids = [1, *[7] * vectors, 40, 41, *[7] * vectors, 50, 51]
    given = torch.tensor([ids])
    typed = {"token_type_ids": torch.zeros_like(given)} if name == "paligemma" else {}  # all of the prompt
    with torch.no_grad():
        whole = reference.generate(
            input_ids=given, attention_mask=torch.ones_like(given), pixel_values=images, **typed,
            min_new_tokens=NEW_TOKENS, max_new_tokens=NEW_TOKENS, do_sample=False, pad_token_id=0,
        )  # fmt: skip
    expected = whole[:, len(ids) :].tolist()
    (answer,) = TRANSFORMERS_JS(
        tmp_path / "deployed",
        class_name="AutoModelForImageTextToText",
        asked={"ids": ids, "sizes": list(images.shape), "values": images.flatten().tolist()},
        new_tokens=NEW_TOKENS,
    )
    print(f"{name} for {target}\n  transformers.js {answer['tokens']}\n  transformers    {expected}")
    assert answer["tokens"] == expected


@pytest.mark.parametrize("target", ["portable", "cpu"])
def test_words_from_images(target: str, made: Callable[[str], Checkpoint], tmp_path: Path) -> None:
    origin, images = made("trocr"), photos(32)
    spec = import_checkpoint(origin.directory)
    options = ExportOptions(weights=str(origin.directory), layout="transformers-js", target=target)
    export(spec, tmp_path / "deployed", options)
    expected = [origin.generated(NEW_TOKENS, pixel_values=image[None]) for image in images]
    (answer,) = TRANSFORMERS_JS(
        tmp_path / "deployed", class_name="AutoModelForVision2Seq",
        images={"sizes": list(images.shape), "values": images.flatten().tolist()},
        new_tokens=NEW_TOKENS, options={"no_repeat_ngram_size": origin.no_repeat},
    )  # fmt: skip
    print(f"TrOCR for {target}\n  transformers.js {answer['tokens']}\n  transformers    {expected}")
    assert answer["tokens"] == expected
    assert expected[0] != expected[1]
