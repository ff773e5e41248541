"""Specs damaged at random: as bytes, as lines of text, as documents, and through assignments."""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random
from typing import Any

from specs.base.base import Spec
from specs.base.registry import kinds, slots
from specs.language.document import Document
from specs.language.load import load, read
from specs.language.named_blocks import with_named_blocks
from specs.language.preset_files import PRESETS, preset_names
from specs.language.synonyms import SYNONYMS
from specs.model.model import Model
from specs.model.stack import LayerGroup, LayerRun, Stack

Draw = Callable[[Random], Document | Model]
"""What a draw gives: a document, yet to be validated, or the model that was read of it."""

KINDS = sorted({name for slot in slots() for name in kinds(slot)})
KEYS = sorted(
    {key for spec in (Model, Stack, LayerRun, LayerGroup) for key in spec.model_fields}
    | {key for slot in slots() for kind in kinds(slot).values() for key in kind.spec.model_fields}
    | set(SYNONYMS)
    | {"extends", "factor", "norm", "over", "groups", "", " ", "0", "é", "a b", "<<", "kind kind"}
)
VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 3, 7, 8, 16, 63, 64, 2**24, 2**24 + 1, 2**31, 2**63, 2**64, 10**30, 10**99, 0.0, -0.0, 0.5, 1.0,
    1e-320, 1e-30, 1e308, float("inf"), float("-inf"), float("nan"), "", "yes", "no", "on", "null", "1", "1e5", "0x10", ".nan", "~",
    "gpt2", "rope", "é", "\U0001f600", "\x85", "a" * 300, "a: b", "#", "'", '"', [], {}, [[]], [None], [1.0, 2.0], {"kind": None},
    {"kind": "none"}, {"kind": "rope"}, {"use": "local", "repeat": 2}, {"pattern": [{"repeat": 2}], "repeat": 3}, [{"repeat": 2}],
    {"a": {"b": {"c": []}}}, {"repeat": 10_000}, [{"repeat": 10_000}] * 3,
]  # fmt: skip
WORDS = [
    "null", "~", "yes", "1_000", "1e999", "-.inf", ".nan", "0o17", "0x", "!!str 3", "!!int x", "!!python/object:os.system x", "&a", "*a",
    "*gone", "[", "]", "{", "}", "[[[[", "- - -", "? ", ": ", ",", "'", '"', "|", ">", "%TAG", "---", "...", "#", "\t", "@", "`", "<<: *a",
    "kind: rope", "extends: gpt2", "extends: .", "\\x00", "\u2028", "\ufeff",
]  # fmt: skip


def drawn_bytes(random: Random) -> Document | Model:
    """A preset's file with some of its bytes damaged."""
    from specs.language.reading import read_text

    content = bytearray((PRESETS / f"{random.choice(preset_names())}.yaml").read_bytes())
    for _ in range(random.randint(1, 2)):
        place = random.randrange(len(content) + 1)
        end = min(len(content), place + random.randint(0, 30))
        match random.randrange(5):
            case 0:
                content[place:end] = b""
            case 1:
                content[place:place] = bytes(random.randrange(256) for _ in range(random.randint(1, 4)))
            case 2:
                content[place:place] = content[place:end] * random.randint(1, 3)
            case 3:
                content[place:place] = random.choice(WORDS).encode()
            case _:
                content[place : place + 1] = random.choice(b" \n\t:-[]{}'\"#&*!|>%@`,0aA~").to_bytes()
    return read_text(content.decode("utf-8", "surrogateescape"), "drawn.yaml")


def drawn_lines(random: Random) -> Document | Model:
    """A preset's file with some of its lines damaged."""
    from specs.language.reading import read_text

    lines = (PRESETS / f"{random.choice(preset_names())}.yaml").read_text("utf-8").split("\n")
    for _ in range(random.randint(1, 2)):
        at, other = random.randrange(len(lines)), random.randrange(len(lines))
        match random.randrange(7):
            case 0:
                del lines[at : at + 1]
                lines = lines or [""]
            case 1:
                lines.insert(at, lines[other])
            case 2:
                lines[at], lines[other] = lines[other], lines[at]
            case 3:
                lines[at] = " " * random.randint(0, 5) + lines[at].lstrip()
            case 4:
                key, colon, value = lines[at].partition(":")
                lines[at] = random.choice(
                    [key + value, f"{random.choice(KEYS)}{colon}{value}", f"{key}: {random.choice(WORDS)}"]
                )
            case 5:
                words = lines[at].split(" ")
                words[random.randrange(len(words))] = random.choice(WORDS)
                lines[at] = " ".join(words)
            case _:
                lines.insert(at, f"{random.choice(KEYS)}: {random.choice(WORDS)}")
    return read_text("\n".join(lines), "drawn.yaml")


def drawn_document(random: Random) -> Document | Model:
    """A preset's document with some of its values, keys, types or structure changed."""
    data: Any = copy.deepcopy(read(random.choice(preset_names())).data)
    for _ in range(random.randint(1, 2)):
        _damage(data, random)
    return Document(data)


def _damage(data: Any, random: Random) -> None:
    """Change one place of plain data."""
    holders = list(_holders(data))
    holder = random.choice(holders)
    keys: list[Any] = list(holder) if isinstance(holder, dict) else list(range(len(holder)))
    if not keys or random.randrange(6) == 0:
        if isinstance(holder, dict):
            holder[random.choice(KEYS)] = _value(random, holders)
        else:
            holder.append(_value(random, holders))
        return
    key = random.choice(keys)
    match random.randrange(6):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[random.choice(KEYS)] = holder.pop(key)
        case 2:
            holder[key] = [holder[key]] if random.random() < 0.5 else {random.choice(KEYS): holder[key]}
        case 3 if isinstance(holder, dict):
            holder["kind"] = random.choice(KINDS)
        case _:
            holder[key] = _value(random, holders)


def _value(random: Random, holders: list[Any]) -> Any:
    """A value from the pool, one near to a number there, or a part of the document itself."""
    if random.random() < 0.3:
        return copy.deepcopy(random.choice(holders))
    return copy.deepcopy(
        random.choice([*VALUES, random.choice(KINDS), random.randint(-3, 300), random.random()])
    )


def _holders(data: Any) -> list[Any]:
    if isinstance(data, dict | list):
        inner = data.values() if isinstance(data, dict) else data
        return [data, *(holder for value in inner for holder in _holders(value))]
    return []


def drawn_assignments(random: Random) -> Document | Model:
    """A preset with assignments of any keys, values and indices."""
    name = random.choice(preset_names())
    assignments = []
    for _ in range(random.randint(1, 2)):
        spec: Any = load(name)
        path: list[str] = []
        while isinstance(spec, Spec) and random.random() < 0.9:
            key = random.choice([*type(spec).model_fields, random.choice(KEYS)])
            path.append(key)
            spec = getattr(spec, key, None)
        if random.random() < 0.1:
            path.append(random.choice(["0", "1", "-1", "[0]", "x[2]", "99999999999"]))
        value = random.choice(
            [*WORDS, *map(repr, VALUES), *(f"{{kind: {kind}}}" for kind in KINDS), "[{use: a}]"]
        )
        assignments.append(f"{'.'.join(path) or 'name'}={value}")
    return load(name, assignments)


DRAWS: dict[str, Draw] = {
    "bytes": drawn_bytes,
    "lines": drawn_lines,
    "documents": drawn_document,
    "assignments": drawn_assignments,
}


def model_of(drawn: Document | Model) -> Model:
    """The model that was drawn.  Raises :class:`specs.base.errors.SpecError` where it is none."""
    from specs.language.validation import validate

    return drawn if isinstance(drawn, Model) else validate(with_named_blocks(drawn))
