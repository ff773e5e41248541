"""The layers of a stack as frames; repeated layers are drawn once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from specs.base.words import TIMES, visible
from specs.model.stack import LayerRun
from zoo.core.units import parameter_text
from zoo.drawing.blocks import BlockReader, StackFacts
from zoo.drawing.comparing import differences
from zoo.drawing.diagram import DiagramFrame, Part, Way


def layer_frames(stack: StackFacts) -> Iterator[DiagramFrame]:
    """The frames of a stack, from the first layer to the last."""
    drawn: dict[str, Way] = {}
    start = 0
    for entry in stack.spec.runs() if isinstance(stack.spec.layers, int) else stack.spec.layers:
        if isinstance(entry, LayerRun):
            yield _run(stack, entry, range(start, start + entry.repeat), drawn)
            start += entry.repeat
            continue
        period = sum(run.repeat for run in entry.pattern)
        frames, first = [], start
        for run in entry.pattern:
            once = range(first, first + run.repeat)
            layers = [i + time * period for time in range(entry.repeat) for i in once]
            frames.append(_run(stack, run, layers, drawn))
            first += run.repeat
        whole = stack.blocks(range(start, start + entry.repeat * period))
        total = stack.counts.of(whole)
        note = f"{parameter_text(total)}, shared" if entry.shared else parameter_text(total)
        yield DiagramFrame(times(entry.repeat), note, tuple(frames), whole, total, f"{stack.name}.layers")
        start += entry.repeat * period


def times(repeat: int, name: str = "") -> str:
    """A repetition as text: 12 times encoder layer."""
    if name and repeat == 1:
        return name
    return f"{repeat} {TIMES} {name}".rstrip()


def _run(stack: StackFacts, run: LayerRun, layers: Sequence[int], drawn: dict[str, Way]) -> DiagramFrame:
    """The frame of layers with the same block; the block is added to ``drawn``, the blocks drawn so far."""
    name = visible(run.use or ("block" if stack.spec.blocks else f"{stack.name} layer"))
    paths = stack.blocks(layers)
    sizes = [stack.counts.of([path]) for path in paths]
    note = stack.counts.text(sizes, paths)
    if len(layers) > 1:
        note += ", shared" if run.shared else " each" if len(set(sizes)) == 1 else ""
    keys = f"{stack.name}.block" if run.use is None else f"{stack.name}.blocks.{run.use}"
    way = BlockReader(stack, stack.spec.named_block(run.use), keys, layers).way()
    if brief := _brief(way, drawn):
        title, changes = brief
        way = (Part("other", title, tuple(changes), paths, sum(sizes), keys=keys),)
    else:
        drawn[name] = way
    return DiagramFrame(times(run.repeat, name), note, way, paths, sum(sizes), keys)


def _brief(way: Way, drawn: dict[str, Way]) -> tuple[str, list[str]] | None:
    """A block described by the name of an earlier one and the differences."""
    changes = {name: words for name, other in drawn.items() if (words := differences(other, way)) is not None}
    if not changes:
        return None
    name = min(changes, key=lambda name: len(changes[name]))
    return (f"As {name} below, but" if changes[name] else f"As {name} below"), changes[name]
