"""Tables of ``zoo report``."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from cli.options.sizes import precision_sizes
from cli.tables.module_rows import module_rows, module_sums
from cli.terminal.render import NO_BREAK, Column, print_table, say
from zoo.core.units import byte_text, count_text, time_text, total_and_active

if TYPE_CHECKING:
    from specs.model.model import Model
    from zoo.reports.polynomial import Polynomial
    from zoo.reports.report import Report
    from zoo.reports.roofline import Roof, Roofline


def print_report(report: Report, target: str, *, symbolic: bool = False, depth: int = 3) -> None:
    """Print a report with file sizes for a target and ``depth`` levels of modules.

    ``symbolic`` prints formulas of the sizes instead of numbers.
    """
    _print_title(report)
    _print_roles(report)
    _print_flops(report, symbolic, depth)
    _print_memory(report, target)
    _print_reads(report)
    _print_training(report, symbolic)
    if report.devices:
        _print_devices(report)


def print_advice(spec: Model, target: str, precision: str) -> None:
    """Print the changes of one line that would fuse more operations on a target."""
    from exporters.steps.advice import advice
    from exporters.steps.options import ExportOptions

    options = ExportOptions.of(target=target, precision=precision)
    if changes := advice(spec, options):
        _heading("One change would fuse more", f"on {target} in {precision}")
        for change in changes:
            say(str(change))


def _heading(text: str, note: str = "") -> None:
    say()
    say(f": {note}" if note else "", lead=text)


def _print_title(report: Report) -> None:
    counts = total_and_active(report.parameters, report.active)
    say(f": {counts}, {report.precision}; {sizes_text(report)}", lead=report.spec.name)


def sizes_text(report: Report) -> str:
    """The sizes as text, such as ``2 x 1,024 tokens, a step after 1,023``."""
    lengths, architecture = report.lengths, report.spec.architecture
    of = f"{lengths.batch:,} x {lengths.length:,}"
    if architecture == "encoder":
        return (
            f"{of} tokens"
            if report.spec.embedding_of(report.spec.last_stack).takes_tokens
            else f"{of} vectors"
        )
    if architecture == "dual-encoder":
        return f"{of} tokens, {lengths.batch:,} image{'s' * (lengths.batch > 1)}"
    step = f"a step after {lengths.past:,}"
    if architecture == "decoder":
        return f"{of} tokens, {step}"
    if architecture == "vision-language":
        return f"{lengths.batch:,} image{'s' * (lengths.batch > 1)}, {of} tokens, {step}"
    return f"{lengths.batch:,} x {lengths.source:,} in the encoder, {of} tokens in the decoder, {step}"


def _print_roles(report: Report) -> None:
    from zoo.reports.roles import ties

    _heading("Parameters")
    routed = report.active != report.parameters
    header = ["role", "parameters", "share", *(["active per token"] if routed else [])]
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
    print_table(_numbers(header), rows)
    for name, owner in ties(report.folded).items():
        say(f"{name} is {owner}")


# ---------------------------------------------------------------------------------------------------------- FLOPs


def _print_flops(report: Report, symbolic: bool, depth: int) -> None:
    from zoo.reports.parameters import module_tree

    stages = report.costs.stages
    _heading("FLOPs", "matrix products, 2 m n k each")
    texts = {name: _number(report, name, symbolic) for name in stages}
    header = ["module", *stages]
    sums = {name: module_sums(stage.modules) for name, stage in stages.items()}
    order = {module.path: index for index, module in enumerate(module_tree(report.folded).walk())}
    rows = [
        [name, *(texts[stage](part) if (part := sums[stage].get(path)) else "-" for stage in stages)]
        for name, path in module_rows(sums, order, depth)
    ]
    rows.append(["total", *(texts[name](stage.total) for name, stage in stages.items())])
    if not symbolic:
        tokens = {name: report.lengths.tokens(name) for name in stages}
        rows.append(
            ["per token", *(count_text(stage.total.at(**report.lengths.symbols(name)) / tokens[name])
                            for name, stage in stages.items())]
        )  # fmt: skip
    rows.append(
        ["element operations", *(texts[name](stage.total_elements) for name, stage in stages.items())]
    )
    print_table(_formulas(header) if symbolic else _numbers(header), rows)
    if report.costs.routed:
        _print_flops_by_role(report, symbolic)
    if report.estimate_note:
        say(report.estimate_note)


def _print_flops_by_role(report: Report, symbolic: bool) -> None:
    """The matrix products of each role: what routing costs next to the experts."""
    stages = {name: report.costs.by_role(name) for name in report.costs.stages}
    header = ["role", *stages]
    rows = [
        [
            role,
            *(
                _number(report, name, symbolic)(parts[role]) if role in parts else "-"
                for name, parts in stages.items()
            ),
        ]
        for role in dict.fromkeys(itertools.chain.from_iterable(stages.values()))
    ]
    say()
    print_table(_formulas(header) if symbolic else _numbers(header), rows)


def _formulas(header: Sequence[str]) -> list[Column]:
    """A column of names, then columns of formulas."""
    return [Column(header[0], pinned=True), *(Column(name, prose=24) for name in header[1:])]


def _number(report: Report, stage: str, symbolic: bool) -> Callable[[Polynomial], str]:
    sizes = report.lengths.symbols(stage)
    return _formula if symbolic else lambda polynomial: count_text(polynomial.at(**sizes))


def _formula(polynomial: Polynomial) -> str:
    """A formula with line breaks allowed only between its terms."""
    return re.sub(r"(?<![+-]) (?![+-])", NO_BREAK, str(polynomial))


# --------------------------------------------------------------------------------------------------------- memory


def _print_memory(report: Report, target: str) -> None:
    _heading("Memory", f"files of an export for {target}")
    rows = [["files", precision_sizes(report.weights)]]
    if report.cache is not None:
        lengths, cache = report.lengths, report.cache
        tokens = max(lengths.length, lengths.past)
        held = cache.held(lengths.batch, tokens, lengths.source)
        needed = cache.needed(lengths.batch, tokens, lengths.source)
        rows.append(
            [
                "cache",
                f"{byte_text(cache.bytes_per_token)} per token, {byte_text(needed)} for {lengths.batch:,} x {tokens:,} tokens",
            ]
        )
        if cache.state_bytes:
            rows[-1][1] += f", {byte_text(lengths.batch * cache.state_bytes)} of them states of constant size"
        if cache.encoder:
            rows[-1][1] += (
                f" and {lengths.source:,} of the encoder, {byte_text(cache.encoder_bytes_per_token)} each"
            )
        if cache.windowed:
            windows = ", ".join(
                f"{group.layers} layers {'keep all' if group.window is None else f'at most the last {group.window:,}'}"
                for group in cache.own
                if group.values
            )
            rows.append(["", f"{windows}; {byte_text(held)} if all tokens are kept, as exported"])
        if cache.latent_bytes_per_token is not None:
            latents = byte_text(cache.latent_bytes_per_token)
            rows.append(["", f"{cache.form}, as exported; {latents} per token if latents are cached"])
    width = max(len(name) for name, _ in rows)
    for name, text in rows:
        say(f"{name:{width}}   {text}")


def _print_reads(report: Report) -> None:
    if not report.expert_reads:
        return
    _heading(
        "Weights read per decoder step", f"{report.precision}, experts expected if all are equally likely"
    )
    rows = [[f"{read.batch:,}", read.experts_text, byte_text(read.bytes)] for read in report.expert_reads]
    print_table(_numbers(["batch", "experts per layer", "weights read"]), rows)


def _print_training(report: Report, symbolic: bool) -> None:
    training, state, sizes = report.training, report.state, report.lengths.symbols("train")
    dtype = str(report.dtype).removeprefix("torch.")
    _heading("Training", f"one Adam step, weights in {dtype}")
    tokens = sum(
        report.lengths.tokens(stage) for stage in report.costs.stages if stage not in ("step", "see")
    )
    passes = training.passes
    if symbolic:
        for name, flops in (
            ("forward", passes.forward),
            ("backward", passes.backward),
            ("recomputed", passes.layers),
        ):
            say(f"{name:11}   {_formula(flops)} FLOPs")
        say(f"activations   {_formula(training.activations)} bytes\n")
    ways = {
        "all kept": (passes.total, training.activations.at(**sizes)),
        "layers checkpointed": (passes.checkpointed, training.checkpointed.at(**sizes)),
        "unfused attention": (passes.total, training.unfused.at(**sizes)),
    }
    rows = [
        ["FLOPs per token", *(count_text(flops.at(**sizes) / tokens) for flops, _ in ways.values())],
        ["FLOPs", *(count_text(flops.at(**sizes)) for flops, _ in ways.values())],
        ["activations", *(byte_text(activations) for _, activations in ways.values())],
        *(
            [name, *[byte_text(size)] * len(ways)]
            for name, size in (
                ("weights", state.weights),
                ("gradients", state.gradients),
                ("Adam", state.moments + state.master),
            )
        ),
        ["total memory", *(byte_text(state.total + activations) for _, activations in ways.values())],
    ]
    print_table(_numbers(["quantity", *ways]), rows)


# -------------------------------------------------------------------------------------------------------- devices


def _print_devices(report: Report) -> None:
    demands = {stage: report.demand(stage) for stage in report.costs.stages}
    intensity = ", ".join(f"{stage} {count_text(demand.intensity)}" for stage, demand in demands.items())
    _heading("Devices", f"lower bounds on time; FLOPs per byte: {intensity}")
    columns = [Column("device", pinned=True)]
    for stage in demands:
        columns += [Column(stage, right=True), Column("bound by"), Column("tokens/s", right=True, rank=1)]
    rooflines = {device_name(roofline): roofline for roofline in report.rooflines}
    rows = [
        [
            name,
            *(
                cell
                for stage in demands
                for cell in _cells(roofline.roofs[stage] if roofline.roofs else None)
            ),
        ]
        for name, roofline in rooflines.items()
    ]
    print_table(columns, rows)
    length = max(report.lengths.length, report.lengths.past)
    _heading("Capacity", "weights, caches and logits in memory")
    header = ["device", "memory", f"batch at {length:,}", "context at batch 1"]
    print_table(_numbers(header), [_room_row(name, roofline, report) for name, roofline in rooflines.items()])


def _numbers(header: Sequence[str]) -> list[Column]:
    """A column of names, then columns of numbers."""
    return [Column(header[0], pinned=True), *(Column(name, right=True) for name in header[1:])]


def device_name(roofline: Roofline) -> str:
    return roofline.device.name if roofline.count == 1 else f"{roofline.count:,} x {roofline.device.name}"


def _room_row(name: str, roofline: Roofline, report: Report) -> list[str]:
    all_of_it = " (all)" if roofline.largest_context == report.room.longest else ""
    memory = byte_text(round(roofline.count * roofline.device.memory))
    context = "any" if roofline.fits_any_context else f"{roofline.largest_context:,}{all_of_it}"
    return [name, memory, f"{roofline.largest_batch:,}", context]


def _cells(roof: Roof | None) -> list[str]:
    return (
        ["-"] * 3
        if roof is None
        else [time_text(roof.seconds), roof.bound, count_text(roof.tokens_per_second)]
    )
