"""What a model costs, as polynomials that the page's script evaluates at the sizes that its sliders give."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from specs.model import Model
from zoo.pages.markup import code, layers_text, section
from zoo.reports.costs import Costs, Stage, within
from zoo.reports.polynomial import MEANINGS, Polynomial

TELLS = {
    "forward": "all tokens at once",
    "encode": "the encoder, and the keys and values that the decoder attends to",
    "prefill": "a prompt, all tokens at once",
    "step": "one new token, after those in the cache",
}
MOST_SEQUENCES = 1024
LONGEST = 131_072
"""Where a slider ends, for a model whose context does not end."""


def costs_section(costs: Costs, spec: Model, order: Mapping[str, int]) -> tuple[str, dict[str, Any]]:
    """The frame of the costs, and the polynomials for the page's script; ``order`` is that of the model's modules."""
    stages = {name: _stage_rows(stage, order) for name, stage in costs.stages.items()}
    symbols = [s for s in MEANINGS if any(s in stage.total.symbols for stage in costs.stages.values())]
    data = {
        "sizes": {symbol: _size(symbol, spec) for symbol in symbols},
        "stages": {
            name: {"about": TELLS[name], "rows": rows, "formula": str(costs.stages[name].total)}
            for name, rows in stages.items()
        },
    }
    about = (
        "FLOPs (a multiplication and an addition are two) of every operation of the traced graph, "
        "as a function of the sizes below."
    )
    body = (
        f'<div class="sizes">{"".join(_slider(symbol) for symbol in symbols)}</div>'
        '<div class="scroll" tabindex="0"><table id="stages"></table></div>'
        '<fieldset class="choice" id="stage"><legend>By module</legend></fieldset>'
        '<div class="scroll" tabindex="0"><table id="modules"></table></div>'
    )
    return section("costs", "Costs", about, body), data


def _slider(symbol: str) -> str:
    meaning = MEANINGS[symbol]
    return (
        f'<label data-symbol="{symbol}"><span>{meaning} {code(symbol)}</span>'
        f'<input type="range" aria-label="{meaning}"><input type="number" aria-label="{meaning}, exactly"></label>'
    )


def _size(symbol: str, spec: Model) -> dict[str, int]:
    """Where a slider begins, ends and stands."""
    if symbol == "B":
        return {"least": 1, "most": MOST_SEQUENCES, "value": 1}
    stack = spec.encoder if symbol == "S" or spec.decoder is None else spec.decoder
    assert stack is not None
    longest = spec.context_length_of(stack) or LONGEST
    if not spec.embedding_of(stack).takes_tokens:
        return {"least": longest, "most": longest, "value": longest}
    least, most = (0, longest - 1) if symbol == "P" else (1, longest)
    return {"least": least, "most": most, "value": min(1024, most)}


def _stage_rows(stage: Stage, order: Mapping[str, int]) -> list[dict[str, Any]]:
    """The rows of a stage, a module before those within it; ``order`` is that of the model's modules."""
    paths = sorted({*stage.modules, *stage.elements}, key=order.__getitem__)
    return [_row(stage, "", 1, "all modules", 0), *_inner_rows(stage, paths, "", 1, 1)]


def _inner_rows(
    stage: Stage, paths: Sequence[str], around: str, times: int, level: int
) -> Iterator[dict[str, Any]]:
    """The rows of what lies within a module, of which there are ``times`` alike; equal layers are one."""
    for name in _names(paths, around):
        path = f"{around}.{name}" if around else name
        if name == "blocks":
            yield from _block_rows(stage, paths, path, times, level)
            continue
        yield _row(stage, path, times, name, level)
        inner = list(_inner_rows(stage, paths, path, times, level + 1))
        if inner and path in stage.modules:
            yield _row(
                Stage(*({path: part[path]} if path in part else {} for part in _parts(stage))),
                path,
                times,
                "itself",
                level + 1,
            )
        yield from inner


def _block_rows(
    stage: Stage, paths: Sequence[str], blocks: str, times: int, level: int
) -> Iterator[dict[str, Any]]:
    """The rows of a stack's layers."""
    layers = _names(paths, blocks)
    alike: dict[object, list[int]] = {}
    for layer in map(int, layers):
        alike.setdefault(_content(stage, paths, f"{blocks}.{layer}."), []).append(layer)
    for places in alike.values():
        first, count = f"{blocks}.{places[0]}", times * len(places)
        yield _row(stage, first, count, layers_text(places, len(layers)), level)
        yield from _inner_rows(stage, paths, first, count, level + 1)


def _names(paths: Sequence[str], around: str) -> list[str]:
    """The names of the modules right within one, those that cost something."""
    start = f"{around}." if around else ""
    inner = (path[len(start) :] for path in paths if path.startswith(start))
    return list(dict.fromkeys(path.split(".")[0] for path in inner if path))


def _parts(stage: Stage) -> tuple[Mapping[str, Polynomial], ...]:
    return stage.modules, stage.active, stage.elements


def _content(stage: Stage, paths: Sequence[str], start: str) -> tuple[object, ...]:
    """What makes two layers cost the same."""
    inner = [path for path in paths if path.startswith(start)]
    return tuple((path.removeprefix(start), *(part.get(path) for part in _parts(stage))) for path in inner)


def _row(stage: Stage, path: str, times: int, name: str, level: int) -> dict[str, Any]:
    products, active, elements = (polynomial_data(within(part, path) * times) for part in _parts(stage))
    return {"name": name, "level": level, "products": products, "active": active, "elements": elements}


def polynomial_data(polynomial: Polynomial) -> list[list[Any]]:
    """The terms for the page's script: the coefficient as text, as a script's numbers are not as long, and the powers."""
    return [[str(term["coefficient"]), term["powers"]] for term in polynomial.as_dict()]
