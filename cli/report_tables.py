"""What a model costs as tables."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from itertools import groupby
from typing import TYPE_CHECKING

import typer

from cli.render import byte_text, print_lines

if TYPE_CHECKING:
    from zoo.reports.polynomial import Polynomial
    from zoo.reports.report import Report
    from zoo.reports.roofline import Roof, Roofline


def print_report(report: Report, *, symbolic: bool = False, depth: int = 3) -> None:
    """Print all of a report; ``symbolic`` has formulas of the sizes in the place of numbers, ``depth`` levels of modules."""
    _print_title(report)
    _print_roles(report)
    _print_flops(report, symbolic, depth)
    _print_memory(report)
    _print_training(report, symbolic)
    if report.devices:
        _print_devices(report)


def _heading(text: str, note: str = "") -> None:
    typer.echo()
    typer.secho(text, bold=True, nl=not note)
    if note:
        typer.echo(f": {note}")


def _print_title(report: Report) -> None:
    typer.secho(report.spec.name, bold=True, nl=False)
    active = f" ({count_text(report.active)} active)" if report.active != report.parameters else ""
    typer.echo(f": {report.parameters:,} parameters{active}, {report.precision}; {sizes_text(report)}")


def sizes_text(report: Report) -> str:
    """Such as ``2 x 1,024 tokens, a step after 1,023``."""
    lengths, architecture = report.lengths, report.spec.architecture
    of = f"{lengths.batch:,} x {lengths.length:,}"
    if architecture == "encoder":
        return (
            f"{of} tokens"
            if report.spec.embedding_of(report.spec.last_stack).takes_tokens
            else f"{of} vectors"
        )
    step = f"a step after {lengths.past:,}"
    if architecture == "decoder":
        return f"{of} tokens, {step}"
    return f"{lengths.batch:,} x {lengths.source:,} in the encoder, {of} tokens in the decoder, {step}"


def count_text(count: float) -> str:
    """A number in three digits: 124 M, 1.34 T."""
    units = ["", " k", " M", " G", " T", " P"]
    while count >= 999.5 and len(units) > 1:
        count /= 1000
        units.pop(0)
    whole = not units[0] and count == round(count)
    return f"{count:.{0 if whole else _decimals(count)}f}{units[0]}"


def _decimals(value: float) -> int:
    """Places behind the point that make three digits."""
    return 2 if value < 9.995 else 1 if value < 99.95 else 0


def time_text(seconds: float) -> str:
    """A duration in three digits: 1.25 ms."""
    value, units = seconds * 1e6, ["us", "ms", "s"]
    while value >= 999.5 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{value:.{_decimals(value)}f} {units[0]}"


def _print_roles(report: Report) -> None:
    from zoo.reports.roles import ties

    _heading("Parameters")
    routed = report.active != report.parameters
    header = ["role", "parameters", "share", *(["active"] if routed else [])]
    rows = [
        [
            role.name,
            f"{role.parameters:,}",
            f"{role.parameters / report.parameters:.1%}",
            *([f"{role.active:,}"] if routed else []),
        ]
        for role in report.roles
    ]
    rows.append(["total", f"{report.parameters:,}", "", *([f"{report.active:,}"] if routed else [])])
    print_lines(header, rows, header[1:])
    for name, owner in ties(report.model).items():
        typer.echo(f"{name} is {owner}")


# ---------------------------------------------------------------------------------------------------------- FLOPs


def _print_flops(report: Report, symbolic: bool, depth: int) -> None:
    stages = report.costs.stages
    _heading(
        "FLOPs",
        "matrix products, 2 m n k each" + (" (all experts, as exported)" if report.costs.routed else ""),
    )
    texts = {name: _number(report, name, symbolic) for name in stages}
    header = ["module", *stages]
    sums = {name: _sums(stage.modules) for name, stage in stages.items()}
    order = {path: place for place, (path, _) in enumerate(report.model.named_modules())}
    rows = [
        [name, *(texts[stage](part) if (part := sums[stage].get(path)) else "-" for stage in stages)]
        for name, path in _modules(sums, order, depth)
    ]
    rows.append(["total", *(texts[name](stage.total) for name, stage in stages.items())])
    if report.costs.routed:
        rows.append(["active", *(texts[name](stage.total_active) for name, stage in stages.items())])
    if not symbolic:
        tokens = {name: report.lengths.tokens(name) for name in stages}
        rows.append(
            ["active per token" if report.costs.routed else "per token", *(count_text(stage.total_active.at(**report.lengths.symbols(name)) / tokens[name])
                            for name, stage in stages.items())]
        )  # fmt: skip
    rows.append(
        ["element operations", *(texts[name](stage.total_elements) for name, stage in stages.items())]
    )
    print_lines(header, rows, [] if symbolic else header[1:])


def _number(report: Report, stage: str, symbolic: bool) -> Callable[[Polynomial], str]:
    sizes = report.lengths.symbols(stage)
    return str if symbolic else lambda polynomial: count_text(polynomial.at(**sizes))


def _sums(modules: Mapping[str, Polynomial]) -> dict[str, Polynomial]:
    """What each module comes to with those within it."""
    from zoo.reports.polynomial import Polynomial

    parts = defaultdict[str, list[Polynomial]](list)
    for path, polynomial in modules.items():
        names = path.split(".")
        for level in range(1, len(names) + 1):
            parts[".".join(names[:level])].append(polynomial)
    return {path: Polynomial.sum(each) for path, each in parts.items()}


def _modules(
    sums: Mapping[str, Mapping[str, Polynomial]], order: Mapping[str, int], depth: int
) -> Iterator[tuple[str, str]]:
    """The names to show, indented, with the path whose sums they have; equal layers side by side are one."""
    paths = dict.fromkeys(path for stage in sums.values() for path in stage)
    children = defaultdict[str, list[str]](list)
    for path in sorted(paths, key=lambda path: order.get(path, len(order))):
        children[path.rpartition(".")[0]].append(path)

    def content(path: str) -> list[object]:
        costs = [stage.get(path) for stage in sums.values()]
        return [costs, [(child.rpartition(".")[2], content(child)) for child in children[path]]]

    def rows(path: str, level: int) -> Iterator[tuple[str, str]]:
        if level >= depth:
            return
        for child in children[path]:
            name = child.rpartition(".")[2]
            if name != "blocks":
                yield "  " * level + name, child
                yield from rows(child, level + 1)
                continue
            for _, group in groupby(sorted(children[child], key=_place), content):
                alike = list(group)
                last = f"-{_place(alike[-1])} x{len(alike)}, each" if len(alike) > 1 else ""
                yield "  " * level + f"{name}.{_place(alike[0])}{last}", alike[0]
                yield from rows(alike[0], level + 1)

    return rows("", 0)


def _place(path: str) -> int:
    return int(path.rpartition(".")[2])


# --------------------------------------------------------------------------------------------------------- memory


def _print_memory(report: Report) -> None:
    _heading("Memory")
    weights = ", ".join(f"{name} {byte_text(size)}" for name, size in report.weights.items())
    rows = [["weights", weights]]
    if report.cache is not None:
        lengths, cache = report.lengths, report.cache
        tokens = max(lengths.length, lengths.past)
        held = cache.held(lengths.batch, tokens, lengths.source)
        needed = cache.needed(lengths.batch, tokens, lengths.source)
        rows.append(
            [
                "cache",
                f"{byte_text(cache.bytes_per_token)} per token, {byte_text(needed)} for {lengths.batch:,} x {tokens:,}",
            ]
        )
        if cache.encoder:
            rows[-1][1] += (
                f" and {lengths.source:,} of the encoder, {byte_text(cache.encoder_bytes_per_token)} each"
            )
        if cache.windowed:
            windows = ", ".join(
                f"{each.layers} layers {'keep all' if each.window is None else f'the last {each.window:,}'}"
                for each in cache.own
            )
            rows.append(["", f"{windows}; {byte_text(held)} where all is kept, as exported"])
        if cache.latent_bytes_per_token is not None:
            rows.append(["", f"{byte_text(cache.latent_bytes_per_token)} per token where latents are cached"])
    width = max(len(name) for name, _ in rows)
    for name, text in rows:
        typer.echo(f"{name:{width}}   {text}")


def _print_training(report: Report, symbolic: bool) -> None:
    found, state, at = report.training, report.state, report.lengths.symbols("train")
    dtype = str(report.dtype).removeprefix("torch.")
    routed = "; FLOPs of the chosen experts, activations of all" if report.costs.routed else ""
    _heading("Training", f"one step, weights in {dtype}, with Adam{routed}")
    tokens = sum(report.lengths.tokens(stage) for stage in report.costs.stages if stage != "step")
    passes = found.active
    if symbolic:
        typer.echo(
            f"forward       {passes.forward}\nbackward      {passes.backward}\nrecomputed    {passes.layers}"
        )
        typer.echo(f"activations   {found.activations} bytes\n")
    ways = {
        "all kept": (passes.total, found.activations.at(**at)),
        "layers checkpointed": (passes.checkpointed, found.checkpointed.at(**at)),
        "unfused attention": (passes.total, found.unfused.at(**at)),
    }
    rows = [
        ["FLOPs per token", *(count_text(flops.at(**at) / tokens) for flops, _ in ways.values())],
        ["FLOPs", *(count_text(flops.at(**at)) for flops, _ in ways.values())],
        ["activations", *(byte_text(activations) for _, activations in ways.values())],
        *(
            [name, *[byte_text(size)] * len(ways)]
            for name, size in (
                ("weights", state.weights),
                ("gradients", state.gradients),
                ("Adam", state.moments + state.master),
            )
        ),
        ["memory in all", *(byte_text(state.total + activations) for _, activations in ways.values())],
    ]
    print_lines(["", *ways], rows, list(ways))


# -------------------------------------------------------------------------------------------------------- devices


def _print_devices(report: Report) -> None:
    demands = {stage: report.demand(stage) for stage in report.costs.stages}
    intensity = ", ".join(f"{stage} {count_text(each.intensity)}" for stage, each in demands.items())
    _heading("Devices", f"the least that calls can take; FLOPs per byte: {intensity}")
    header = ["device", *(name for stage in demands for name in (stage, "bound by", "tokens/s"))]
    found = {_device_name(each): each for each in report.rooflines}
    rows = [
        [name, *(cell for stage in demands for cell in _cells(each.roofs[stage] if each.roofs else None))]
        for name, each in found.items()
    ]
    print_lines(header, rows, [name for name in header[1:] if name != "bound by"])
    length = max(report.lengths.length, report.lengths.past)
    _heading("What fits", "weights, caches, and what the head gives")
    header = ["device", "memory", f"batch at {length:,}", "context at batch 1"]
    print_lines(header, [_room_row(name, each, report) for name, each in found.items()], header[1:])


def _device_name(each: Roofline) -> str:
    return each.device.name if each.count == 1 else f"{each.count:,} x {each.device.name}"


def _room_row(name: str, each: Roofline, report: Report) -> list[str]:
    all_of_it = " (all)" if each.largest_context == report.room.longest else ""
    memory = byte_text(round(each.count * each.device.memory))
    return [name, memory, f"{each.largest_batch:,}", f"{each.largest_context:,}{all_of_it}"]


def _cells(roof: Roof | None) -> list[str]:
    return (
        ["-"] * 3
        if roof is None
        else [time_text(roof.seconds), roof.bound, count_text(roof.tokens_per_second)]
    )
