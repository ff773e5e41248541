"""From a spec to its diagram."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from specs.base.words import PartContext, product
from specs.kinds.head import HeadKind
from specs.model.model import Model
from specs.model.stack import Stack, StackName
from zoo.core.units import parameter_text
from zoo.drawing.blocks import StackFacts
from zoo.drawing.connectors import connector_elements, inserted
from zoo.drawing.diagram import Diagram, DiagramColumn, Element, Joined, Label, Part, parts_of
from zoo.drawing.embeddings import embedding_elements, position_keys
from zoo.drawing.layers import layer_frames
from zoo.drawing.parameters import Counts
from zoo.drawing.steps import StepReader
from zoo.reports.folding import Folded
from zoo.reports.parameters import ParameterReport, folded_report


def read(spec: Model, folded: Folded | None = None) -> Diagram:
    """The diagram of a model, which is built without weights; ``folded``: the model, if built before.

    Raises :class:`specs.base.errors.PluginError` if a plugin's kind cannot be built.
    """
    folded = folded or Folded.of(spec)
    report = folded_report(folded)
    counts = Counts(report)
    columns = tuple(
        DiagramColumn(name, tuple(_column(spec, name, stack, folded, counts)))
        for name, stack in spec.stacks()
    )
    ties = tuple(_ties(columns, counts))
    return Diagram(
        spec.name,
        tuple(_facts(spec, report)),
        report.total_parameters,
        columns,
        ties,
        _symbols(spec),
        tuple(head_elements(spec.head, "head", "head", PartContext(spec.output_width), counts))
        if spec.head.meets
        else (),
    )


def _facts(spec: Model, report: ParameterReport) -> Iterator[str]:
    if report.active_parameters != report.total_parameters:
        yield f"{parameter_text(report.active_parameters)} active per token"
    yield spec.architecture
    yield f"width {spec.widths_text}"
    if spec.context_length is not None:
        yield f"context {spec.context_length:,}"
    if spec.vocab_size is not None:
        yield f"vocabulary {spec.vocab_size:,}"


def _symbols(spec: Model) -> dict[str, str]:
    """The letters of the shapes."""
    both = spec.architecture == "encoder-decoder"
    read = "tokens" if spec.embedding_of(spec.first_stack).takes_tokens else "frames"
    meanings = {"S": f"encoder {read}", "T": "decoder tokens" if both else read}
    lengths = [_length(spec, name, stack) for name, stack in spec.stacks()]
    if spec.packs_images:
        meanings |= {"N": "patches of all images"}
    return {"B": "batch", **{length: meanings[length] for length in lengths if length in meanings}}


def _length(spec: Model, name: StackName, stack: Stack) -> str:
    """The sequence length of a stack: a letter for inputs of any length, else a number."""
    if spec.embedding_of(stack).packed:
        return "N"
    if spec.embedding_of(stack).any_length:
        return "S" if name == "encoder" and spec.architecture == "encoder-decoder" else "T"
    return f"{spec.context_length_of(stack):,}"


def _column(spec: Model, name: StackName, stack: Stack, folded: Folded, counts: Counts) -> Iterator[Element]:
    """A stack from its inputs up."""
    own = f"{name}_embedding"
    embedding = own if own in counts.modules else "embedding"
    length = _length(spec, name, stack)
    batch = "1" if spec.embedding_of(stack).packed else "B"
    context = PartContext(spec.width_of(stack), vocab_size=spec.vocab_size, length=length)
    second = spec.embedding_of(stack).second_width
    width = context.width if second is None else f"({context.width:,} + {second:,})"
    stream = Label("", product(batch, length, width))
    yield from embedding_elements(spec, name, stack, embedding, context, counts)
    if name == "decoder" and spec.connector is not None:
        yield inserted(spec)
    yield stream
    altup = f"{name}.altup"
    if stack.altup is not None:
        yield counts.part("other", f"{stack.altup.streams} streams", [], f"{name}.streams.into", altup)
    if (queries := stack.queries) is not None:
        details = [f"{queries.count:,}, joined before the last {queries.layers:,} layers"]
        yield counts.part("other", "Queries", details, f"{name}.query", f"{name}.queries")
    position, keys = spec.position_of(stack), position_keys(name, stack)
    causal = replace(context, causal=spec.is_causal(name), second_width=second)
    yield from layer_frames(StackFacts(name, stack, folded, counts, causal, position, keys))
    if stack.altup is not None:
        yield counts.part("other", "Mean of the streams", [], f"{name}.streams.out", altup)
    norm = stack.end_norm
    if norm is not None and not norm.is_none:
        path = f"{name}.final_norm"
        yield counts.part("norm", f"Final {norm.heading}", [], path, path)
    if stack.weighted_layer_sum:
        keys = f"{name}.weighted_layer_sum"
        yield counts.part("other", "Weighted sum of all layers", [], f"{name}.layer_sum", keys)
    if stack.head is not None:
        yield from vector_elements(stack.head, f"{name}_head", f"{name}.head", context, counts)
    elif stack is spec.image:
        yield from connector_elements(spec, counts)
    elif stack is spec.last_stack:
        yield from head_elements(spec.head, "head", "head", context, counts)
    else:
        yield stream


def _ties(columns: tuple[DiagramColumn, ...], counts: Counts) -> Iterator[tuple[Part, Part]]:
    """Pairs of consecutive parts outside the layers that share a weight."""
    outer = [
        part
        for column in columns
        for part in parts_of(element for element in column.way if isinstance(element, Part | Joined))
    ]
    holders: dict[str, Part] = {}
    for part in outer:
        for owner in counts.owners(part.modules):
            first = (p for p in outer if any(owner.startswith(f"{path}.") for path in p.modules))
            holder = holders.get(owner) or next(first, None)
            if holder is not None:
                yield holder, part
                holders[owner] = part


def head_elements(
    head: HeadKind, path: str, keys: str, context: PartContext, counts: Counts
) -> Iterator[Element]:
    """The parts of the head at ``path`` in order, and its outputs; ``keys``: its path in the spec."""
    return StepReader(counts, path, keys, "head").head(head.steps(context))


def vector_elements(
    head: HeadKind, path: str, keys: str, context: PartContext, counts: Counts
) -> Iterator[Element]:
    """The parts of a head whose vector goes on to another head."""
    *parts, end = head_elements(head, path, keys, context, counts)
    yield from parts
    if isinstance(end, Label):
        yield Label("", end.shape)
