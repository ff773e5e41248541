"""The published models nearest to a spec, and what they do differently."""

from __future__ import annotations

from threading import Event, Thread
from typing import Any

from cli.studio.comparison import change_data
from cli.studio.model_figures import ModelFigures
from specs.forms.difference import differences
from specs.forms.likeness import Features, features, likeness
from specs.language.catalog import preset_names, presets
from specs.language.load import load
from specs.model.model import Model

_NAMED = 5
"""The number of models that are named."""

_CHANGES = 4
"""The most differences that are shown of each."""


class NearestPresets:
    """Compares a spec with all presets, which are read in the background."""

    def __init__(self) -> None:
        self._features: dict[str, Features] = {}
        self._specs: dict[str, Model] = {}
        self._about = {preset.name: preset for preset in presets()}
        self._ready = Event()
        Thread(target=self._read, daemon=True, name="presets").start()

    def _read(self) -> None:
        try:
            for name in preset_names():
                self._specs[name] = load(name)
                self._features[name] = features(self._specs[name])
        finally:
            self._ready.set()

    def to(self, figures: ModelFigures) -> list[dict[str, Any]]:
        """The nearest presets, each with its likeness and the largest differences."""
        self._ready.wait()
        own = figures.features
        shares = sorted(((likeness(own, other), name) for name, other in self._features.items()), reverse=True)
        return [self._data(name, share, figures.spec) for share, name in shares[:_NAMED]]

    def _data(self, name: str, share: float, spec: Model) -> dict[str, Any]:
        about, changes = self._about[name], differences(spec, self._specs[name])
        return {
            "name": name,
            "likeness": share,
            "year": about.year,
            "parameters": about.parameters,
            "summary": about.summary,
            "changes": [change_data(change) for change in changes if not change.follows][:_CHANGES],
            "more": max(0, len(changes) - _CHANGES),
        }
