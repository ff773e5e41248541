"""Edits of a spec's YAML text at a path, which leave the rest of the text, comments included, as it is."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import yaml

from specs.base.errors import SpecError, SpecPath
from specs.base.registry import held_by_new_kind
from specs.language.reading import LOADER, read_text
from specs.language.writing import dump, flow

_SOURCE = "the spec"


def with_value(text: str, path: SpecPath, value: Any, order: Sequence[str] = ()) -> str:
    """The text with a value at a path; ``order``: the order of the keys of a whole spec, for a new key.

    A new kind takes the keys along that it shares with the old one. Raises :class:`SpecError` for text that is not valid YAML.
    """
    data = read_text(text, _SOURCE).data
    if path and path[-1] == "kind" and isinstance(part := value_at(data, path[:-1]), Mapping) and part:
        kept = {**held_by_new_kind(part, str(value)), "kind": value}
        for key in [key for key in part if key not in kept]:
            text = without(text, (*path[:-1], key))
        data = read_text(text, _SOURCE).data
    wanted = _set(data, path, value)
    return _checked(_Tree.of(text).set(path, value, order), wanted, text)


def without(text: str, path: SpecPath) -> str:
    """The text without a key or an item. Raises :class:`SpecError` for text that is not valid YAML."""
    data = read_text(text, _SOURCE).data
    parent = value_at(data, path[:-1])
    if not isinstance(parent, Mapping | list) or (len(path) > 1 and len(parent) == 1):
        return without(text, path[:-1]) if len(path) > 1 else text
    return _checked(_Tree.of(text).remove(path), _removed(data, path), text)


def renamed(text: str, path: SpecPath, key: str) -> str:
    """The text with another name for the key at a path. Raises :class:`SpecError` for text that is not valid YAML."""
    data = read_text(text, _SOURCE).data
    parent = value_at(data, path[:-1])
    if not isinstance(parent, Mapping) or path[-1] not in parent or key in parent:
        return text
    items = {key if name == path[-1] else name: value for name, value in parent.items()}
    return _checked(_Tree.of(text).rename(path, key), _set(data, path[:-1], items), text)


def spans(text: str) -> dict[SpecPath, tuple[int, int]]:
    """The first and last line of the key and value at each path, counted from 1; empty for text that cannot be read."""
    try:
        read_text(text, _SOURCE)
    except SpecError:
        return {}
    tree = _Tree.of(text)
    lines: dict[SpecPath, tuple[int, int]] = {}
    breaks = [index for index, letter in enumerate(text) if letter == "\n"]
    for path, first, end in tree.extents(tree.root, ()):
        lines[path] = (first, max(first, bisect_left(breaks, end) + 1))
    return lines


def _checked(edited: str | None, wanted: Any, text: str) -> str:
    """The edited text if it reads as wanted, or else the wanted data written anew."""
    if edited is not None:
        try:
            if read_text(edited, _SOURCE).data == wanted:
                return edited
        except SpecError:
            pass
    return dump(wanted) if isinstance(wanted, Mapping) else text


def value_at(data: Any, path: SpecPath) -> Any:
    """The value at a path of plain data; None where there is none."""
    for part in path:
        if isinstance(data, Mapping):
            data = data.get(str(part))
        elif isinstance(data, list) and isinstance(part, int) and part < len(data):
            data = data[part]
        else:
            return None
    return data


def _set(data: Any, path: SpecPath, value: Any) -> Any:
    if not path:
        return value
    first, *rest = path
    if isinstance(data, list) and isinstance(first, int) and first < len(data):
        return [_set(item, tuple(rest), value) if i == first else item for i, item in enumerate(data)]
    below = data if isinstance(data, Mapping) else {}
    return {**below, str(first): _set(below.get(str(first)), tuple(rest), value)}


def _removed(data: Any, path: SpecPath) -> Any:
    parent = value_at(data, path[:-1])
    if isinstance(parent, list):
        kept: Any = [item for i, item in enumerate(parent) if i != path[-1]]
    else:
        kept = {key: value for key, value in parent.items() if key != path[-1]}
    return _set(data, path[:-1], kept)


@dataclass(frozen=True)
class _Tree:
    """The nodes of a text; edits return None where the text cannot be edited in place."""

    text: str
    root: Any

    @classmethod
    def of(cls, text: str) -> _Tree:
        return cls(text, yaml.compose(text, Loader=LOADER))

    def node(self, path: SpecPath) -> tuple[Any, Any]:
        """The key and value nodes at a path; None where there is none, or where only an alias leads there."""
        key, node = None, self.root
        for part in path:
            outer = node
            if isinstance(node, yaml.MappingNode):
                pairs = [pair for pair in node.value if pair[0].value == part]
                key, node = pairs[0] if pairs else (None, None)
            elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
                key, node = None, node.value[part]
            else:
                return None, None
            if node is None or not self._start(outer) <= self._start(node) <= outer.end_mark.index:
                return None, None
        return key, node

    def _start(self, node: Any) -> int:
        index: int = node.start_mark.index
        return index

    def _end(self, node: Any) -> int:
        """The end of a node without the blank lines and comments that follow a block."""
        end: int = node.end_mark.index
        if isinstance(node, yaml.ScalarNode) or node.flow_style:
            return end
        return max(self._end(part) for entry in node.value for part in _parts(entry)) if node.value else end

    def set(self, path: SpecPath, value: Any, order: Sequence[str]) -> str | None:
        key, node = self.node(path)
        if node is not None:
            return self._replaced(key, node, value)
        if not path:
            return None
        _, parent = self.node(path[:-1])
        if isinstance(path[-1], int):
            return None  # an entry of a list that stands in another file
        if parent is None or isinstance(parent, yaml.ScalarNode):
            return self.set(path[:-1], {path[-1]: value}, order)
        if not isinstance(parent, yaml.MappingNode):
            return None
        return self._inserted(parent, str(path[-1]), value, order if len(path) == 1 else ())

    def _replaced(self, key: Any, node: Any, value: Any) -> str | None:
        start, end = self._start(node), self._end(node)
        if self.text[start : start + 1] in ("&", "!", "*", "|", ">"):
            return None
        head = ""
        if key is not None and not isinstance(node, yaml.ScalarNode) and not node.flow_style:
            start, head = self.text.index(":", key.end_mark.index) + 1, " "
        if start == end:  # the empty scalar after `key:`
            start, end, head = key.end_mark.index + 1, max(end, key.end_mark.index + 1), " "
        return f"{self.text[:start]}{head}{flow(value)}{self.text[end:]}"

    def _inserted(self, parent: Any, key: str, value: Any, order: Sequence[str]) -> str | None:
        entry = f"{flow(key)}: {flow(value)}"
        if parent.flow_style or not parent.value:
            end = parent.end_mark.index - 1
            before = self.text[:end].rstrip()
            comma = "" if before.endswith(("{", ",")) else ","
            space = " " if comma else ""
            return f"{before}{comma}{space}{entry}{self.text[end:]}"
        names = [pair[0].value for pair in parent.value]
        earlier = [name for name in order[: order.index(key)] if name in names] if key in order else []
        after = parent.value[max(map(names.index, earlier))] if earlier else parent.value[-1]
        column = parent.value[0][0].start_mark.column
        end = self.text.find("\n", self._end(after[1]))
        end = len(self.text) if end < 0 else end
        return f"{self.text[:end]}\n{' ' * column}{entry}{self.text[end:]}"

    def remove(self, path: SpecPath) -> str | None:
        key, node = self.node(path)
        _, parent = self.node(path[:-1])
        if node is None or parent is None:
            return None
        starts = [self._start(_parts(entry)[0]) for entry in parent.value]
        start, end = self._start(key or node), self._end(node)
        index = starts.index(start)
        if parent.flow_style:
            if index + 1 < len(starts):
                return self.text[:start] + self.text[starts[index + 1] :]
            before = self._end(_parts(parent.value[index - 1])[-1])
            return self.text[:before] + self.text[end:]
        line = self.text.rfind("\n", 0, start) + 1
        if self.text[line:start].strip():
            return None
        after = self.text.find("\n", end)
        return self.text[:line] + (self.text[after + 1 :] if after >= 0 else "")

    def rename(self, path: SpecPath, name: str) -> str | None:
        key, _ = self.node(path)
        return key and f"{self.text[: self._start(key)]}{flow(name)}{self.text[key.end_mark.index :]}"

    def extents(self, node: Any, path: SpecPath) -> Iterator[tuple[SpecPath, int, int]]:
        """The path, first line and end of everything within a node; an alias stands for one line."""
        entries = enumerate(node.value) if isinstance(node, yaml.SequenceNode) else ()
        pairs = node.value if isinstance(node, yaml.MappingNode) else ()
        for key, start, child in [
            *((key.value, key, value) for key, value in pairs),
            *((index, item, item) for index, item in entries),
        ]:
            first = start.start_mark.line + 1
            is_alias = self._start(child) < self._start(start)
            yield (*path, key), first, start.end_mark.index if is_alias else self._end(child)
            if not is_alias:
                yield from self.extents(child, (*path, key))


def _parts(entry: Any) -> tuple[Any, ...]:
    """The nodes of an entry of a mapping or a sequence."""
    return entry if isinstance(entry, tuple) else (entry,)
