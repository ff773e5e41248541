"""A third-party family from a separate installed package: in and out, equal to transformers, and plugins that do not work."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
import transformers as hf

from tests.test_plugin import installed, zoo_with
from tests.thinned import one_in

PLUGIN = Path(__file__).parents[1] / "examples" / "family"
CONFIG = dict(
    vocab_size=61, hidden_size=48, intermediate_size=40, num_hidden_layers=3, num_attention_heads=3,
    max_position_embeddings=64, layer_norm_eps=1e-3,
)  # fmt: skip
IDS = torch.tensor([[5, 17, 3, 42, 8, 60, 1]])

PROGRAM = """
import sys, numpy, torch, zoo
held, written, logits = sys.argv[1:]
spec = zoo.import_checkpoint(held)
with torch.no_grad():
    numpy.save(logits, zoo.build(spec, held)(torch.tensor([[5, 17, 3, 42, 8, 60, 1]])).logits.numpy())
zoo.convert(spec, held, written)
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(PLUGIN, tmp_path_factory.mktemp("family"))


def checkpoint(directory: Path, **changes: object) -> hf.PersimmonForCausalLM:
    torch.manual_seed(0)
    model = hf.PersimmonForCausalLM(hf.PersimmonConfig(**CONFIG | changes)).eval()
    for parameter in model.parameters():  # norms and biases matter
        torch.nn.init.normal_(parameter, std=0.2)
    model.save_pretrained(directory)
    return model


@pytest.mark.slow
@pytest.mark.parametrize("changes", [{}, {"qk_layernorm": False, "tie_word_embeddings": True}])
def test_a_family_of_a_package_is_read_and_written(
    site: Path, tmp_path: Path, changes: dict[str, object]
) -> None:
    reference = checkpoint(tmp_path / "held", **changes)
    arguments = [str(tmp_path / name) for name in ("held", "written", "logits.npy")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), *sys.path])}
    subprocess.run([sys.executable, "-c", PROGRAM, *arguments], env=environment, check=True)
    with torch.no_grad():
        expected = reference(IDS).logits
        back = hf.AutoModelForCausalLM.from_pretrained(tmp_path / "written")(IDS).logits
    np.testing.assert_allclose(np.load(tmp_path / "logits.npy"), expected.numpy(), rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(back, expected)


@pytest.mark.slow
def test_its_fields_are_checked_and_listed(site: Path, tmp_path: Path) -> None:
    checkpoint(tmp_path / "held")
    zoo = zoo_with(site)
    spec = tmp_path / "spec.yaml"
    done = zoo("import", tmp_path / "held", "-o", spec)
    assert done.returncode == 0, done.stderr
    assert "relu2" in spec.read_text()
    config = tmp_path / "held" / "config.json"
    config.write_text(json.dumps({**json.loads(config.read_text()), "window": 3}))
    refused = zoo("import", tmp_path / "held", "-o", tmp_path / "again.yaml")
    assert refused.returncode == 2
    assert "window" in refused.stderr
    config.write_text(json.dumps({"model_type": "persimon"}))
    assert "Did you mean 'persimmon'?" in zoo("import", tmp_path / "held").stderr


def family_plugin(place: Path, name: str, text: str, model_type: str = "persimmon") -> Path:
    """Write a plugin as an installer leaves it, and return its directory."""
    site = place / name
    site.mkdir()
    (site / f"{name}.py").write_text(text)
    metadata = site / f"{name}-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
    (metadata / "entry_points.txt").write_text(f"[zoo.families]\n{model_type} = {name}\n")
    return site


@one_in(3)
@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("raise RuntimeError('no licence')", "cannot be loaded: RuntimeError: no licence"),
        ("", "must have a tuple FAMILIES of zoo.families.common.family.Family"),
        ("from zoo.families.decoders.llama import FAMILIES", "has no family with the model_type 'persimmon'"),
    ],
)
def test_a_family_that_does_not_work_is_named_and_breaks_nothing_else(
    tmp_path: Path, text: str, fault: str
) -> None:
    zoo = zoo_with(family_plugin(tmp_path, "zoo_broken", text))
    checkpoint(tmp_path / "held")
    refused = zoo("import", tmp_path / "held")
    assert refused.returncode == 2
    told = f"plugin 'persimmon' of zoo_broken (zoo_broken) {fault}"
    assert told in refused.stderr
    assert "Traceback" not in refused.stderr
    hf.LlamaConfig(
        vocab_size=50, hidden_size=16, intermediate_size=16, num_attention_heads=2
    ).save_pretrained(tmp_path / "llama")
    done = zoo("import", tmp_path / "llama", "-o", tmp_path / "llama.yaml")
    assert done.returncode == 0, done.stderr


def test_a_family_registered_twice_is_named(tmp_path: Path) -> None:
    text = "from zoo.families.decoders.llama import FAMILIES"
    zoo = zoo_with(family_plugin(tmp_path, "zoo_again", text, "llama"))
    hf.LlamaConfig(
        vocab_size=50, hidden_size=16, intermediate_size=16, num_attention_heads=2
    ).save_pretrained(tmp_path / "llama")
    done = zoo("import", tmp_path / "llama", "-o", tmp_path / "llama.yaml")
    assert done.returncode == 0, done.stderr
    assert (
        "plugin 'llama' of zoo_again (zoo_again) is registered twice: by zoo.families.decoders.llama and by zoo_again"
        in done.stderr
    )
