"""VaultGemma (Google, 2025): ``VaultGemmaConfig``, ``VaultGemmaModel`` and its head: Gemma 2 without the norms after its branches."""

from __future__ import annotations

from zoo.families.common import fields as f
from zoo.families.common.family import Family
from zoo.families.common.heads import BODY, language_modeling
from zoo.families.common.llama_like import LlamaFields, layer_weights, llama_tensors
from zoo.families.decoders.gemma import ACTIVATION, CAP, IGNORED, SCALE, gemma_body, windows

_FIELDS = LlamaFields(
    vocab_size=256000, hidden_size=2304, intermediate_size=9216, layers=26, heads=8, kv_heads=4, head_dim=256,
    context=8192,
)  # fmt: skip
_NORMS = {"input_layernorm": "attention_norm", "pre_feedforward_layernorm": "feed_forward_norm"}

FAMILIES = (
    Family(
        "vaultgemma",
        llama_tensors("vaultgemma", *layer_weights(_NORMS), without=("layernorm",)),
        gemma_body(
            _FIELDS,
            ACTIVATION,
            attention={"scale": SCALE, "softcap": f.Float("attn_logit_softcapping", default=50.0, null=True)},
            varies=(windows(2),),
        ),
        {
            "VaultGemmaForCausalLM": language_modeling(
                tied=True, bias=False, softcap=f.Float(CAP, default=30.0, null=True)
            ),
            "VaultGemmaModel": BODY,
        },
        ignored=("hidden_act", CAP, "use_bidirectional_attention", *IGNORED),
    ),
)
