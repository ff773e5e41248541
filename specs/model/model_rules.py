"""The rules of a whole model: its stacks, and what they share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from specs.base.base import Fault
from specs.base.errors import MISSING
from specs.kinds.embedding import EmbeddingKind
from specs.model.image_rules import meeting_faults
from specs.model.stack import STACKS, STACKS_OF, Stack, StackName

if TYPE_CHECKING:
    from specs.model.model import Model


def stack_faults(model: Model) -> Iterable[Fault]:
    """The violated rules of which stacks a model has, and of what only some may state."""
    if model.decoder is not None and model.decoder.causal is False:
        yield Fault(
            ("decoder", "causal"),
            "must not be false: a decoder predicts each token from those before it",
            False,
            "Remove it, or make the stack an encoder.",
        )
    for name, stack in model.stacks():
        if stack.bidirectional and (name, model.architecture) != ("decoder", "vision-language"):
            yield Fault(
                (name, "bidirectional"),
                "belongs to the decoder of a vision-language model, which reads images",
                stack.bidirectional,
                "Remove it.",
            )
        if stack.queries is not None and (model.architecture, model.head.kind) != ("encoder", "masks"):
            yield Fault(
                (name, "queries"),
                "must be read by the head masks of an encoder",
                model.head.kind,
                "Use head: {kind: masks, labels: 133}, or remove them.",
            )
    wanted = STACKS_OF[model.architecture]
    for name in STACKS:
        own = model.stack_named(name)
        if own is None:
            if name in wanted:
                rule = f"is required by architecture: {model.architecture}"
                yield Fault((name,), rule, None, f"Add {name}.")
            continue
        if model.architecture == name and own.d_model not in (None, model.d_model):
            yield Fault(
                (name, "d_model"),
                "must equal that of the model, which has no other stack",
                own.d_model,
                "Remove it, and set d_model of the model.",
            )
        if name not in wanted:
            yield Fault(
                (name,),
                f"does not belong to architecture: {model.architecture}",
                "a stack",
                f"Remove it, or set architecture: {_architecture_with(model, name)}.",
            )


def _architecture_with(model: Model, name: StackName) -> str:
    """The architecture that a stack belongs to."""
    if name == "image" and model.decoder is not None:
        return "vision-language"
    if name in ("text", "image"):
        return "dual-encoder"
    return "encoder-decoder" if model.encoder is not None and model.decoder is not None else name


def embedding_faults(model: Model) -> Iterable[Fault]:
    """The violated rules of the inputs: of each stack's embedding, and of the vocabulary that stacks share."""
    embeddings = {name: model.embedding_of(stack) for name, stack in model.stacks()}
    for name, stack in model.stacks():
        path = ("embedding",) if stack.embedding is None else (name, "embedding")
        embedding = embeddings[name]
        yield from (fault.under(*path) for fault in embedding.faults(model.rule_context(name, stack)))
        if name == "decoder" and not embedding.takes_tokens:
            yield Fault(
                (*path, "kind"),
                "must take tokens in a decoder, which processes them one by one",
                embedding.kind,
                "Use tokens." if stack.embedding else "Add embedding: {kind: tokens} to the decoder.",
            )
        masked = embedding.takes_mask and not embedding.takes_tokens
        if model.architecture == "encoder-decoder" and masked:
            yield Fault(
                (*path, "kind"),
                "must take no mask in an encoder-decoder, whose decoder cannot tell vectors made of padding from others",
                embedding.kind,
                "Set architecture: encoder, or use spectrogram or filtered_waveform.",
            )
        if embedding.second_width is not None and not any(b.reads_second for b in stack.layer_blocks()):
            yield from (fault.under(*path) for fault in embedding.unread_faults(stack.block.kind))
        yield from _length_faults(model, name, stack)
        if embedding.packed and (name, model.architecture) != (
            "image",
            "vision-language",
        ):
            yield Fault(
                (*path, "kind"),
                "belongs to the images of a vision-language model, whose connector joins patches by squares",
                embedding.kind,
                "Use patches.",
            )
    yield from _vocabulary_faults(model, any(embedding.takes_tokens for embedding in embeddings.values()))
    yield from _table_faults(model, embeddings)


def _table_faults(model: Model, embeddings: Mapping[StackName, EmbeddingKind]) -> Iterable[Fault]:
    """The violated rules of the token table that stacks share, or that one has of its own."""
    tables = {
        embedding.table_width(model.width_of(stack))
        for name, stack in model.stacks()
        if (embedding := embeddings[name]).takes_tokens
    }
    if len(tables) > 1 and not ("decoder" in embeddings and embeddings["decoder"].owns_table):
        yield Fault(
            ("decoder", "embedding", "width"),
            "must equal that of the encoder's embedding, because the two share a token table",
            model.embedding_width,
            f"Use {next(iter(tables - {model.embedding_width}))}, or set own_table: true.",
        )
    for name, stack in model.stacks():
        if embeddings[name].owns_table and not _may_own_table(model, name, stack):
            yield Fault(
                ("embedding", "own_table") if stack.embedding is None else (name, "embedding", "own_table"),
                "belongs to the decoder of an encoder-decoder whose encoder reads tokens too",
                True,
                "Remove it, or set it under decoder.embedding.",
            )


def _may_own_table(model: Model, name: StackName, stack: Stack) -> bool:
    """Whether a stack has an embedding of its own, which could share the token table of the encoder."""
    encoder = model.encoder
    shares = model.architecture == "encoder-decoder" and name == "decoder" and encoder is not None
    return shares and stack.embedding is not None and model.embedding_of(encoder).takes_tokens  # type: ignore[arg-type]


def _length_faults(model: Model, name: str, stack: Stack) -> Iterable[Fault]:
    """The violated rule of a context length that the embedding already fixes."""
    fixed = model.embedding_of(stack).fixed_length
    places: dict[tuple[str, ...], int | None] = {(name, "context_length"): stack.context_length}
    if model.architecture not in ("encoder-decoder", "vision-language"):
        places["context_length",] = model.context_length
    for path, length in places.items():
        if fixed is not None and length not in (None, fixed):
            yield Fault(
                path,
                f"must equal the number of vectors of the embedding, which is {fixed}",
                length,
                f"Remove it, or set it to {fixed}.",
            )


def _vocabulary_faults(model: Model, tokens_go_in: bool) -> Iterable[Fault]:
    if tokens_go_in and model.vocab_size is None:
        yield Fault(("vocab_size",), "is required", MISSING, "Add vocab_size.")
    if not tokens_go_in and model.vocab_size is not None:
        yield Fault(
            ("vocab_size",),
            "must not be set, because the model takes no tokens",
            model.vocab_size,
            "Remove it.",
        )


def position_faults(model: Model) -> Iterable[Fault]:
    """The violated rules of the position of each stack."""
    for name, stack in model.stacks():
        path = ("position",) if stack.position is None else (name, "position")
        context = model.rule_context(name, stack)
        position = model.position_of(stack)
        if position.embedded:
            context = replace(context, d_model=model.embedding_of(stack).position_width(context.d_model))
        yield from (fault.under(*path) for fault in stack.position_faults(position, context))
        if not model.rotates_by_axis:
            yield from (fault.under(*path) for fault in position.axis_faults())


def head_faults(model: Model) -> Iterable[Fault]:
    """The violated rules of the head, and of what it reads."""
    context = model.rule_context(model.last_stack_name, model.last_stack)
    yield from (fault.under("head") for fault in model.head.faults(context))
    yield from meeting_faults(model)
    embedding = model.embedding_of(model.last_stack)
    faults = model.head.embedding_faults(embedding, model.output_width)
    yield from (fault.under("head") for fault in faults)
