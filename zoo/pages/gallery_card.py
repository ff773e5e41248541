"""One preset in the gallery: what is searched and sorted, and what its card opens."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

import specs
import zoo
from specs.forms.full import full
from specs.forms.resolved import resolved
from specs.language.catalog import Preset
from specs.language.load import load
from specs.language.preset_files import PRESETS
from specs.language.writing import dump
from specs.model.model import Model
from zoo.drawing import draw_scene
from zoo.pages.drawing import inline_svg
from zoo.reports.report import Report, report

PRECISION = "fp16"
"""The precision of the weights and caches in the gallery."""

_ABOUT = ("name", "summary", "source", "year", "expect", "initialization")


@dataclass(frozen=True)
class Card:
    """A card: ``digest`` of what it is made from, ``index`` for the list, and its ``content``, packed."""

    digest: str
    index: dict[str, Any]
    content: str


def make_card(preset: Preset) -> Card:
    """The card of a preset."""
    spec = load(preset.name)
    costs = report(spec, precision=PRECISION)
    content = {
        "drawing": inline_svg(draw_scene(spec, costs.folded)),
        "yaml": dump(resolved(spec)),
        "spec": {key: value for key, value in full(spec).items() if key not in _ABOUT},
    }
    packed = zlib.compress(json.dumps(content, separators=(",", ":")).encode(), 9)
    index = {**asdict(preset), **_sizes(spec), **figures(costs)}
    return Card(digest_of(preset), index, base64.b64encode(packed).decode())


def _sizes(spec: Model) -> dict[str, Any]:
    contexts = (spec.context_length_of(stack) for _, stack in spec.stacks())
    return {
        "layers": " + ".join(str(stack.depth) for _, stack in spec.stacks()),
        "width": spec.widths_text,
        "vocabulary": spec.vocab_size,
        "context": " + ".join(f"{length:,}" for length in contexts if length),
    }


def figures(costs: Report) -> dict[str, Any]:
    """The exact figures of a model, as ``zoo params`` and ``zoo report`` print them."""
    lengths, cached = costs.lengths, costs.cache
    tokens = max(lengths.length, lengths.past)
    return {
        "parameters": costs.parameters,
        "active_parameters": costs.active,
        "weights": costs.weights[costs.precision],
        "cache_per_token": None if cached is None else cached.bytes_per_token,
        "state": None if cached is None else cached.state_bytes,
        "cache": None if cached is None else cached.needed(lengths.batch, tokens, lengths.source),
        "tokens": tokens,
        "flops": {
            name: [stage.total.at(**lengths.symbols(name)), lengths.tokens(name)]
            for name, stage in costs.costs.stages.items()
        },
    }


def digest_of(preset: Preset) -> str:
    """The digest of all that a card is made from: the preset and its bases, and the source of both packages."""
    text = "\n".join([_source(), repr(preset), *_texts(preset.name)])
    return hashlib.sha256(text.encode()).hexdigest()[:20]


def _texts(name: str) -> list[str]:
    text = (PRESETS / f"{name}.yaml").read_text("utf-8")
    base = re.search(r"^extends: *(\S+)", text, re.MULTILINE)
    return [text, *(_texts(base[1]) if base else [])]


@cache
def _source() -> str:
    """The digest of the Python source of the packages that cards are made with."""
    digest = hashlib.sha256()
    for package in (specs, zoo):
        assert package.__file__ is not None
        for path in sorted(Path(package.__file__).parent.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()
