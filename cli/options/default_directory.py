"""Default output directories, named after the model and the options that change the files."""

from __future__ import annotations

from pathlib import Path

from specs.files.export_options import OptionTable, directory_words

BUILD = Path("build")


def export_directory(name: str, options: OptionTable) -> Path:
    """Return build/gpt2 or build/gpt2-int8-cpu, so that exports with other options do not replace each other."""
    graph_alone = ["graph"] if options.weights == "none" else []
    return BUILD / "-".join([name, *directory_words(options), *graph_alone])


def checkpoint_directory(name: str, dtype: str, family: str | None) -> Path:
    """Return build/gpt2-checkpoint or build/gpt2-checkpoint-fp16."""
    words = [*([] if dtype == "fp32" else [dtype]), *([family] if family else [])]
    return BUILD / "-".join([name, "checkpoint", *words])
