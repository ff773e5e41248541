"""Changes from one catalog to the next: artefacts added, removed, and changed with the reasons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from specs.base.errors import UserError
from specs.forms.resolved import resolved
from specs.model.model import Model
from zoo.catalog.entries import CatalogEntry, distinct_models
from zoo.record.changes import input_changes, spec_changes

FORMAT = 1
KEPT = 20
"""The number of sets of changes that a catalog keeps, the newest first."""

Data = Mapping[str, Any]
"""Data that a catalog keeps for the next one: specs, and the inputs of every artefact with the index of its spec."""


@dataclass(frozen=True)
class Changes:
    """The artefacts that differ between two catalogs, at a time (ISO 8601); ``changed`` gives the reasons by name."""

    time: str
    added: tuple[str, ...]
    removed: tuple[str, ...]
    changed: Mapping[str, tuple[str, ...]]

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed)

    @property
    def counted(self) -> str:
        """Return how many artefacts differ, by how: ``1 added, 2 changed``."""
        counts = {"added": self.added, "removed": self.removed, "changed": self.changed}
        return ", ".join(f"{len(names):,} {change}" for change, names in counts.items() if names)

    def lines(self) -> Iterator[tuple[str, str]]:
        """Yield every artefact that differs, and how."""
        yield from ((name, "added") for name in self.added)
        yield from ((name, "removed") for name in self.removed)
        yield from ((name, "; ".join(reasons)) for name, reasons in self.changed.items())

    def as_dict(self) -> dict[str, Any]:
        """As JSON data."""
        return {"at": self.time, "added": self.added, "removed": self.removed, "changed": self.changed}

    @staticmethod
    def of(data: Mapping[str, Any]) -> Changes:
        """Changes from JSON data."""
        changed = {name: tuple(map(str, reasons)) for name, reasons in data["changed"].items()}
        return Changes(
            str(data["at"]), tuple(map(str, data["added"])), tuple(map(str, data["removed"])), changed
        )


def data_of(
    entries: Sequence[CatalogEntry], earlier: Data | None, now: str
) -> tuple[Changes | None, dict[str, Any]]:
    """Return the changes since an earlier catalog, if any, and the data of this one; ``now`` is the current time.

    Raises :class:`specs.base.errors.UserError` for damaged data of an earlier one.
    """
    models, places = distinct_models(entries)
    specs = [resolved(model) for model in models]
    artefacts = {
        entry.name: {"spec": index, **entry.inputs()} for entry, index in zip(entries, places, strict=True)
    }
    data: dict[str, Any] = {"format": FORMAT, "specs": specs, "artefacts": artefacts, "changes": []}
    if earlier is None:
        return None, data
    try:
        changes = compared(earlier, data, now)
        kept = [Changes.of(change).as_dict() for change in earlier["changes"]]
    except (AttributeError, IndexError, KeyError, TypeError, ValueError):
        raise UserError("The earlier catalog is damaged.\n  Write to another file, or remove it.") from None
    data["changes"] = [*([changes.as_dict()] if changes else []), *kept][:KEPT]
    return changes or None, data


def compared(before: Data, now: Data, time: str) -> Changes:
    """Return the differences between the artefacts of two catalogs."""
    old, new = before["artefacts"], now["artefacts"]
    changed = {}
    for name in sorted(old.keys() & new.keys()):
        specs = before["specs"][old[name]["spec"]], now["specs"][new[name]["spec"]]
        if reasons := tuple(_reasons(old[name], new[name], *specs)):
            changed[name] = reasons
    return Changes(
        time, tuple(sorted(new.keys() - old.keys())), tuple(sorted(old.keys() - new.keys())), changed
    )


def _reasons(old: Data, new: Data, old_spec: Any, new_spec: Any) -> Iterator[str]:
    """Return the reasons why an artefact differs from its earlier version; none if it is equal."""
    reasons = [*_spec_reasons(old_spec, new_spec), *input_changes(old, new)]
    yield from reasons
    if old["export"] != new["export"] and not reasons:
        same_weights = old["weights_digest"] == new["weights_digest"]
        yield "files" if same_weights else "values of the weights"
    if old["state"] != new["state"]:
        yield f"verification {old['state']} \u2192 {new['state']}"


def _spec_reasons(old: Any, new: Any) -> Iterator[str]:
    if old != new:
        try:
            yield spec_changes(Model.model_validate(old), Model.model_validate(new))
        except ValueError:  # an earlier version of zoo wrote the old one
            yield "spec"
