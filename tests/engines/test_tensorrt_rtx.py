"""The compiler of TensorRT for RTX takes the graphs of its target, and refuses those without what the target's row says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from exporters.export import export
from exporters.steps.options import ExportOptions
from exporters.target.targets import FLOATS, TARGETS, Target
from exporters.verification.engines.compile_export import compile_export
from exporters.verification.engines.replay import replay
from exporters.verification.engines.table import ENGINES
from specs.base.errors import UserError
from tests.exporters.reduced_presets import structure
from tests.zoo.tiny import gpt2
from zoo.record.integrity import check_integrity
from zoo.record.manifest import read_manifest, read_record

pytestmark = pytest.mark.engines

COMPILER = ENGINES["tensorrt-rtx"]


def exported(preset: str, precision: str, place: Path) -> Path:
    """The files of a reduced model, not compared with anything."""
    spec = structure(preset)
    length = 64 if spec.decodes else None
    options = ExportOptions.of(target="tensorrt", precision=precision, cache_length=length, verify=False)
    return export(spec, place, options).directory


STRUCTURES = [
    ("bert-base", "fp16"),
    ("albert-base-v2", "int4"),  # layers that share their weights
    ("gpt2", "fp32"),
    ("neobert", "fp32"),  # pairs of neighbours are rotated
    ("gemma2-27b", "bf16"),  # soft caps
    ("mixtral-8x22b", "int8"),
    ("deepseek-v2-lite", "int4"),  # keys and values of two widths
    ("bart-base", "int8"),
    ("distil-whisper-large-v3", "fp16"),
    ("hubert-base-ls960", "fp16"),  # sizes that follow from others
    ("falcon-mamba-7b", "fp32"),
    ("qwen2-vl-2b", "int4"),
    ("qwen3-vl-2b", "int8"),  # a batch of one through narrow layers
    ("qwen3-next-80b-a3b", "fp16"),  # delta rules
]


@pytest.mark.parametrize(("preset", "precision"), STRUCTURES)
def test_a_structure_compiles(preset: str, precision: str, tmp_path: Path) -> None:
    _, found = replay(exported(preset, precision, tmp_path / "x"), COMPILER)
    assert found.outcome == "compiled", str(found)
    assert found.architectures == ("sm89",)


@pytest.mark.parametrize("precision", ["fp16", "bf16", "int4"])
def test_an_export_with_fused_attention_is_proven_on_the_compiler(precision: str, tmp_path: Path) -> None:
    options = ExportOptions.of(target="tensorrt", precision=precision, engines=(COMPILER.name,))
    result = export(gpt2(d_model=64), tmp_path / "x", options)
    assert result.graphs["model.onnx"]["operations"]["Attention"] == 2
    assert result.verification is not None
    (found,) = result.verification.engines
    assert (found.outcome, found.architectures) == ("compiled", ("sm89",))


def test_engines_are_written_for_several_architectures(tmp_path: Path) -> None:
    place = exported("gpt2", "fp16", tmp_path / "x")
    (found,) = compile_export(place, ("sm86", "sm89", "sm120"))
    manifest = read_manifest(place)
    assert found.path == "model.engine"
    assert manifest.files["model.engine"].size > 100_000
    assert manifest.compiled["model.engine"].architectures == ("sm86", "sm89", "sm120")
    assert check_integrity(read_record(place), contents=True).intact
    with pytest.raises(UserError, match="sm75, sm80, sm86, sm89, sm120, sm121"):
        compile_export(place, ("sm90",))


SABOTAGE: list[tuple[str, str, Callable[[Target], Target], str]] = [
    ("bert-base", "int8", lambda row: replace(row, positive_scales=False), "must all be positive"),
    ("gpt2", "fp32",
     lambda row: replace(row, operations={**row.operations, "Attention": FLOATS}, attention_widths=range(1, 10**6)),
     "not supported by a dedicated kernel"),
    ("gpt2", "fp16", lambda row: replace(row, attention_widths=range(1, 10**6)), "not supported by a dedicated kernel"),
    ("mixtral-8x22b", "fp16", lambda row: replace(row, static_shapes=False), "NonZero"),
    ("dinov3-huge-plus-16", "int4", lambda row: replace(row, undivided="short block"), "must divide into whole"),
    ("qwen3-next-80b-a3b", "fp16", lambda row: replace(row, chunks_delta_rules=True), "producer is not shape_call"),
    ("neobert", "fp32", lambda row: replace(row, interleaved=FLOATS), "ssa_validation"),
]  # fmt: skip
"""What the row of the target says, undone, and the compiler's own words."""


@pytest.mark.parametrize(("preset", "precision", "undone", "words"), SABOTAGE)
def test_a_graph_made_wrong_is_refused(
    preset: str,
    precision: str,
    undone: Callable[[Target], Target],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(TARGETS, "tensorrt", undone(TARGETS["tensorrt"]))
    _, found = replay(exported(preset, precision, tmp_path / "x"), COMPILER)
    assert found.outcome == "failed"
    assert words in found.words
