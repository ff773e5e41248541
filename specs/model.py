"""A whole model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, model_validator

from specs.base import Fault, OmitDefault, RuleContext, Spec, Width
from specs.connector import Connector, ConnectorKind
from specs.descriptions import ValueDescriptions
from specs.embedding import Embedding, EmbeddingKind, Patches, Tokens
from specs.errors import MISSING
from specs.head import Contrastive, DistilledClassification, Head, NoHead, Pooled, VocabularyHead
from specs.initialization import Initialization, Normal
from specs.patch_boxes import Detection, PatchBoxes
from specs.position import NoPosition, Position, PositionKind, Rope
from specs.roles import Role
from specs.stack import STACKS, Stack, StackName

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


_STACKS_OF: dict[str, tuple[StackName, ...]] = {
    "encoder": ("encoder",),
    "decoder": ("decoder",),
    "encoder-decoder": ("encoder", "decoder"),
    "dual-encoder": ("text", "image"),
    "vision-language": ("image", "decoder"),
}


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
    """Published parameter counts. `zoo params` and `zoo build` fail if the built model differs. It is not inherited by
    `extends`."""

    def stacks(self) -> Iterator[tuple[StackName, Stack]]:
        """The stacks of the model: encoders before the decoder, that of texts before that of images."""
        for name in STACKS:
            stack: Stack | None = getattr(self, name)
            if stack is not None:
                yield name, stack

    def position_of(self, stack: Stack) -> PositionKind:
        """The effective position kind of a stack."""
        position = stack.position or self.position
        assert isinstance(position, PositionKind)
        return position

    def reader_of(self, input_name: str) -> Stack | None:
        """The first stack that takes an input, by its name; None if none does."""
        stacks = (stack for _, stack in self.stacks())
        return next((each for each in stacks if self.embedding_of(each).input_name == input_name), None)

    @property
    def decodes(self) -> bool:
        """Whether the model has a decoder."""
        return self.decoder is not None

    def is_causal(self, name: StackName) -> bool:
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
        embedding = self.embedding_of(stack)
        shared = None if embedding.packed else self.context_length
        return embedding.fixed_length or stack.context_length or shared

    @property
    def first_stack(self) -> Stack:
        """The stack that reads the model's inputs; of a dual encoder, that of texts."""
        return self.encoder or self.last_stack

    @property
    def last_stack(self) -> Stack:
        """The stack whose output the head reads; of a dual encoder, that of texts."""
        stack: Stack | None = getattr(self, self.last_stack_name)
        assert stack is not None
        return stack

    @property
    def last_stack_name(self) -> StackName:
        """The name of ``last_stack``."""
        return _STACKS_OF[self.architecture][-1 if self.architecture != "dual-encoder" else 0]

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
            faults += self._connector_faults()
            for name, stack in self.stacks():
                faults += [fault.under(name) for fault in stack.faults(self.rule_context(name, stack))]
        if not faults:
            faults += self._position_faults()
        if faults:
            unique = list({(fault.path, fault.rule): fault for fault in faults}.values())
            raise ValidationError.from_exception_data("Model", [fault.line_error() for fault in unique])
        return self

    def rule_context(self, name: StackName, stack: Stack) -> RuleContext:
        """What the rules of a stack's parts depend on."""
        cross = name == "decoder" and self.architecture == "encoder-decoder"
        return RuleContext(
            self.width_of(stack),
            self.context_length_of(stack),
            causal=self.is_causal(name),
            cross=cross,
            patches=self.embedding_of(stack).of_patches,
            packed=self.embedding_of(stack).packed,
            token_decoder=self.architecture == "decoder",
            position=self.position_of(stack),
        )

    def _stack_faults(self) -> Iterable[Fault]:
        if self.decoder is not None and self.decoder.causal is False:
            yield Fault(
                ("decoder", "causal"),
                "must not be false: a decoder predicts each token from those before it",
                False,
                "Remove it, or make the stack an encoder.",
            )
        for name, stack in self.stacks():
            if stack.bidirectional and (name, self.architecture) != ("decoder", "vision-language"):
                yield Fault(
                    (name, "bidirectional"),
                    "belongs to the decoder of a vision-language model, which reads images",
                    stack.bidirectional,
                    "Remove it.",
                )
        wanted = _STACKS_OF[self.architecture]
        for name in STACKS:
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
                    f"Remove it, or set architecture: {self._architecture_with(name)}.",
                )

    def _architecture_with(self, name: StackName) -> str:
        """The architecture that a stack belongs to."""
        if name == "image" and self.decoder is not None:
            return "vision-language"
        if name in ("text", "image"):
            return "dual-encoder"
        return "encoder-decoder" if self.encoder is not None and self.decoder is not None else name

    def _embedding_faults(self) -> Iterable[Fault]:
        embeddings = {name: self.embedding_of(stack) for name, stack in self.stacks()}
        for name, stack in self.stacks():
            place = ("embedding",) if stack.embedding is None else (name, "embedding")
            embedding = embeddings[name]
            yield from (fault.under(*place) for fault in embedding.faults(self.rule_context(name, stack)))
            if name == "decoder" and not embedding.takes_tokens:
                yield Fault(
                    (*place, "kind"),
                    "must take tokens in a decoder, which processes them one by one",
                    embedding.kind,
                    "Use tokens." if stack.embedding else "Add embedding: {kind: tokens} to the decoder.",
                )
            masked = embedding.takes_mask and not embedding.takes_tokens
            if self.architecture == "encoder-decoder" and masked:
                yield Fault(
                    (*place, "kind"),
                    "must take no mask in an encoder-decoder, whose decoder cannot tell vectors made of padding from others",
                    embedding.kind,
                    "Set architecture: encoder, or use spectrogram or filtered_waveform.",
                )
            yield from self._length_faults(name, stack)
            if embedding.packed and (name, self.architecture) != (
                "image",
                "vision-language",
            ):
                yield Fault(
                    (*place, "kind"),
                    "belongs to the images of a vision-language model, whose connector joins patches by squares",
                    embedding.kind,
                    "Use patches.",
                )
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
        if self.architecture not in ("encoder-decoder", "vision-language"):
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
            context = self.rule_context(name, stack)
            position = self.position_of(stack)
            if position.embedded:
                context = replace(context, d_model=self.embedding_of(stack).position_width(context.d_model))
            yield from (fault.under(*place) for fault in stack.position_faults(position, context))
            if isinstance(position, Rope) and position.sections is not None and not self.rotates_by_axis:
                yield Fault(
                    (*place, "sections"),
                    "belong to the decoder of a vision-language model with packed_patches, whose images have rows and columns",
                    list(position.sections.pairs),
                    "Remove them.",
                )

    def _meeting_faults(self) -> Iterable[Fault]:
        """The violated rules of the heads of a dual encoder's stacks, and of the head in which they meet."""
        meets = self.architecture == "dual-encoder"
        detects = isinstance(self.head, Detection)
        if meets != isinstance(self.head, Contrastive | Detection):
            yield Fault(
                ("head", "kind"),
                "must be contrastive or detection in a dual encoder"
                if meets
                else "belongs to a dual encoder",
                self.head.kind,
                "Use contrastive." if meets else "Use another head, or architecture: dual-encoder.",
            )
        if isinstance(self.head, PatchBoxes):
            yield Fault(
                ("head", "kind"),
                "belongs to the images of a dual encoder with the head detection",
                self.head.kind,
                "Use another head.",
            )
        widths = dict[StackName, int]()
        for name, stack in self.stacks():
            head = stack.head
            if not meets:
                if head is not None:
                    yield Fault(
                        (name, "head"),
                        "belongs to a stack of a dual encoder",
                        head.kind,
                        "Remove it: the model's own head reads the last stack.",
                    )
                continue
            if detects and name == "image" and not isinstance(head, PatchBoxes):
                yield Fault(
                    (name, "head"),
                    "must be of kind patch_boxes where the head is detection",
                    MISSING if head is None else head.kind,
                    "Add head: {kind: patch_boxes, norm: {kind: layer_norm}, projection: 512}.",
                )
                continue
            if not isinstance(head, PatchBoxes if detects and name == "image" else Pooled):
                yield Fault(
                    (name, "head"),
                    "must be of kind pooled in a dual encoder, which compares one vector per input",
                    MISSING if head is None else head.kind,
                    "Add head: {kind: pooled, projection: 512, normalize: true}.",
                )
                continue
            vocabulary = self.vocab_size if self.embedding_of(stack).takes_tokens else None
            context = replace(self.rule_context(name, stack), vocab_size=vocabulary)
            yield from (fault.under(name, "head") for fault in head.faults(context))
            widths[name] = head.vector_width(self.width_of(stack))
        if len(set(widths.values())) > 1:
            yield Fault(
                ("image", "head", "projection"),
                "must give vectors as wide as those of the texts",
                widths["image"],
                f"Use {widths['text']}.",
            )
        if meets and not self._reads_text_and_images():
            yield Fault(
                ("image", "embedding", "kind"),
                "must take images where text takes tokens",
                self.embedding_of(self.image).kind if self.image else None,
                "Use patches in image, and tokens in text.",
            )

    def _connector_faults(self) -> Iterable[Fault]:
        """The violated rules of what lets images among tokens, and of what it joins."""
        connector, joins = self.connector, self.architecture == "vision-language"
        if joins != (connector is not None):
            yield Fault(
                ("connector",),
                f"{'is required by' if joins else 'does not belong to'} architecture: {self.architecture}",
                MISSING if connector is None else connector.kind,
                "Add connector: {kind: mlp, token: ID}." if joins else "Remove it.",
            )
        if not isinstance(connector, ConnectorKind) or self.image is None or self.decoder is None:
            return
        context = replace(self.rule_context("decoder", self.decoder), vocab_size=self.vocab_size)
        yield from (fault.under("connector") for fault in connector.faults(context))
        images = self.embedding_of(self.image)
        yield from self._deepstack_faults(connector)
        if images.packed:
            yield from self._packed_faults(connector)
        elif not isinstance(images, Patches):
            yield Fault(
                ("image", "embedding", "kind"),
                "must be patches or packed_patches",
                images.kind,
                "Add embedding: {kind: patches, ...}.",
            )
        elif images.side % connector.pool:
            yield Fault(
                ("connector", "pool"),
                f"must divide the number of patches in a row, which is {images.side}",
                connector.pool,
                "Use a divisor, such as 1.",
            )
        elif images.side // connector.pool % connector.shuffle:
            pooled = "" if connector.pool == 1 else " after pooling"
            yield Fault(
                ("connector", "shuffle"),
                f"must divide the number of patches in a row{pooled}, which is {images.side // connector.pool}",
                connector.shuffle,
                "Use a divisor, such as 1.",
            )
        if self.position_of(self.decoder).embedded:
            yield Fault(
                ("position", "kind") if self.decoder.position is None else ("decoder", "position", "kind"),
                "must act inside attention in a vision-language model, whose images have no position before",
                self.position_of(self.decoder).kind,
                "Use rope, alibi or relative_bias.",
            )

    def _deepstack_faults(self, connector: ConnectorKind) -> Iterable[Fault]:
        """The violated rules of vectors that are added after layers of the decoder."""
        assert self.image is not None
        assert self.decoder is not None
        if connector.deepstack is None:
            return
        layers = connector.deepstack.layers
        if not self.embedding_of(self.image).packed:
            yield Fault(
                ("connector", "deepstack"),
                "requires images of any size",
                list(layers),
                "Remove it, or use packed_patches.",
            )
        elif list(layers) != sorted(layers) or layers[-1] >= self.image.depth:
            yield Fault(
                ("connector", "deepstack", "layers"),
                f"must be layers of the images in order, from 0 to {self.image.depth - 1}",
                list(layers),
                "Change the list.",
            )
        elif len(layers) > self.decoder.depth:
            yield Fault(
                ("connector", "deepstack", "layers"),
                f"must be at most {self.decoder.depth}, the layers of the decoder",
                list(layers),
                "Remove some.",
            )

    @property
    def embedded_width(self) -> int:
        """The width of what stands for a token before the decoder: its embedding, and what is added after its first layers."""
        connector = self.connector
        deep = connector.deep_count if isinstance(connector, ConnectorKind) else 0
        return self.output_width * (1 + deep)

    def _packed_faults(self, connector: ConnectorKind) -> Iterable[Fault]:
        """The violated rules of images of any size: of their connector, and of what acts on their patches."""
        if connector.pool > 1:
            yield Fault(
                ("connector", "pool"),
                "must be 1 for images of any size, whose patches come by the squares that are joined",
                connector.pool,
                "Use shuffle.",
            )
        if not connector.takes_any_size:
            yield Fault(
                ("connector", "kind"),
                "must keep the vectors of images apart where these have any size",
                connector.kind,
                "Use mlp.",
            )
        if connector.class_token:
            yield Fault(
                ("connector", "class_token"),
                "must be false for images of any size, which have none",
                connector.class_token,
                "Remove it.",
            )
        assert self.image is not None
        position = self.position_of(self.image)
        if not (position.of_patches or isinstance(position, NoPosition)):
            yield Fault(
                ("image", "position", "kind"),
                "must tell rows from columns in images of any size, or be none",
                self.position_of(self.image).kind,
                "Use axial_rope.",
            )
        for name in dict.fromkeys(run.use for run in self.image.runs()):
            block = (
                self.image.block if name is None else self.image.blocks.get(name)
            )  # the stack refuses other names
            window = getattr(getattr(block, "attention", None), "window", None)
            if window is not None:
                place = ("block",) if name is None else ("blocks", name)
                yield Fault(
                    ("image", *place, "attention", "window"),
                    "counts tokens of a sequence, and patches have rows and columns",
                    window,
                    "Remove it.",
                )

    @property
    def packs_images(self) -> bool:
        """Whether the images among its tokens have any size."""
        return self.connector is not None and self.embedding_of(self.image).packed  # type: ignore[arg-type]

    @property
    def rotates_by_axis(self) -> bool:
        """Whether the vectors of images have several positions each: a frame, a row and a column."""
        position = self.decoder and self.position_of(self.decoder)
        return self.packs_images and isinstance(position, Rope) and position.sections is not None

    @property
    def vectors_per_image(self) -> int:
        """The number of placeholder tokens that an image takes in a vision-language model."""
        assert self.image is not None
        images, connector = self.embedding_of(self.image), self.connector
        assert isinstance(images, Patches)
        assert isinstance(connector, ConnectorKind)
        return connector.vector_count(images.side**2, images.tokens_before)

    def _reads_text_and_images(self) -> bool:
        if self.text is None or self.image is None:
            return False
        read, seen = self.embedding_of(self.text), self.embedding_of(self.image)
        return read.takes_tokens and seen.input_name == "pixel_values"

    def _head_faults(self) -> Iterable[Fault]:
        context = replace(
            self.rule_context(self.last_stack_name, self.last_stack), vocab_size=self.vocab_size
        )
        yield from (fault.under("head") for fault in self.head.faults(context))
        yield from self._meeting_faults()
        embedding = self.embedding_of(self.last_stack)
        if isinstance(self.head, DistilledClassification) and not (
            isinstance(embedding, Patches) and embedding.distillation_token
        ):
            yield Fault(
                ("head", "kind"),
                "requires patches with a distillation token, which it reads",
                self.head.kind,
                "Add distillation_token: true to the embedding, or use classification.",
            )
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
