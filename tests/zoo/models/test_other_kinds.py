"""Every family is asked for the config of its own models with a component of another kind in any place: it writes one, or says what
it has no field for."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from specs.base.registry import kinds, slots
from specs.model.model import Model
from tests.thinned import one_in
from tests.whole_specs import specs_of_seed
from tests.zoo.models.other_kinds import REQUIRED, with_another_kind
from zoo.configs.exporting import NoFamilyError, write_config
from zoo.configs.importing import spec_of_config
from zoo.families.common.config import Config
from zoo.families.registry import MODEL_TYPES, family

_CLIP, _SIGLIP = {"model_type": "clip_vision_model"}, {"model_type": "siglip_vision_model", "image_size": 896}
_PALIGEMMA = {"text_config": {"model_type": "gemma", "vocab_size": 257216}, "vision_config": _SIGLIP}
_MODERNVBERT = {
    "text_config": {"model_type": "modernbert", "vocab_size": 50408},
    "vision_config": {**_SIGLIP, "image_size": 512},
}
STATED: dict[str, dict[str, Any]] = {
    "deberta": {"relative_attention": True, "pos_att_type": ["c2p", "p2c"]},
    "deberta-v2": {"relative_attention": True, "share_att_key": True, "pos_att_type": ["c2p", "p2c"]},
    "deepseek_v2": {"num_experts_per_tok": 2},
    "dots1": {"n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": 1},
    "glm4_moe": {"head_dim": 128},
    "glm4v_moe_text": {"head_dim": 128},
    "qwen3_omni_moe_text": {"head_dim": 128},
    "bamba": {"attn_layer_indices": [9, 18, 27]},
    "llava": {"text_config": {"model_type": "llama", "vocab_size": 32064}, "vision_config": _CLIP},
    "gemma3": {"text_config": {"model_type": "gemma3_text"}, "vision_config": {**_SIGLIP, "patch_size": 14}},
    "paligemma": _PALIGEMMA,
    "colpali": {"vlm_config": {"model_type": "paligemma", **_PALIGEMMA}},
    "colqwen2": {"vlm_config": {"model_type": "qwen2_vl"}},
    "modernvbert": _MODERNVBERT,
    "colmodernvbert": {"vlm_config": {"model_type": "modernvbert", **_MODERNVBERT}},
    "internvl": {"text_config": {"model_type": "qwen2"}, "vision_config": {}},
    "idefics2": {"text_config": {"model_type": "mistral", "vocab_size": 32003}},
    **{
        model_type: {"text_config": {"model_type": "llama", "vocab_size": 128259}, "vision_config": {"patch_size": 16}}
        for model_type in ("idefics3", "smolvlm")
    },
    "vision-encoder-decoder": {"encoder": {"model_type": "vit"}, "decoder": {"model_type": "gpt2"}},
    "blip": {"text_config": {"model_type": "blip_text_model"}, "vision_config": {"model_type": "blip_vision_model"}},
}  # fmt: skip
"""The fields that a family's config must state."""


def models_of(model_type: str) -> list[Model]:
    """The models of a family's usual config, one for each body of its classes."""
    found: dict[str, Model] = {}
    for name in family(model_type).classes:
        data = {"model_type": model_type, "architectures": [name], **STATED.get(model_type, {})}
        model = spec_of_config(Config(data, "config.json"), name="usual")
        found.setdefault(repr(model.model_copy(update={"head": None})), model)
    return list(found.values())


@one_in(80)
@pytest.mark.parametrize("model_type", MODEL_TYPES)
def test_a_family_writes_or_refuses_components_of_every_kind(model_type: str) -> None:
    asked = set()
    for model in models_of(model_type):
        for slot, kind, other in with_another_kind(model):
            asked.add((slot, kind))
            with suppress(NoFamilyError):
                write_config(other, model_type)
    assert len(asked) > 20, asked


@pytest.mark.slow
@pytest.mark.parametrize("number", range(4))
def test_every_family_writes_or_refuses_whole_random_specs(number: int) -> None:
    for model in specs_of_seed(number, 60):
        for model_type in MODEL_TYPES:
            with suppress(NoFamilyError):
                write_config(model, model_type)


def test_every_kind_can_be_asked_for() -> None:
    for slot in slots():
        for kind, registered in kinds(slot).items():
            required = {key for key, field in registered.spec.model_fields.items() if field.is_required()}
            kept = {"norm", "attention", "feed_forward"} if slot == "block" else set()
            assert required - kept <= REQUIRED.get(kind, {}).keys(), (slot, kind)
