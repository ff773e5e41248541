"""A directory that an export wrote, as something to run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exporters.runtime.graph import Graph
from specs.errors import UserError, option_name
from specs.load import load
from specs.model import Model
from zoo.checkpoints.carried import GENERATION, stated_in
from zoo.configs.config import CONFIG
from zoo.destination import MANIFEST
from zoo.integrity import check_sizes
from zoo.manifest import CacheRecord, Manifest, read_manifest


@dataclass(frozen=True)
class Exported:
    """The spec of an exported directory, and its manifest.

    ``settings`` are those of the checkpoint's generation, such as the ids of tokens that start and end a sequence.
    """

    directory: Path
    spec: Model
    manifest: Manifest
    settings: Mapping[str, Any]

    @property
    def graphs(self) -> tuple[Path, ...]:
        """The first reads what an encoder reads, the last makes every step of a decoder; often they are one."""
        return tuple(self.directory / name for name in self.manifest.graphs)

    @property
    def cache(self) -> CacheRecord:
        """How a decoder's graph keeps keys and values.

        A ``growing`` cache comes out longer than it went in; a ``shared`` one is written in place, in memory of its full
        length, which is ``length`` where the graph fixes it.  ``padding`` is where a graph allows padding in a batch.
        """
        return self.manifest.cache or CacheRecord()

    def open(self, place: int, threads: int = 0) -> Graph:
        """One of the graphs, loaded.  Raises :class:`specs.errors.UserError` where ONNX Runtime refuses it."""
        return Graph(self.graphs[place], self.manifest.providers, threads)

    @property
    def size(self) -> int:
        """The bytes of the graphs and their weights."""
        return sum(self.manifest.files[name].size for name in self.manifest.model_files)


def open_export(directory: Path) -> Exported:
    """Read what an export recorded of itself.

    Raises :class:`specs.errors.UserError` where the directory is no export, is damaged, or has no weights.
    """
    if not (directory / MANIFEST).is_file():
        raise UserError(
            f"{directory} is no export: it has no {MANIFEST} of one\n"
            f"  give a directory that zoo export or zoo build wrote, such as build/gpt2"
        )
    manifest = read_manifest(directory)
    if manifest.weights == "none":
        raise UserError(
            f"{directory} cannot be run: it was exported without weights\n  export it with {option_name('weights')} random, or a path"
        )
    check_sizes(directory, manifest)
    settings = {**stated_in(directory / CONFIG), **stated_in(directory / GENERATION)}
    return Exported(directory, load(directory / "spec.yaml"), manifest, settings)
