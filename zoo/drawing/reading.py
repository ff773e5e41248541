"""From a spec to what is drawn of it."""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn

from specs.embedding import Patches, Spectrogram, Tokens
from specs.model import Model
from specs.stack import Stack
from zoo.builder import assemble
from zoo.drawing import wording
from zoo.drawing.diagram import Column, Diagram, Element, Joined, Label, Part, parts_of
from zoo.drawing.heads import head_elements
from zoo.drawing.layers import StackFacts, layer_frames
from zoo.drawing.parameters import Counts
from zoo.reports.parameters import parameter_report


def read(spec: Model) -> Diagram:
    """The diagram of a model, which is built without weights.

    Raises :class:`specs.errors.PluginError` where a plugin's kind cannot be built.
    """
    model = assemble(spec)
    report = parameter_report(model, spec)
    counts = Counts(report)
    columns = tuple(
        Column(name, tuple(_column(spec, name, stack, model, counts))) for name, stack in spec.stacks()
    )
    facts = [spec.architecture, f"width {spec.d_model:,}"]
    if spec.context_length is not None:
        facts.append(f"context {spec.context_length:,}")
    if spec.vocab_size is not None:
        facts.append(f"vocabulary {spec.vocab_size:,}")
    return Diagram(
        spec.name,
        tuple(facts),
        report.total_parameters,
        columns,
        tuple(_ties(columns, counts)),
        _symbols(spec),
    )


def _symbols(spec: Model) -> dict[str, str]:
    """The letters of the shapes."""
    both = spec.architecture == "encoder-decoder"
    reads_tokens = [spec.embedding_of(stack).takes_tokens for _, stack in spec.stacks()]
    symbols = {"B": "batch"}
    if both and reads_tokens[0]:
        symbols["S"] = "encoder tokens"
    if reads_tokens[-1]:
        symbols["T"] = "decoder tokens" if both else "tokens"
    return symbols


def _length(spec: Model, name: str, stack: Stack) -> str:
    """How many vectors a stack has: a letter for tokens, else a number."""
    if spec.embedding_of(stack).takes_tokens:
        return "S" if name == "encoder" and spec.architecture == "encoder-decoder" else "T"
    return f"{spec.context_length_of(stack):,}"


def _column(spec: Model, name: str, stack: Stack, model: nn.Module, counts: Counts) -> Iterator[Element]:
    prefix = f"{name}_embedding" if spec.architecture == "encoder-decoder" else "embedding"
    length = _length(spec, name, stack)
    yield from _embedding_elements(spec, stack, prefix, length, model, counts)
    stream = wording.sizes("B", length, spec.d_model)
    yield Label("", stream)
    module = model.get_submodule(name)
    facts = StackFacts(
        name,
        stack,
        module,
        counts,
        spec.d_model,
        spec.is_causal(name),
        spec.position_of(stack),  # type: ignore[arg-type]
    )
    yield from layer_frames(facts)
    kind = getattr(module.final_norm, "component_kind", "none")
    if kind != "none":
        yield _part(counts, "norm", f"Final {wording.title(str(kind))}", [], f"{name}.final_norm")
    if stack is spec.last_stack:
        yield from head_elements(spec, counts, length)


def _part(
    counts: Counts, role: str, title: str, details: list[str], *paths: str, without: tuple[str, ...] = ()
) -> Part:
    total = counts.of(paths, without)
    return Part(role, title, tuple(details), paths, total, counts.text([total], paths))  # type: ignore[arg-type]


def _embedding_elements(
    spec: Model, stack: Stack, prefix: str, length: str, model: nn.Module, counts: Counts
) -> Iterator[Element]:
    """From the inputs to the first layer, in the order of the embedding's own formula."""
    embedding = spec.embedding_of(stack)
    d_model = spec.d_model
    words = wording.input_words(embedding)
    if embedding.takes_tokens:
        yield Label(words, wording.sizes("B", length), "begin")
    else:
        yield Label(words, wording.sizes("B", *embedding.input_shape(spec.context_length_of(stack))), "begin")
    position = list(_position(spec, stack, prefix, counts))
    if isinstance(embedding, Tokens):
        width, inner = embedding.table_width(d_model), embedding.position_width(d_model)
        yield _part(
            counts,
            "embedding",
            "Token embedding",
            [wording.sizes(spec.vocab_size or 0, width)],
            f"{prefix}.token",
        )
        if embedding.scale is not None:
            scale = f"√{d_model:,}" if embedding.scale == "sqrt_d_model" else wording.number(embedding.scale)
            yield Part("other", f"× {scale}")
        projection = []
        if f"{prefix}.projection" in counts.modules and counts.modules[f"{prefix}.projection"].weights:
            projection = [
                _part(counts, "embedding", "Projection", [f"{width:,} → {d_model:,}"], f"{prefix}.projection")
            ]
        first = embedding.projection is not None and embedding.projection.place == "first"
        yield from projection if first else ()
        if embedding.token_types:
            rows = wording.sizes(embedding.token_types, inner)
            yield Joined(_part(counts, "embedding", "Token types", [rows], f"{prefix}.token_type"))
        yield from position
        if embedding.norm is not None and embedding.norm.kind != "none":
            yield _part(counts, "norm", wording.title(embedding.norm.kind), [], f"{prefix}.norm")
        yield from () if first else projection
    elif isinstance(embedding, Patches):
        size = embedding.patch_size
        shape = f"{wording.sizes(embedding.channels, size, size)} → {d_model:,}"
        yield _part(counts, "embedding", "Patches through one matrix", [shape], f"{prefix}.patch")
        if embedding.class_token:
            yield Joined(
                _part(
                    counts, "embedding", "Class token", [wording.sizes(1, d_model)], f"{prefix}.class_token"
                ),
                "∥",
            )
        yield from position
    elif isinstance(embedding, Spectrogram):
        activation = wording.ACTIVATIONS[embedding.activation]
        kernel = f"kernel {embedding.kernel}"
        yield _part(
            counts,
            "embedding",
            "Convolution",
            [f"{embedding.mel_bins:,} → {d_model:,}", kernel, activation],
            f"{prefix}.first",
        )
        stride = [f"{d_model:,} → {d_model:,}", kernel, f"stride {embedding.stride}", activation]
        yield _part(counts, "embedding", "Convolution", stride, f"{prefix}.second")
        yield from position
    else:
        without = tuple(path for each in position for path in each.part.modules)
        yield _part(
            counts,
            "embedding",
            wording.title(embedding.kind),
            wording.said(embedding),
            prefix,
            without=without,
        )
        yield from position


def _position(spec: Model, stack: Stack, prefix: str, counts: Counts) -> Iterator[Joined]:
    """The position that is added to the embedding, where one is."""
    position = spec.position_of(stack)
    if not position.embedded:
        return
    path = f"{prefix}.position"
    table = counts.modules.get(f"{path}.table")
    rows = table.weights["weight"][0] if table is not None else None
    width = spec.embedding_of(stack).position_width(spec.d_model)
    details = wording.position_details(position, rows, width)
    yield Joined(_part(counts, "position", wording.title(position.kind), details, path))


def _ties(columns: tuple[Column, ...], counts: Counts) -> Iterator[tuple[Part, Part]]:
    """The parts outside the layers that use the same weight: each with the one before it."""
    outer = [
        part for column in columns for part in parts_of(e for e in column.way if isinstance(e, Part | Joined))
    ]
    holders: dict[str, Part] = {}
    for part in outer:
        for owner in counts.owners(part.modules):
            holder = next((p for p in outer if any(owner.startswith(f"{path}.") for path in p.modules)), None)
            if holder is not None:
                yield holders.get(owner, holder), part
                holders[owner] = part
