"""Costs as polynomials that the page's script evaluates at the sizes of its sliders."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from specs.model.model import Model
from specs.model.stack import Stack
from zoo.pages.markup import code, layer_runs, layers_text, scrolling, section
from zoo.reports.costs import StageCosts, within
from zoo.reports.parameters import module_tree
from zoo.reports.polynomial import MEANINGS, Polynomial
from zoo.reports.report import Report

TELLS = {
    "forward": "all tokens at once",
    "encode": "the encoder, and the keys and values for cross-attention",
    "see": "images, up to the vectors that the decoder reads",
    "prefill": "a prompt, all tokens at once",
    "step": "one new token after the cached ones",
}
MOST_SEQUENCES = 1024
LONGEST = 131_072
"""Maximum of the length slider for a model without a context limit."""


def costs_section(report: Report) -> tuple[str, dict[str, Any]]:
    """The frame of the costs section, and the initial sizes and polynomials for the page's script."""
    order = {module.path: index for index, module in enumerate(module_tree(report.folded).walk())}
    sizes = _sizes(report)
    data = {
        "sizes": sizes,
        "stages": {
            name: {"about": TELLS[name], "rows": _stage_rows(stage, order), "formula": str(stage.total)}
            for name, stage in report.costs.stages.items()
        },
    }
    about = (
        "FLOPs (a multiplication and an addition are two) and bytes, from the traced graph of the model, "
        f"at the sizes chosen here. {report.estimate_note or ''}"
    ).rstrip()
    sliders = "".join(_slider(symbol) for symbol in sizes)
    body = (
        f'<div class="sizes">{sliders}<fieldset class="choice" id="precision"><legend>Precision</legend></fieldset></div>'
        f"{_FRAMES}{_READS_FRAME if report.expert_reads else ''}{_DEVICE_FRAMES if report.devices else ''}"
    )
    return section("costs", "Costs", about, body), data


def _frame(key: str, label: str) -> str:
    """An empty table that the page's script fills."""
    return scrolling(label, f'<table id="{key}"></table>')


_FRAMES = f"""
<h3>FLOPs</h3>
{_frame("stages", "FLOPs by stage")}
<fieldset class="choice" id="stage"><legend>By module</legend></fieldset>
{_frame("modules", "FLOPs by module")}
<h3>Memory and training</h3>
<div class="figures">{_frame("memory", "Memory to run")}{_frame("training", "FLOPs and memory to train")}</div>
"""
_READS_FRAME = f"""
<h3>Weights read per decoder step</h3>
<p class="quiet">The number of different experts is the expected one if all are equally likely.</p>
{_frame("reads", "Weights read per decoder step")}
"""
_DEVICE_FRAMES = f"""
<h3>Devices</h3>
<p class="quiet">A lower bound on the time: matrix products at the device's peak rate, or reading weights and caches once,
whichever is longer.  A model too large for one device is spread evenly over as many as it needs.</p>
{_frame("devices", "Bounds on devices")}
<fieldset class="choice" id="device"><legend>Roofline</legend></fieldset>
<figure><svg class="chart" id="roof" viewBox="0 0 468 280" role="img" aria-label="Roofline"></svg></figure>
"""


def _slider(symbol: str) -> str:
    meaning = MEANINGS[symbol]
    return (
        f'<label data-symbol="{symbol}"><span>{meaning} {code(symbol)}</span>'
        f'<input type="range" aria-label="{meaning}"><input type="number" aria-label="{meaning}, exactly"></label>'
    )


def _sizes(report: Report) -> dict[str, dict[str, int]]:
    """Minimum, maximum and value of the slider of each symbol; minimum and maximum of a fixed one are equal."""
    spec, lengths = report.spec, report.lengths
    sizes = {
        "B": {"least": 1, "most": max(MOST_SEQUENCES, lengths.batch), "value": lengths.batch},
        "T": _length(spec, spec.last_stack, lengths.length),
    }
    if spec.decoder is not None:
        most = _length(spec, spec.decoder, lengths.past)["most"]
        sizes["P"] = {"least": 0, "most": most - 1, "value": lengths.past}
    if spec.architecture == "encoder-decoder" and spec.encoder is not None:
        sizes["S"] = _length(spec, spec.encoder, lengths.source)
    return sizes


def _length(spec: Model, stack: Stack, value: int) -> dict[str, int]:
    most = spec.context_length_of(stack) or max(LONGEST, value)
    return {"least": 1 if spec.embedding_of(stack).any_length else most, "most": most, "value": value}


def _stage_rows(stage: StageCosts, order: Mapping[str, int]) -> list[dict[str, Any]]:
    """The rows of a stage, each module before its submodules; ``order``: the index of each module of the model."""
    paths = sorted({*stage.modules, *stage.elements}, key=order.__getitem__)
    return [_row(_parts(stage), "", 1, "all modules", 0), *_inner_rows(_parts(stage), paths, "", 1, 1, "")]


Parts = Mapping[str, Mapping[str, Polynomial]]
"""Matrix products and other operations, each by path."""


def _parts(stage: StageCosts) -> Parts:
    return {"products": stage.modules, "elements": stage.elements}


def _inner_rows(
    parts: Parts, paths: Sequence[str], around: str, times: int, level: int, layers: str
) -> Iterator[dict[str, Any]]:
    """The rows of the submodules of ``times`` equal modules, in ``layers`` of a stack; equal layers are merged."""
    for name in _names(paths, around):
        path = f"{around}.{name}" if around else name
        if name == "blocks":
            yield from _block_rows(parts, paths, path, times, level)
            continue
        yield _row(parts, path, times, name, level, layers)
        inner = list(_inner_rows(parts, paths, path, times, level + 1, layers))
        if inner and path in parts["products"]:
            own = {key: {path: part[path]} for key, part in parts.items() if path in part}
            yield _row(own, path, times, "itself", level + 1, layers)
        yield from inner


def _block_rows(
    parts: Parts, paths: Sequence[str], blocks: str, times: int, level: int
) -> Iterator[dict[str, Any]]:
    """The rows of a stack's layers."""
    layers = _names(paths, blocks)
    alike: dict[object, list[int]] = {}
    for layer in map(int, layers):
        alike.setdefault(_content(parts, paths, f"{blocks}.{layer}."), []).append(layer)
    for places in alike.values():
        first, count = f"{blocks}.{places[0]}", times * len(places)
        runs = layer_runs(places)
        yield _row(parts, first, count, layers_text(places, len(layers)), level, runs)
        yield from _inner_rows(parts, paths, first, count, level + 1, runs)


def _names(paths: Sequence[str], around: str) -> list[str]:
    """The names of direct submodules with any cost."""
    start = f"{around}." if around else ""
    inner = (path[len(start) :] for path in paths if path.startswith(start))
    return list(dict.fromkeys(path.split(".")[0] for path in inner if path))


def _content(parts: Parts, paths: Sequence[str], start: str) -> tuple[object, ...]:
    """A key that is equal for layers with equal costs."""
    inner = [path for path in paths if path.startswith(start)]
    return tuple((path.removeprefix(start), *(part.get(path) for part in parts.values())) for path in inner)


def _row(parts: Parts, path: str, times: int, name: str, level: int, layers: str = "") -> dict[str, Any]:
    figures = {key: polynomial_data(within(part, path) * times) for key, part in parts.items()}
    module = {"path": path, "layers": layers}
    return {"name": name, "level": level, "products": [], "elements": [], **figures, **module}


def polynomial_data(polynomial: Polynomial) -> list[list[Any]]:
    """The terms for the page's script: coefficients as text, which may exceed JavaScript's numbers, and powers."""
    return [[str(term["coefficient"]), term["powers"]] for term in polynomial.as_dict()]
