"""The text model of a model of several inputs, whose other parts are not supported: what is offered imports, and computes the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf

from tests.parity.reference import build, difference, load, ragged
from zoo.configs.importing import import_spec
from zoo.families.common.config_errors import ConfigError

TEXT = dict(
    vocab_size=64, hidden_size=32, intermediate_size=40, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=2,
    max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2,
)  # fmt: skip
SEEN = dict(
    hidden_size=16, intermediate_size=20, num_hidden_layers=1, num_attention_heads=2, image_size=16, patch_size=8,
)  # fmt: skip
HEARD = dict(d_model=16, encoder_layers=1, encoder_attention_heads=2, encoder_ffn_dim=20, num_mel_bins=8)
ROTATED = dict(depth=1, hidden_size=16, num_heads=2, intermediate_size=20, out_hidden_size=32, patch_size=8)
OPT = dict(
    model_type="opt", vocab_size=64, hidden_size=32, ffn_dim=40, num_hidden_layers=3, num_attention_heads=4,
    max_position_embeddings=64, word_embed_proj_dim=32, pad_token_id=1,
)  # fmt: skip
QFORMER = dict(
    hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=20, encoder_hidden_size=16, vocab_size=64
)  # fmt: skip


def _sections(theta: float) -> dict[str, Any]:
    return {"rope_type": "default", "rope_theta": theta, "mrope_section": [2, 1, 1]}


def _text(kind: str, **more: Any) -> dict[str, Any]:
    return {**TEXT, "model_type": kind, **more}


CASES: dict[str, tuple[str, type, type, dict[str, Any]]] = {
    "llava_onevision": ("qwen2", hf.LlavaOnevisionForConditionalGeneration, hf.LlavaOnevisionConfig, dict(
        text_config=_text("qwen2"), vision_config={**SEEN, "model_type": "siglip_vision_model"}, image_token_index=4,
        video_token_index=3,
    )),
    "mistral3": ("mistral", hf.Mistral3ForConditionalGeneration, hf.Mistral3Config, dict(
        text_config=_text("mistral", head_dim=8), vision_config={**SEEN, "model_type": "pixtral", "head_dim": 8},
        image_token_index=4,
    )),
    "llama4": ("llama4_text", hf.Llama4ForConditionalGeneration, hf.Llama4Config, dict(
        text_config=_text("llama4_text", head_dim=8, num_local_experts=2, intermediate_size_mlp=44),
        vision_config={
            **SEEN, "model_type": "llama4_vision_model", "vision_output_dim": 16, "projector_input_dim": 16,
            "projector_output_dim": 16,
        },
    )),
    "blip-2": ("opt", hf.Blip2ForConditionalGeneration, hf.Blip2Config, dict(
        text_config=OPT, vision_config=SEEN, qformer_config=QFORMER, num_query_tokens=2
    )),
    "paddleocr_vl": ("paddleocr_vl_text", hf.PaddleOCRVLForConditionalGeneration, hf.PaddleOCRVLConfig, dict(
        text_config=_text("paddleocr_vl_text", head_dim=8, rope_parameters=_sections(5e5)), vision_config=SEEN
    )),
    "qwen2_5_omni_thinker": (
        "qwen2_5_omni_text", hf.Qwen2_5OmniThinkerForConditionalGeneration, hf.Qwen2_5OmniThinkerConfig, dict(
            text_config=_text("qwen2_5_omni_text", rope_parameters=_sections(1e6)),
            audio_config={**HEARD, "output_dim": 32}, vision_config=ROTATED,
        ),
    ),
    "gemma4": ("gemma4_text", hf.Gemma4ForConditionalGeneration, hf.Gemma4Config, dict(
        text_config=_text(
            "gemma4_text", head_dim=8, global_head_dim=8, vocab_size_per_layer_input=64, hidden_size_per_layer_input=4,
            num_kv_shared_layers=1, layer_types=["sliding_attention", "full_attention", "full_attention"],
        ),
    )),
}  # fmt: skip


def _scores(reference: Any, ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    inner: Any = getattr(reference, "language_model", None)
    inner = reference.model.language_model if inner is None else inner
    outputs = inner(input_ids=ids, attention_mask=mask)
    return outputs.logits if hasattr(outputs, "logits") else reference.get_output_embeddings()(outputs[0])


def _checkpoint(kind: str, path: Path) -> tuple[str, Any]:
    family, model_class, config_class, values = CASES[kind]
    reference = build(model_class, config_class(**values), 1)
    reference.save_pretrained(path)
    return family, reference


@pytest.mark.slow
@pytest.mark.parametrize("kind", CASES)
def test_the_text_model_that_is_offered_computes_the_same(kind: str, tmp_path: Path) -> None:
    family, reference = _checkpoint(kind, tmp_path)
    offer = (
        rf"text model and the names of its \d+ tensors are those of {family}\. Pass family {family} to export"
    )
    with pytest.raises(ConfigError, match=offer):
        import_spec(tmp_path)
    ours = load(import_spec(tmp_path, family=family), tmp_path)
    for side in ("right", "left"):
        ids, mask = ragged(3, 13, 60, side, 1)
        ids = ids.clamp(min=5)
        with torch.no_grad():
            found, expected = ours(ids, mask)["logits"], _scores(reference, ids, mask)
        scale = float(expected.abs().max())
        assert difference(found, expected, mask) <= 1e-5 * max(scale, 1.0)


def test_a_text_model_of_a_supported_type_is_not_read_as_another(tmp_path: Path) -> None:
    """PaddleOCR-VL has the fields and the tensors of ERNIE 4.5, and rotates other pairs."""
    _checkpoint("paddleocr_vl", tmp_path)
    with pytest.raises(ConfigError) as caught:
        import_spec(tmp_path, family="ernie4_5")
    said = "text_config.model_type: is a supported family, and is not read as ernie4_5"
    assert said in str(caught.value)
    assert "Pass family paddleocr_vl_text." in str(caught.value)
