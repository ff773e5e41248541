"""Assignments `path=value`, as given to `--set`, or as ``assignments`` in Python."""

from __future__ import annotations

import re

import yaml

from specs.base.errors import Mark, SpecPath
from specs.language.document import MAX_DEPTH, MAX_KEY, Document
from specs.language.reading import Reader, refuse

_INDEX = re.compile(r"\[(-?[0-9]{1,9})\](?=[.\[]|$)")
_SEGMENT = re.compile(r"[\w-]+")
_EXAMPLE = "Write it as in decoder.block.attention.heads=16 or decoder.layers[0].repeat=3."


def parse_assignment(assignment: str) -> Document:
    """Read `decoder.layers[0].repeat=3`, or `decoder.layers.0.repeat=3`, as an override for `merge`.

    The path becomes nested mappings, an index an integer key; the value is YAML in flow style. Raises
    `SpecError`.
    """
    mark = Mark.of_option("assignments", assignment)
    source = mark.source
    left, equals, right = assignment.partition("=")
    if not equals:
        refuse(source, "an assignment must have an '=' between path and value", _EXAMPLE)
    segments = _INDEX.sub(r".\1", left.strip()).split(".")
    if not all(_SEGMENT.fullmatch(segment) for segment in segments):
        refuse(source, "a path must be names joined by dots, with indices in brackets", _EXAMPLE)
    if max(map(len, segments)) > MAX_KEY or len(segments) > MAX_DEPTH:
        rule = f"a path must have at most {MAX_DEPTH} names of at most {MAX_KEY} characters"
        refuse(source, rule, _EXAMPLE)
    path: SpecPath = tuple(int(s) if re.fullmatch("-?[0-9]{1,9}", s) else s for s in segments)

    reader = Reader(f"[{right}\n]", source, inline=True)
    reader.next = 3  # after the starts of stream, document and list
    if isinstance(reader.events[3], yaml.SequenceEndEvent):
        remedy = "Write null for no value, or '' for an empty string."
        refuse(source, "an assignment must have a value after its '='", remedy)
    value = reader.node(path)
    if not isinstance(reader.events[reader.next], yaml.SequenceEndEvent):
        remedy = "Put a list in brackets, or a string with commas in quotes."
        refuse(source, "an assignment must have one value", remedy)
    for depth in range(len(path), 0, -1):
        reader.marks[path[:depth]] = reader.key_marks[path[:depth]] = mark
        value = {path[depth - 1]: value}
    return Document(value, {(): mark, **reader.marks}, reader.key_marks)
