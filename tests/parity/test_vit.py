"""ViT against transformers, in PyTorch and as ONNX."""

import onnxruntime
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import ViTConfig, ViTForImageClassification, ViTModel

from exporters.export import Options, export
from specs.model import Model
from tests.parity.reference import ACTIVATIONS, assert_close, build, through_checkpoint

CONFIGS = {
    "remainder": dict(
        hidden_size=21, num_hidden_layers=3, num_attention_heads=3, intermediate_size=17, hidden_act="gelu_new",
        layer_norm_eps=1e-3, image_size=14, patch_size=4, num_channels=3, qkv_bias=True,
    ),
    "gray": dict(
        hidden_size=40, num_hidden_layers=1, num_attention_heads=5, intermediate_size=96, hidden_act="relu",
        layer_norm_eps=1e-6, image_size=9, patch_size=3, num_channels=1, qkv_bias=False,
    ),
    "one-patch": dict(
        hidden_size=12, num_hidden_layers=2, num_attention_heads=2, intermediate_size=30, hidden_act="gelu",
        layer_norm_eps=1e-12, image_size=8, patch_size=8, num_channels=4, qkv_bias=True,
    ),
}  # fmt: skip


def vit_spec(config: ViTConfig, head: dict[str, object]) -> Model:
    qkv = dict.fromkeys(("query", "key", "value"), config.qkv_bias)
    return Model.model_validate(
        {
            "name": "tiny-vit",
            "architecture": "encoder",
            "d_model": config.hidden_size,
            "position": {"kind": "learned"},
            "embedding": {
                "kind": "patches",
                "image_size": config.image_size,
                "patch_size": config.patch_size,
                "channels": config.num_channels,
            },
            "encoder": {
                "layers": config.num_hidden_layers,
                "block": {
                    "kind": "pre_norm",
                    "norm": {"kind": "layer_norm", "eps": config.layer_norm_eps},
                    "attention": {
                        "kind": "multi_head",
                        "heads": config.num_attention_heads,
                        "bias": {**qkv, "output": True},
                    },
                    "feed_forward": {
                        "kind": "mlp",
                        "hidden": config.intermediate_size,
                        "activation": ACTIVATIONS[config.hidden_act],
                    },
                },
            },
            "head": head,
        }
    )


def images(config: ViTConfig, seed: int = 5) -> torch.Tensor:
    shape = (3, config.num_channels, config.image_size, config.image_size)
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def check_body(config: ViTConfig, directory, seed: int, head: str = "pooler") -> None:
    reference = build(ViTModel, config, seed)
    model = through_checkpoint(reference, vit_spec(config, {"kind": head}), directory)
    with torch.no_grad():
        theirs, ours = reference(images(config)), model(images(config))
    assert_close(ours.last_hidden_state, theirs.last_hidden_state)
    if head == "pooler":
        assert_close(ours.pooler_output, theirs.pooler_output)


@pytest.mark.parametrize("name", CONFIGS)
@pytest.mark.parametrize("head", ["pooler", "none"])
def test_body(name, head, tmp_path):
    check_body(ViTConfig(**CONFIGS[name]), tmp_path, seed=1, head=head)


@pytest.mark.parametrize("name", CONFIGS)
def test_image_classification_in_pytorch_and_as_onnx(name, tmp_path):
    config = ViTConfig(**CONFIGS[name], num_labels=5)
    reference = build(ViTForImageClassification, config, seed=2)
    spec = vit_spec(config, {"kind": "classification", "labels": 5})
    model = through_checkpoint(reference, spec, tmp_path / "checkpoint")
    pixels = images(config)
    with torch.no_grad():
        theirs = reference(pixels).logits
        assert_close(model(pixels).logits, theirs)
    export(spec, tmp_path / "onnx", Options(weights=str(tmp_path / "checkpoint")))
    session = onnxruntime.InferenceSession(
        tmp_path / "onnx" / "model.onnx", providers=["CPUExecutionProvider"]
    )
    (logits,) = session.run(["logits"], {"pixel_values": pixels.numpy()})
    assert_close(torch.from_numpy(logits), theirs)


@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_any_configuration(data, tmp_path_factory):
    heads = data.draw(st.integers(1, 6), "heads")
    patch = data.draw(st.integers(1, 6), "patch_size")
    config = ViTConfig(
        hidden_size=heads * data.draw(st.integers(2, 8), "head_width"),
        num_hidden_layers=data.draw(st.integers(1, 3), "layers"),
        num_attention_heads=heads,
        intermediate_size=data.draw(st.integers(1, 60), "hidden"),
        hidden_act=data.draw(st.sampled_from(list(ACTIVATIONS)), "activation"),
        layer_norm_eps=data.draw(st.sampled_from([1e-12, 1e-2]), "eps"),
        image_size=patch + data.draw(st.integers(0, 12), "more"),
        patch_size=patch,
        num_channels=data.draw(st.integers(1, 4), "channels"),
        qkv_bias=data.draw(st.booleans(), "bias"),
    )
    check_body(config, tmp_path_factory.mktemp("vit"), seed=data.draw(st.integers(0, 99), "seed"))
