"""Tiny checkpoints with a tokenizer, whose weights count as real ones."""

from __future__ import annotations

import json
from pathlib import Path

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

from exporters.quality.texts import corpus

PAD, BOS, EOS = "<pad>", "<s>", "</s>"
VOCABULARY = 300


def tokenizer(*, begins: bool = False) -> Tokenizer:
    """Byte pairs learned from the corpus; with ``begins``, a text begins with a special token."""
    made = Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY, special_tokens=[PAD, BOS, EOS], initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator([corpus()["prose"][:4000]], trainer)
    if begins:
        made.post_processor = processors.TemplateProcessing(single=f"{BOS} $A", special_tokens=[(BOS, 1)])
    return made


def _saved(model: transformers.PreTrainedModel, directory: Path, *, text: bool) -> Path:
    for parameter in model.parameters():
        if parameter.dim() > 1:
            torch.nn.init.normal_(parameter, std=0.1)
    model.eval().save_pretrained(directory)
    if text:
        tokenizer().save(str(directory / "tokenizer.json"))
    return directory


def llama(directory: Path, *, text: bool = True) -> Path:
    """A decoder of two layers."""
    torch.manual_seed(7)
    config = transformers.LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=128, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    return _saved(transformers.LlamaForCausalLM(config), directory, text=text)


def bert(directory: Path) -> Path:
    """An encoder of two layers without a head."""
    torch.manual_seed(7)
    config = transformers.BertConfig(
        vocab_size=VOCABULARY, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=128,
    )  # fmt: skip
    return _saved(transformers.BertModel(config), directory, text=True)


def t5(directory: Path) -> Path:
    """An encoder-decoder."""
    torch.manual_seed(7)
    config = transformers.T5Config(
        vocab_size=VOCABULARY, d_model=64, d_kv=16, d_ff=96, num_layers=2, num_heads=4, pad_token_id=0,
        bos_token_id=1, eos_token_id=2, decoder_start_token_id=0,
    )  # fmt: skip
    return _saved(transformers.T5ForConditionalGeneration(config), directory, text=True)


def vit(directory: Path) -> Path:
    """An encoder of images."""
    torch.manual_seed(7)
    config = transformers.ViTConfig(
        hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, image_size=16, patch_size=8,
        num_labels=5,
    )  # fmt: skip
    return _saved(transformers.ViTForImageClassification(config), directory, text=False)


def mixtral(directory: Path) -> Path:
    """A decoder of two layers with mixtures of experts."""
    torch.manual_seed(7)
    config = transformers.MixtralConfig(
        vocab_size=VOCABULARY, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=128, num_local_experts=4, num_experts_per_tok=2,
        pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    return _saved(transformers.MixtralForCausalLM(config), directory, text=True)


_IMAGES = dict(
    hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, image_size=16, patch_size=8
)  # fmt: skip


def clip(directory: Path) -> Path:
    """An encoder of texts and one of images."""
    torch.manual_seed(7)
    text = dict(
        vocab_size=VOCABULARY, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=64, bos_token_id=1, eos_token_id=2, pad_token_id=0,
    )  # fmt: skip
    config = transformers.CLIPConfig(text_config=text, vision_config=_IMAGES, projection_dim=48)
    return _with_pixels(_saved(transformers.CLIPModel(config), directory, text=True))


def llava(directory: Path) -> Path:
    """A decoder of two layers among whose tokens are images of four vectors."""
    torch.manual_seed(7)
    text = transformers.LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=128, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    vision = transformers.CLIPVisionConfig(**(_IMAGES | {"num_hidden_layers": 3}), projection_dim=48)
    config = transformers.LlavaConfig(vision_config=vision, text_config=text, image_token_id=0)
    model = transformers.LlavaForConditionalGeneration(config)
    return _with_pixels(_saved(model, directory, text=True))


def qwen2_vl(directory: Path) -> Path:
    """A decoder of two layers among whose tokens are images of any size."""
    torch.manual_seed(7)
    text = dict(
        vocab_size=VOCABULARY, hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=256, pad_token_id=0, bos_token_id=1, eos_token_id=2,
        rope_parameters={"rope_type": "default", "mrope_section": [2, 3, 3], "rope_theta": 10000.0},
    )  # fmt: skip
    vision = dict(depth=2, embed_dim=32, num_heads=4, hidden_size=64, patch_size=4, mlp_ratio=2)
    config = transformers.Qwen2VLConfig(
        text_config=text, vision_config=vision, image_token_id=3, vision_start_token_id=4
    )
    place = _saved(transformers.Qwen2VLForConditionalGeneration(config), directory, text=True)
    stated = {
        "do_resize": True, "min_pixels": 64, "max_pixels": 512, "image_mean": [0.5] * 3, "image_std": [0.5] * 3,
    }  # fmt: skip
    (place / "preprocessor_config.json").write_text(json.dumps(stated))
    return place


def _with_pixels(directory: Path) -> Path:
    stated = {
        "do_resize": True,
        "size": {"height": 16, "width": 16},
        "image_mean": [0.5] * 3,
        "image_std": [0.5] * 3,
    }
    (directory / "preprocessor_config.json").write_text(json.dumps(stated))
    return directory


def photographs(directory: Path, count: int) -> Path:
    """Pieces of a photograph, each with a sentence of the corpus beside it."""
    from PIL import Image
    from sklearn.datasets import load_sample_image

    directory.mkdir()
    whole, sentences = Image.fromarray(load_sample_image("china.jpg")), corpus()["prose"].split(". ")
    for at in range(count):
        left, top = 40 * at % 560, 25 * at % 360
        whole.crop((left, top, left + 60, top + 60)).save(directory / f"{at:02}.png")
        (directory / f"{at:02}.txt").write_text(" ".join(sentences[at].split())[:40])
    return directory
