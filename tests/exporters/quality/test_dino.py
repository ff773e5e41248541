"""DINOv2 small with trained weights: equal to the file that they come from, and near to itself in few bits."""

from __future__ import annotations

from pathlib import Path

import onnxruntime
import pytest
import torch

from exporters.export import export
from exporters.preprocessing.images import Pixels, image_files, read_images
from exporters.steps.options import ExportOptions
from tests.exporters.quality import dino_small
from tests.parity.reference import load
from zoo import import_checkpoint

LEAST = {"int8": 0.99, "int4": 0.95}
"""The smallest mean cosine to float of the mean vector of an image."""


@pytest.fixture(scope="module")
def dino(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    return dino_small.checkpoint(tmp_path_factory.mktemp("dino"))


@pytest.fixture(scope="module")
def photographs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return dino_small.photographs(tmp_path_factory.mktemp("photographs") / "photographs")


@pytest.mark.slow
def test_hidden_states_are_those_of_the_file(dino: tuple[Path, Path], photographs: Path) -> None:
    origin, file = dino
    spec = import_checkpoint(origin)
    pixels, _ = read_images(image_files(photographs)[:4], Pixels.beside(origin), spec)
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    (expected,) = session.run([dino_small.BACKBONE], {"input_image": pixels})
    with torch.no_grad():
        found = load(spec, origin)(torch.from_numpy(pixels)).last_hidden_state
    scale = float(torch.from_numpy(expected).abs().max())
    difference = float((found - torch.from_numpy(expected)).abs().max()) / scale
    print(f"DINOv2 small on four photographs: at most {difference:.1e} from the file, at unit scale")
    assert difference < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("precision", LEAST)
def test_photographs_are_seen_alike_in_few_bits(
    precision: str, dino: tuple[Path, Path], photographs: Path, tmp_path: Path
) -> None:
    origin, _ = dino
    options = ExportOptions.of(weights=str(origin), precision=precision, target="cpu", calibrate=photographs)
    quality = export(import_checkpoint(origin), tmp_path / "out", options).quality
    assert quality is not None
    print(f"DINOv2 small in {precision} on {quality.inputs}: {quality.figures}")
    assert quality.figures["cosine"] > LEAST[precision]
