"""The parameters of a model as areas: the data that the page's script lays out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from zoo.pages.markup import layers_text, section
from zoo.reports.parameters import ModuleParameters, ParameterReport


def treemap_section(report: ParameterReport) -> tuple[str, dict[str, Any]]:
    """The frame of the treemap, and its root for the page's script."""
    about = (
        f"{report.total_parameters:,} parameters, the area of a module as large as its share; equal layers are one. "
        "Click a module, or press Enter on it, to look into it; the arrow keys go from one to the next."
    )
    body = (
        '<nav class="crumbs" aria-label="Modules around what is shown"></nav>'
        '<div class="treemap" role="group" aria-label="Parameters by module"></div>'
        '<p class="told" aria-live="polite"></p>'
    )
    return section("parameters", "Parameters", about, body), _node(report.root, report.name, 1)


def _node(module: ModuleParameters, name: str, times: int) -> dict[str, Any]:
    """A module with those within it, of which there are ``times`` alike: counts are those of all."""
    own = module.parameters - sum(child.parameters for child in module.children)
    children = [_node(first, label, times * count) for first, label, count in _folded(module)]
    node: dict[str, Any] = {
        "name": name,
        "path": module.path,
        "kind": module.kind,
        "count": module.parameters * times,
        "times": times,
        "role": "other",
        "weights": [
            [leaf, f"= {module.shared[leaf]}" if leaf in module.shared else " x ".join(map(str, shape))]
            for leaf, shape in module.weights.items()
        ],
    }
    if children and own:
        children.append({**node, "name": " + ".join(module.weights), "count": own * times})
        node["weights"] = []
    if children:
        node["children"] = children
    return node


def _folded(module: ModuleParameters) -> Iterator[tuple[ModuleParameters, str, int]]:
    """What lies within a module: of modules alike in a list the first, with their number; a list itself is passed over."""
    for child in module.children:
        if not child.parameters:
            continue
        name = child.path.rpartition(".")[2]
        if child.kind != "ModuleList":
            yield child, name, 1
            continue
        alike: dict[object, list[int]] = {}
        for i, block in enumerate(child.children):
            alike.setdefault(block.likeness, []).append(i)
        for places in alike.values():
            first = child.children[places[0]]
            if first.parameters:
                yield first, layers_text(places, len(child.children)), len(places)
