"""A whole model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from specs.base import Fault, RuleContext, Spec, Width
from specs.descriptions import ValueDescriptions
from specs.embedding import Embedding, EmbeddingKind, Tokens
from specs.errors import MISSING
from specs.head import Head, NoHead, VocabularyHead
from specs.initialization import Initialization, Normal
from specs.position import NoPosition, Position, PositionKind
from specs.roles import Role
from specs.stack import Stack

Architecture = Annotated[
    Literal["encoder", "decoder", "encoder-decoder"],
    ValueDescriptions(
        {
            "encoder": "One stack in which every token sees all others (BERT, ViT).",
            "decoder": "One causal stack, which predicts each token from those before it (GPT, Llama).",
            "encoder-decoder": "An encoder, and a decoder that attends to its output (T5, BART, Whisper).",
        }
    ),
]


class Expectation(Spec):
    """Published parameter counts that a build must match."""

    parameters: Annotated[int, Field(gt=0)] | None = None
    """Exact number of parameters of the model, shared weights counted once. Default: not checked."""
    active_parameters: Annotated[int, Field(gt=0)] | None = None
    """Exact number of parameters that process each token: of experts, only the selected ones, and whole embedding
    tables. Default: not checked."""
    modules: dict[str, Annotated[int, Field(gt=0)]] = {}
    """Exact numbers of parameters of modules. A key is a module path as printed by `zoo params`, or a sum of them:
    `encoder + decoder`."""


class Model(Spec):
    """A transformer.  Widths are stated once, here, and passed down to the components."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+=,@-]*$", max_length=200)]
    """Name of the model, and of the directories built from it: letters, digits and `. _ - + = , @`."""
    summary: str = ""
    """One-line description for listings. It is not inherited by `extends`."""
    source: str = ""
    """Publication of the architecture: authors, year and URL."""
    year: Annotated[int, Field(ge=1950, le=2100)] | None = None
    """Year of publication."""
    architecture: Architecture
    """Stacks of the model."""
    vocab_size: Width | None = None
    """Number of tokens in the vocabulary. Required for token inputs, and not allowed otherwise."""
    d_model: Annotated[Width, Role.WIDTH]
    """Width of the residual stream (`hidden_size` in Hugging Face). Every component derives its widths from it."""
    context_length: Width | None = None
    """Maximum input length, in tokens. Required by learned positions and spectrograms. Default: no limit."""
    position: Position = NoPosition()
    """Position encoding. Default: `none`."""
    embedding: Embedding = Tokens()
    """Embedding of the inputs. Default: `tokens`."""
    encoder: Stack | None = None
    """Layers of the encoder, in an `encoder` or `encoder-decoder`."""
    decoder: Stack | None = None
    """Layers of the decoder, in a `decoder` or `encoder-decoder`."""
    head: Head = NoHead()
    """Output computed from the last hidden state. Default: `none`."""
    initialization: Initialization = Normal()
    """Recipe for random weights. Default: `normal`."""
    expect: Expectation = Expectation()
    """Published parameter counts. `zoo params` and `zoo build` fail if the built model differs. It is not inherited by
    `extends`."""

    def stacks(self) -> Iterator[tuple[Literal["encoder", "decoder"], Stack]]:
        """The stacks of the model, encoder first."""
        if self.encoder is not None:
            yield "encoder", self.encoder
        if self.decoder is not None:
            yield "decoder", self.decoder

    def position_of(self, stack: Stack) -> PositionKind:
        """The effective position kind of a stack."""
        position = stack.position or self.position
        assert isinstance(position, PositionKind)
        return position

    def is_causal(self, name: Literal["encoder", "decoder"]) -> bool:
        """Whether the tokens of a stack see only themselves and preceding tokens."""
        stack: Stack | None = getattr(self, name)
        return name == "decoder" if stack is None or stack.causal is None else stack.causal

    @property
    def rope_switch_length(self) -> int | None:
        """The smallest input length beyond which RoPE rotates differently, or None."""
        positions: list[Any] = []
        for _, stack in self.stacks():
            mixers = (mixer for block in stack.layer_blocks() for mixer in block.mixers)
            own = (getattr(mixer, "position", None) for mixer in mixers)
            positions += [self.position_of(stack), *own]
        scalings: list[Any] = [getattr(position, "scaling", None) for position in positions]
        return min(
            (s.original_context_length for s in scalings if getattr(s, "by_length", False)), default=None
        )

    def embedding_of(self, stack: Stack) -> EmbeddingKind:
        """The embedding of a stack's inputs."""
        embedding = stack.embedding or self.embedding
        assert isinstance(embedding, EmbeddingKind)
        return embedding

    def width_of(self, stack: Stack) -> int:
        """The width of a stack's residual stream."""
        return stack.d_model or self.d_model

    @property
    def widths_text(self) -> str:
        """The widths of the stacks: ``768``, or ``384 + 256`` where they differ."""
        return " + ".join(
            f"{width:,}" for width in dict.fromkeys(self.width_of(stack) for _, stack in self.stacks())
        )

    @property
    def output_width(self) -> int:
        """The width of the last hidden state, which the head reads."""
        return self.width_of(self.last_stack)

    def context_length_of(self, stack: Stack) -> int | None:
        """The maximum number of vectors of a stack."""
        return self.embedding_of(stack).fixed_length or stack.context_length or self.context_length

    @property
    def first_stack(self) -> Stack:
        """The stack that reads the model's inputs."""
        return self.encoder or self.last_stack

    @property
    def last_stack(self) -> Stack:
        """The stack whose output the head reads."""
        stack = self.encoder if self.architecture == "encoder" else self.decoder
        assert stack is not None
        return stack

    @property
    def embedding_width(self) -> int:
        """The width of the token table that a head may share."""
        embedding = self.embedding_of(self.last_stack)
        width = self.output_width
        return embedding.table_width(width) if isinstance(embedding, Tokens) else width

    @model_validator(mode="after")
    def _rules(self) -> Model:
        faults = list(self._stack_faults())
        if not faults:
            faults += self._embedding_faults()
            faults += self._head_faults()
            for name, stack in self.stacks():
                faults += [fault.under(name) for fault in stack.faults(self._rule_context(name, stack))]
        if not faults:
            faults += self._position_faults()
        if faults:
            unique = list({(fault.path, fault.rule): fault for fault in faults}.values())
            raise ValidationError.from_exception_data("Model", [fault.line_error() for fault in unique])
        return self

    def _rule_context(self, name: Literal["encoder", "decoder"], stack: Stack) -> RuleContext:
        cross = name == "decoder" and self.architecture == "encoder-decoder"
        return RuleContext(
            self.width_of(stack), self.context_length_of(stack), causal=self.is_causal(name), cross=cross
        )

    def _stack_faults(self) -> Iterable[Fault]:
        if self.decoder is not None and self.decoder.causal is False:
            yield Fault(
                ("decoder", "causal"),
                "must not be false: a decoder predicts each token from those before it",
                False,
                "Remove it, or make the stack an encoder.",
            )
        wanted = {"encoder": ["encoder"], "decoder": ["decoder"]}.get(
            self.architecture, ["encoder", "decoder"]
        )
        for name in ("encoder", "decoder"):
            present = getattr(self, name) is not None
            if name in wanted and not present:
                yield Fault(
                    (name,), f"is required by architecture: {self.architecture}", None, f"Add {name}."
                )
            if (
                present
                and self.architecture == name
                and getattr(self, name).d_model not in (None, self.d_model)
            ):
                yield Fault(
                    (name, "d_model"),
                    "must equal that of the model, which has no other stack",
                    getattr(self, name).d_model,
                    "Remove it, and set d_model of the model.",
                )
            if present and name not in wanted:
                yield Fault(
                    (name,),
                    f"does not belong to architecture: {self.architecture}",
                    "a stack",
                    f"Remove it, or set architecture: {'encoder-decoder' if len(wanted) == 1 and self._both() else name}.",
                )

    def _both(self) -> bool:
        return self.encoder is not None and self.decoder is not None

    def _embedding_faults(self) -> Iterable[Fault]:
        embeddings = {name: self.embedding_of(stack) for name, stack in self.stacks()}
        for name, stack in self.stacks():
            place = ("embedding",) if stack.embedding is None else (name, "embedding")
            embedding = embeddings[name]
            yield from (fault.under(*place) for fault in embedding.faults(self._rule_context(name, stack)))
            if name == "decoder" and not embedding.takes_tokens:
                yield Fault(
                    (*place, "kind"),
                    "must take tokens in a decoder, which processes them one by one",
                    embedding.kind,
                    "Use tokens." if stack.embedding else "Add embedding: {kind: tokens} to the decoder.",
                )
            if self._both() and embedding.any_length and not embedding.takes_tokens:
                yield Fault(
                    (*place, "kind"),
                    "belongs to a model of architecture encoder: a decoder cannot attend to inputs of any length other than tokens",
                    embedding.kind,
                    "Set architecture: encoder, or use spectrogram.",
                )
            yield from self._length_faults(name, stack)
        yield from self._vocabulary_faults(any(each.takes_tokens for each in embeddings.values()))
        tables = {
            embedding.table_width(self.width_of(stack))
            for name, stack in self.stacks()
            if isinstance(embedding := embeddings[name], Tokens)
        }
        if len(tables) > 1:
            yield Fault(
                ("decoder", "embedding", "width"),
                "must equal that of the encoder's embedding, because the two share a token table",
                self.embedding_width,
                f"Use {next(iter(tables - {self.embedding_width}))}.",
            )

    def _length_faults(self, name: str, stack: Stack) -> Iterable[Fault]:
        """The violated rule of a context length that the embedding already fixes."""
        fixed = self.embedding_of(stack).fixed_length
        places: dict[tuple[str, ...], int | None] = {(name, "context_length"): stack.context_length}
        if self.architecture != "encoder-decoder":
            places["context_length",] = self.context_length
        for place, stated in places.items():
            if fixed is not None and stated not in (None, fixed):
                yield Fault(
                    place,
                    f"must equal the number of vectors of the embedding, which is {fixed}",
                    stated,
                    f"Remove it, or set it to {fixed}.",
                )

    def _vocabulary_faults(self, tokens_go_in: bool) -> Iterable[Fault]:
        if tokens_go_in and self.vocab_size is None:
            yield Fault(("vocab_size",), "is required", MISSING, "Add vocab_size.")
        if not tokens_go_in and self.vocab_size is not None:
            yield Fault(
                ("vocab_size",),
                "must not be set, because the model takes no tokens",
                self.vocab_size,
                "Remove it.",
            )

    def _position_faults(self) -> Iterable[Fault]:
        for name, stack in self.stacks():
            place = ("position",) if stack.position is None else (name, "position")
            context = self._rule_context(name, stack)
            position = self.position_of(stack)
            if position.embedded:
                context = replace(context, d_model=self.embedding_of(stack).position_width(context.d_model))
            yield from (fault.under(*place) for fault in stack.position_faults(position, context))

    def _head_faults(self) -> Iterable[Fault]:
        last: Literal["encoder", "decoder"] = "encoder" if self.architecture == "encoder" else "decoder"
        context = replace(self._rule_context(last, self.last_stack), vocab_size=self.vocab_size)
        yield from (fault.under("head") for fault in self.head.faults(context))
        if not isinstance(self.head, VocabularyHead):
            return
        if not self.embedding_of(self.last_stack).takes_tokens:
            yield Fault(
                ("head", "kind"),
                "requires a vocabulary, but the model takes no tokens",
                self.head.kind,
                "Use classification or none.",
            )
            return
        fits = self.head.scores_embeddings or self.embedding_width == self.output_width
        if self.head.tie_embeddings and not fits:
            yield Fault(
                ("head", "tie_embeddings"),
                f"needs an embedding as wide as d_model, which is {self.output_width}; "
                f"embedding.width is {self.embedding_width}",
                True,
                f"Set {self.head.narrowed_by}, tie_embeddings: false, or embedding.width: {self.output_width}.",
            )
