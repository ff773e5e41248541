"""Specs as plain data with positions: reading YAML, merging, `--set` assignments, and writing YAML.

Scalars follow the YAML 1.2 core schema: `1e-5` is a number, and `no`, `on` and `1_000` are strings.
"""

import math
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

import yaml

from specs.errors import MISSING, Mark, Problem, SpecError, SpecPath, path_text
from specs.suggest import did_you_mean

MAX_BYTES = 1_000_000
MAX_DEPTH = 64  # nested lists and mappings
MAX_NODES = 20_000  # values, each use of an alias counted in full
MAX_KEY = 100  # characters, so that every key fits what YAML allows on one line
MAX_DIGITS = 100

KeysOfKind = Callable[[SpecPath, str, Mapping[str, Any]], frozenset[str] | None]
"""The keys of a kind at a path, given both mappings laid over each other; None where the kind is unknown."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TYPES: dict[type, str] = {
    dict: "a mapping",
    list: "a list",
    str: "a string",
    bool: "a boolean",
    int: "an integer",
    float: "a number",
    type(None): "null",
}


@dataclass(frozen=True)
class Document:
    """Plain data (dict, list, str, int, float, bool, None) and where each part of it was written.

    `marks` has the position of the value at every path, `key_marks` that of the key which leads to it.
    """

    data: dict[str, Any]
    marks: Mapping[SpecPath, Mark] = field(default_factory=dict)
    key_marks: Mapping[SpecPath, Mark] = field(default_factory=dict)

    def mark_of(self, path: SpecPath) -> Mark | None:
        """Where the value at a path is, or else the nearest around it; None for data without positions."""
        return next((self.marks[path[:n]] for n in range(len(path), -1, -1) if path[:n] in self.marks), None)

    def key_mark_of(self, path: SpecPath) -> Mark | None:
        """Where the key at the end of a path is; for a list element or an absent key, as `mark_of`."""
        return self.key_marks.get(path) or self.mark_of(path)


# ---------------------------------------------------------------------------------------------------- scalars

_NULL = re.compile(r"null|Null|NULL|~|")
_BOOL = re.compile(r"true|True|TRUE|false|False|FALSE")
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_SPECIAL = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_TAGS = {f"tag:yaml.org,2002:{t}": kind for t, kind in
         {"str": str, "int": int, "float": float, "bool": bool, "null": type(None)}.items()}  # fmt: skip


def _integer(text: str) -> int:
    return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))


def _is_huge(text: str) -> bool:
    """Whether this is an integer that is beyond bounds; the longest are not even converted."""
    if not _INT.fullmatch(text):
        return False
    return len(text) > MAX_DIGITS + 2 or abs(_integer(text)) >= 10**MAX_DIGITS


def resolve(text: str) -> str | int | float | bool | None:
    """The value of an unquoted scalar."""
    if _NULL.fullmatch(text):
        return None
    if _BOOL.fullmatch(text):
        return text.lower() == "true"
    if _INT.fullmatch(text):
        return _integer(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _SPECIAL.fullmatch(text):
        return float(text.replace(".", ""))
    return text


# ---------------------------------------------------------------------------------------------------- reading

_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NEWLINE = re.compile("\r\n|[\r\n]")
_ALIGN = "align the line with its neighbours; let nothing follow a quoted or bracketed value"
_SYNTAX = [  # what the parser says, the rule it stands for, what would work (empty: see where it starts)
    ("tab character", "a line must not be indented by a tab", "indent with spaces"),
    ("cannot start any token", "an unquoted value must not start with this character", "put it in quotes"),
    ("mapping values", "a ':' must follow a key, one key to a line",
     "put a value that contains ': ' in quotes; start a nested mapping on a line of its own"),
    ("sequence entries", "a list written with '-' must start on a line of its own",
     "move it to the next line, or write [a, b]"),
    ("',' or ']'", "a list in brackets must have commas between its items and a ']' at its end", ""),
    ("',' or '}'", "a mapping in braces must have commas between its keys and a '}' at its end", ""),
    ("end of stream", "a quoted string must end with the quote it starts with", ""),
    ("escape character", "a string in double quotes must use escapes that YAML knows",
     "write \\\\ for a backslash, or use single quotes"),
    ("expected key", "the keys of a mapping must start in one column, one key to a line", _ALIGN),
    ("<block end>", "the lines of a mapping or list must start in one column", _ALIGN),
    ("'-' indicator", "the items of a list must start with '-', in one column", _ALIGN),
    ("could not find expected ':'", "a key must be followed by ': '", "write key: value"),
    ("node content", "a value must stand here", "put a value that starts with punctuation in quotes"),
    ("<document start>", "a file must hold one mapping and nothing after it", "remove what follows"),
]  # fmt: skip


class _Reader:
    """Reads a text in two passes: the parse events, bounded as they come, then the values and their marks."""

    def __init__(self, text: str, source: str, inline: bool = False) -> None:
        self.text, self.source, self.inline = text, source, inline
        self.marks: dict[SpecPath, Mark] = {}
        self.key_marks: dict[SpecPath, Mark] = {}
        self.events: list[Any] = []
        self.targets: dict[int, int] = {}  # index of an alias event -> index of the event it stands for
        self.at = 0  # the event that the second pass reads next
        self.nodes = 0
        self.check_text()
        self.scan()

    def mark(self, place: Any) -> Mark:
        return Mark(self.source) if self.inline else Mark(self.source, place.line + 1, place.column + 1)

    def fail(
        self, rule: str, place: Any, remedy: str = "", path: SpecPath = (), value: object = MISSING
    ) -> NoReturn:
        raise SpecError([Problem(rule, path, value, remedy, self.mark(place))])

    def check_text(self) -> None:
        if len(self.text) > MAX_BYTES:
            _refuse(self.source, *_TOO_LARGE)
        if self.text.startswith("\ufeff"):
            _refuse(self.source, *_BOM)
        if bad := _UNPRINTABLE.search(self.text):
            lines = _NEWLINE.split(self.text[: bad.start()])
            mark = Mark(self.source) if self.inline else Mark(self.source, len(lines), len(lines[-1]) + 1)
            remedy = "remove the character, or write it as an escape in a string in double quotes"
            rule = f"a spec must not contain the control character U+{ord(bad[0]):04X}"
            raise SpecError([Problem(rule, remedy=remedy, mark=mark)])

    def scan(self) -> None:
        anchors: dict[str, int] = {}
        opened: list[int] = []
        documents = values = 0
        try:
            for index, event in enumerate(yaml.parse(self.text, Loader=_Loader)):
                self.events.append(event)
                place = event.start_mark
                if isinstance(event, yaml.DocumentStartEvent):
                    documents += 1
                    if documents > 1:
                        remedy = "put each document in a file of its own; remove the '---'"
                        self.fail("a file must hold one document", place, remedy)
                elif isinstance(event, yaml.CollectionEndEvent):
                    opened.pop()
                elif isinstance(event, yaml.NodeEvent):
                    values += 1
                    if values > 2 * MAX_NODES:  # a key and a value each
                        self.too_many(place)
                    if isinstance(event, yaml.AliasEvent):
                        self.targets[index] = self.target(event, anchors, opened)
                    elif event.anchor:
                        anchors[event.anchor] = index
                    if isinstance(event, yaml.CollectionStartEvent):
                        opened.append(index)
                        if len(opened) > MAX_DEPTH:
                            self.too_deep(place)
        except yaml.MarkedYAMLError as error:
            self.syntax(error)

    def target(self, alias: Any, anchors: Mapping[str, int], opened: list[int]) -> int:
        name, place = alias.anchor, alias.start_mark
        if name not in anchors:
            remedy = did_you_mean(name, anchors) or f"write &{name} before the value that it names"
            self.fail(f"an alias must name an anchor above it, and there is no &{name}", place, remedy)
        if anchors[name] in opened:
            self.fail(f"a value must not contain itself, and *{name} stands within &{name}", place,
                      "write the value out, or move the anchor")  # fmt: skip
        return anchors[name]

    def too_many(self, place: Any, path: SpecPath = ()) -> NoReturn:
        rule = f"a spec must have at most {MAX_NODES} values, each use of an alias counted in full"
        self.fail(rule, place, "use named `blocks` and `repeat` in place of copies", path)

    def too_deep(self, place: Any, path: SpecPath = ()) -> NoReturn:
        rule = f"lists and mappings must be nested at most {MAX_DEPTH} deep"
        self.fail(rule, place, "close the brackets, or flatten the structure", path)

    def syntax(self, error: yaml.MarkedYAMLError) -> NoReturn:
        said, place, start = error.problem or "", error.problem_mark, error.context_mark
        if place is not None and self.text[place.index : place.index + 1] == "\t":
            said = "tab character"
        other = (said, f"the text must be valid YAML: {said}", "put a text with punctuation in quotes")
        _, rule, remedy = next((entry for entry in _SYNTAX if entry[0] in said), other)
        if not remedy:
            remedy = "close it" if self.inline or start is None else f"it starts at {self.mark(start)}"
        self.fail(rule, place or start, remedy)

    def node(self, path: SpecPath) -> Any:
        """Read the value that starts at the next event."""
        index, event = self.at, self.events[self.at]
        place, tag = event.start_mark, getattr(event, "tag", None)
        self.at += 1
        if isinstance(event, yaml.AliasEvent):
            self.at, after = self.targets[index], self.at
            value = self.node(path)
            self.at = after
            self.marks[path] = self.mark(place)
            return value
        self.nodes += 1
        if self.nodes > MAX_NODES:
            self.too_many(place, path)
        self.marks[path] = self.mark(place)
        if isinstance(event, yaml.ScalarEvent):
            return self.scalar(event, path)
        if tag is not None:
            self.bad_tag(event, path)
        if len(path) >= MAX_DEPTH:
            self.too_deep(place, path)
        value = self.sequence(path) if isinstance(event, yaml.SequenceStartEvent) else self.mapping(path)
        self.at += 1
        return value

    def sequence(self, path: SpecPath) -> list[Any]:
        items: list[Any] = []
        while not isinstance(self.events[self.at], yaml.SequenceEndEvent):
            items.append(self.node((*path, len(items))))
        return items

    def mapping(self, path: SpecPath) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        while not isinstance(self.events[self.at], yaml.MappingEndEvent):
            place = self.events[self.at].start_mark
            key = self.key(path)
            here = (*path, key)
            if key in mapping:
                first = self.key_marks[here].line
                lines = "" if self.inline else f", and this one is on lines {first} and {place.line + 1}"
                self.fail(f"a mapping must have each key once{lines}", place, "remove one of the two", here)
            self.key_marks[here] = self.mark(place)
            mapping[key] = self.node(here)
        return mapping

    def key(self, path: SpecPath) -> str:
        event = self.events[self.targets.get(self.at, self.at)]
        place = self.events[self.at].start_mark
        self.at += 1
        key: object = self.scalar(event, path) if isinstance(event, yaml.ScalarEvent) else MISSING
        if key == "<<" and not event.style:
            rule = "a mapping must not use the merge key '<<'"
            self.fail(rule, place, "use `extends`, or named `blocks`", path)
        if not isinstance(key, str):
            if key is MISSING:
                what, remedy = "a list or mapping", "write a name and a ':'"
            else:
                what, remedy = _TYPES[type(key)], f"put it in quotes: '{event.value}'"
            self.fail(f"a key must be a string, and this is {what}", place, remedy, path, key)
        if len(key) > MAX_KEY:
            self.fail(f"a key must have at most {MAX_KEY} characters", place, "shorten it", path, key)
        return key

    def scalar(self, event: yaml.ScalarEvent, path: SpecPath) -> str | int | float | bool | None:
        text, tag, place = event.value, event.tag, event.start_mark
        if tag is not None and tag not in _TAGS:
            self.bad_tag(event, path)
        if tag == "tag:yaml.org,2002:str" or (tag is None and event.style):
            return str(text)
        if _is_huge(text):
            rule = f"an integer must have at most {MAX_DIGITS} digits"
            self.fail(rule, place, "write it as a decimal number, such as 1.0e+200", path, text)
        value = resolve(text)
        if tag is None:
            return value
        if _TAGS[tag] is float and type(value) is int:
            return float(value)
        if type(value) is not _TAGS[tag]:
            rule = f"a value tagged !!{tag.rpartition(':')[2]} must be {_TYPES[_TAGS[tag]]}"
            self.fail(rule, place, "remove the tag, or change the value", path, text)
        return value

    def bad_tag(self, event: Any, path: SpecPath) -> NoReturn:
        tag = event.tag.replace("tag:yaml.org,2002:", "!!")
        rule = f"a tag must be one of !!str, !!int, !!float, !!bool and !!null, and not {tag}"
        self.fail(rule, event.start_mark, "remove the tag", path)

    def document(self) -> Document:
        """The whole text as one mapping."""
        start = self.events[min(2, len(self.events) - 1)]  # after the starts of stream and document
        example = "start with a key and its value, such as `name: my-model`"
        blank = isinstance(start, yaml.ScalarEvent) and not start.value and not start.style
        if blank or not isinstance(start, yaml.NodeEvent):
            _refuse(self.source, "a spec must not be empty", example)
        self.at = 2
        data = self.node(())
        if not isinstance(data, dict):
            rule = f"a spec must be a mapping, and this is {_TYPES[type(data)]}"
            self.fail(rule, start.start_mark, example, (), data)
        return Document(data, self.marks, self.key_marks)


_TOO_LARGE = (f"a spec must be at most {MAX_BYTES:,} bytes", "keep weights and data in other files")
_BOM = ("a spec must not start with a byte order mark", "save the file as UTF-8 without a BOM")


def _refuse(source: str, rule: str, remedy: str) -> NoReturn:
    raise SpecError([Problem(rule, remedy=remedy, mark=Mark(source))])


def read_text(text: str, source: str) -> Document:
    """Read YAML text; `source` is the name that marks and errors show. Raises `SpecError`."""
    return _Reader(text, source).document()


def read_file(path: str | os.PathLike[str]) -> Document:
    """Read a YAML file of at most 1 MB of UTF-8. Raises `SpecError`, also when it cannot be read."""
    source, file = os.fspath(path), Path(path)
    try:
        with file.open("rb") as stream:
            content = stream.read(MAX_BYTES + 1)
    except FileNotFoundError:
        remedy = did_you_mean(file.name, _specs_in(file.parent)) or "check the path"
        _refuse(source, "the file must exist", remedy)
    except IsADirectoryError:
        names = ", ".join(_specs_in(file)[:5] or ["my-model.yaml"])
        _refuse(source, "a spec must be a file, and this is a directory", f"name a file in it: {names}")
    except PermissionError:
        rule = "the file must be readable, and permission is denied"
        _refuse(source, rule, "grant it, for example with chmod u+r")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        _refuse(source, f"the file must be readable: {reason}", "check the path")
    if len(content) > MAX_BYTES:
        _refuse(source, *_TOO_LARGE)
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        lines = content[: error.start].split(b"\n")
        mark = Mark(source, len(lines), len(lines[-1].decode("utf-8")) + 1)
        utf16 = content[:2] in (b"\xff\xfe", b"\xfe\xff")
        found = "UTF-16" if utf16 else f"the byte 0x{content[error.start]:02x}"
        rule = f"a spec must be UTF-8 text, and this is {found}"
        raise SpecError([Problem(rule, remedy="save the file as UTF-8", mark=mark)]) from None
    return read_text(text, source)


def _specs_in(directory: Path) -> list[str]:
    try:
        return sorted(name for name in os.listdir(directory) if name.endswith((".yaml", ".yml")))
    except (OSError, ValueError):
        return []


# ---------------------------------------------------------------------------------------------------- merging


class _Merge:
    """Lays one document over another, walking both together and carrying the marks of what is kept."""

    def __init__(self, base: Document, override: Document, keys_of_kind: KeysOfKind) -> None:
        self.base, self.override, self.keys_of_kind = base, override, keys_of_kind
        self.marks: dict[SpecPath, Mark] = {}
        self.key_marks: dict[SpecPath, Mark] = {}

    def document(self) -> Document:
        return Document(self.node((), self.base.data, self.override.data), self.marks, self.key_marks)

    def keep(self, origin: Document, path: SpecPath) -> None:
        if path in origin.marks:
            self.marks[path] = origin.marks[path]
        if path in origin.key_marks:
            self.key_marks[path] = origin.key_marks[path]

    def take(self, origin: Document, path: SpecPath, value: Any) -> Any:
        """A copy of a value, with its marks."""
        self.keep(origin, path)
        if isinstance(value, dict):
            return {key: self.take(origin, (*path, key), child) for key, child in value.items()}
        if isinstance(value, list):
            return [self.take(origin, (*path, index), child) for index, child in enumerate(value)]
        return value

    def node(self, path: SpecPath, below: Any, above: Any) -> Any:
        if not isinstance(above, dict):
            return self.take(self.override, path, above)
        if any(isinstance(key, int) for key in above):
            return self.elements(path, below, above)
        kept = self.kept(path, below, above)
        # An assignment only passes through the mappings on its way: they stay where they were written.
        mark = self.override.marks.get(path)
        passed = kept is below and (mark is None or mark.line is None)
        self.keep(self.base if passed else self.override, path)
        merged = {}
        for key in {**kept, **above}:
            here = (*path, key)
            if key in above:
                merged[key] = self.node(here, kept.get(key, MISSING), above[key])
            else:
                merged[key] = self.take(self.base, here, kept[key])
        return merged

    def kept(self, path: SpecPath, below: Any, above: Mapping[str, Any]) -> Mapping[str, Any]:
        """What of the base stays under an override: all of it, unless the override changes its kind."""
        if not isinstance(below, dict):
            return {}
        old, new = below.get("kind"), above.get("kind")
        if not isinstance(old, str) or not isinstance(new, str) or old == new:
            return below
        keys = self.keys_of_kind(path, new, {**below, **above}) or frozenset()
        return {key: value for key, value in below.items() if key in keys}

    def elements(self, path: SpecPath, below: Any, above: Mapping[int, Any]) -> list[Any]:
        """An override by index: `--set layers[0].repeat=3`."""
        name = path_text(path) or "the spec"
        for index in above:
            mark = self.override.mark_of((*path, index))
            if not isinstance(below, list):
                what = "not there" if below is MISSING else _TYPES[type(below)]
                rule = f"an index must pick an element of a list, and {name} is {what}"
                raise SpecError([Problem(rule, path, below, f"assign the whole of {name}", mark)])
            if not 0 <= index < len(below):
                valid = f"use an index from 0 to {len(below) - 1}" if below else f"assign the whole of {name}"
                rule = f"an index must be within the {len(below)} elements of {name}"
                raise SpecError([Problem(rule, (*path, index), MISSING, valid, mark)])
        self.keep(self.base, path)
        items = []
        for index, item in enumerate(below):
            here = (*path, index)
            chosen = index in above
            items.append(self.node(here, item, above[index]) if chosen else self.take(self.base, here, item))
        return items


def merge(base: Document, override: Document, keys_of_kind: KeysOfKind) -> Document:
    """Lay an override over a base: mappings merge key by key; lists, scalars and null replace what was there.

    Where the override gives a mapping another `kind`, the base keeps only the keys that `keys_of_kind` names
    for that kind, or none when the kind is unknown. Every value keeps the mark of where it came from; a
    merged mapping has the override's, unless that is a `--set` which only passed through. An integer key, as
    made by `parse_assignment`, picks an element of a list in the base; raises `SpecError` when there is none.
    """
    return _Merge(base, override, keys_of_kind).document()


# ------------------------------------------------------------------------------------------------- assignment

_INDEX = re.compile(r"\[(-?[0-9]{1,9})\](?=[.\[]|$)")
_SEGMENT = re.compile(r"[\w-]+")
_EXAMPLE = "write it as in --set decoder.block.attention.heads=16 or --set decoder.layers[0].repeat=3"


def parse_assignment(assignment: str) -> Document:
    """Read `decoder.layers[0].repeat=3`, or `decoder.layers.0.repeat=3`, as an override for `merge`.

    The path becomes nested mappings, an index an integer key; the value is YAML in flow style. Raises
    `SpecError`.
    """
    source = f"--set {assignment}"
    mark = Mark(source)
    left, equals, right = assignment.partition("=")
    if not equals:
        _refuse(source, "an assignment must have a '=' between path and value", _EXAMPLE)
    segments = _INDEX.sub(r".\1", left.strip()).split(".")
    if not all(_SEGMENT.fullmatch(segment) for segment in segments):
        _refuse(source, "a path must be names joined by dots, with indices in brackets", _EXAMPLE)
    if max(map(len, segments)) > MAX_KEY or len(segments) > MAX_DEPTH:
        rule = f"a path must have at most {MAX_DEPTH} names of at most {MAX_KEY} characters"
        _refuse(source, rule, _EXAMPLE)
    path: SpecPath = tuple(int(s) if re.fullmatch("-?[0-9]{1,9}", s) else s for s in segments)

    reader = _Reader(f"[{right}\n]", source, inline=True)
    reader.at = 3  # after the starts of stream, document and list
    if isinstance(reader.events[3], yaml.SequenceEndEvent):
        remedy = "write null for no value, '' for an empty text"
        _refuse(source, "an assignment must have a value after its '='", remedy)
    value = reader.node(path)
    if not isinstance(reader.events[reader.at], yaml.SequenceEndEvent):
        remedy = "put a list in brackets, a text with commas in quotes"
        _refuse(source, "an assignment must have one value", remedy)
    for depth in range(len(path), 0, -1):
        reader.marks[path[:depth]] = reader.key_marks[path[:depth]] = mark
        value = {path[depth - 1]: value}
    return Document(value, {(): mark, **reader.marks}, reader.key_marks)


def assign(base: Document, assignment: str, keys_of_kind: KeysOfKind) -> Document:
    """The base with one `--set` assignment laid over it, as by `parse_assignment` and `merge`."""
    return merge(base, parse_assignment(assignment), keys_of_kind)


# ---------------------------------------------------------------------------------------------------- writing

_COLUMNS = 100
_PLAIN = re.compile(r"[^\W\d_][\w./+()'&,;-]*(?: [\w./+()'&,;-]+)*")  # strings that need no quotes
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}  # no strings in YAML 1.1 or 1.2
_ESCAPED = re.compile('["\\\\\u2028\u2029\ufeff]|[^\x20-\x7e\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]')


def dump(data: Mapping[str, Any]) -> str:
    """Plain data as YAML that reads back equal, under YAML 1.1 and 1.2 alike.

    Keys stay in order. The style is block style, but a mapping or list of scalars that fits 100 columns takes
    one line. Raises `TypeError` for anything that is not plain data.
    """
    return "".join(f"{line}\n" for line in _block(data, 0)) or "{}\n"


def _block(value: Any, indent: int) -> Iterator[str]:
    """The lines of a mapping or list, which will be indented by `indent` columns."""
    if isinstance(value, Mapping):
        children = [(f"{_string(key)}:", child) for key, child in value.items()]
    else:
        children = [("-", child) for child in value]
    for head, child in children:
        if not _is_collection(child):
            yield f"{head} {_scalar(child)}"
        elif not child or (_is_flat(child) and indent + len(head) + 1 + len(_flow(child)) <= _COLUMNS):
            yield f"{head} {_flow(child)}"
        else:
            lines = _block(child, indent + 2)
            yield f"- {next(lines)}" if head == "-" else head
            yield from (f"  {line}" for line in lines)


def _is_collection(value: object) -> bool:
    return isinstance(value, Mapping | list | tuple)


def _is_flat(value: Any) -> bool:
    return not any(map(_is_collection, value.values() if isinstance(value, Mapping) else value))


def _flow(value: Any) -> str:
    if isinstance(value, Mapping):
        pairs = (f"{_string(key, flow=True)}: {_scalar(child, flow=True)}" for key, child in value.items())
        return f"{{{', '.join(pairs)}}}"
    return "[" + ", ".join(_scalar(item, flow=True) for item in value) + "]"


def _scalar(value: object, flow: bool = False) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return _float(value)
    if isinstance(value, str):
        return _string(value, flow)
    raise TypeError(f"not plain data: {value!r}")


def _float(value: float) -> str:
    if not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"
    mantissa, e, exponent = repr(value).partition("e")
    return f"{mantissa}{'' if '.' in mantissa else '.0'}{e}{exponent}"  # YAML 1.1 needs the dot: 1.0e-05


def _string(text: str, flow: bool = False) -> str:
    is_plain = _PLAIN.fullmatch(text) and text.lower() not in _WORDS and not (flow and "," in text)
    return text if is_plain else '"' + _ESCAPED.sub(_escape, text) + '"'


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    if char in '"\\\n\t':
        return {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\t": "\\t"}[char]
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
