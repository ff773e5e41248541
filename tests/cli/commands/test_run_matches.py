"""``zoo run`` of dual encoders: how well each text fits each image, as a table and as data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from sklearn.datasets import load_sample_images

import zoo
from exporters.preprocessing.images import read_images
from exporters.runtime.exported import open_export
from specs.forms.resolved import resolved
from specs.language.writing import dump
from tests.cli.program import as_json, done, invoke, refused
from tests.thinned import one_in
from tests.zoo.tiny import clip, owlvit

IDS = [[3, 9, 4], [5, 6, 7, 9], [9]]
TEXTS = [",".join(map(str, ids)) for ids in IDS]
GIVEN = [part for text in TEXTS for part in ("--ids", text)]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory of two images, and of exports: one whose texts compete, one whose pairs stand alone."""
    place = tmp_path_factory.mktemp("matches")
    heads: dict[str, dict[str, Any]] = {"clip": {}, "siglip": {"bias": -1.5}}
    for name, head in heads.items():
        spec = clip(name=f"tiny-{name}", head={"kind": "contrastive", "log_scale": 1.0, **head})
        (place / f"{name}.yaml").write_text(dump(resolved(spec)))
        done("export", place / f"{name}.yaml", "--no-verify", "-o", place / name)
    (place / "images").mkdir()
    for name, image in zip(("temple", "flower"), load_sample_images().images, strict=True):
        Image.fromarray(image).save(place / "images" / f"{name}.png")
    return place


def wanted_scores(export: Path, images: list[Path]) -> torch.Tensor:
    """The scores of the PyTorch model, one text at a time, so that nothing is padded: images x texts."""
    spec = open_export(export).spec
    model, pixels = zoo.build(spec, weights="random"), torch.from_numpy(read_images(images, None, spec)[0])
    with torch.no_grad():
        return torch.cat([model(torch.tensor([ids]), pixels).logits_per_image for ids in IDS], 1)


@one_in(4)
@pytest.mark.parametrize("name", ["clip", "siglip"])
def test_data(name: str, place: Path) -> None:
    """Scores are those of the PyTorch model; those of an image's texts compete, unless the head has a bias."""
    data = as_json("run", place / name, "--image", place / "images", *GIVEN)
    assert data["name"] == f"tiny-{name}"
    assert (data["images"], data["texts"]) == (["flower.png", "temple.png"], TEXTS)
    wanted = wanted_scores(place / name, [place / "images" / image for image in data["images"]])
    found = torch.tensor(data["scores"])
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=0)
    assert found.std() > 0.01
    shares = wanted.sigmoid() if name == "siglip" else wanted.softmax(1)
    torch.testing.assert_close(torch.tensor(data["probabilities"]), shares, atol=1e-5, rtol=0)
    assert data["load_seconds"] > 0


def test_boxes_are_for_a_client(place: Path, tmp_path: Path) -> None:
    (tmp_path / "owlvit.yaml").write_text(dump(resolved(owlvit())))
    done("export", tmp_path / "owlvit.yaml", "--no-verify", "-o", tmp_path / "out")
    message = refused("run", tmp_path / "out", "--image", place / "images", *GIVEN)
    assert "tiny-owlvit finds boxes, and only scores of whole images are shown here" in message
    assert "zero-shot-object-detection" in message


def test_table(place: Path) -> None:
    """The texts of each image, the best first, as the data has them."""
    command = ["run", place / "clip", "--image", place / "images" / "temple.png", *GIVEN]
    result, data = invoke(*command), as_json(*command)
    assert result.exit_code == 0, result.stderr
    header, _, *rows = [line.split() for line in result.stdout.splitlines()]
    assert header == ["image", "text", "score", "probability"]
    pairs = zip(TEXTS, data["scores"][0], data["probabilities"][0], strict=True)
    ranked = sorted(pairs, key=lambda each: -each[1])
    assert rows == [["temple.png", text, f"{score:.3f}", f"{share:.2%}"] for text, score, share in ranked]
    assert "3 texts and 1 image in " in result.stderr
    assert "There is no preprocessor_config.json: images are resized to the model's size" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--image", "images"], "tiny-clip compares texts with images, and --text is missing\n  Pass both."),
        (["--ids", "1,9"], "tiny-clip compares texts with images, and --image is missing\n  Pass both."),
        (["--ids", "1,9", "--audio", "a.wav"],
         "tiny-clip compares texts with images, which --audio does not give\n  Pass --image."),
        (["--image", "images", "--text", "a"], "--text needs a tokenizer, and there is no tokenizer.json beside the model."),
        (["--image", "images", "--ids", "1,20"], "Token ids must be below the vocab_size of tiny-clip, which is 20\n  value: 20"),
        (["--image", "clip.yaml", "--ids", "1"], "clip.yaml is not an image that Pillow reads\n  Save it as PNG or JPEG."),
        (["--image", "images", "--ids", "1", "--top-k", "3"], "--top-k applies only to decoders, and tiny-clip is an encoder."),
    ],
)  # fmt: skip
def test_refused(arguments: list[str], message: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    assert message in refused("run", "clip", *arguments)
