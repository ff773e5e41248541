"""Where directories are written by default."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli.options.default_directory import checkpoint_directory, export_directory
from exporters.steps.options import ExportOptions
from specs.files.export_options import mark_of
from tests.cli.program import done
from zoo.record.records import ShapingRecord


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({}, "m"),
        ({"precision": "int8"}, "m-int8"),
        ({"precision": "int8", "target": "cpu"}, "m-int8-cpu"),
        ({"target": "cpu", "layout": "genai", "logits": "last"}, "m-cpu-genai-last-logits"),
        (
            {"precision": "int4", "block_size": 64, "asymmetric": True, "target": "cpu"},
            "m-int4-cpu-block-64-asymmetric",
        ),
        ({"precision": "int4", "head_precision": "int4", "target": "cpu"}, "m-int4-cpu-head-int4"),
        ({"target": "tensorrt", "cache_length": 512}, "m-tensorrt-cache-512"),
        ({"via": "torch"}, "m-via-torch"),
        ({"weights": "none"}, "m-graph"),
        ({"weights": "path/to/checkpoint", "seed": 3, "verify": False}, "m"),
    ],
)
def test_the_name_includes_options_that_change_the_files(options: dict[str, Any], name: str) -> None:
    assert export_directory("m", ExportOptions(**options)) == Path("build", name)


def test_recorded_options_have_words() -> None:
    recorded = {*ShapingRecord.model_fields, "target", "precision", "layout"}
    assert recorded <= {name for name in ExportOptions.model_fields if mark_of(name).word}


def test_checkpoints_of_other_types_and_families_have_other_names() -> None:
    assert checkpoint_directory("m", "fp32", None) == Path("build", "m-checkpoint")
    assert checkpoint_directory("m", "fp16", "llama") == Path("build", "m-checkpoint-fp16-llama")


def test_exports_of_other_precisions_do_not_replace_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = [["export"], ["export", "--precision", "int8"], ["convert"], ["convert", "--dtype", "fp16"]]
    for command, *options in commands:
        verify = ["--no-verify"] if command == "export" else []
        done(command, "bert-tiny", *verify, *options)
    names = ["bert-tiny", "bert-tiny-checkpoint", "bert-tiny-checkpoint-fp16", "bert-tiny-int8"]
    assert sorted(path.name for path in Path("build").iterdir()) == names
