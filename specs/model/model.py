"""A whole model."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, ValidationError, model_validator

from specs.base.base import OmitDefault, RuleContext, Spec, Width
from specs.base.descriptions import ValueDescriptions
from specs.base.roles import Role
from specs.base.tabular import Tabular
from specs.kinds.connector import Connector, ConnectorKind
from specs.kinds.embedding import Embedding, EmbeddingKind, Tokens
from specs.kinds.head import Head, NoHead
from specs.kinds.position import NoPosition, Position, PositionKind
from specs.model.image_rules import connector_faults
from specs.model.initialization import Initialization, Normal
from specs.model.model_rules import (
    embedding_faults,
    head_faults,
    position_faults,
    stack_faults,
)
from specs.model.spec_table import spec_rows
from specs.model.stack import STACKS, STACKS_OF, Stack, StackName

if TYPE_CHECKING:
    from specs.base.result_table import ResultTable

Architecture = Annotated[
    Literal["encoder", "decoder", "encoder-decoder", "dual-encoder", "vision-language"],
    ValueDescriptions(
        {
            "encoder": "One stack in which every token sees all others (BERT, ViT).",
            "decoder": "One causal stack, which predicts each token from those before it (GPT, Llama).",
            "encoder-decoder": "An encoder, and a decoder that attends to its output (T5, BART, Whisper).",
            "dual-encoder": "An encoder of texts and one of images, whose vectors are compared (CLIP, SigLIP).",
            "vision-language": "A decoder that reads the vectors of images among its tokens (LLaVA, SmolVLM).",
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


class Model(Tabular, Spec):
    """A transformer.  Widths are stated once, here, and passed down to the components."""

    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+=,@-]*$", max_length=200)]
    """Name of the model, and of the directories built from it: letters, digits and `. _ - + = , @`."""
    summary: str = ""
    """One-line description for listings. Default in a variant: its base and its changes."""
    source: str = ""
    """Publication of the architecture: authors, year and URL. A variant does not inherit it."""
    year: Annotated[int, Field(ge=1950, le=2100)] | None = None
    """Year of publication. A variant does not inherit it."""
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
    """Layers of the decoder, in a `decoder`, an `encoder-decoder` or a `vision-language` model."""
    text: Annotated[Stack | None, OmitDefault()] = None
    """Layers of the encoder of texts, in a `dual-encoder`."""
    image: Annotated[Stack | None, OmitDefault()] = None
    """Layers of the encoder of images, in a `dual-encoder` or a `vision-language` model."""
    connector: Annotated[Connector | None, OmitDefault()] = None
    """How the vectors of images get among the tokens of a `vision-language` model."""
    head: Head = NoHead()
    """Output computed from the last hidden state. Default: `none`."""
    initialization: Initialization = Normal()
    """Recipe for random weights. Default: `normal`."""
    expect: Expectation = Expectation()
    """Published parameter counts. `zoo params` and `zoo build` fail if the built model differs. A variant does not
    inherit them."""

    def table(self) -> "ResultTable":
        """The parts of the model by path, with the values that differ from the defaults."""
        from specs.base.result_table import ResultTable

        layers = " + ".join(f"{len(stack.layer_blocks()):,}" for _, stack in self.stacks())
        title = f"{self.name}: {self.architecture}, {layers} layers, {self.widths_text} wide"
        return ResultTable(title, ("part", "value"), list(spec_rows(self)))

    def stacks(self) -> Iterator[tuple[StackName, Stack]]:
        """The stacks of the model: encoders before the decoder, texts before images."""
        for name in STACKS:
            stack = self.stack_named(name)
            if stack is not None:
                yield name, stack

    def stack_named(self, name: StackName) -> Stack | None:
        """The stack of a name, if the model has it."""
        return {"encoder": self.encoder, "decoder": self.decoder, "text": self.text, "image": self.image}[
            name
        ]

    def stack(self, name: StackName) -> Stack:
        """The stack of a name that the model has."""
        stack = self.stack_named(name)
        assert stack is not None
        return stack

    @property
    def image_connector(self) -> ConnectorKind:
        """The connector that a vision-language model has."""
        assert self.connector is not None
        return self.connector

    def position_of(self, stack: Stack) -> PositionKind:
        """The effective position kind of a stack."""
        return stack.position or self.position

    def positions_in(self, stack: Stack) -> list[PositionKind]:
        """The positions of a stack: its own, then each that a mixer has of its own."""
        mixers = (mixer for block in stack.layer_blocks() for mixer in block.mixers)
        own = (mixer.own_position for mixer in mixers)
        return [self.position_of(stack), *(position for position in own if position is not None)]

    def reader_of(self, input_name: str) -> Stack | None:
        """The first stack that takes an input, by its name; None if none does."""
        stacks = (stack for _, stack in self.stacks())
        return next((stack for stack in stacks if self.embedding_of(stack).input_name == input_name), None)

    @property
    def decodes(self) -> bool:
        """Whether the model has a decoder."""
        return self.decoder is not None

    @property
    def reads_hidden_states(self) -> bool:
        """Whether the decoder reads the hidden states of another model beside its tokens."""
        return self.embedding_of(self.last_stack).reads_hidden_states

    def is_causal(self, name: StackName) -> bool:
        """Whether the tokens of a stack see only themselves and preceding tokens."""
        stack = self.stack_named(name)
        return name == "decoder" if stack is None or stack.causal is None else stack.causal

    @property
    def rope_switch_length(self) -> int | None:
        """The smallest input length beyond which RoPE rotates differently, or None."""
        positions = (position for _, stack in self.stacks() for position in self.positions_in(stack))
        lengths = (position.switch_length for position in positions)
        return min((length for length in lengths if length is not None), default=None)

    def embedding_of(self, stack: Stack) -> EmbeddingKind:
        """The embedding of a stack's inputs."""
        return stack.embedding or self.embedding

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
        embedding = self.embedding_of(stack)
        shared = None if embedding.packed else self.context_length
        return embedding.fixed_length or stack.context_length or shared

    @property
    def first_stack(self) -> Stack:
        """The stack that reads the model's inputs: in a dual encoder, the text encoder."""
        return self.encoder or self.last_stack

    @property
    def last_stack(self) -> Stack:
        """The stack whose output the head reads: in a dual encoder, the text encoder."""
        return self.stack(self.last_stack_name)

    @property
    def last_stack_name(self) -> StackName:
        """The name of ``last_stack``."""
        return STACKS_OF[self.architecture][-1 if self.architecture != "dual-encoder" else 0]

    @property
    def embedding_width(self) -> int:
        """The width of the token table that a head may share."""
        return self.embedding_of(self.last_stack).table_width(self.output_width)

    @model_validator(mode="after")
    def _rules(self) -> "Model":
        faults = list(stack_faults(self))
        if not faults:
            faults += embedding_faults(self)
            faults += head_faults(self)
            faults += connector_faults(self)
            for name, stack in self.stacks():
                faults += [fault.under(name) for fault in stack.faults(self.rule_context(name, stack))]
        if not faults:
            faults += position_faults(self)
        if faults:
            unique = list({(fault.path, fault.rule): fault for fault in faults}.values())
            raise ValidationError.from_exception_data("Model", [fault.line_error() for fault in unique])
        return self

    def rule_context(self, name: StackName, stack: Stack) -> RuleContext:
        """The properties of the model that the rules of a stack's parts depend on."""
        cross = name == "decoder" and self.architecture == "encoder-decoder"
        embedding = self.embedding_of(stack)
        return RuleContext(
            self.width_of(stack),
            self.context_length_of(stack),
            causal=self.is_causal(name),
            cross=cross,
            architecture=self.architecture,
            vocab_size=self.vocab_size if embedding.takes_tokens else None,
            patches=embedding.of_patches,
            packed=embedding.packed,
            second_width=embedding.second_width,
            queries=0 if stack.queries is None else stack.queries.count,
            position=self.position_of(stack),
        )

    @property
    def embedded_width(self) -> int:
        """The width of what stands for a token before the decoder: its embedding, and what is added after its first layers."""
        deep = 0 if self.connector is None else self.connector.deep_count
        return self.output_width * (1 + deep)

    @property
    def packs_images(self) -> bool:
        """Whether the images among its tokens have any size."""
        return self.connector is not None and self.embedding_of(self.image).packed  # type: ignore[arg-type]

    @property
    def rotates_by_axis(self) -> bool:
        """Whether the vectors of images have several positions each: a frame, a row and a column."""
        return self.packs_images and self.decoder is not None and self.position_of(self.decoder).by_axis

    @property
    def vectors_per_image(self) -> int:
        """The number of placeholder tokens that an image takes in a vision-language model."""
        images, connector = self.embedding_of(self.stack("image")), self.image_connector
        assert images.patch_grid is not None
        rows, columns, _ = images.patch_grid
        return connector.vector_count(rows * columns, images.tokens_before)
