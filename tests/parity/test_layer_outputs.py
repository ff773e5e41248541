"""Hidden states and attention weights against those that transformers gives with ``output_hidden_states`` and ``output_attentions``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import torch
from torch import Tensor
from transformers import (
    BertConfig,
    BertForSequenceClassification,
    BertModel,
    CLIPVisionConfig,
    CLIPVisionModel,
    LlamaConfig,
    LlamaForCausalLM,
    T5Config,
    T5ForConditionalGeneration,
    ViTConfig,
    ViTModel,
)

from exporters.export import export
from exporters.steps.options import ExportOptions
from specs.base.errors import UserError
from specs.model.model import Model
from specs.model.stack import Stack
from tests.cli.program import done
from tests.parity.families.as_stated import CONFIGS, reference_of
from tests.parity.reference import build, load
from tests.thinned import one_in
from zoo.configs.importing import import_spec
from zoo.layer_outputs.choice import LayerOutput, chosen_outputs
from zoo.layer_outputs.recording import recorded_outputs

COMMON = dict(
    vocab_size=50, hidden_size=32, intermediate_size=40, num_hidden_layers=3, num_attention_heads=4,
    max_position_embeddings=64, bos_token_id=0, eos_token_id=1, pad_token_id=0,
)  # fmt: skip
VISION = dict(
    hidden_size=32, intermediate_size=40, num_hidden_layers=3, num_attention_heads=4, image_size=14, patch_size=4
)  # fmt: skip
IDS = torch.tensor([[3, 11, 7, 30, 2, 19, 5], [23, 4, 9, 12, 0, 0, 0]])
MASK = torch.tensor([[1] * 7, [1, 1, 1, 1, 0, 0, 0]])
BOTH = {"output_hidden_states": True, "output_attentions": True}


def written(reference: Any, place: Path, outputs: list[str], target: str) -> Path:
    """The directory of an export of the checkpoint that a reference writes."""
    reference.save_pretrained(place / "reference")
    options = ExportOptions.of(
        weights=place / "reference", outputs=outputs, target=target, verify=target == "cpu"
    )
    export(import_spec(place / "reference"), place / "onnx", options)
    return place / "onnx"


def run(path: Path, feeds: Mapping[str, Any]) -> dict[str, Tensor]:
    """The outputs of a graph, with empty caches."""
    session = onnxruntime.InferenceSession(path)
    given = {name: np.asarray(value) for name, value in feeds.items()}
    for value in session.get_inputs():
        if value.name.startswith("past_key_values") and value.name not in given:
            shape = [len(IDS), value.shape[1], 0, value.shape[3]]
            given[value.name] = np.zeros(shape, np.float32)
    taken = {value.name: given[value.name] for value in session.get_inputs()}
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, map(torch.from_numpy, session.run(names, taken)), strict=True))


def assert_alike(ours: Mapping[str, Tensor], name: str, theirs: Any, mask: Tensor | None = None) -> None:
    """All numbered outputs of a name, at real tokens."""
    assert len([own for own in ours if own.startswith(f"{name}.")]) == len(theirs) > 0
    for number, expected in enumerate(theirs):
        own = ours[f"{name}.{number}"]
        if expected.dim() == 4:  # queries first
            own, expected = own.transpose(1, 2), expected.transpose(1, 2)
        real = torch.ones(own.shape[:2], dtype=torch.bool) if mask is None else mask == 1
        torch.testing.assert_close(own[real], expected[real], atol=1e-5, rtol=1e-5)


@one_in(4)
@pytest.mark.parametrize("target", ["portable", "cpu"])
@pytest.mark.parametrize(
    ("model_class", "config"),
    [
        (BertModel, BertConfig(**COMMON)),
        (LlamaForCausalLM, LlamaConfig(**COMMON, num_key_value_heads=2)),
    ],
    ids=["bert", "llama"],
)
def test_tokens(model_class: Any, config: Any, target: str, tmp_path: Path) -> None:
    reference = build(model_class, config, seed=1)
    place = written(reference, tmp_path, ["hidden:all", "attention:all"], target)
    with torch.no_grad():
        theirs = reference(IDS, attention_mask=MASK, **BOTH)
    feeds = {"input_ids": IDS, "attention_mask": MASK, "token_type_ids": torch.zeros_like(IDS)}
    ours = run(place / "model.onnx", feeds)
    assert_alike(ours, "hidden_states", theirs.hidden_states, MASK)
    assert_alike(ours, "attentions", theirs.attentions, MASK)


@one_in(2)
@pytest.mark.parametrize(
    ("model_class", "config"),
    [(ViTModel, ViTConfig(**VISION)), (CLIPVisionModel, CLIPVisionConfig(**VISION))],
    ids=["vit", "clip"],
)
def test_images(model_class: Any, config: Any, tmp_path: Path) -> None:
    """The last hidden state of an image encoder precedes the final norm."""
    reference = build(model_class, config, seed=2)
    place = written(reference, tmp_path, ["hidden:all", "attention:all"], "cpu")
    images = torch.randn((2, 3, 14, 14), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        theirs = reference(images, **BOTH)
    ours = run(place / "model.onnx", {"pixel_values": images})
    assert_alike(ours, "hidden_states", theirs.hidden_states)
    assert_alike(ours, "attentions", theirs.attentions)


@pytest.fixture
def classifier(tmp_path: Path) -> Any:
    """A classifier of texts, in a directory."""
    reference = build(BertForSequenceClassification, BertConfig(**COMMON, num_labels=3), 0)
    reference.save_pretrained(tmp_path / "reference")
    return reference


def test_the_vectors_of_tokens_beside_the_scores_of_a_text(classifier: Any, tmp_path: Path) -> None:
    done("export", f"{tmp_path}/reference", "-o", f"{tmp_path}/x", "--outputs", "last_hidden_state")
    ours = run(
        tmp_path / "x" / "model.onnx", {"input_ids": IDS, "attention_mask": MASK, "token_type_ids": IDS * 0}
    )
    with torch.no_grad():
        theirs = classifier(IDS, MASK, output_hidden_states=True)
    torch.testing.assert_close(ours["logits"], theirs.logits, atol=1e-5, rtol=1e-5)
    real = MASK == 1
    torch.testing.assert_close(
        ours["last_hidden_state"][real], theirs.hidden_states[-1][real], atol=1e-5, rtol=1e-5
    )


def test_the_vectors_of_tokens_without_the_head(classifier: Any, tmp_path: Path) -> None:
    done("export", f"{tmp_path}/reference", "-o", f"{tmp_path}/x", "--set", "head.kind=none")
    ours = run(
        tmp_path / "x" / "model.onnx", {"input_ids": IDS, "attention_mask": MASK, "token_type_ids": IDS * 0}
    )
    assert [*ours] == ["last_hidden_state"]
    with torch.no_grad():
        theirs = classifier.bert(IDS, MASK).last_hidden_state
    real = MASK == 1
    torch.testing.assert_close(ours["last_hidden_state"][real], theirs[real], atol=1e-5, rtol=1e-5)


@one_in(2)
@pytest.mark.parametrize("target", ["portable", "cpu"])
def test_an_encoder_decoder(target: str, tmp_path: Path) -> None:
    config = T5Config(
        vocab_size=50, d_model=24, d_kv=6, d_ff=33, num_layers=3, num_decoder_layers=2, num_heads=4
    )
    reference = build(T5ForConditionalGeneration, config, seed=2)
    kinds = [f"{stack}.{kind}:all" for stack in ("encoder", "decoder") for kind in ("hidden", "attention")]
    place = written(reference, tmp_path, [*kinds, "cross:all"], target)
    target_ids = torch.tensor([[0, 8, 20], [0, 31, 5]])
    with torch.no_grad():
        theirs = reference(IDS, attention_mask=MASK, decoder_input_ids=target_ids, **BOTH)
    encoded = run(place / "encoder_model.onnx", {"input_ids": IDS, "attention_mask": MASK})
    past = {name.replace("present", "past_key_values"): values for name, values in encoded.items()}
    decoded = run(
        place / "decoder_model.onnx", {**past, "input_ids": target_ids, "encoder_attention_mask": MASK}
    )
    assert_alike(encoded, "hidden_states", theirs.encoder_hidden_states, MASK)
    assert_alike(encoded, "attentions", theirs.encoder_attentions, MASK)
    assert_alike(decoded, "hidden_states", theirs.decoder_hidden_states)
    assert_alike(decoded, "attentions", theirs.decoder_attentions)
    assert_alike(decoded, "cross_attentions", theirs.cross_attentions)


OTHER_NUMBERS = {
    "clip_text_model": "the last hidden state precedes the final norm",
    **dict.fromkeys(
        ("falcon_mamba", "mamba", "mamba2"), "they begin after the first layer, and end with the last layer twice"
    ),
}  # fmt: skip
"""The models whose hidden states transformers numbers otherwise."""
OTHER_WEIGHTS = {
    "longt5": "its encoder's weights are by blocks of tokens",
    "wavlm": "its weights are the mean over the heads, for each of them",
}
"""The models whose attention weights transformers gives in another form."""
APART = {
    **dict.fromkeys(("blip", "neobert", "rwkv7"), "its reference gives no hidden states by these arguments"),
    **dict.fromkeys(("paligemma", "vision-encoder-decoder"), "its reference reads other inputs"),
    "gemma3n_text": "its hidden states have several streams",
}
"""The models that are not compared."""


@one_in(24)
@pytest.mark.parametrize("model_type", [name for name in CONFIGS if name not in APART])
def test_every_family(model_type: str, tmp_path: Path) -> None:
    reference = reference_of(CONFIGS[model_type], tmp_path)
    spec = import_spec(tmp_path)
    ours = load(spec, tmp_path)
    wanted = [*_wanted(spec)]
    with torch.no_grad(), recorded_outputs(ours, wanted) as held:
        for (stack, kind), theirs in _passes(spec, ours, reference):
            numbered = [output for output in wanted if (output.stack, output.kind) == (stack, kind)]
            expected = [values for values in theirs or () if values is not None]
            if kind != "hidden" and len(numbered) < len(expected):  # also of mixers without attention
                expected = [expected[output.layer or 0] for output in numbered]
            if model_type in OTHER_WEIGHTS and (stack, kind) == ("encoder", "attention"):
                continue
            if model_type in OTHER_NUMBERS and kind == "hidden":
                assert any(not _near(held[o], x) for o, x in zip(numbered, expected, strict=True))
                continue
            assert len(numbered) == len(expected)
            for output, values in zip(numbered, expected, strict=True):
                assert _near(held[output], values), output.name


def _near(ours: Tensor, theirs: Tensor) -> bool:
    scale = max(1.0, float(theirs.abs().max()))
    return ours.shape == theirs.shape and float((ours - theirs).abs().max()) < 5e-5 * scale


def _wanted(spec: Model) -> Iterator[LayerOutput]:
    for stack, _ in spec.stacks():
        for kind in ("hidden", "attention", "cross"):
            try:
                yield from chosen_outputs(spec, [f"{stack}.{kind}:all"])
            except UserError:  # a stack without such attention
                assert kind != "hidden"


def _passes(spec: Model, ours: Any, reference: Any) -> Iterator[tuple[tuple[str, str], Any]]:
    """The hidden states and attention weights of the reference, by stack and kind, after the same pass of our model."""
    if spec.architecture == "dual-encoder":
        for name, part in (("text", reference.text_model), ("image", reference.vision_model)):
            stack = spec.stack_named(name)  # type: ignore[arg-type]
            assert stack is not None
            x = _drawn(spec, stack)
            ours.encode(name, x)
            theirs = part(x, **BOTH)
            yield (name, "hidden"), theirs.hidden_states
            yield (name, "attention"), theirs.attentions
    elif spec.architecture == "encoder-decoder":
        assert spec.encoder is not None
        x, ids = _drawn(spec, spec.encoder), _drawn(spec, spec.last_stack)
        ours(x, ids)
        theirs = reference(**{reference.main_input_name: x}, decoder_input_ids=ids, **BOTH)
        for name in ("encoder", "decoder"):
            yield (name, "hidden"), theirs[f"{name}_hidden_states"]
            yield (name, "attention"), theirs[f"{name}_attentions"]
        yield ("decoder", "cross"), theirs.cross_attentions
    else:
        x = _drawn(spec, spec.last_stack)
        ours(x)
        theirs = reference(x, **(BOTH if "mamba" not in spec.name else {"output_hidden_states": True}))
        yield (spec.last_stack_name, "hidden"), theirs.hidden_states
        yield (spec.last_stack_name, "attention"), getattr(theirs, "attentions", None)


def _drawn(spec: Model, stack: Stack) -> Tensor:
    """The input of a stack: token ids without padding, images or audio."""
    embedding, generator = spec.embedding_of(stack), torch.Generator().manual_seed(3)
    length = min(12, spec.context_length_of(stack) or 12)
    if embedding.takes_tokens:
        assert spec.vocab_size is not None
        return torch.randint(8, spec.vocab_size - 4, (2, length), generator=generator)
    if embedding.any_length:
        _, *features = embedding.input_shape(1)
        return torch.randn((2, embedding.input_length(length), *features), generator=generator)
    return torch.randn((2, *embedding.input_shape(spec.context_length_of(stack))), generator=generator)
