"""Images to text: ``VisionEncoderDecoderModel`` of a ViT with the decoder of TrOCR (Li et al., 2021), or with GPT-2."""

from __future__ import annotations

from specs.model.model import Model
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import language_modeling
from zoo.families.common.parts import decoder_of, encoder_of, rules_inside
from zoo.families.common.seq2seq import NORM, StackFields, stack_rules
from zoo.families.common.template import Data, UnfitError
from zoo.families.common.tensors import Tensors, affine, fused, modules, same, transposed
from zoo.families.common.transforms import STACKED, Transposed
from zoo.families.decoders.gpt2 import FAMILIES as GPT2_FAMILIES
from zoo.families.vision.vit import FAMILIES as VIT_FAMILIES

(_GPT2,) = GPT2_FAMILIES
_VIT = VIT_FAMILIES[0]

_TROCR = Family(
    "trocr",
    Tensors(
        "trocr",
        (
            same("decoder.embed_tokens.weight", "embedding.token.weight"),
            *stack_rules("decoder"),
        ),
    ),
    {
        "architecture": "decoder",
        "vocab_size": f.Int("vocab_size", default=50265),
        "d_model": f.Int("d_model", "hidden_size", default=1024),
        "context_length": f.Int("max_position_embeddings", default=512),
        "position": f.Kinds(
            f.Bool("use_learned_position_embeddings", default=True),
            {
                True: {"kind": "learned", "offset": 2},
                False: {
                    "kind": "sinusoidal",
                    "layout": "half_split",
                    "spacing": "tensor2tensor",
                    "offset": 2,
                },
            },
        ),
        "embedding": {
            "scale": f.When(f.Bool("scale_embedding", default=False), "sqrt_d_model"),
            "norm": f.When(f.Bool("layernorm_embedding", default=True), NORM),
            "dropout": f.Float("dropout", default=0.1),
        },
        "decoder": StackFields("post_norm").stack("decoder"),
        "initialization": f.normal("init_std"),
    },
    {"TrOCRForCausalLM": language_modeling(tied=True, bias=False)},
    ignored=("num_hidden_layers", "decoder_layerdrop", "classifier_dropout"),
)

_ENCODERS = {"vit": (_VIT, "ViTModel")}
_DECODERS = {"trocr": (_TROCR, "TrOCRForCausalLM"), "gpt2": (_GPT2, "GPT2LMHeadModel")}
_WIDTH = "cross_attention_hidden_size"
_ATTENDS = ("is_decoder", "add_cross_attention", _WIDTH)
"""Fields of a decoder that say that it attends to an encoder, and of which width."""


def _has_trocr(model: Model) -> bool:
    """Whether the decoder is TrOCR's and not GPT-2's: norms follow its branches."""
    return model.decoder is not None and model.decoder.named_block(None).kind == "post_norm"


def _has_gpt2(model: Model) -> bool:
    return model.decoder is not None and not _has_trocr(model)


class _VisionEncoderDecoder(Family):
    """An encoder and a decoder, each with the config of its own family."""

    def spec(self, config: Config, class_name: str) -> Data:
        encoder, decoder = config.model("encoder", _ENCODERS), config.model("decoder", _DECODERS, _ATTENDS)
        for name in ("is_decoder", "add_cross_attention"):
            encoder.must(name, False, "it is the encoder")
        images, class_of_images = _ENCODERS[encoder.data["model_type"]]
        words, class_of_words = _DECODERS[decoder.data["model_type"]]
        seen, said = images.body_spec(encoder, class_of_images), words.spec(decoder, class_of_words)
        width = config.data["decoder"].get(_WIDTH)
        if width != seen["d_model"] and (width is not None or seen["d_model"] != said["d_model"]):
            remedy = "Models that map the encoder's output to the decoder's width are not supported."
            decoder.refuse(_WIDTH, f"must be {seen['d_model']}, the width of the encoder", remedy)
        own = {name: seen[name] for name in ("d_model", "embedding", "position")}
        return {**said, "architecture": "encoder-decoder", "encoder": {**seen["encoder"], **own}}

    def config(self, model: Model, class_name: str) -> Data:
        if model.architecture != "encoder-decoder":
            raise UnfitError(f"architecture {model.architecture}")
        words, class_of_words = _DECODERS["trocr" if _has_trocr(model) else "gpt2"]
        encoder = _VIT.body_config(encoder_of(model), "ViTModel")
        attends = {"is_decoder": True, "add_cross_attention": True, _WIDTH: encoder["hidden_size"]}
        return {
            "architectures": [class_name],
            "model_type": self.model_type,
            "is_encoder_decoder": True,
            "tie_word_embeddings": False,
            "encoder": encoder,
            "decoder": {**words.config(decoder_of(model), class_of_words), **attends},
        }


_BLOCK, _STORED = "decoder.blocks.{layer}", "h.{layer}"
_TO_ENCODER = (
    *modules({f"{_STORED}.ln_cross_attn": f"{_BLOCK}.cross_attention_norm"}),
    *transposed(f"{_STORED}.crossattention.q_attn", f"{_BLOCK}.cross_attention.query"),
    *fused(
        f"{_STORED}.crossattention.c_attn",
        (f"{_BLOCK}.cross_attention.key", f"{_BLOCK}.cross_attention.value"),
        Transposed(STACKED),
    ),
    *transposed(f"{_STORED}.crossattention.c_proj", f"{_BLOCK}.cross_attention.output"),
)
"""GPT-2's attention to an encoder."""

_TENSORS = Tensors(
    "vision_encoder_decoder",
    (
        *rules_inside("encoder", _VIT.tensors.rules),
        *rules_inside("decoder", (*_GPT2.tensors.rules, *_TO_ENCODER), "transformer.", where=_has_gpt2),
        *rules_inside("decoder", _TROCR.tensors.rules, "model.", where=_has_trocr),
    ),
    heads={
        "language_modeling": (
            *rules_inside("decoder", affine("lm_head", "head.vocabulary"), where=_has_gpt2),
            *rules_inside("decoder", affine("output_projection", "head.vocabulary"), where=_has_trocr),
        )
    },
    optional=(
        "encoder.pooler.*",
        "encoder.embeddings.mask_token",
        "decoder.lm_head.*",
        "decoder.output_projection.*",
    ),
    unused=(
        "decoder.transformer.h.*.attn.bias",
        "decoder.transformer.h.*.attn.masked_bias",
        "decoder.transformer.h.*.crossattention.bias",
        "decoder.transformer.h.*.crossattention.masked_bias",
        "decoder.model.decoder.embed_positions._float_tensor",
    ),
)

FAMILIES = (
    _VisionEncoderDecoder(
        "vision-encoder-decoder",
        _TENSORS,
        classes={"VisionEncoderDecoderModel": HeadClass("language_modeling")},
    ),
)
