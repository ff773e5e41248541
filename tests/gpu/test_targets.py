"""Every target in every precision on a GPU, verified by its own provider, and run there beside the CPU.

With GPU_TESTS_ON=cpu the same tests run without a GPU, which shows that they work, and nothing about a GPU.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from exporters.benchmark.bench import bench
from exporters.benchmark.variant import BenchModel, VariantChoice, variants
from exporters.benchmark.workload import WorkloadGrid
from exporters.export import export
from exporters.graph.precisions import PRECISIONS
from exporters.runtime.encoding import EncoderRunner
from exporters.runtime.exported import open_export
from exporters.runtime.generation import Generator
from exporters.steps.manifest import Export
from exporters.steps.options import ExportOptions
from exporters.target.providers import CPU, TENSORRT, device_of, present
from exporters.target.targets import TARGETS
from exporters.verification.result import EMULATED, THE_FILES
from specs.base.errors import UserError
from specs.language.load import load
from specs.model.model import Model
from tests.zoo.checkpoints.gpt_oss_checkpoint import write_gpt_oss
from tests.zoo.tiny import bert, gpt2, t5, vit
from zoo.configs.importing import import_spec
from zoo.core.reduced import fewer_experts, fewer_layers, narrowed, small_limits, small_tables
from zoo.record.certificate import certify

DEVICE = os.environ.get("GPU_TESTS_ON", "cuda")
HERE = DEVICE == "cpu" or any(device_of(each) == DEVICE for each in present(TARGETS["cuda"].providers))

pytestmark = [pytest.mark.gpu, pytest.mark.skipif(not HERE, reason="needs a CUDA device")]

PROMPTS = [[3, 1, 4, 1, 5, 9], [2, 7, 1]]


def reduced(preset: str, divisor: int) -> Model:
    """A preset with few narrow layers."""
    return narrowed(fewer_experts(small_limits(small_tables(fewer_layers(load(preset, ()))))), divisor)


DECODERS: dict[str, Callable[[], Model]] = {
    "gpt2": lambda: gpt2(context_length=64),
    "llama": lambda: reduced("llama-3.2-1b", 16),
    "gemma": lambda: reduced("gemma3-1b", 8),
    "bloom": lambda: reduced("bloom-560m", 16),
    "mixture": lambda: reduced("qwen3-30b-a3b", 16),
    "hybrid": lambda: reduced("qwen3-next-80b-a3b", 16),
    "state": lambda: reduced("mamba2-130m", 8),
    "chunks": lambda: reduced("llama-4-scout-17b-16e-text", 16),
    "delta": lambda: reduced("rwkv7-0.1b", 4),
    "sides": lambda: reduced("zamba-7b", 16),
}
OTHERS: dict[str, Callable[[], Model]] = {
    "bert": bert, "vit": vit, "t5": t5,
    "whisper": lambda: reduced("whisper-tiny", 16),
    "conformer": lambda: reduced("wav2vec2-conformer-rel-pos-large-960h-ft", 16),
    "summaries": lambda: reduced("long-t5-tglobal-base", 16),
    "packed images": lambda: reduced("qwen3-vl-30b-a3b", 16),
}  # fmt: skip
MODELS = {**DECODERS, **OTHERS}


def exported(name: str, target: str, precision: str, place: Path) -> Export:
    """A model, exported and verified."""
    spec = MODELS[name]()
    length = 40 if TARGETS[target].static_cache and spec.decodes else None
    return export(spec, place, ExportOptions.of(target=target, precision=precision, cache_length=length))


@pytest.mark.parametrize(
    ("target", "precision"),
    [
        (target, precision)
        for target in ("cuda", "tensorrt")
        for precision in PRECISIONS
        if precision not in TARGETS[target].unsupported_precisions
    ],
)
@pytest.mark.parametrize("name", MODELS)
def test_every_export_is_verified_by_its_provider(
    name: str, target: str, precision: str, tmp_path: Path
) -> None:
    wanted = TARGETS[target].providers[0] if DEVICE == "cuda" else CPU
    if wanted == TENSORRT and TENSORRT not in present([TENSORRT]):
        pytest.skip("needs the libraries of TensorRT")
    verification = exported(name, target, precision, tmp_path / "out").verification
    assert verification is not None
    assert verification.provider == wanted
    assert (verification.not_run is None) == (DEVICE == "cuda")


@pytest.mark.parametrize("target", ["portable", "cuda", "tensorrt"])
@pytest.mark.parametrize("name", DECODERS)
def test_tokens_are_those_of_the_cpu(name: str, target: str, tmp_path: Path) -> None:
    place = exported(name, target, "fp32", tmp_path / "out").directory
    there, here = (Generator(open_export(place, device)) for device in (DEVICE, "cpu"))
    assert device_of(there.provider) == DEVICE
    tokens = [[each.ids for each in model.generate(PROMPTS, 12).continuations] for model in (there, here)]
    assert tokens[0] == tokens[1]


@pytest.mark.parametrize("target", ["portable", "cuda"])
def test_vectors_are_those_of_the_cpu(target: str, tmp_path: Path) -> None:
    place = exported("bert", target, "fp32", tmp_path / "out").directory
    there, here = (EncoderRunner(open_export(place, device)) for device in (DEVICE, "cpu"))
    assert device_of(there.provider) == DEVICE
    np.testing.assert_allclose(there.vectors(PROMPTS).values, here.vectors(PROMPTS).values, atol=1e-4)


def test_experts_in_4_bit_floats_are_computed_on_the_device(tmp_path: Path) -> None:
    """GPT-OSS with the codes and exponents of its checkpoint, which no other provider reads."""
    write_gpt_oss(tmp_path / "x", width=512, hidden=512)
    options = ExportOptions.of(
        target="cuda", precision="int4", rounding="nearest", weights=str(tmp_path / "x")
    )
    made = export(import_spec(tmp_path / "x"), tmp_path / "out", options)
    assert [found.carried for found in made.manifest.quantized] == [True]
    assert made.verification is not None
    assert made.verification.ran == (THE_FILES if DEVICE == "cuda" else EMULATED)
    if DEVICE == "cpu":
        with pytest.raises(UserError, match="its experts are 4-bit floats"):
            open_export(made.directory, DEVICE).open(0)
        return
    found = certify(made.directory, DEVICE)
    assert found.passed, (found.faults, found.note)
    for prompts in (PROMPTS, [[1] * 40]):  # steps of few tokens and long prompts have kernels of their own
        model = Generator(open_export(made.directory, DEVICE))
        assert all(len(each.ids) == 8 for each in model.generate(prompts, 8).continuations)


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("name", ["bert", "llama", "t5"])
def test_the_files_are_certified_on_the_device(name: str, precision: str, tmp_path: Path) -> None:
    found = certify(exported(name, "cuda", precision, tmp_path / "out").directory, DEVICE)
    assert found.passed, found.faults
    assert device_of(found.provider) == DEVICE


@pytest.mark.parametrize("name", ["bert", "llama", "mixture", "hybrid", "t5"])
def test_heavy_operations_run_on_the_device(name: str, tmp_path: Path) -> None:
    """Products and attention in half precision; shapes and masks may be computed by the CPU."""
    place = exported(name, "cuda", "fp16", tmp_path / "out").directory
    heavy = {
        "MatMul", "Gemm", "MatMulNBits", "GroupQueryAttention", "MultiHeadAttention", "MoE", "QMoE",
        "LinearAttention",
    }  # fmt: skip
    for graph in open_export(place, DEVICE).graphs:
        elsewhere = {
            node.op_type
            for part in assignment(graph)
            if device_of(part.ep_name) != DEVICE
            for node in part.get_nodes()
        }
        assert not elsewhere & heavy


def assignment(graph: Path) -> Any:
    """The parts of a graph and the providers that run them."""
    import onnxruntime

    from exporters.target.providers import on_provider, with_options

    options = onnxruntime.SessionOptions()
    options.add_session_config_entry("session.record_ep_graph_assignment_info", "1")
    providers = with_options(on_provider(DEVICE))
    return onnxruntime.InferenceSession(graph, options, providers).get_provider_graph_assignment_info()


def test_bench_times_exports_and_pytorch_on_the_device(tmp_path: Path) -> None:
    spec = reduced("llama-3.2-1b", 16)
    choice = VariantChoice(("cuda",), ("fp16", "int4"), "last", ("eager",))
    found = list(variants([BenchModel(spec.name, spec)], choice, tmp_path, lambda stage: None))
    report = bench(found, WorkloadGrid(lengths=("8",), pasts=(4,)), 1, 0.1, DEVICE, lambda stage: None)
    assert not [each.fault for each in report.loaded if each.fault]
    assert {device_of(each.provider) for each in report.loaded if each.provider != "PyTorch"} == {DEVICE}
    assert [len(group) for group in report.timings] == [3, 3]
