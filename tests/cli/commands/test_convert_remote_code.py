"""``zoo convert --remote-code``: a directory that transformers loads without this project, and what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import zoo
from tests.cli.process import environment
from tests.cli.program import invoke

VARIANT = """\
extends: tiny-gpt
name: my-variant
position: {kind: rope}
decoder:
  layers: 2
  block:
    kind: sandwich
    attention: {kind: grouped_query, heads: 4, kv_heads: 2}
"""
"""A decoder that no family can express."""

LOADS = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("zoo", "specs", "exporters", "cli"):
            raise ImportError(f"{name} must not be needed")

sys.meta_path.insert(0, Absent())
import torch, transformers

model = transformers.AutoModelForCausalLM.from_pretrained(sys.argv[1], trust_remote_code=True)
ids = torch.tensor([[1, 5, 2, 7]])
new = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=6, do_sample=False, pad_token_id=0)
print(new[0, 4:].tolist())
"""
Run = Callable[..., Any]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the command in a directory that has my-variant.yaml."""
    monkeypatch.chdir(tmp_path)
    Path("my-variant.yaml").write_text(VARIANT)
    return lambda *arguments: invoke("convert", *arguments)


@pytest.mark.slow
def test_transformers_loads_it_without_this_project(run: Run) -> None:
    refused = run("my-variant.yaml", "-o", "plain")
    assert refused.exit_code == 2
    made = run("my-variant.yaml", "--remote-code", "--seed", "3", "-o", "out")
    assert made.exit_code == 0, made.output
    loading = 'transformers.AutoModelForCausalLM.from_pretrained("out",trust_remote_code=True)'
    assert loading in "".join(made.stdout.split())
    assert made.stdout.splitlines()[-1].split("  #")[0] == "  zoo build my-variant.yaml --weights out"
    files = {"config.json", "configuration_my_variant.py", "model.safetensors", "modeling_my_variant.py"}
    assert files <= {path.name for path in Path("out").iterdir()}
    loaded = subprocess.run(
        [sys.executable, "-c", LOADS, "out"], env=environment(HF_MODULES_CACHE="cache"), capture_output=True, text=True
    )  # fmt: skip
    assert loaded.returncode == 0, loaded.stderr[-3000:]
    ours: Any = zoo.build("my-variant.yaml", weights="random", seed=3)
    assert json.loads(loaded.stdout) == ours.generate([[1, 5, 2, 7]], 6)[0]


def test_all_as_data(run: Run) -> None:
    made = run("my-variant.yaml", "--remote-code", "-o", "out", "--json")
    assert made.exit_code == 0, made.output
    data = json.loads(made.stdout)
    assert data["directory"] == "out"
    assert data["files"]["modeling_my_variant.py"] == Path("out/modeling_my_variant.py").stat().st_size


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tiny-gpt", "--as", "gpt2"], "--remote-code and --as are mutually exclusive\n  Remove one of them.\n"),
        (["qwen2-vl-2b"], "qwen2-vl-2b: images of any size cannot be written as remote code\n  Use images of one size, or a family that can express the spec.\n"),
    ],
)  # fmt: skip
def test_what_it_cannot_write_is_refused_with_a_remedy(run: Run, arguments: list[str], message: str) -> None:
    refused = run(*arguments, "--remote-code", "-o", "out")
    assert (refused.exit_code, refused.stdout) == (2, ""), refused.output
    assert refused.stderr.startswith(message)
    assert not Path("out").exists()
