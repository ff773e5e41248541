"""Rows of default screens about a written checkpoint."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cli.terminal.screen import Screen, doubtful, row_width
from zoo.core.units import byte_text
from zoo.weights.modules import MODULES
from zoo.weights.names import GLINER

if TYPE_CHECKING:
    from zoo.checkpoints.converting import Conversion


_ENCODERS = {"_SpladePooling/": "SparseEncoder", "_MultiVectorMask/": "MultiVectorEncoder"}
"""The classes of sentence-transformers for heads of retrieval, by a module's directory; SentenceTransformer ignores these modules."""


def checkpoint_rows(screen: Screen, written: Conversion, directory: Path, *, remote_code: bool) -> None:
    """Print the weights, the files, and the expression that loads the checkpoint in Python."""
    if screen.silent:
        return
    weights = (
        doubtful("random weights") if written.weights.startswith("random") else f"from {written.weights}"
    )
    screen.fact("params", (f"{written.parameters:,} in {written.dtype}, ", weights))
    screen.fact("files", f"{len(written.files)} files, {byte_text(sum(written.files.values()))}")
    if written.class_name is None:
        screen.fact("class", doubtful("none: no family of transformers can express this spec"))
    expression = loader(written, directory, remote_code=remote_code)
    name, _, arguments = expression.partition("(")
    screen.fact(
        "load", *([expression] if len(expression) <= row_width() else [f"{name}(", f"    {arguments}"])
    )


def loader(written: Conversion, directory: Path, *, remote_code: bool = False) -> str:
    """The expression that loads a checkpoint in Python."""
    if written.class_name is None and written.loader is None:
        return f'zoo.build("{directory}/spec.yaml", "{directory}")'
    if GLINER in written.files:
        return f'gliner.GLiNER.from_pretrained("{directory}")'
    if MODULES in written.files:
        named = (name for module, name in _ENCODERS.items() if any(module in file for file in written.files))
        return f'sentence_transformers.{next(named, "SentenceTransformer")}("{directory}")'
    trusted = ", trust_remote_code=True" if remote_code else ""
    return f'transformers.{written.loader or written.class_name}.from_pretrained("{directory}"{trusted})'
