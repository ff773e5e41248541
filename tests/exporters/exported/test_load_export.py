"""What was exported is read back as a PyTorch model, and a name is a spec, a checkpoint or an export."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch

from exporters.export import export
from exporters.exported.load_export import load_export
from exporters.exported.model_source import model_source
from exporters.runtime.exported import open_export
from exporters.steps.options import ExportOptions
from specs.base.errors import UserError
from specs.forms.resolved import resolved
from specs.language.load import load
from specs.language.writing import dump
from specs.model.model import Model
from tests.thinned import one_in
from tests.zoo.filled import random_model
from tests.zoo.tiny import BLOCK, bert, gpt2, t5, vit
from zoo.checkpoints.converting import convert
from zoo.core.tensors import weight_tensors

WIDE = {"vocab_size": 64, "d_model": 64}
SMALL = [
    *("decoder.layers=2", "d_model=64", "vocab_size=50", "decoder.block.feed_forward.expert.hidden=64"),
    *("decoder.block.attention.heads=4", "decoder.block.attention.kv_heads=2"),
]

EXPORTS = {
    "as it is": (bert(**WIDE), ExportOptions(), 0),
    "packed": (gpt2(**WIDE), ExportOptions(target="cpu"), 0),
    "two graphs": (t5(**WIDE), ExportOptions(target="cpu", layout="transformers-js", precision="int8"), 1e-2),
    "half": (t5(**WIDE), ExportOptions(target="cuda", precision="fp16"), 1e-3),
    "codes": (gpt2(**WIDE), ExportOptions(target="cpu", precision="int4", block_size=64, asymmetric=True), 0.15),
    "codes of tables": (gpt2(**WIDE), ExportOptions(target="cuda", precision="int4", head_precision="int4"), 0.15),
    "experts": (load("mixtral-8x7b", SMALL), ExportOptions(target="cpu", precision="int8"), 1e-2),
}  # fmt: skip


@one_in(4)
@pytest.mark.parametrize("name", EXPORTS)
def test_weights_are_those_that_were_written(name: str, tmp_path: Path) -> None:
    spec, options, allowed = EXPORTS[name]
    export(spec, tmp_path / "out", ExportOptions(**{**vars(options), "verify": False}))
    found = dict(weight_tensors(load_export(open_export(tmp_path / "out"))))
    model = random_model(spec)
    for weight, values in weight_tensors(model):
        assert found[weight].dtype == torch.float32
        distance = (found.pop(weight) - values).norm()
        assert distance <= allowed * values.norm(), weight
    assert not found


def test_weights_that_no_graph_reads_are_zeros(tmp_path: Path) -> None:
    encoder = {"layers": 2, "queries": {"count": 3, "layers": 1}, "block": BLOCK}
    export(
        vit(encoder=encoder, head={"kind": "masks", "labels": 2}),
        tmp_path / "out",
        ExportOptions(verify=False),
    )
    found = dict(weight_tensors(load_export(open_export(tmp_path / "out"))))
    assert found["encoder.mask_probabilities"].tolist() == [0.0]


def test_files_of_another_version_are_refused(tmp_path: Path) -> None:
    export(gpt2(**WIDE), tmp_path / "out", ExportOptions(verify=False, target="cpu", precision="int4"))
    path = tmp_path / "out" / "export.json"
    manifest = json.loads(path.read_text())
    manifest["options"]["block_size"] = 64
    path.write_text(json.dumps(manifest))
    refused(tmp_path / "out")
    manifest["options"] = {**manifest["options"], "block_size": 32, "via": "torch"}
    manifest["precision"] = "fp32"
    path.write_text(json.dumps(manifest))
    refused(tmp_path / "out")


def refused(directory: Path) -> None:
    with pytest.raises(UserError) as told:
        load_export(open_export(directory))
    assert str(told.value) == (
        f"{directory}: weights can only be read from exports that this version wrote with via fx\n"
        "  Pass its spec.yaml, and the checkpoint that it was made from as weights."
    )


# ---------------------------------------------------------------------------------------------------- opening


def checkpoint(spec: Model, place: Path) -> Path:
    place.mkdir()
    convert(spec, "random", place)
    return place


def test_references_are_resolved(tmp_path: Path) -> None:
    spec = gpt2()
    written = checkpoint(spec, tmp_path / "checkpoint")
    (tmp_path / "spec.yaml").write_text(dump(resolved(spec)))
    export(spec, tmp_path / "out", ExportOptions(verify=False))
    ways = [
        model_source(str(tmp_path / "spec.yaml")),
        model_source(str(tmp_path / "spec.yaml"), weights=str(written)),
        model_source(str(written)),
        model_source(str(tmp_path / "out")),
    ]
    ids = torch.tensor([[1, 2, 3]])
    with torch.no_grad():
        first, *others = [way.model()[0](ids).logits for way in ways]
        other = model_source(str(tmp_path / "spec.yaml")).model(seed=1)[0](ids).logits
    for each in others:
        torch.testing.assert_close(each, first, atol=1e-6, rtol=0)
    assert not torch.allclose(other, first)
    assert ways[1].origin == written
    assert (
        model_source(str(tmp_path / "spec.yaml"), weights=str(written / "model.safetensors")).origin
        == written
    )
    said = [way.model()[1] for way in ways]
    assert said == [
        "random, seed 0",
        str(written),
        str(written),
        f"those in {tmp_path / 'out'}",
    ]


def test_tokens_that_end_a_text_are_those_of_the_checkpoint(tmp_path: Path) -> None:
    written = checkpoint(gpt2(), tmp_path / "checkpoint")
    assert model_source(str(written)).ends == []
    (written / "generation_config.json").write_text('{"eos_token_id": [5, 7]}')
    assert model_source(str(written)).ends == [5, 7]


def test_unusable_references_are_refused(tmp_path: Path) -> None:
    export(gpt2(), tmp_path / "out", ExportOptions(verify=False))
    written, out = str(checkpoint(gpt2(), tmp_path / "checkpoint")), str(tmp_path / "out")
    (tmp_path / "empty").mkdir()
    cases = [
        (out, ["decoder.layers=1"], None, "{} is an export and has a spec and weights of its own.\n  Leave out set, or name {}/spec.yaml."),
        (out, [], "random", "{} is an export and has a spec and weights of its own.\n  Leave out weights, or name {}/spec.yaml."),
        (str(tmp_path / "empty"), [], None, "{} is neither an export nor a checkpoint: it has no export.json, no config.json and no spec.yaml.\n  Name a directory that zoo"),
    ]  # fmt: skip
    for reference, assignments, weights, message in cases:
        with pytest.raises(UserError) as told:
            model_source(reference, assignments, weights)
        assert str(told.value).startswith(message.replace("{}", reference))
    assert model_source(written, ["decoder.layers=1"]).spec.decoder.layers == 1


def test_too_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("exporters.verification.verified_model.available_memory", lambda: 2_000_000_000)
    with pytest.raises(UserError) as told:
        model_source("llama-3-8b").model()
    assert str(told.value) == (
        "llama-3-8b in float32 needs 32.1 GB of memory, and 1.7 GB are free\n"
        "  Use a larger machine, or use fewer layers, such as set decoder.layers=2."
    )
