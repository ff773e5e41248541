"""The published models nearest to a spec, and what they do differently."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from threading import Event, Thread
from typing import Any

from cli.studio.comparison import change_data
from cli.studio.model_figures import ModelFigures
from cli.studio.start_values import prepare_start_values
from specs.forms.difference import CompleteSpec, Difference, differences_between
from specs.forms.likeness import Likenesses, features
from specs.language.catalog import presets
from specs.language.load import load
from specs.language.preset_files import preset_names
from specs.model.model import Model

_NAMED = 5
"""The number of models that are named."""

_CHANGES = 4
"""The most differences that are shown of each."""


class NearestPresets:
    """Compares a spec with all presets, which are read in the background."""

    def __init__(self) -> None:
        self._specs: dict[str, Model] = {}
        self._complete: dict[str, CompleteSpec] = {}
        self._about = {preset.name: preset for preset in presets()}
        self._likenesses = Likenesses({})
        self._ready = Event()
        Thread(target=self._read, daemon=True, name="presets").start()

    def _read(self) -> None:
        try:
            prepare_start_values()
            for name in preset_names():
                self._specs[name] = load(name)
            self._likenesses = Likenesses({name: features(spec) for name, spec in self._specs.items()})
            gc.freeze()  # presets and modules stay: collections of garbage need not look at them
        finally:
            self._ready.set()

    @property
    def ready(self) -> bool:
        """Whether all presets are read."""
        return self._ready.is_set()

    def to(self, figures: ModelFigures) -> list[dict[str, Any]]:
        """The nearest presets, each with its likeness and the largest differences."""
        self._ready.wait()
        shares = sorted(
            ((share, name) for name, share in self._likenesses.to(figures.features).items()), reverse=True
        )
        spec = CompleteSpec.of(figures.spec)
        return [self._data(name, share, spec) for share, name in shares[:_NAMED]]

    def _data(self, name: str, share: float, spec: CompleteSpec) -> dict[str, Any]:
        about = self._about[name]
        if name not in self._complete:
            self._complete[name] = CompleteSpec.of(self._specs[name])
        changes = [change for change in differences_between(spec, self._complete[name]) if _computes(change)]
        changes.sort(
            key=lambda change: not isinstance(change.b, Mapping | str)
        )  # kinds say more than numbers
        return {
            "name": name,
            "likeness": share,
            "year": about.year,
            "parameters": about.parameters,
            "summary": about.summary,
            "changes": [change_data(change) for change in changes[:_CHANGES]],
            "more": max(0, len(changes) - _CHANGES),
        }


def _computes(change: Difference) -> bool:
    """Whether a difference is one of its own that changes what is computed in inference."""
    return not change.follows and change.path[0] != "initialization" and "dropout" not in str(change.path[-1])
