"""The parameters of a model as areas: the data that the page's script lays out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from zoo.pages.markup import layers_text, section, table
from zoo.reports.parameters import ModuleParameters, folded_report
from zoo.reports.report import Report
from zoo.reports.roles import module_roles

COLOURS = {
    "positions": "position",
    "cross-attention": "attention",
    "router": "feed-forward",
    "experts": "feed-forward",
    "norms": "norm",
}
"""The colours of roles, where they are not called as the role is."""


def treemap_section(report: Report) -> tuple[str, dict[str, Any]]:
    """The frame of the treemap with the parameters of each role, and the treemap's root for the page's script."""
    parameters = folded_report(report.folded)
    colours = {
        place: COLOURS.get(role, role)
        for role, _, path in module_roles(report.folded.model)
        for place in report.folded.originals(path)
    }
    about = (
        "The area of a module is its share of the parameters; equal layers are one. "
        "Click a module, or press Enter on it, to look into it; the arrow keys go from one to the next."
    )
    body = (
        '<nav class="crumbs" aria-label="Modules around what is shown"></nav>'
        '<div class="treemap" role="group" aria-label="Parameters by module"></div>'
        f'<p class="told" aria-live="polite"></p>{_roles(report)}'
    )
    root = _node(parameters.root, parameters.name, 1, colours)
    return section("parameters", "Parameters", about, body), root


def _roles(report: Report) -> str:
    """The parameters by role, which are the keys of the colours."""
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
    rows.append(["in all", f"{report.parameters:,}", "", *([f"{report.active:,}"] if mixed else [])])
    header = ["role", "parameters", "share", *(["active for a token"] if mixed else [])]
    return table("Parameters by role", header, rows, header[1:])


def _node(module: ModuleParameters, name: str, times: int, colours: Mapping[str, str]) -> dict[str, Any]:
    """A module with those within it, of which there are ``times`` alike: counts are those of all."""
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
    """What lies within a module: of modules alike in a list the first, with their number; a list itself is passed over."""
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
