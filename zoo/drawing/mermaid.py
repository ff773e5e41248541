"""A diagram as a Mermaid flowchart, which code hosts and editors show in Markdown.

https://mermaid.js.org/syntax/flowchart.html
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from specs.base.words import PartRole
from zoo.core.units import parameter_text
from zoo.drawing.colours import COLOURS
from zoo.drawing.diagram import (
    AttentionPart,
    Diagram,
    DiagramFrame,
    Element,
    Inserted,
    Joined,
    Label,
    Part,
    Sum,
    Way,
)

_SPECIAL = {"#": "#35;", '"': "#quot;", "&": "#amp;", "<": "#lt;", ">": "#gt;", "`": "#96;", "\\": "#92;"}
"""Characters that mean something in a label, and how they are written there."""


def mermaid(diagram: Diagram) -> str:
    """The flowchart, from the inputs up to the outputs."""
    writer = _Writer()
    ends = [
        writer.column(column.name, column.way, framed=len(diagram.columns) > 1) for column in diagram.columns
    ]
    if diagram.meeting:
        writer.meeting(diagram.meeting, ends)
    for owner, user in diagram.ties:
        writer.edges.append(f"{writer.nodes[owner]} -.- {writer.nodes[user]}")
    title = f"{diagram.name}: {parameter_text(diagram.parameters)} parameters"
    lines = ["---", f'title: "{title}"', "config:", "  theme: neutral", "---", "flowchart BT", *writer.lines]
    lines += [f"    {edge}" for edge in writer.edges]
    for role, colours in COLOURS.items():
        named = [node for node, of in writer.roles.items() if of == role]
        if named:
            lines.append(
                f"    classDef {role} fill:{colours[0]},stroke:{COLOURS['text'][0]},color:{COLOURS['text'][0]}"
            )
            lines.append(f"    class {','.join(named)} {role}")
    return "\n".join([*lines, ""])


class _Writer:
    """Writes the nodes of columns into their subgraphs; edges between them come last."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.edges: list[str] = []
        self.nodes: dict[Part, str] = {}
        self.roles: dict[str, PartRole] = {}
        self._numbers = itertools.count(1)
        self._depth = 1
        self._encoder = ""

    def column(self, name: str, way: Way, *, framed: bool) -> str:
        """A stack, of which the last node is returned; a decoder reads the end of the previous column."""
        self._encoder = self._framed(name, way, "") if framed else self._way(way, "")
        return self._encoder

    def meeting(self, way: Way, ends: list[str]) -> None:
        """The head to which all columns lead."""
        first, *others = ends
        begun = len(self.edges)
        self._way(way, first)
        entry = self.edges[begun].rpartition(" ")[2]
        for end in others:
            self._edge(end, entry)

    def _id(self, letter: str = "n") -> str:
        return f"{letter}{next(self._numbers)}"

    def _line(self, text: str) -> None:
        self.lines.append("    " * self._depth + text)

    def _node(
        self,
        lines: Iterator[str] | list[str],
        opened: str = "[",
        closed: str = "]",
        role: PartRole | None = None,
    ) -> str:
        node = self._id()
        self._line(f'{node}{opened}"{"<br/>".join(map(_escaped, filter(None, lines)))}"{closed}')
        if role is not None:
            self.roles[node] = role
        return node

    def _edge(self, source: str, target: str, label: str = "") -> None:
        if source:
            self.edges.append(f"{source} -->{f'|{label}|' if label else ''} {target}")

    def _way(self, way: Way, source: str) -> str:
        """Write a path that begins at a node, and return its last node."""
        for element in way:
            source = self._element(element, source)
        return source

    def _element(self, element: Element, source: str) -> str:
        match element:
            case AttentionPart():
                return self._attention(element, source)
            case Part():
                node = self._part(element)
                self._edge(source, node)
                return node
            case Joined():
                sign = self._sign(element.sign)
                self._edge(source, sign)
                self._edge(self._part(element.part), sign)
                return sign
            case Inserted():
                sign = self._node([element.text], "((", "))")
                self._edge(source, sign)
                self._edge(self._encoder, sign)
                return sign
            case Sum():
                ends = [self._way(way, source) for way in element.ways]
                sign = (
                    self._part(element.join) if isinstance(element.join, Part) else self._sign(element.join)
                )
                for end in ends:
                    self._edge(end, sign)
                return sign
            case DiagramFrame():
                return self._framed(
                    " \u00b7 ".join(filter(None, [element.label, element.note])), element.way, source
                )
            case Label():
                return self._label(element, source)

    def _label(self, label: Label, source: str) -> str:
        if label.location == "beside":
            return source
        node = self._node([label.text, label.shape], "([", "])")
        self._edge(source, node)
        return source if label.location == "out" else node

    def _sign(self, sign: str) -> str:
        return self._node([sign], "((", "))")

    def _part(self, part: Part) -> str:
        self.nodes[part] = self._node([part.title, *part.details, part.count], role=part.role)
        return self.nodes[part]

    def _attention(self, part: AttentionPart, source: str) -> str:
        """An attention, with the parts that act on queries and keys."""
        others = self._encoder if part.reads_encoder else source
        inner = [self._part(inner_part) for inner_part in part.on_queries_keys]
        node = self._part(part)
        for below, above in itertools.pairwise([*inner, node]):
            self._edge(below, above)
        first = [*inner, node][0]
        if part.reuses_keys_values:
            self._edge(source, first, "Q")
        elif others == source:
            self._edge(source, first, "Q, K" if inner else "Q, K, V")
        else:
            self._edge(source, first, "Q")
            self._edge(others, first, "K" if inner else "K, V")
        if inner and not part.reuses_keys_values:
            self._edge(others, node, "V")
        if part.on_scores is not None:
            self._edge(self.nodes.get(part.on_scores) or self._part(part.on_scores), node, "scores")
        return node

    def _framed(self, label: str, way: Way, source: str) -> str:
        self._line(f'subgraph {self._id("f")}["{_escaped(label)}"]')
        self._depth += 1
        end = self._way(way, source)
        self._depth -= 1
        self._line("end")
        return end


def _escaped(text: str) -> str:
    return "".join(_SPECIAL.get(character, character) for character in text)
