"""An exported directory that can be run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from exporters.providers import on_provider, present
from exporters.runtime.graph import LoadedGraph
from specs.errors import UserError, option_name
from specs.load import load
from specs.model import Model
from zoo.checkpoints.carried import GENERATION, stated_in
from zoo.destination import MANIFEST
from zoo.families.common.config import CONFIG
from zoo.integrity import check_sizes
from zoo.manifest import Manifest, read_manifest
from zoo.records import CacheRecord


@dataclass(frozen=True)
class Exported:
    """The spec of an exported directory, and its manifest.

    ``settings`` are the checkpoint's generation settings, such as the ids of start and end tokens, and ``providers`` those
    that its graphs run on, in order of preference.
    """

    directory: Path
    spec: Model
    manifest: Manifest
    settings: Mapping[str, Any]
    providers: tuple[str, ...]

    @property
    def graphs(self) -> tuple[Path, ...]:
        """The paths of the graphs: the first reads an encoder's input, the last makes every step of a decoder; often
        they are one."""
        return tuple(self.directory / name for name in self.manifest.graphs)

    @property
    def cache(self) -> CacheRecord:
        """How a decoder's graph keeps keys and values.

        A ``growing`` cache is returned longer than it was passed; a ``shared`` one is written in place, in a buffer
        of full length, which is ``length`` where the graph fixes it. ``padding`` is the side on which a graph takes
        padding in a batch.
        """
        return self.manifest.cache or CacheRecord()

    def open(self, place: int, threads: int = 0) -> LoadedGraph:
        """One of the graphs, loaded.  Raises :class:`specs.errors.UserError` where ONNX Runtime refuses it."""
        return LoadedGraph(self.graphs[place], self.providers, threads)

    @property
    def size(self) -> int:
        """The bytes of the graphs and their weights."""
        return sum(self.manifest.files[name].size for name in self.manifest.model_files)


def open_export(directory: Path, provider: str | None = None) -> Exported:
    """Read the records of an export, which runs on a provider by name (:func:`exporters.providers.on_provider`), or on the first
    of its own that this machine has.

    Raises :class:`specs.errors.UserError` where the directory is not an export, is damaged, or has no weights, and for a
    provider that this machine does not have.
    """
    if not (directory / MANIFEST).is_file():
        raise UserError(
            f"{directory} is not an export (no {MANIFEST})\n"
            f"  Pass a directory that zoo export or zoo build wrote, such as build/gpt2."
        )
    manifest = read_manifest(directory)
    if manifest.weights == "none":
        raise UserError(
            f"{directory} cannot be run: the export has no weights\n  Export it with {option_name('weights')} random or a path."
        )
    check_sizes(directory, manifest)
    settings = {**stated_in(directory / CONFIG), **stated_in(directory / GENERATION)}
    wanted = manifest.providers
    providers = present(wanted) if provider is None else on_provider(provider)
    return Exported(directory, load(directory / "spec.yaml"), manifest, settings, tuple(providers))
