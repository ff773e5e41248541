"""The treemap of a model's parameters, as data for the page's script."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from zoo.pages.markup import layers_text, section, table
from zoo.reports.folding import Folded
from zoo.reports.parameters import ModuleParameters, folded_report
from zoo.reports.report import Report
from zoo.reports.roles import folded_roles

COLOURS = {
    "positions": "position",
    "cross-attention": "attention",
    "router": "feed-forward",
    "experts": "feed-forward",
    "norms": "norm",
}
"""Colours whose names differ from their roles."""


def treemap_section(report: Report) -> tuple[str, dict[str, Any]]:
    """The frame of the treemap with the parameters by role, and its root for the page's script."""
    about = (
        "The area of a module is its share of the parameters; equal layers are drawn once. "
        "A click, or Enter, opens one level towards a module, and Escape leaves it; the arrow keys move between modules."
    )
    body = (
        '<nav class="crumbs" aria-label="Enclosing modules"></nav>'
        '<div class="treemap" role="group" aria-label="Parameters by module"></div>'
        f'<p class="told" aria-live="polite"></p>{_roles(report)}'
    )
    return section("parameters", "Parameters", about, body), treemap_root(report.folded)


def treemap_root(folded: Folded) -> dict[str, Any]:
    """The modules of a model as a tree for the page's script."""
    parameters = folded_report(folded)
    colours = {
        original: COLOURS.get(role, role)
        for role, _, path in folded_roles(folded)
        for original in folded.originals(path)
    }
    return _node(parameters.root, parameters.name, 1, colours)


def _roles(report: Report) -> str:
    """The parameters by role, as a colour key."""
    mixed = report.active != report.parameters
    rows = [
        [
            f'<span class="swatch" style="background: var(--{COLOURS.get(role.name, role.name)})"></span>{role.name}',
            f"{role.parameters:,}",
            f"{role.parameters / report.parameters:.1%}",
            *([f"{role.active:,}"] if mixed else []),
        ]
        for role in report.roles
    ]
    rows.append(["total", f"{report.parameters:,}", "", *([f"{report.active:,}"] if mixed else [])])
    header = ["role", "parameters", "share", *(["active per token"] if mixed else [])]
    return table("Parameters by role", header, rows, header[1:])


def _node(module: ModuleParameters, name: str, times: int, colours: Mapping[str, str]) -> dict[str, Any]:
    """A module that stands for ``times`` equal ones, with its submodules: counts cover all of them."""
    own = module.parameters - sum(child.parameters for child in module.children)
    children = [_node(first, label, times * count, colours) for first, label, count in _folded(module)]
    node: dict[str, Any] = {
        "name": name,
        "path": module.path,
        "kind": module.kind,
        "role": colours[module.path],
        "count": module.parameters * times,
        "times": times,
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
    """The submodules of a module: equal ones in a list are merged with their number; the list itself is skipped."""
    for child in module.children:
        if not child.parameters:
            continue
        if child.kind != "ModuleList":
            yield child, child.name, 1
            continue
        alike: dict[object, list[int]] = {}
        for i, block in enumerate(child.children):
            alike.setdefault(block.likeness, []).append(i)
        for places in alike.values():
            first = child.children[places[0]]
            if first.parameters:
                yield first, layers_text(places, len(child.children)), len(places)
