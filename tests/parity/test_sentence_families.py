"""Sentence encoders of every family of bodies: PyTorch and exports for cpu give the vectors of sentence-transformers."""

from __future__ import annotations

from pathlib import Path

import onnxruntime
import pytest
import torch
import transformers as hf
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Dense, Normalize, Pooling, Transformer
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from exporters.export import export
from exporters.steps.options import ExportOptions
from tests.parity.reference import assert_close, load, redraw
from zoo.checkpoints.converting import convert
from zoo.configs.causal_encoder import as_decoder
from zoo.configs.exporting import write_config
from zoo.configs.importing import import_spec
from zoo.configs.sentence import dense_fields
from zoo.families.common.config import Config
from zoo.families.common.config_errors import ConfigError

WORDS = [
    "<s>", "<pad>", "</s>", "<unk>", "a", "man", "is", "playing", "the", "guitar", "on", "stage", "my", "cat",
    "sleeps",
]  # fmt: skip
SENTENCES = ("a man is playing the guitar on stage", "my cat sleeps", "cat")
SHAPE = {
    "vocab_size": len(WORDS), "hidden_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
    "intermediate_size": 20, "max_position_embeddings": 32, "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2,
}  # fmt: skip
BODIES = {
    "eurobert": (hf.EuroBertModel, hf.EuroBertConfig(**SHAPE, num_key_value_heads=2), "mean"),
    "gte": (hf.GteModel, hf.GteConfig(**SHAPE), "mean"),
    "jina_embeddings_v3": (hf.JinaEmbeddingsV3Model, hf.JinaEmbeddingsV3Config(**SHAPE), "mean"),
    "mpnet": (hf.MPNetModel, hf.MPNetConfig(**SHAPE), "mean"),
    "falcon": (
        hf.FalconModel,
        hf.FalconConfig(**{**SHAPE, "ffn_hidden_size": 20}, num_kv_heads=2, new_decoder_architecture=True),
        "weightedmean",
    ),
    "qwen3": (hf.Qwen3Model, hf.Qwen3Config(**SHAPE, num_key_value_heads=2, head_dim=8), "lasttoken"),
    "nomic_bert": (hf.NomicBertModel, hf.NomicBertConfig(**SHAPE), "mean"),
    "gemma3_text": (
        hf.Gemma3TextModel,
        hf.Gemma3TextConfig(
            **{**SHAPE, "num_hidden_layers": 3},
            num_key_value_heads=2, head_dim=8, sliding_window=4,
            layer_types=["sliding_attention", "full_attention", "sliding_attention"],
            use_bidirectional_attention=True,
        ),
        "mean",
    ),
}  # fmt: skip


def tokenizer(side: str) -> PreTrainedTokenizerFast:
    """A tokenizer of whole words that pads on a side, with the id that MPNet knows as padding."""
    words = Tokenizer(WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=words, pad_token="<pad>", unk_token="<unk>", padding_side=side
    )


def saved(family: str, side: str, directory: Path) -> Path:
    """A directory that sentence-transformers writes for a tiny body of a family."""
    model_class, config, pooling = BODIES[family]
    body = model_class(config).eval()
    redraw(body, 1)
    body.save_pretrained(directory / "body")
    tokenizer(side).save_pretrained(directory / "body")
    modules = [Transformer(str(directory / "body")), Pooling(24, pooling), Normalize()]
    SentenceTransformer(modules=modules, device="cpu").save(str(directory / "saved"))
    return directory / "saved"


def vectors(directory: Path) -> Tensor:
    """The vectors that sentence-transformers gives the sentences, in one padded batch."""
    return SentenceTransformer(str(directory), device="cpu").encode(list(SENTENCES), convert_to_tensor=True)


def test_a_decoder_is_a_causal_encoder_without_a_cache(tmp_path: Path) -> None:
    spec = import_spec(saved("qwen3", "right", tmp_path))
    assert (spec.architecture, spec.is_causal("encoder")) == ("encoder", True)
    assert write_config(as_decoder(spec), "qwen3") == write_config(spec, "qwen3")
    assert write_config(spec)["model_type"] == "qwen3"


@pytest.mark.slow
@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("family", BODIES)
def test_the_vectors_of_padded_sentences(family: str, side: str, tmp_path: Path) -> None:
    directory = saved(family, side, tmp_path)
    expected = vectors(directory)
    spec = import_spec(directory)
    batch = tokenizer(side)(list(SENTENCES), padding=True, return_tensors="pt")
    with torch.no_grad():
        ours = load(spec, directory)(batch["input_ids"], batch["attention_mask"]).sentence_embedding
    assert_close(ours, expected)

    export(spec, tmp_path / "onnx", ExportOptions(target="cpu", weights=str(directory)))
    session = onnxruntime.InferenceSession(tmp_path / "onnx" / "model.onnx")
    batch["token_type_ids"] = torch.zeros_like(batch["input_ids"])
    (found,) = session.run(
        ["sentence_embedding"], {given.name: batch[given.name].numpy() for given in session.get_inputs()}
    )
    assert_close(torch.from_numpy(found), expected)

    (tmp_path / "back").mkdir()
    convert(spec, str(directory), tmp_path / "back")
    assert_close(vectors(tmp_path / "back"), expected)


def test_two_dense_layers_of_another_width_between(tmp_path: Path) -> None:
    """EmbeddingGemma's modules: a wider layer without bias and activation, and a projection back."""
    directory = tmp_path / "saved"
    model_class, config, pooling = BODIES["gemma3_text"]
    body = model_class(config).eval()
    redraw(body, 1)
    body.save_pretrained(tmp_path / "body")
    tokenizer("right").save_pretrained(tmp_path / "body")
    torch.manual_seed(1)
    layers = [
        Dense(*widths, bias=False, activation_function=torch.nn.Identity()) for widths in ((24, 40), (40, 24))
    ]
    modules = [Transformer(str(tmp_path / "body")), Pooling(24, pooling), *layers, Normalize()]
    SentenceTransformer(modules=modules, device="cpu").save(str(directory))
    spec = import_spec(directory)
    batch = tokenizer("right")(list(SENTENCES), padding=True, return_tensors="pt")
    with torch.no_grad():
        ours = load(spec, directory)(batch["input_ids"], batch["attention_mask"]).sentence_embedding
    assert_close(ours, vectors(directory))
    (tmp_path / "back").mkdir()
    convert(spec, str(directory), tmp_path / "back")
    assert_close(vectors(tmp_path / "back"), vectors(directory))


def test_a_second_layer_with_an_activation_is_refused() -> None:
    first = {"projection": 40}
    data = {
        "in_features": 40,
        "out_features": 24,
        "bias": True,
        "activation_function": "torch.nn.modules.activation.Tanh",
    }
    with pytest.raises(ConfigError, match="activation_function: must be the identity, without a bias"):
        dense_fields(Config(data, "2_Dense/config.json"), 24, first)
