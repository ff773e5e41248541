"""The figures of each part of a drawing, as data for scripts: parameters, shapes, FLOPs, and what is cached."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from zoo.checks.shapes import ModuleShapes
from zoo.components.attention import Projections
from zoo.components.block import Block
from zoo.components.mixer import Mixer
from zoo.drawing.diagram import DiagramFrame, Part
from zoo.drawing.scene import Scene
from zoo.pages.costs import polynomial_data
from zoo.pages.markup import layer_runs
from zoo.reports.polynomial import Polynomial
from zoo.reports.report import Report

_LAYER = re.compile(r"(\w+\.blocks)\.(\d+)(.*)")


def part_data(
    report: Report, model: nn.Module, shapes: Sequence[ModuleShapes], scene: Scene
) -> dict[str, Any]:
    """The figures of the parts of a scene, and for each box of the scene the index of its part.

    ``model`` is the whole model on the meta device, ``shapes`` those of its modules.
    """
    subjects = list(dict.fromkeys(box.subject for box in scene.boxes if box.subject is not None))
    stages = _stage_costs(report, subjects)
    rows = defaultdict[str, list[ModuleShapes]](list)
    for row in shapes:
        rows[row.path].append(row)
    return {
        "boxes": {box.id: subjects.index(box.subject) for box in scene.boxes if box.subject is not None},
        "parts": [
            {
                **_described(subject),
                "places": list(_places(subject.modules)),
                "shapes": _shapes(rows, subject.modules),
                "stages": stages[index],
                "cache": _cache(report, model, subject),
            }
            for index, subject in enumerate(subjects)
        ],
    }


def _described(subject: Part | DiagramFrame) -> dict[str, Any]:
    figures = {"keys": subject.keys, "parameters": subject.parameters}
    if isinstance(subject, DiagramFrame):
        return {"title": subject.label, "details": [], "role": "", "each": subject.note, **figures}
    details = list(subject.details)
    return {
        "title": subject.title,
        "details": details,
        "role": subject.role,
        "each": subject.count,
        **figures,
    }


def _places(modules: Iterable[str]) -> Iterator[dict[str, str]]:
    """The paths of modules with equal layers merged: ``decoder.blocks.0.attention`` in layers 0-11."""
    layers = defaultdict[tuple[str, str], list[int]](list)
    for path in modules:
        if match := _LAYER.fullmatch(path):
            layers[match[1], match[3]].append(int(match[2]))
        else:
            yield {"path": path, "layers": "", "text": path}
    for (stack, rest), indices in layers.items():
        runs = layer_runs(sorted(indices))
        text = f"{stack}.{runs.replace(',', ', ')}{rest}".replace("-", "\u2013")
        yield {"path": f"{stack}.{indices[0]}{rest}", "layers": runs, "text": text}


def _shapes(rows: Mapping[str, Sequence[ModuleShapes]], modules: Sequence[str]) -> list[list[Any]]:
    """The inputs and outputs of the first module."""
    calls = rows.get(modules[0], ()) if modules else ()
    return [["" if row.method == "forward" else row.method, row.inputs, row.outputs] for row in calls]


@dataclass(frozen=True)
class _Owners:
    """The parts, and the frames, to which a module belongs."""

    parts: Mapping[str, int]
    frames: Mapping[str, Sequence[int]]

    @classmethod
    def of(cls, subjects: Sequence[Part | DiagramFrame]) -> _Owners:
        parts: dict[str, int] = {}
        frames = defaultdict[str, list[int]](list)
        for index, subject in enumerate(subjects):
            for path in subject.modules:
                if isinstance(subject, Part):
                    parts.setdefault(path, index)
                else:
                    frames[path].append(index)
        return cls(parts, frames)

    def of_module(self, path: str) -> Iterator[int]:
        """The part of the nearest module around a path or at it, and all frames around."""
        around = path
        owned = False
        while around:
            if not owned and around in self.parts:
                owned = True
                yield self.parts[around]
            yield from self.frames.get(around, ())
            around = around.rpartition(".")[0]


def _stage_costs(
    report: Report, subjects: Sequence[Part | DiagramFrame]
) -> list[dict[str, dict[str, list[list[Any]]]]]:
    """The FLOPs of every stage in each part: each module counts at the innermost part around it."""
    owners = _Owners.of(subjects)
    costs: list[dict[str, dict[str, list[list[Any]]]]] = [{} for _ in subjects]
    for name, stage in report.costs.stages.items():
        for key, spread in (("products", stage.modules), ("elements", stage.elements)):
            terms = defaultdict[int, list[Polynomial]](list)
            for paths, value in spread.groups():
                counts = defaultdict[int, int](int)
                for path in paths:
                    for owner in owners.of_module(path):
                        counts[owner] += 1
                for owner, count in counts.items():
                    terms[owner].append(value * count)
            for owner, values in terms.items():
                costs[owner].setdefault(name, {})[key] = polynomial_data(Polynomial.sum(values))
    return costs


def _cache(report: Report, model: nn.Module, subject: Part | DiagramFrame) -> dict[str, Any] | None:
    """Cached values per token with their window, per encoder token, and bytes of constant states, in all layers."""
    if report.cache is None:
        return None
    own = defaultdict[int | None, int](int)
    encoder = state = 0
    for path in subject.modules:
        if not path.startswith("decoder.blocks."):
            continue
        module = model.get_submodule(path)
        if not isinstance(module, Block | Mixer | Projections):
            continue
        tensors = module.state
        growing = sum(tensor.values for tensor in tensors if tensor.grows)
        if path.rpartition(".")[2] == "cross_attention":
            encoder += growing
            continue
        attention = module.attention if isinstance(module, Block) else module
        own[attention.visible_limit if isinstance(attention, Mixer) else None] += growing
        state += sum(
            tensor.values * (tensor.dtype or report.dtype).itemsize for tensor in tensors if not tensor.grows
        )
        cross: Any = module.cross_attention if isinstance(module, Block) else None
        if cross is not None:
            encoder += sum(tensor.values for tensor in cross.state if tensor.grows)
    kept = [[str(values), window] for window, values in own.items() if values]
    return {"own": kept, "encoder": str(encoder), "state": state} if kept or encoder or state else None
