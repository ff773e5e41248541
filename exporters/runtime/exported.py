"""A directory that an export wrote, as something to run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from exporters.runtime.graph import Graph
from specs.errors import UserError
from specs.load import load
from specs.model import Model
from zoo.destination import MANIFEST

_NEEDED = {"graphs", "weights", "providers", "layout", "cache", "options"}


@dataclass(frozen=True)
class CacheFacts:
    """How a decoder's graph keeps keys and values.

    A ``growing`` cache comes out longer than it went in; a ``shared`` one is written in place, in memory of its full
    length, which is ``length`` where the graph fixes it.  ``padding`` is where a graph allows padding in a batch.
    """

    kind: Literal["growing", "shared"] = "growing"
    padding: Literal["either", "right"] = "either"
    length: int | None = None


@dataclass(frozen=True)
class Exported:
    """The spec of an exported directory, and what its manifest says.

    Of the ``graphs`` the first reads what an encoder reads, and the last makes every step of a decoder; often they are
    one.  ``settings`` are those of the checkpoint's generation: ids of tokens that start and end a sequence; ``options``
    those of :data:`exporters.export.SHAPING`.
    """

    directory: Path
    spec: Model
    target: str
    precision: str
    providers: tuple[str, ...]
    cache: CacheFacts
    layout: str
    graphs: tuple[Path, ...]
    settings: Mapping[str, Any]
    options: Mapping[str, Any]

    def open(self, place: int, threads: int = 0) -> Graph:
        """One of the graphs, loaded.  Raises :class:`specs.errors.UserError` where ONNX Runtime refuses it."""
        return Graph(self.graphs[place], self.providers, threads)

    @property
    def size(self) -> int:
        """The bytes of the graphs and their weights."""
        return sum(path.stat().st_size for path in self.directory.rglob("*.onnx*"))


def open_export(directory: Path) -> Exported:
    """Read what an export recorded of itself.

    Raises :class:`specs.errors.UserError` where the directory is no export, or one without weights.
    """
    manifest = _json(directory / MANIFEST)
    if manifest is None or not manifest.keys() >= _NEEDED:
        raise UserError(
            f"{directory} is no export: it has no {MANIFEST} of one\n"
            f"  give a directory that zoo export or zoo build wrote, such as build/gpt2"
        )
    if manifest["weights"].startswith("none"):
        raise UserError(
            f"{directory} cannot be run: it was exported without weights\n  export it with --weights random, or a path"
        )
    settings = {
        **(_json(directory / "config.json") or {}),
        **(_json(directory / "generation_config.json") or {}),
    }
    return Exported(
        directory,
        load(directory / "spec.yaml"),
        manifest["target"],
        manifest["precision"],
        tuple(manifest["providers"]),
        CacheFacts(**manifest["cache"] or {}),
        manifest["layout"],
        tuple(directory / name for name in manifest["graphs"]),
        settings,
        manifest["options"],
    )


def _json(path: Path) -> dict[str, Any] | None:
    """The object in a JSON file; None where there is none."""
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return data if isinstance(data, dict) else None
