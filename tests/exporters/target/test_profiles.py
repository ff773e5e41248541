"""Optimization profiles: the shapes that compilers prepare graphs for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from exporters.export import export
from exporters.steps.options import ExportOptions
from exporters.steps.plan import Plan
from exporters.target.profiles import Shapes, profile, provider_options, read_options
from specs.model.model import Model
from tests.exporters.reduced_presets import structure
from tests.zoo.tiny import bert, clip, gpt2, llava, t5, wav2vec2
from zoo.tracing.symbols import summands
from zoo.tracing.task import Task


def profiles(spec: Model, **options: Any) -> dict[str, tuple[Task, Shapes]]:
    plan = Plan.make(spec, ExportOptions(**{"target": "tensorrt", **options}))
    return {task.name: (task, profile(spec, task)) for task in plan.tasks}


def named(task: Task, shapes: Shapes, end: int) -> dict[str, set[int]]:
    """All sizes that each symbol has at one end, those of sums apart."""
    found: dict[str, set[int]] = {}
    for given in task.inputs:
        for dim, size in zip(given.dims, shapes[given.name][end], strict=True):
            if isinstance(dim, str):
                found.setdefault(dim, set()).add(size)
            else:
                assert size == dim
    return found


SPECS = [
    bert(), gpt2(), t5(), clip(), llava(), wav2vec2(), structure("qwen2-vl-2b"), structure("moonshine-base"),
]  # fmt: skip


@pytest.mark.parametrize("target", ["tensorrt", "portable"])
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_a_dim_has_one_size_in_every_input(spec: Model, target: str) -> None:
    length = 8 if target == "tensorrt" and spec.decodes and not spec.context_length else None
    for task, shapes in profiles(spec, target=target, cache_length=length).values():
        for end in range(3):
            sizes = {
                dim: values.pop() for dim, values in named(task, shapes, end).items() if len(values) == 1
            }
            assert sizes.keys() == named(task, shapes, end).keys()
            for dim, size in sizes.items():
                if len(summands(dim)) > 1:
                    assert size == sum(sizes[symbol] for symbol in summands(dim))
            for name, derived in task.derived.items():
                assert sizes[name] in {derived.size(vectors) for vectors in range(3000)}
        for shape in shapes.values():
            assert all(least <= common <= most for least, common, most in zip(*shape, strict=True))


def test_a_decoder_is_prepared_for_steps_and_for_pieces_of_prompts() -> None:
    _, shapes = profiles(structure("llama-2-7b"), cache_length=1000)["model"]
    assert shapes["input_ids"] == ((1, 1), (1, 1), (8, 1000))
    assert shapes["past_key_values.0.key"].most[0] == 8
    _, shapes = profiles(gpt2(context_length=10_000))["model"]
    assert shapes["input_ids"].most == (8, 2048)
    assert shapes["past_key_values.0.key"].most[2] == 10_000


def test_past_and_new_tokens_fit_together() -> None:
    _, shapes = profiles(gpt2(), target="portable")["model"]
    assert shapes["input_ids"].most[1] + shapes["past_key_values.0.key"].most[2] == 10
    assert shapes["past_key_values.0.key"].least[2] == 0


def test_text_may_be_without_images() -> None:
    assert profiles(llava())["embedding"][1]["image_features"].least[0] == 0
    assert profiles(llava())["vision_encoder"][1]["pixel_values"].least[0] == 1


def test_the_file_has_the_options_of_the_provider(tmp_path: Path) -> None:
    spec = gpt2(context_length=5)
    export(spec, tmp_path / "out", ExportOptions(target="tensorrt", verify=False, weights="none"))
    options = json.loads((tmp_path / "out/tensorrt.json").read_bytes())["model.onnx"]
    assert options["trt_profile_max_shapes"].startswith(
        "input_ids:8x5,position_ids:8x5,past_key_values.0.key:8x2x5x4,"
    )
    _, shapes = profiles(spec)["model"]
    assert read_options(options) == shapes
    assert provider_options(shapes) == options
    card = (tmp_path / "out/README.md").read_text("utf-8")
    assert '("TensorrtExecutionProvider", shapes["model.onnx"])' in card
    assert "trtexec --stronglyTyped --onnx=model.onnx --saveEngine=model.engine" in card
    assert "trt_profile_max_shapes" in card


def test_no_other_target_has_the_file(tmp_path: Path) -> None:
    export(bert(), tmp_path / "out", ExportOptions(verify=False, weights="none"))
    assert not (tmp_path / "out/tensorrt.json").exists()
    assert "Optimization profiles" not in (tmp_path / "out/README.md").read_text("utf-8")
