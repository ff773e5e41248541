"""Tables of an export: its files and its verification."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cli.tables.mixed_tables import print_mixed
from cli.tables.quality_tables import print_quality
from cli.terminal.render import Cell, Column, print_table, say, styled
from zoo.core.units import byte_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from exporters.steps.advice import Advice
    from exporters.steps.manifest import Export
    from exporters.verification.result import OutputComparison, Verification
    from zoo.record.manifest import Manifest
    from zoo.record.records import GraphRecord, PlacementRecord


_COMPARISONS = [
    Column("case", prose=14, pinned=True),
    Column("input", prose=9, rank=1),
    Column("output", pinned=True),
    Column("largest difference", right=True),
    Column("relative", right=True, rank=2),
    Column("allowed", right=True),
    Column("top token", right=True, rank=3),
    Column("verdict", prose=8),
]
_FILES = [Column("file", pinned=True), Column("size", right=True), Column("graph", prose=20)]


def print_verification(verification: Verification) -> None:
    """Print every comparison with its largest difference, and the runtime."""
    print_table(
        _COMPARISONS,
        [
            (
                checked.case,
                checked.shape,
                checked.output,
                f"{checked.max_abs:.1e}",
                f"{checked.max_rel:.1e}",
                f"{checked.tolerance:.1e}",
                "" if checked.top_token is None else f"{checked.top_token:.1%}",
                _verdict(checked),
            )
            for checked in verification.summary
        ],
    )
    say()
    word = "passed" if verification.passed else "failed"
    elsewhere = f" (not tested on {verification.not_run})" if verification.not_run else ""
    say(
        f"verification: {word}, largest difference {verification.max_abs:.1e}, PyTorch against "
        f"{verification.runtime} on {verification.provider}{elsewhere}, on {verification.subject}",
        "green" if verification.passed else "red",
    )
    for engine in verification.engines:
        say(str(engine), "green" if engine.passed else "red")
    if magnified := verification.in_rounding:
        furthest = max(comparison.rounding or 0.0 for comparison in magnified)
        say(
            f"{len(magnified)} of {len(verification.comparisons)} comparisons are inconclusive: the model amplifies "
            f"rounding error, and float32 itself differs by up to {furthest:.1e} from more exact arithmetic.",
            "yellow",
        )
    if verification.constant:
        say(f"No input changes {', '.join(verification.constant)}: the comparison shows nothing.", "yellow")
    if (ties := verification.ties) is not None:
        say(
            f"Cache: {ties.compared:,} codes compared; {ties.at_ties:,} of them lie halfway between two codes to within "
            "float32 precision."
        )
    if rounding := rounding_text(verification):
        say(rounding)


def rounding_text(verification: Verification) -> str:
    """Return the effect of rounding, which the comparisons (stored weights, unrounded activations) exclude; empty without it."""
    rounded, product = verification.worst_weight, verification.worst_product
    if rounded is None:
        return ""
    changes = [
        f"{verification.top_token:.1%} of top tokens agree" if verification.top_token is not None else "",
        f"outputs differ by up to {verification.moved:.1e}" if verification.moved is not None else "",
        f"the stored weight with the largest error is {rounded.name}, {rounded.error:.1e} (limit {rounded.limit:.1e})",
        f"{product.name} has {product.error:.2f} times the expected error of 8-bit inputs" if product else "",
    ]
    return (
        "The table compares the graph without rounding, with the weights as stored. "
        f"{verification.precision} rounding ({verification.ran}, against the original weights): "
        f"{'; '.join(change for change in changes if change)}."
    )


def _verdict(comparison: OutputComparison) -> Cell:
    if not comparison.passed:
        return styled("differs", "red")
    if comparison.rounding is not None:
        return styled("within rounding", "yellow")
    return styled("equal", "green")


def quantized_lines(manifest: Manifest) -> Iterator[tuple[str, bool]]:
    """One line per quantized format of the checkpoint, and whether the export keeps its codes."""
    from exporters.graph.precisions import PRECISIONS
    from exporters.target.targets import TARGETS

    readers = [name for name, target in TARGETS.items() if target.mxfp4_experts]
    for group in manifest.quantized:
        count = f"{len(group.weights)} {group.format} weight{'s' if len(group.weights) > 1 else ''}"
        if group.carried:
            yield f"{count}: stored with the codes and scales of the checkpoint", True
            continue
        rounded = "" if manifest.precision == "fp32" else f", then stored as {manifest.precision}"
        able = " or ".join(f"--precision {name}" for name in group.carried_by)
        remedy = f" (pass {able} to keep the codes)" if able and PRECISIONS[manifest.precision].bits else ""
        if group.blocks is not None and group.blocks.floats and manifest.target not in readers:
            remedy = f" (only --target {' or '.join(readers)} has a kernel for their codes)"
        yield f"{count}: dequantized{rounded}{remedy}", not rounded


def _environment(facts: GraphRecord) -> str:
    """Return the variables without which the runtime refuses a graph, such as `` with NAME=0``."""
    return "".join(f" with {name}={value}" for name, value in facts.environment.items())


def print_placement(name: str, placed: PlacementRecord) -> None:
    """Print the nodes that have no kernel, and whether CUDA can capture the graph."""
    provider = placed.provider.removesuffix("ExecutionProvider")
    if placed.on_cpu:
        nodes = ", ".join(f"{count} {operation}" for operation, count in placed.on_cpu.items())
        say(f"{name}: {provider} has no kernel for {nodes}: {placed.copies} tensors are copied", "yellow")
    else:
        say(f"{name}: {provider} has a kernel for every node ({placed.kernels})")
    if not placed.provider.startswith("CUDA"):
        return
    if placed.not_captured:
        say(f"{name}: cannot be captured as a CUDA graph: {placed.not_captured}", "yellow")
    else:
        say(f"{name}: can be captured as a CUDA graph")


def _say_not_tried(manifest: Manifest) -> None:
    from exporters.verification.engines.table import ENGINES

    tried = {"onnxruntime", *(claim.engine for claim in manifest.engines)}
    others = [
        engine.name
        for engine in ENGINES.values()
        if engine.speaks_for(manifest.target) and engine.name not in tried
    ]
    if others:
        say(f"not tried: {', '.join(others)} (--engine NAME; zoo engines lists them)")


def print_export(written: Export, advised: Sequence[Advice] = ()) -> None:
    """Print the files, the opset and runtime that each graph needs, and the changes that would fuse more."""
    from exporters.graph.precisions import PRECISIONS

    if written.verification is not None:
        print_verification(written.verification)
        _say_not_tried(written.manifest)
    else:
        say("verification: skipped", "yellow")
    if written.quality is not None:
        say()
        print_quality(written.quality)
    elif written.unjudged:
        say(f"Quality was not measured: {written.unjudged}", "yellow")
        if PRECISIONS[written.manifest.precision].bits == 4 and written.manifest.calibrated_on is None:
            say(
                f"{written.manifest.precision} weights are rounded to nearest, because calibration needs the same inputs.",
                "yellow",
            )
    rows, manifest = [], written.manifest
    if manifest.mixed is not None:
        say()
        print_mixed(manifest.mixed)
    for name, file in manifest.files.items():
        facts = manifest.graphs.get(name)
        graph = (
            ""
            if facts is None
            else f"{facts.nodes} nodes, opset {facts.opset}, {facts.minimum_runtime} or later{_environment(facts)}"
        )
        rows.append((name, byte_text(file.size), graph))
    say()
    print_table(_FILES, rows)
    for name, facts in manifest.graphs.items():
        checked = facts.checked
        say(
            f"{name}: passes the checker and strict shape inference of {checked.checker}; "
            f"{checked.ranked} of {checked.results} results have a known rank"
        )
        if used := facts.operations:
            counts = ", ".join(f"{count} {operation}" for operation, count in used.items())
            say(f"{name}: {counts}")
        for reason in facts.unfused:
            say(f"{name}: not fused: {reason}", "yellow")
        if facts.placement is not None:
            print_placement(name, facts.placement)
    for line, complete in quantized_lines(manifest):
        say(line, "" if complete else "yellow")
    for change in advised:
        say(f"One change would fuse more: {change}")
    say()
    say(
        f"{written.directory}: layout {manifest.layout}, target {manifest.target}, {manifest.precision}, "
        f"weights {written.build.weights_from}"
    )
