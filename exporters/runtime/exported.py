"""Opening an exported directory to run it."""

from __future__ import annotations

import functools
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from exporters.runtime.graph import LoadedGraph
from exporters.runtime.sentences import SentenceUsage
from exporters.target.providers import on_provider, present
from specs.base.errors import UserError, option_name
from specs.base.suggest import suggestion
from specs.language.load import load
from specs.model.model import Model
from zoo.checkpoints.carried import FILES, stated_in
from zoo.families.common.config import CONFIG
from zoo.files.destination import MANIFEST, is_text
from zoo.files.ownership import ADAPTER, SIGNATURE
from zoo.generation.settings import GENERATION, GenerationSettings
from zoo.record.integrity import check_sizes
from zoo.record.manifest import Manifest, read_manifest
from zoo.record.records import CacheRecord
from zoo.weights.adapters import refuse_adapter
from zoo.weights.modules import STATIC_PLACE
from zoo.weights.names import SINGLE


@dataclass(frozen=True)
class Exported:
    """The spec of an exported directory, and its manifest.

    ``settings``: the checkpoint's generation settings, such as the ids of start and end tokens. ``providers``: the execution
    providers of its graphs, in order of preference. ``adapter``: the file of the adapter that is switched on.
    """

    directory: Path
    spec: Model
    manifest: Manifest
    settings: GenerationSettings
    providers: tuple[str, ...]
    adapter: Path | None = None

    @property
    def graphs(self) -> tuple[Path, ...]:
        """The paths of the graphs: the first reads an encoder's input, the last runs every step of a decoder; often they are
        the same."""
        return tuple(self.directory / name for name in self.manifest.graphs)

    @property
    def cache(self) -> CacheRecord:
        """The cache of a decoder's graph.

        A ``growing`` cache is returned longer than it was passed; a ``shared`` cache is written in place, in a buffer of full
        length, which is ``length`` if the graph fixes it. ``padding`` is the side of padding in a batch.
        """
        return self.manifest.cache or CacheRecord()

    def open(self, index: int, threads: int = 0, *, in_turn: bool = False) -> LoadedGraph:
        """Load one of the graphs, to run ``in_turn`` with another session or alone.

        Raises :class:`specs.base.errors.UserError` if ONNX Runtime rejects it.
        """
        return LoadedGraph(self.graphs[index], self.providers, threads, self.adapter, in_turn=in_turn)

    @property
    def labels(self) -> Mapping[str, str]:
        """The names of classes by number, if the config has them."""
        names: Mapping[str, str] = stated_in(self.directory / CONFIG).get("id2label") or {}
        return names

    @functools.cached_property
    def sentences(self) -> SentenceUsage:
        """The settings of a sentence encoder."""
        spec = self.spec
        if not spec.head.embeds_texts:
            return SentenceUsage()
        return SentenceUsage.beside(self.directory, spec.context_length_of(spec.last_stack))

    @property
    def static_queries(self) -> Path | None:
        """The directory of the static weights of queries, if the checkpoint has them."""
        listed = f"{STATIC_PLACE}/{SINGLE}" in self.manifest.files
        return self.directory / STATIC_PLACE if listed else None

    @property
    def size(self) -> int:
        """The bytes of the graphs and their weights."""
        return sum(self.manifest.files[name].size for name in self.manifest.model_files)


def _check_settings(directory: Path, manifest: Manifest) -> None:
    """Raise :class:`specs.base.errors.UserError` for a tokenizer or settings next to a signed export outside its signature.

    They change the model's inputs and outputs.
    """
    signed = os.path.lexists(directory / SIGNATURE)
    for name in (CONFIG, *FILES) if signed else ():
        if name not in manifest.files and os.path.lexists(directory / name):
            raise UserError(
                f"{directory} is signed, and holds {name}, which is not part of the export ({MANIFEST} does not list it)\n"
                f"  Move it to another directory; pass a tokenizer as {option_name('tokenizer')}."
            )


def open_export(directory: Path, provider: str | None = None, adapter: str | None = None) -> Exported:
    """Read the records of an export, to run on ``provider`` (:func:`exporters.target.providers.on_provider`), or on the first of its
    providers that this machine has, with one of its adapters if ``adapter`` names one.

    Raises :class:`specs.base.errors.UserError` if the directory is not an export, is damaged, or has no weights, and for a
    provider that this machine does not have.
    """
    if not os.path.lexists(directory / MANIFEST):
        refuse_adapter(directory)
        if os.path.lexists(directory / CONFIG):
            raise UserError(
                f"{directory} is not an export (no {MANIFEST})\n"
                f"  It is a checkpoint: export it first, with zoo export {shlex.quote(str(directory))}."
            )
    manifest = read_manifest(directory)
    if manifest.weights == "none":
        raise UserError(
            f"{directory} cannot be run: the export has no weights\n  Export it with {option_name('weights')} random or a path."
        )
    if not is_text(directory):
        raise UserError(
            f"{str(directory)!a}: the path of an export must be UTF-8, because ONNX Runtime opens no other\n"
            "  Rename the directory."
        )
    check_sizes(directory, manifest)
    _check_settings(directory, manifest)
    settings = GenerationSettings.of(
        stated_in(directory / GENERATION), stated_in(directory / CONFIG), directory
    )
    wanted = manifest.providers
    providers = present(wanted) if provider is None else on_provider(provider)
    spec = load(directory / "spec.yaml")
    return Exported(
        directory, spec, manifest, settings, tuple(providers), _adapter(directory, manifest, adapter)
    )


def _adapter(directory: Path, manifest: Manifest, name: str | None) -> Path | None:
    """The file of an adapter. Raises :class:`specs.base.errors.UserError` where the export has none of the name."""
    if name is None:
        return None
    if name not in manifest.adapters:
        remedy = (
            suggestion(name, manifest.adapters)
            if manifest.adapters
            else f"Export the model with {option_name('adapters')} {name}=DIR."
        )
        raise UserError(f"{directory} has no adapter {name!r}\n  {remedy}")
    return directory / f"{name}{ADAPTER}"
