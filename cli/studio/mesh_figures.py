"""A spec on several devices: what ``zoo report --mesh`` and ``--fit`` compute, for every split of a number of devices."""

from __future__ import annotations

import json
from collections import OrderedDict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cli.studio.requests import Fields
from cli.studio.typed_spec import TypedSpec
from specs.base.errors import UserError, with_flags
from specs.files.device import Device, device_names, load_device
from specs.model.model import Model
from zoo.parallel.on_paper import ROOM, ModelOnPaper, OnPaper, Work
from zoo.parallel.smallest_mesh import LARGEST, smallest, splits
from zoo.reports.lengths import Lengths
from zoo.reports.roofline import COMPUTED_IN

_KEPT = 4
"""The number of specs whose plans are kept."""

_LISTED = 24
"""The most splits that are listed."""


@dataclass(frozen=True)
class MeshQuestion:
    """A text, the sizes of a group's batch, and a number of devices of a kind."""

    text: str
    device: str
    devices: int
    batch: int
    length: int | None
    precision: str

    @classmethod
    def of(cls, asked: Fields) -> MeshQuestion:
        """The question of a request."""
        return cls(
            asked.text("text"),
            asked.choice("device", device_names()),
            asked.whole("devices", 8, 1, LARGEST),
            asked.whole("batch", 1, 1, 1_000_000),
            asked.whole("length", None, 1, 2**30),
            asked.choice("precision", ["fp16", *COMPUTED_IN]),
        )


class MeshFigures:
    """Answers questions about meshes, with the plans of earlier specs at hand."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._kept: OrderedDict[tuple[str, str], ModelOnPaper] = OrderedDict()

    def of(self, question: MeshQuestion) -> dict[str, Any]:
        """The splits of the devices, the fastest of those with room first, and the smallest mesh for each kind of device."""
        spec = TypedSpec.read(question.text, self.folder).model
        precision = COMPUTED_IN[question.precision]
        model, device = self._model(spec, precision), load_device(question.device)
        longest = spec.context_length_of(spec.last_stack)
        wanted = question.length
        if wanted is not None and longest is not None:
            wanted = min(wanted, longest)
        sizes = Lengths.of(spec, question.batch, wanted if _any_length(spec) else None)
        meshes = splits(model, device, sizes.batch, sizes.length, question.devices)
        meshes.sort(key=_rank)
        return {
            "precision": precision,
            "batch": sizes.batch,
            "length": sizes.length,
            "room": ROOM,
            "memory": device.memory,
            "splits": [mesh.as_dict() for mesh in meshes[:_LISTED]],
            "more": max(0, len(meshes) - _LISTED),
            "degrees": model.plan.degrees(device.per_node),
            "kinds": [
                {
                    "name": name,
                    "memory": load_device(name).memory,
                    **self._smallest(model, load_device(name), sizes),
                }
                for name in device_names()
            ],
        }

    def _model(self, spec: Model, precision: str) -> ModelOnPaper:
        key = (json.dumps(spec.model_dump(mode="json"), sort_keys=True), precision)
        model = self._kept.pop(key, None) or ModelOnPaper(spec, precision)
        self._kept[key] = model
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        return model

    def _smallest(self, model: ModelOnPaper, device: Device, sizes: Lengths) -> dict[str, Any]:
        works: tuple[Work, ...] = ("serve", "train")
        meshes: dict[str, Any] = {}
        for work in works:
            try:
                mesh = smallest(model, device, sizes.batch, sizes.length, work)
            except UserError as error:
                meshes[work] = {"refused": with_flags(error.text)}
                continue
            meshes[work] = {"devices": mesh.devices, "mesh": dict(mesh.degrees), "bytes": mesh.bytes_of(work)}
        return meshes


def _any_length(spec: Model) -> bool:
    return spec.embedding_of(spec.last_stack).any_length


def _rank(mesh: OnPaper) -> tuple[bool, bool, float, int, int]:
    """Meshes that train, then those that serve, then the rest; the fastest first."""
    return (not mesh.fits("train"), not mesh.fits("serve"), mesh.bound[0], mesh["pp"], mesh["tp"])
