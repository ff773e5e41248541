"""Values and bytes as no program writes them."""

from __future__ import annotations

import copy
import json
from random import Random
from typing import Any

ODD_VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 3, 7, 255, 2**31, 2**53 + 1, 2**63, -(2**63), 10**400, 0.0, -0.0, 0.5, 1e-320, 1e308,
    -1e308, float("nan"), float("inf"), "", "x", "0", "true", "none", "../../etc/passwd", "a" * 5000, "\x1b[31mred",
    "\x00", "$(reboot)", "ü\u2028", "\ud800", [], [0], [None], ["x"] * 2000, [1] * 20_000, [[[]]], {}, {"": 1},
    {"rope_type": "yarn", "factor": 0}, {"a": {"b": {"c": []}}}, "silu", "gelu", "default",
)  # fmt: skip

Place = tuple[Any, Any]
"""A container, and a key or an index in it."""


def places(data: Any) -> list[Place]:
    """Every value inside plain data."""
    keys = list(data) if isinstance(data, dict) else range(len(data)) if isinstance(data, list) else ()
    found: list[Place] = []
    for key in keys:
        found += [(data, key), *places(data[key])]
    return found


def mutated(data: Any, random: Random) -> Any:
    """Plain data with one to four changes."""
    data = copy.deepcopy(data)
    for _ in range(random.choice((1, 1, 1, 2, 2, 3, 4))):
        _mutate(data, random)
    return data


def _mutate(data: Any, random: Random) -> None:
    found = places(data)
    if not found:
        return
    container, key = random.choice(found)
    value = container[key]
    match random.randrange(9):
        case 0:
            del container[key]
        case 1 | 2 | 3:
            container[key] = copy.deepcopy(random.choice(ODD_VALUES))
        case 4:
            container[key] = _near(value, random)
        case 5:
            other, place = random.choice(found)
            if not _holds(other[place], container):
                container[key] = copy.deepcopy(other[place])
        case 6:
            container[key] = [copy.deepcopy(value)] * random.choice((1, 2, 100))
        case 7:
            container[key] = deep(random.choice((3, 60, 300)))
        case _:
            if isinstance(container, dict):
                container[str(key)[:-1] + random.choice(("", "_", "x", "\n", "\x1b"))] = container.pop(key)


def _holds(outer: Any, inner: Any) -> bool:
    return outer is inner or any(
        value is inner for container, key in places(outer) for value in [container[key]]
    )


def _near(value: Any, random: Random) -> Any:
    """A value close to one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return random.choice(
            (value + 1, value - 1, -value, 2 * value, value * 10**9, float(value), str(value))
        )
    if isinstance(value, float):
        return random.choice((-value, value * 1e300, value / 1e300, 0, str(value)))
    if isinstance(value, str):
        return random.choice((value.upper(), value[:-1], value + "\x00", value * 1000))
    if isinstance(value, list):
        return random.choice((value[:-1], value + value, value[::-1], dict(enumerate(map(str, value)))))
    return random.choice((None, [value], {**value, "extra": 1}) if isinstance(value, dict) else (0, "", []))


def deep(levels: int) -> Any:
    """Lists nested to a depth."""
    value: Any = 1
    for _ in range(levels):
        value = [value] if levels % 2 else {"a": value}
    return value


def text_of(data: Any, random: Random) -> bytes:
    """JSON text, now and then with damage that no JSON library writes."""
    text = json.dumps(data).encode()
    match random.randrange(12):
        case 0:
            return text[: random.randrange(len(text) + 1)]
        case 1:
            return changed_bytes(text, random)
        case 2:
            return b"\xef\xbb\xbf" + text
        case 3:
            return b'{"a":' * random.choice((70, 2000, 1_000_000)) + text
    return text


def changed_bytes(content: bytes, random: Random, most: int | None = None) -> bytes:
    """Bytes of which some are others, are missing or come twice, among the first ``most``."""
    end = min(len(content), most or len(content))
    data = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 5, 30))):
        if not data or not end:
            break
        at = random.randrange(min(end, len(data)))
        match random.randrange(7):
            case 0 | 1:
                data[at] ^= 1 << random.randrange(8)
            case 2:
                data[at] = random.randrange(256)
            case 3:
                del data[at : at + random.choice((1, 2, 8, 100))]
            case 4:
                data[at:at] = data[at : at + random.choice((1, 8, 64))]
            case 5:
                number = random.choice((0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1, len(content)))
                data[at : at + 8] = number.to_bytes(8, "little")
            case _:
                del data[random.randrange(len(data)) :]
    return bytes(data)
