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

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_NEWLINE = re.compile("\r\n|[\r\n]")
_ALIGN = "Align the line with its neighbours; put nothing after a quoted or bracketed value."
_SYNTAX = [  # parser message, rule, remedy (empty: report where the construct starts)
    ("tab character", "a line must not be indented by a tab", "Indent with spaces."),
    ("cannot start any token", "an unquoted value must not start with this character", "Put it in quotes."),
    ("mapping values", "a ':' must follow a key, one key to a line",
     "Indent the keys of a mapping alike; put a value that contains ': ' in quotes; start a nested mapping on its own line."),
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


class _TextPosition(NamedTuple):
    """A position in a text, counted from 0."""

    line: int
    column: int


class Reader:
    """Reads a text in two passes: bounded parse events, then values and their marks."""

    def __init__(self, text: str, source: str, inline: bool = False) -> None:
        self.text, self.source, self.inline = text.removeprefix("\ufeff"), source, inline
        self.marks: dict[SpecPath, Mark] = {}
        self.key_marks: dict[SpecPath, Mark] = {}
        self.events: list[Any] = []
        self.targets: dict[int, int] = {}  # index of an alias event -> index of the anchored event
        self.next = 0  # the index of the next event of the second pass
        self.nodes = 0
        self.check_text()
        self.scan()

    def mark(self, position: Any) -> Mark:
        return Mark(self.source) if self.inline else Mark(self.source, position.line + 1, position.column + 1)

    def fail(
        self, rule: str, position: Any, remedy: str = "", path: SpecPath = (), value: object = MISSING
    ) -> NoReturn:
        raise SpecError([Problem(rule, path, value, remedy, self.mark(position))])

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
            for index, event in enumerate(yaml.parse(self.text, Loader=LOADER)):
                self.events.append(event)
                position = event.start_mark
                if isinstance(event, yaml.DocumentStartEvent):
                    documents += 1
                    if documents > 1:
                        remedy = "Split the documents into separate files; remove the '---'."
                        self.fail("a file must hold one document", position, remedy)
                elif isinstance(event, yaml.CollectionEndEvent):
                    opened.pop()
                elif isinstance(event, yaml.NodeEvent):
                    values += 1
                    if values > 2 * MAX_NODES:  # a key and a value each
                        self.too_many(position)
                    if isinstance(event, yaml.AliasEvent):
                        self.targets[index] = self.target(event, anchors, opened)
                    elif event.anchor:
                        anchors[event.anchor] = index
                    if isinstance(event, yaml.CollectionStartEvent):
                        opened.append(index)
                        if len(opened) > MAX_DEPTH:
                            self.too_deep(position)
        except yaml.MarkedYAMLError as error:
            self.syntax(error)

    def target(self, alias: Any, anchors: Mapping[str, int], opened: list[int]) -> int:
        name, position = alias.anchor, alias.start_mark
        if name not in anchors:
            remedy = suggestion(name, anchors) or f"Write &{name} before the value that it names."
            self.fail(f"an alias must name an anchor above it, but &{name} is not defined", position, remedy)
        if anchors[name] in opened:
            self.fail(f"a value must not contain itself, but *{name} is within &{name}", position,
                      "Write the value out, or move the anchor.")  # fmt: skip
        return anchors[name]

    def too_many(self, position: Any, path: SpecPath = ()) -> NoReturn:
        rule = f"a spec must have at most {MAX_NODES} values, counting each use of an alias in full"
        self.fail(rule, position, "Use named `blocks` and `repeat` instead of copies.", path)

    def too_deep(self, position: Any, path: SpecPath = ()) -> NoReturn:
        rule = f"lists and mappings must be nested at most {MAX_DEPTH} deep"
        self.fail(rule, position, "Close the brackets, or flatten the structure.", path)

    def syntax(self, error: yaml.MarkedYAMLError) -> NoReturn:
        said, position, start = error.problem or "", error.problem_mark, error.context_mark
        shown: Any = position or start
        if (
            "maximum nesting depth" in said
        ):  # libyaml has its own bound, which it may reach while looking ahead
            self.too_deep(shown)
        if position is not None and self.text[position.index : position.index + 1] == "\t":
            said = "tab character"
        elif "expected ':'" in said:
            shown = start or shown  # the parser notices only at the start of the next line
        elif "mapping values" in said and (line := self.line_without_colon(position)) is not None:
            said, shown = "could not find expected ':'", line
        other = (said, f"the text must be valid YAML: {said}", "Put a string with punctuation in quotes.")
        _, rule, remedy = next((entry for entry in _SYNTAX if entry[0] in said), other)
        if not remedy:
            remedy = "Close it." if self.inline or start is None else f"It starts at {self.mark(start)}."
        self.fail(rule, shown, remedy)

    def line_without_colon(self, position: Any) -> _TextPosition | None:
        """The start of a line without ':' that the parser joined with the next line, whose ':' is at ``position``."""
        lines = _NEWLINE.split(self.text)
        above = next((n for n in range(position.line - 1, -1, -1) if lines[n].strip()), None)
        if above is None or ":" in lines[above] or ":" in lines[position.line][: position.column]:
            return None
        text = lines[above].lstrip()
        return None if text[0] in "#-" else _TextPosition(above, len(lines[above]) - len(text))

    def node(self, path: SpecPath) -> Any:
        """Read the value that starts at the next event."""
        index, event = self.next, self.events[self.next]
        position, tag = event.start_mark, getattr(event, "tag", None)
        self.next += 1
        if isinstance(event, yaml.AliasEvent):
            self.next, after = self.targets[index], self.next
            value = self.node(path)
            self.next = after
            self.marks[path] = self.mark(position)
            return value
        self.nodes += 1
        if self.nodes > MAX_NODES:
            self.too_many(position, path)
        self.marks[path] = self.mark(position)
        if isinstance(event, yaml.ScalarEvent):
            return self.scalar(event, path)
        if tag is not None:
            self.bad_tag(event, path)
        if len(path) >= MAX_DEPTH:
            self.too_deep(position, path)
        value = self.sequence(path) if isinstance(event, yaml.SequenceStartEvent) else self.mapping(path)
        self.next += 1
        return value

    def sequence(self, path: SpecPath) -> list[Any]:
        items: list[Any] = []
        while not isinstance(self.events[self.next], yaml.SequenceEndEvent):
            items.append(self.node((*path, len(items))))
        return items

    def mapping(self, path: SpecPath) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        while not isinstance(self.events[self.next], yaml.MappingEndEvent):
            position = self.events[self.next].start_mark
            key = self.key(path)
            key_path = (*path, key)
            if key in mapping:
                first = self.key_marks[key_path].line
                lines = "" if self.inline else f", but this one is on lines {first} and {position.line + 1}"
                self.fail(
                    f"a mapping must have each key once{lines}", position, "Remove one of the two.", key_path
                )
            self.key_marks[key_path] = self.mark(position)
            mapping[key] = self.node(key_path)
        return mapping

    def key(self, path: SpecPath) -> str:
        event = self.events[self.targets.get(self.next, self.next)]
        position = self.events[self.next].start_mark
        self.next += 1
        key: object = self.scalar(event, path) if isinstance(event, yaml.ScalarEvent) else MISSING
        if key == "<<" and not event.style:
            rule = "a mapping must not use the merge key '<<'"
            self.fail(rule, position, "Use `extends`, or named `blocks`.", path)
        if not isinstance(key, str):
            if key is MISSING:
                what, remedy = "a list or mapping", "Write a name and a ':'."
            else:
                what, remedy = TYPES[type(key)], f"Put it in quotes: '{event.value}'."
            self.fail(f"a key must be a string, but this is {what}", position, remedy, path, key)
        if len(key) > MAX_KEY:
            self.fail(f"a key must have at most {MAX_KEY} characters", position, "Shorten it.", path, key)
        return key

    def scalar(self, event: yaml.ScalarEvent, path: SpecPath) -> str | int | float | bool | None:
        text, tag, position = event.value, event.tag, event.start_mark
        if tag is not None and tag not in TAGS:
            self.bad_tag(event, path)
        if tag == "tag:yaml.org,2002:str" or (tag is None and event.style):
            return str(text)
        if is_huge(text):
            rule = f"an integer must have at most {MAX_DIGITS} digits"
            self.fail(rule, position, "Write it as a decimal number, such as 1.0e+200.", path, text)
        value = resolve(text)
        if tag is None:
            return value
        if TAGS[tag] is float and type(value) is int:
            return float(value)
        if type(value) is not TAGS[tag]:
            rule = f"a value tagged !!{tag.rpartition(':')[2]} must be {TYPES[TAGS[tag]]}"
            self.fail(rule, position, "Remove the tag, or change the value.", path, text)
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
        self.next = 2
        data = self.node(())
        if not isinstance(data, dict):
            rule = f"a spec must be a mapping, but this is {TYPES[type(data)]}"
            self.fail(rule, start.start_mark, example, (), data)
        return Document(data, self.marks, self.key_marks)


TOO_LARGE = (f"a spec must be at most {MAX_BYTES:,} bytes", "Keep weights and data in other files.")


def refuse(source: str, rule: str, remedy: str) -> NoReturn:
    raise SpecError([Problem(rule, remedy=remedy, mark=Mark(source))])


def read_text(text: str, source: str) -> Document:
    """Read YAML text; `source` is its name in marks and errors. Raises `SpecError`."""
    return Reader(text, source).document()
