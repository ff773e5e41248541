"""YAML reader that records positions and bounds size, depth and aliases."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

import yaml

from specs.base.errors import MISSING, Mark, Problem, SpecError, SpecPath
from specs.base.suggest import suggestion
from specs.language.document import MAX_BYTES, MAX_DEPTH, MAX_DIGITS, MAX_KEY, MAX_NODES, TYPES, Document
from specs.language.scalars import TAGS, is_huge, resolve

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NEWLINE = re.compile("\r\n|[\r\n]")
_ALIGN = "Align the line with its neighbours; put nothing after a quoted or bracketed value."
_SYNTAX = [  # parser message, rule, remedy (empty: report where the construct starts)
    ("tab character", "a line must not be indented by a tab", "Indent with spaces."),
    ("cannot start any token", "an unquoted value must not start with this character", "Put it in quotes."),
    ("mapping values", "a ':' must follow a key, one key to a line",
     "Put a value that contains ': ' in quotes; start a nested mapping on its own line."),
    ("sequence entries", "a list written with '-' must start on its own line",
     "Move it to the next line, or write [a, b]."),
    ("',' or ']'", "a list in brackets must have commas between its items and a ']' at its end", ""),
    ("',' or '}'", "a mapping in braces must have commas between its keys and a '}' at its end", ""),
    ("end of stream", "a quoted string must end with the quote it starts with", ""),
    ("escape character", "a string in double quotes must use escapes that YAML knows",
     "Write \\\\ for a backslash, or use single quotes."),
    ("expected key", "the keys of a mapping must start in one column, one key to a line", _ALIGN),
    ("<block end>", "the lines of a mapping or list must start in one column", _ALIGN),
    ("'-' indicator", "the items of a list must start with '-', in one column", _ALIGN),
    ("could not find expected ':'", "a key must be followed by ': '", "Write key: value."),
    ("node content", "a value is missing", "Put a value that starts with punctuation in quotes."),
    ("<document start>", "a file must hold one mapping and nothing after it", "Remove the rest."),
]  # fmt: skip


class _Place(NamedTuple):
    """A place in a text, counted from 0."""

    line: int
    column: int


class Reader:
    """Reads a text in two passes: bounded parse events, then values and their marks."""

    def __init__(self, text: str, source: str, inline: bool = False) -> None:
        self.text, self.source, self.inline = text.removeprefix("\ufeff"), source, inline
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
            refuse(self.source, *TOO_LARGE)
        if bad := _UNPRINTABLE.search(self.text):
            lines = _NEWLINE.split(self.text[: bad.start()])
            mark = Mark(self.source) if self.inline else Mark(self.source, len(lines), len(lines[-1]) + 1)
            remedy = "Remove the character, or write it as an escape in a double-quoted string."
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
                        remedy = "Split the documents into separate files; remove the '---'."
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
            remedy = suggestion(name, anchors) or f"Write &{name} before the value that it names."
            self.fail(f"an alias must name an anchor above it, but &{name} is not defined", place, remedy)
        if anchors[name] in opened:
            self.fail(f"a value must not contain itself, but *{name} is within &{name}", place,
                      "Write the value out, or move the anchor.")  # fmt: skip
        return anchors[name]

    def too_many(self, place: Any, path: SpecPath = ()) -> NoReturn:
        rule = f"a spec must have at most {MAX_NODES} values, counting each use of an alias in full"
        self.fail(rule, place, "Use named `blocks` and `repeat` instead of copies.", path)

    def too_deep(self, place: Any, path: SpecPath = ()) -> NoReturn:
        rule = f"lists and mappings must be nested at most {MAX_DEPTH} deep"
        self.fail(rule, place, "Close the brackets, or flatten the structure.", path)

    def syntax(self, error: yaml.MarkedYAMLError) -> NoReturn:
        said, place, start = error.problem or "", error.problem_mark, error.context_mark
        at: Any = place or start
        if (
            "maximum nesting depth" in said
        ):  # libyaml has a bound of its own, which it reaches while it looks ahead
            self.too_deep(at)
        if place is not None and self.text[place.index : place.index + 1] == "\t":
            said = "tab character"
        elif "expected ':'" in said:
            at = start or at  # the parser notices only where the next line starts
        elif "mapping values" in said and (line := self.line_without_colon(place)) is not None:
            said, at = "could not find expected ':'", line
        other = (said, f"the text must be valid YAML: {said}", "Put a string with punctuation in quotes.")
        _, rule, remedy = next((entry for entry in _SYNTAX if entry[0] in said), other)
        if not remedy:
            remedy = "Close it." if self.inline or start is None else f"It starts at {self.mark(start)}."
        self.fail(rule, at, remedy)

    def line_without_colon(self, place: Any) -> _Place | None:
        """The start of a line without ':' that the parser joined with the next line, whose ':' is at ``place``."""
        lines = _NEWLINE.split(self.text)
        above = next((n for n in range(place.line - 1, -1, -1) if lines[n].strip()), None)
        if above is None or ":" in lines[above] or ":" in lines[place.line][: place.column]:
            return None
        text = lines[above].lstrip()
        return None if text[0] in "#-" else _Place(above, len(lines[above]) - len(text))

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
                lines = "" if self.inline else f", but this one is on lines {first} and {place.line + 1}"
                self.fail(f"a mapping must have each key once{lines}", place, "Remove one of the two.", here)
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
            self.fail(rule, place, "Use `extends`, or named `blocks`.", path)
        if not isinstance(key, str):
            if key is MISSING:
                what, remedy = "a list or mapping", "Write a name and a ':'."
            else:
                what, remedy = TYPES[type(key)], f"Put it in quotes: '{event.value}'."
            self.fail(f"a key must be a string, but this is {what}", place, remedy, path, key)
        if len(key) > MAX_KEY:
            self.fail(f"a key must have at most {MAX_KEY} characters", place, "Shorten it.", path, key)
        return key

    def scalar(self, event: yaml.ScalarEvent, path: SpecPath) -> str | int | float | bool | None:
        text, tag, place = event.value, event.tag, event.start_mark
        if tag is not None and tag not in TAGS:
            self.bad_tag(event, path)
        if tag == "tag:yaml.org,2002:str" or (tag is None and event.style):
            return str(text)
        if is_huge(text):
            rule = f"an integer must have at most {MAX_DIGITS} digits"
            self.fail(rule, place, "Write it as a decimal number, such as 1.0e+200.", path, text)
        value = resolve(text)
        if tag is None:
            return value
        if TAGS[tag] is float and type(value) is int:
            return float(value)
        if type(value) is not TAGS[tag]:
            rule = f"a value tagged !!{tag.rpartition(':')[2]} must be {TYPES[TAGS[tag]]}"
            self.fail(rule, place, "Remove the tag, or change the value.", path, text)
        return value

    def bad_tag(self, event: Any, path: SpecPath) -> NoReturn:
        tag = event.tag.replace("tag:yaml.org,2002:", "!!")
        rule = f"a tag must be !!str, !!int, !!float, !!bool or !!null, not {tag}"
        self.fail(rule, event.start_mark, "Remove the tag.", path)

    def document(self) -> Document:
        """Read the whole text as one mapping."""
        start = self.events[min(2, len(self.events) - 1)]  # after the starts of stream and document
        example = "Start with a key and its value, such as `name: my-model`."
        blank = isinstance(start, yaml.ScalarEvent) and not start.value and not start.style
        if blank or not isinstance(start, yaml.NodeEvent):
            refuse(self.source, "a spec must not be empty", example)
        self.at = 2
        data = self.node(())
        if not isinstance(data, dict):
            rule = f"a spec must be a mapping, but this is {TYPES[type(data)]}"
            self.fail(rule, start.start_mark, example, (), data)
        return Document(data, self.marks, self.key_marks)


TOO_LARGE = (f"a spec must be at most {MAX_BYTES:,} bytes", "Keep weights and data in other files.")


def refuse(source: str, rule: str, remedy: str) -> NoReturn:
    raise SpecError([Problem(rule, remedy=remedy, mark=Mark(source))])


def read_text(text: str, source: str) -> Document:
    """Read YAML text; `source` is the name that marks and errors show. Raises `SpecError`."""
    return Reader(text, source).document()
