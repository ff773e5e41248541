"""Every preset against transformers: its model of the config that we write has as many parameters."""

from __future__ import annotations

import pytest
import torch
import transformers

from specs.language.load import load
from specs.language.preset_files import preset_names
from tests.thinned import one_in
from zoo.configs.exporting import NoFamilyError, write_config

WITHOUT_FAMILY = {
    "bert-base-sinusoidal",
    "minimax-text-01",  # whose reference rotates whole heads, and not the half that was trained
    "nano-gpt", "tiny-gpt", "torch-transformer", "torch-transformer-big", "transformer-base", "transformer-big",
}  # fmt: skip
"""What no class of transformers is."""

OWN_CODE = {
    "deepseek-v3-mtp", "embeddinggemma-300m", "gliner-large-v2.1", "gliner-medium-v2.1", "gliner-multi-v2.1",
    "gliner-small-v2.1", "neobert", "rwkv7-0.1b", "rwkv7-0.4b", "rwkv7-1.5b", "rwkv7-2.9b",
}  # fmt: skip
"""Models whose classes, whose dense layers after pooling, or whose heads for spans, are not in transformers."""

TIED_TILL_LOADED = {"t5", "mt5", "umt5", "longt5"}
"""Families whose head transformers ties until it loads a checkpoint that has one, as those of T5 1.1 have."""

UNTRAINED = ("e_score_correction_bias", "mlp.expert_bias", "embeddings.mask_token")
"""Parameters that are not trained (ERNIE's and Trinity's, which other families have as a buffer), or that only training reads (DINOv2's)."""

OF_FAMILY = {"dpr-question-encoder-nq": "dpr", "dpr-context-encoder-nq": "dpr"}
"""Models that BERT's class with modules after it would be, too, but for a pooler that they lack."""

UNREAD = {
    "roformer": ("roformer.encoder.embed_positions.",),
    "esm": ("esm.contact_head.",),
    "wav2vec2-conformer": ("wav2vec2_conformer.encoder.pos_conv_embed.",),
    "vision-encoder-decoder": ("encoder.pooler.",),
    "owlvit": ("owlvit.visual_projection.", "owlvit.logit_scale"),
    "llava": ("model.vision_tower.post_layernorm.", "model.vision_tower.head."),
}
"""The table of rotations of RoFormer, the contacts of ESM, the convolution over positions of a conformer, the pooler of a ViT that a decoder attends to, what follows the images' layers in LLaVA, and what compares whole images in OWL-ViT: no output depends on it."""


@one_in(48)
@pytest.mark.parametrize("name", sorted(set(preset_names()) - WITHOUT_FAMILY - OWN_CODE))
def test_the_reference_has_as_many_parameters(name):
    spec = load(name)
    config = write_config(spec, OF_FAMILY.get(name))
    model_class = getattr(transformers, config["architectures"][0])
    with torch.device("meta"):
        model = model_class(model_class.config_class.from_dict(config))
    trained = [
        each
        for name, each in model.named_parameters()
        if not name.endswith(UNTRAINED) and not name.startswith(UNREAD.get(config["model_type"], ()))
    ]
    count = sum(parameter.numel() for parameter in trained)
    if config["model_type"] in TIED_TILL_LOADED and not getattr(spec.head, "tie_embeddings", True):
        assert spec.vocab_size is not None
        count += spec.vocab_size * spec.d_model
    assert count == spec.expect.parameters


@pytest.mark.parametrize("name", sorted(WITHOUT_FAMILY))
def test_the_others_fit_no_family(name):
    with pytest.raises(NoFamilyError):
        write_config(load(name))
