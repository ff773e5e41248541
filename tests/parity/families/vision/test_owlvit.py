"""OWL-ViT against transformers: boxes, and how well texts fit them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from transformers import OwlViTConfig, OwlViTForObjectDetection

from exporters.export import export
from exporters.steps.options import ExportOptions
from specs.language.load import load as load_spec
from specs.model.model import Model
from tests.parity.families import pairs
from tests.parity.families.harness import TOLERANCE
from tests.parity.families.recorded import RECORDED, Parity
from tests.parity.reference import build, difference, load
from tests.thinned import one_in
from zoo.checkpoints.converting import convert
from zoo.configs.exporting import NoFamilyError, write_config
from zoo.configs.importing import import_spec, spec_of_config
from zoo.families.common.config import Config, ConfigError

TEXT: dict[str, Any] = dict(
    vocab_size=61, hidden_size=20, num_hidden_layers=2, num_attention_heads=4, intermediate_size=17,
    max_position_embeddings=9, layer_norm_eps=1e-3,
)  # fmt: skip
VISION: dict[str, Any] = dict(
    hidden_size=24, num_hidden_layers=3, num_attention_heads=3, intermediate_size=17, image_size=14, patch_size=4,
    layer_norm_eps=1e-4,
)  # fmt: skip
CONFIGS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "two widths": (TEXT, VISION),
    "one patch": (
        {**TEXT, "vocab_size": 33, "hidden_act": "gelu", "num_hidden_layers": 1},
        {**VISION, "image_size": 8, "patch_size": 8, "hidden_act": "relu", "num_channels": 1},
    ),
}
OUTPUTS = ("logits", "pred_boxes", "class_embeds", "text_embeds", "image_embeds")


def config_of(text: dict[str, Any], vision: dict[str, Any]) -> OwlViTConfig:
    return OwlViTConfig(text_config=text, vision_config=vision, projection_dim=text["hidden_size"])


@torch.no_grad()
def expected_of(reference: Any, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """The outputs of the reference, which takes the texts anew for each image, and lays patches out by row and column."""
    images = len(inputs["pixel_values"])
    texts = {name: inputs[name].repeat(images, 1) for name in ("input_ids", "attention_mask")}
    found = reference(**texts, pixel_values=inputs["pixel_values"])
    return {
        **{name: found[name] for name in ("logits", "pred_boxes", "class_embeds")},
        "text_embeds": found.text_embeds[0],
        "image_embeds": found.image_embeds.flatten(1, 2),
    }


def largest(ours: Any, expected: dict[str, Tensor]) -> float:
    """The largest difference at unit scale over the outputs that both have."""
    common = [name for name in OUTPUTS if name in ours]
    assert common
    return max(difference(ours[name], expected[name]) for name in common)


def check(
    config: OwlViTConfig, directory: Path, seed: int = 1, *, onnx: bool = True, fuzzed: bool = False
) -> Model:
    """Put a configuration through import, PyTorch, ONNX Runtime, gradients and conversion, its weights drawn anew."""
    reference = build(OwlViTForObjectDetection, config, seed)
    reference.save_pretrained(directory / "reference")
    spec = import_spec(directory / "reference")
    ours, inputs = load(spec, directory / "reference"), pairs.drawn_inputs(spec, seed)
    expected, result = expected_of(reference, inputs), Parity("owlvit", fuzzed=fuzzed)
    with torch.no_grad():
        result.pytorch = largest(ours(**inputs), expected)
    assert result.pytorch <= TOLERANCE
    if onnx:
        export(spec, directory / "onnx", ExportOptions(weights=str(directory / "reference")))
        for graph, wanted in (
            ("model", OUTPUTS),
            ("vision_model", OUTPUTS[1:3]),
            ("text_model", OUTPUTS[3:4]),
        ):
            found = pairs.run(directory / "onnx" / f"{graph}.onnx", inputs)
            assert set(wanted) <= set(found)
            result.onnx = max(result.onnx, largest(found, expected))
        assert result.onnx <= TOLERANCE
    place = directory / "converted"
    place.mkdir()
    convert(spec, str(directory / "reference"), place, model_type="owlvit")
    back, report = OwlViTForObjectDetection.from_pretrained(place, output_loading_info=True)
    for kind in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        assert not report[kind], kind
    assert largest(expected_of(back.eval(), inputs), expected) <= TOLERANCE
    RECORDED.results.append(result)
    return spec


@one_in(2)
@pytest.mark.parametrize("name", CONFIGS)
def test_configuration(name: str, tmp_path: Path) -> None:
    check(config_of(*CONFIGS[name]), tmp_path)


def test_gradients_are_those_of_the_reference(tmp_path: Path) -> None:
    reference = build(OwlViTForObjectDetection, config_of(TEXT, VISION), 3)
    reference.save_pretrained(tmp_path)
    spec = import_spec(tmp_path)
    ours, inputs = load(spec, tmp_path), pairs.drawn_inputs(spec, 4)
    inputs["pixel_values"] = inputs["pixel_values"][:1]  # for which the reference takes the texts once, too
    for model in (reference, ours):
        found = model(**inputs)
        (found["logits"].square().sum() + found["pred_boxes"].sum()).backward()
    for parameter, theirs in (
        ("image_head.first.weight", reference.box_head.dense0.weight),
        ("image_head.scale.weight", reference.class_head.logit_scale.weight),
        ("image_head.patch_norm.weight", reference.layer_norm.weight),
        ("text_head.projection.weight", reference.owlvit.text_projection.weight),
        ("image_embedding.patch.weight", reference.owlvit.vision_model.embeddings.patch_embedding.weight),
    ):
        own = ours.get_parameter(parameter).grad
        assert own is not None
        assert theirs.grad is not None
        assert difference(own, theirs.grad) <= 1e-4, parameter


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"architectures": ["OwlViTModel"]}, "must name a supported class"),
    ({"text_config": {"hidden_act": "gellu"}}, r"text_config\.hidden_act: is not supported"),
    ({"vision_config": {"num_register_tokens": 2}}, r"vision_config\.num_register_tokens"),
]


@pytest.mark.parametrize(("change", "said"), REFUSED, ids=[next(iter(change)) for change, _ in REFUSED])
def test_unsupported_values_and_fields_are_refused(change: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        spec_of_config(Config({"model_type": "owlvit", **change}, "config.json"), name="tiny", strict=True)


def test_texts_end_with_the_highest_token() -> None:
    spec = load_spec("owlvit-base-32", ["text.head.pooling={token: 7}", "expect={}"])
    with pytest.raises(NoFamilyError, match="pooling"):
        write_config(spec, "owlvit")


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    def sizes(side: str) -> dict[str, Any]:
        heads = data.draw(st.integers(1, 3), f"heads of {side}")
        return dict(
            hidden_size=heads * data.draw(st.integers(2, 8), f"width of a head of {side}"),
            num_hidden_layers=data.draw(st.integers(1, 3), f"layers of {side}"),
            num_attention_heads=heads,
            intermediate_size=data.draw(st.integers(1, 40), f"hidden of {side}"),
            hidden_act=data.draw(st.sampled_from(["quick_gelu", "gelu", "relu"]), f"activation of {side}"),
            layer_norm_eps=data.draw(st.sampled_from([1e-5, 1e-3]), f"eps of {side}"),
        )

    text = {**TEXT, **sizes("texts"), "vocab_size": data.draw(st.integers(5, 90), "vocab_size")}
    patch = data.draw(st.integers(1, 4), "patch")
    side = patch * data.draw(st.integers(1, 4), "rows") + data.draw(st.integers(0, patch - 1), "rest")
    vision = {**VISION, **sizes("images"), "patch_size": patch, "image_size": side}
    seed = data.draw(st.integers(0, 99), "seed")
    check(config_of(text, vision), tmp_path_factory.mktemp("drawn"), seed, onnx=seed % 5 == 0, fuzzed=True)
