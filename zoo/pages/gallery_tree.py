"""The family tree of the gallery: a row for each node, from left to right by year."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from html import escape

from specs.forms.kinship import Node

_ROW, _TOP, _LEFT, _YEAR, _RIGHT = 19, 34, 20, 108, 215
_CHANGES = 5


def tree_svg(nodes: Sequence[Node], architectures: Mapping[str, str]) -> str:
    """The tree as SVG, each node a link to its first model; ``architectures`` of the models set its colour."""
    children = defaultdict[str | None, list[Node]](list)
    for node in nodes:
        children[node.parent].append(node)
    rows = {node.name: row for row, node in enumerate(_ordered(children, None))}
    first, last = min(node.year for node in nodes), max(node.year for node in nodes)
    centres = {
        node.name: (_LEFT + (node.year - first) * _YEAR, _TOP + _ROW * (rows[node.name] + 0.5))
        for node in nodes
    }
    width, height = _LEFT + (last - first) * _YEAR + _RIGHT, _TOP + _ROW * len(nodes) + 10
    parts = []
    for year in range(first, last + 1):
        x = _LEFT + (year - first) * _YEAR
        parts.append(
            f'<path class="year" d="M{x} {_TOP - 8}V{height}"/><text x="{x - 4}" y="18">{year}</text>'
        )
    for node in nodes:
        x, y = centres[node.name]
        if node.parent is not None:
            from_x, from_y = centres[node.parent]
            parts.append(
                f'<path class="descent" data-from="{escape(node.parent)}" data-to="{escape(node.name)}" d="{_descent(from_x, from_y, x, y)}"/>'
            )
    parts += [_node(node, *centres[node.name], architectures[node.name]) for node in nodes]
    return (
        f'<svg viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="group" aria-label="Family tree">'
        f"{''.join(parts)}</svg>"
    )  # fmt: skip


def _ordered(children: Mapping[str | None, Sequence[Node]], parent: str | None) -> Iterator[Node]:
    """The nodes depth first; of siblings, the latest first, so that lines cross little."""
    for node in sorted(children.get(parent, ()), key=lambda node: (-node.year, node.name)):
        yield node
        yield from _ordered(children, node.name)


def _descent(from_x: float, from_y: float, x: float, y: float) -> str:
    """Down from the parent, and to the right."""
    if x == from_x:
        return f"M{from_x} {from_y}C{from_x - 12} {from_y} {x - 12} {y} {x} {y}"
    return f"M{from_x} {from_y}V{y - 7}Q{from_x} {y} {from_x + 7} {y}H{x}"


def _node(node: Node, x: float, y: float, architecture: str) -> str:
    more = len(node.members) - 1
    label = f"{escape(node.name)}{f'<tspan> +{more}</tspan>' if more else ''}"
    return (
        f'<a href="#{escape(node.name)}" data-node="{escape(node.name)}" class="{architecture}"><title>{escape(_title(node))}</title>'
        f'<circle cx="{x}" cy="{y}" r="5"/><text x="{x + 10}" y="{y + 4}">{label}</text></a>'
    )


def _title(node: Node) -> str:
    lines = [f"{node.name}, {node.year}"]
    if more := node.members[1:]:
        lines.append(f"with {', '.join(more)}")
    if node.parent is not None:
        lines.append(f"after {node.parent}:")
        lines += [f"  {change}" for change in node.changes[:_CHANGES]] or ["  other numbers alone"]
        if len(node.changes) > _CHANGES:
            lines.append(f"  and {len(node.changes) - _CHANGES} more")
    return "\n".join(lines)
