"""OWL-ViT against transformers: boxes, and how well texts fit them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf
from hypothesis import strategies as st
from torch import Tensor

from exporters.export import export
from exporters.steps.options import ExportOptions
from specs.language.load import load as load_spec
from specs.model.model import Model
from tests.parity.families import pairs
from tests.parity.families.draws import FEW_LAYERS, VOCAB
from tests.parity.families.family import FamilyTests
from tests.parity.families.harness import TOLERANCE, converted
from tests.parity.families.recorded import RECORDED, Parity
from tests.parity.reference import assert_gradients, build, difference, load
from zoo.configs.exporting import NoFamilyError, write_config
from zoo.configs.importing import import_spec

TEXT: dict[str, Any] = dict(
    vocab_size=61, hidden_size=20, num_hidden_layers=2, num_attention_heads=4, intermediate_size=17,
    max_position_embeddings=9, layer_norm_eps=1e-3,
)  # fmt: skip
VISION: dict[str, Any] = dict(
    hidden_size=24, num_hidden_layers=3, num_attention_heads=3, intermediate_size=17, image_size=14, patch_size=4,
    layer_norm_eps=1e-4,
)  # fmt: skip
OUTPUTS = ("logits", "pred_boxes", "class_embeds", "text_embeds", "image_embeds")


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
    model_class: type,
    config: Any,
    directory: Path,
    *,
    seed: int = 1,
    onnx: bool = True,
    verify: bool = False,
    fuzzed: bool = False,
    **_: Any,
) -> Model:
    """Compare a configuration with its reference: PyTorch, ONNX Runtime and conversion."""
    reference = build(model_class, config, seed)
    reference.save_pretrained(directory / "reference")
    spec = import_spec(directory / "reference")
    ours, inputs = load(spec, directory / "reference"), pairs.drawn_inputs(spec, seed)
    expected, result = expected_of(reference, inputs), Parity("owlvit", fuzzed=fuzzed)
    with torch.no_grad():
        result.pytorch = largest(ours(**inputs), expected)
    assert result.pytorch <= TOLERANCE
    if onnx:
        export(spec, directory / "onnx", ExportOptions(weights=str(directory / "reference"), verify=verify))
        graphs = {"model": OUTPUTS, "vision_model": OUTPUTS[1:3], "text_model": OUTPUTS[3:4]}
        for graph, names in graphs.items():
            outputs = pairs.run(directory / "onnx" / f"{graph}.onnx", inputs)
            assert set(names) <= set(outputs)
            result.onnx = max(result.onnx, largest(outputs, expected))
        assert result.onnx <= TOLERANCE
    assert largest(expected_of(converted(spec, directory, reference), inputs), expected) <= TOLERANCE
    RECORDED.results.append(result)
    return spec


class TestOwlViT(FamilyTests):
    model_class = hf.OwlViTForObjectDetection
    configs = {
        "two widths": dict(text_config=TEXT, vision_config=VISION),
        "one patch": dict(
            text_config={**TEXT, "vocab_size": 33, "hidden_act": "gelu", "num_hidden_layers": 1},
            vision_config={**VISION, "image_size": 8, "patch_size": 8, "hidden_act": "relu", "num_channels": 1},
        ),
    }  # fmt: skip
    run = staticmethod(check)
    refusals = (
        ("architectures", ["OwlViTModel"], "must name a supported class"),
        ("text_config.hidden_act", "gellu", "is not supported"),
        ("vision_config.num_register_tokens", 2, "unsupported fields"),
    )

    @classmethod
    def config(cls, **values):
        return hf.OwlViTConfig(**values, projection_dim=values["text_config"]["hidden_size"])

    @staticmethod
    def draw(data):
        text, vision = ({**sizes, **draw_sizes(data)} for sizes in (TEXT, VISION))
        patch = data.draw(st.integers(1, 4), "patch")
        side = patch * data.draw(st.integers(1, 4), "rows") + data.draw(st.integers(0, patch - 1), "rest")
        return dict(
            text_config={**text, "vocab_size": VOCAB},
            vision_config={**vision, "patch_size": patch, "image_size": side},
        )


def draw_sizes(data) -> dict[str, Any]:
    heads = data.draw(st.integers(1, 3), "heads")
    return dict(
        hidden_size=heads * data.draw(st.integers(2, 8), "width of a head"), num_hidden_layers=FEW_LAYERS,
        num_attention_heads=heads, intermediate_size=st.integers(1, 40),
        hidden_act=st.sampled_from(["quick_gelu", "gelu", "relu"]), layer_norm_eps=st.sampled_from([1e-5, 1e-3]),
    )  # fmt: skip


def test_gradients_are_those_of_the_reference(tmp_path: Path) -> None:
    reference = build(hf.OwlViTForObjectDetection, TestOwlViT.configured(), 3)
    reference.save_pretrained(tmp_path)
    spec = import_spec(tmp_path)
    ours, inputs = load(spec, tmp_path), pairs.drawn_inputs(spec, 4)
    inputs["pixel_values"] = inputs["pixel_values"][:1]  # the reference then takes the texts once, too
    for model in (reference, ours):
        outputs = model(**inputs)
        (outputs["logits"].square().sum() + outputs["pred_boxes"].sum()).backward()
    expected = {
        "image_head.first.weight": reference.box_head.dense0.weight.grad,
        "image_head.scale.weight": reference.class_head.logit_scale.weight.grad,
        "image_head.patch_norm.weight": reference.layer_norm.weight.grad,
        "text_head.projection.weight": reference.owlvit.text_projection.weight.grad,
        "image_embedding.patch.weight": reference.owlvit.vision_model.embeddings.patch_embedding.weight.grad,
    }
    assert_gradients(ours, expected)


def test_texts_end_with_the_highest_token() -> None:
    spec = load_spec("owlvit-base-32", ["text.head.pooling={token: 7}", "expect={}"])
    with pytest.raises(NoFamilyError, match="pooling"):
        write_config(spec, "owlvit")
