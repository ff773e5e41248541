"""A stack: its layers, their blocks, and its embedding, position and final norm."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from specs.base.base import Component, Fault, OmitDefault, RuleContext, Spec, Width, default_faults
from specs.base.descriptions import ValueDescriptions
from specs.base.roles import Role
from specs.base.suggest import suggestion
from specs.kinds.altup import AltUp
from specs.kinds.block import Block, BlockParts
from specs.kinds.embedding import Embedding
from specs.kinds.head import Head
from specs.kinds.mixer import MixerKind
from specs.kinds.norm import FinalNorm
from specs.kinds.position import Position, PositionKind
from specs.kinds.queries import Queries

MAX_LAYERS = 10_000

StackName = Literal["encoder", "decoder", "text", "image"]
STACKS: tuple[StackName, ...] = ("encoder", "text", "image", "decoder")
STACKS_OF: dict[str, tuple[StackName, ...]] = {
    "encoder": ("encoder",),
    "decoder": ("decoder",),
    "encoder-decoder": ("encoder", "decoder"),
    "dual-encoder": ("text", "image"),
    "vision-language": ("image", "decoder"),
}
"""The stacks of each architecture, in the order of ``STACKS``."""

Layers = Annotated[int, Field(gt=0, le=MAX_LAYERS)]


Bidirectional = Annotated[
    Literal["image", "prompt", "windows"],
    ValueDescriptions(
        {
            "image": "The vectors of one image, a run of placeholder tokens that is read in one call; a window limits what they "
            "see before them (Gemma 3).",
            "prompt": "All tokens of the first call, text and images, whatever the windows; later tokens see those before them "
            "(PaliGemma).",
            "windows": "As `prompt`, but a window reaches as far after a token as before it (ModernVBERT).",
        }
    ),
]


class LayerRun(Spec):
    """A run of equal layers."""

    use: str | None = None
    """Name of a block in the stack's `blocks`. Default: the stack's `block`."""
    repeat: Layers = 1
    """Number of layers in the run."""
    shared: Annotated[bool, OmitDefault()] = False
    """Whether the run is a single layer with one set of weights, applied `repeat` times (ALBERT)."""

    @property
    def sequence(self) -> "tuple[LayerRun, ...]":
        """The runs that the entry repeats ``times`` times."""
        return (self,)

    @property
    def times(self) -> int:
        """How often the sequence occurs."""
        return 1

    def paths(self) -> "Iterator[tuple[tuple[str | int, ...], LayerRun]]":
        """The runs, with the path of each in the entry."""
        yield (), self


class LayerGroup(Spec):
    """A repeated sequence of runs of layers."""

    pattern: Annotated[tuple[LayerRun, ...], Field(strict=False, min_length=1)]
    """Runs of layers, in order."""
    repeat: Layers = 1
    """Number of repetitions of the pattern."""
    shared: Annotated[bool, OmitDefault()] = False
    """Whether all repetitions share the layers and weights of the first."""

    @property
    def sequence(self) -> tuple[LayerRun, ...]:
        """The runs that the entry repeats ``times`` times."""
        return self.pattern

    @property
    def times(self) -> int:
        """How often the sequence occurs."""
        return self.repeat

    def paths(self) -> Iterator[tuple[tuple[str | int, ...], LayerRun]]:
        """The runs, with the path of each in the entry."""
        for index, run in enumerate(self.pattern):
            yield ("pattern", index), run


LayerEntry = Annotated[
    Annotated[LayerRun, Tag("run")] | Annotated[LayerGroup, Tag("group")],
    Discriminator(lambda entry: "group" if _has_pattern(entry) else "run"),
]
LayerEntries = Annotated[tuple[LayerEntry, ...], Field(strict=False, min_length=1)]


def _has_pattern(entry: Any) -> bool:
    return "pattern" in entry if isinstance(entry, dict) else isinstance(entry, LayerGroup)


class Stack(Spec):
    """The layers of an encoder or a decoder."""

    layers: Annotated[
        Annotated[Layers, Tag("count")] | Annotated[LayerEntries, Tag("entries")],
        Discriminator(lambda layers: "entries" if isinstance(layers, list | tuple) else "count"),
    ]
    """Number of layers, or a list of runs `{use: NAME, repeat: N}` and groups `{pattern: [...], repeat: N}`."""
    block: Block
    """Block of every layer without `use`."""
    blocks: dict[str, Block] = {}
    """Variants of `block` by name, for `use` in layers. Each states only its changes to `block`."""
    final_norm: FinalNorm | None = None
    """Whether one more norm, like the last block's, ends the stack, or that norm where it is another (ESM-C). Default: true where
    blocks leave their output unnormalised, so not after `post_norm`."""
    weighted_layer_sum: Annotated[bool, OmitDefault()] = False
    """Whether the output is a sum with trained weights of the input of the first layer and the outputs of all layers, the last
    after the final norm (classifiers of speech: SUPERB)."""
    altup: Annotated[AltUp | None, OmitDefault()] = None
    """Several residual streams, of which one passes the layers (Gemma 3n). Default: one stream."""
    queries: Annotated[Queries | None, OmitDefault()] = None
    """Queries that join the vectors of an image before the last layers, in an encoder with the head `masks` (EoMT). Default: none."""
    embedding: Embedding | None = None
    """Embedding of this stack's inputs. Default: the model's."""
    position: Position | None = None
    """Position kind of this stack. Default: the model's."""
    causal: bool | None = None
    """Whether each token sees only itself and the tokens before it, in an encoder (CLIP's text encoder, Qwen3 Embedding:
    true). Default: false for encoders; decoders are always causal."""
    bidirectional: Annotated[Bidirectional | None, OmitDefault()] = None
    """Tokens that see each other in both directions in the decoder of a `vision-language` model. Default: none."""
    d_model: Annotated[Width | None, OmitDefault(), Role.WIDTH] = None
    """Width of this stack's residual stream, if the stacks of a model differ in width: attention to the encoder then reads its width
    (TrOCR). Default: the model's."""
    context_length: Width | None = None
    """Longest input of this stack, in tokens or other vectors. Default: the model's."""
    head: Annotated[Head | None, OmitDefault()] = None
    """Vector that this stack of a `dual-encoder` gives for an input, of kind `pooled`, or boxes in its images, of kind
    `patch_boxes`. Other models have a head of their own."""

    @property
    def sees_prompt(self) -> bool:
        """Whether the tokens of the first call see each other in both directions."""
        return self.bidirectional in ("prompt", "windows")

    def runs(self) -> Iterator[LayerRun]:
        """The runs of equal layers, from first to last."""
        if isinstance(self.layers, int):
            yield LayerRun(repeat=self.layers)
            return
        for entry in self.layers:
            for _ in range(entry.times):
                yield from entry.sequence

    @property
    def depth(self) -> int:
        """The number of layers."""
        if isinstance(self.layers, int):
            return self.layers
        return sum(entry.times * sum(run.repeat for run in entry.sequence) for entry in self.layers)

    def named_block(self, name: str | None) -> BlockParts:
        """The block of a name; None for the stack's own."""
        return self.block if name is None else self.blocks[name]

    def owners(self) -> list[int]:
        """For every layer, the index of the first layer with the same weights (its own if it shares none)."""
        if isinstance(self.layers, int):
            return list(range(self.layers))
        owners: list[int] = []
        for entry in self.layers:
            once: list[int] = []  # the owners in one repetition of the entry
            for run in entry.sequence:
                first = len(owners) + len(once)
                once += [first if run.shared else first + i for i in range(run.repeat)]
            shift = 0 if entry.shared else len(once)
            owners += [owner + time * shift for time in range(entry.times) for owner in once]
        return owners

    def block_names(self) -> list[str | None]:
        """The block name of every layer, None for the stack's own; equal blocks have the name used first."""
        names = [run.use for run in self.runs() for _ in range(run.repeat)]
        used = dict.fromkeys(names)
        if len(used) == 1:
            return names
        first: list[tuple[BlockParts, str | None]] = []
        standing: dict[str | None, str | None] = {}
        for name in used:
            block = self.named_block(name)
            standing[name] = next((earlier for other, earlier in first if other == block), name)
            if standing[name] == name:
                first.append((block, name))
        return [standing[name] for name in names]

    def layer_blocks(self) -> list[BlockParts]:
        """The block of every layer; equal blocks are one object."""
        return [self.named_block(name) for name in self.block_names()]

    @property
    def reusing_layers(self) -> list[int]:
        """The layers that reuse the keys and values of another."""
        attentions = [block.attention for block in self.layer_blocks()]
        return [
            layer for layer, attention in enumerate(attentions) if attention and attention.takes_keys_values
        ]

    def key_value_sources(self, d_model: int) -> list[int | None]:
        """For every layer that reuses keys and values, the layer they are of; None for other layers, and where none fits."""
        blocks, sources = self.layer_blocks(), list[int | None]()
        for layer, block in enumerate(blocks):
            attention = block.attention
            source = None
            if attention is not None and attention.takes_keys_values:
                before = reversed(range(layer))
                fitting = (
                    other for other in before if attention.takes_keys_of(blocks[other].attention, d_model)
                )
                source = next(fitting, None)
            sources.append(source)
        return sources

    def layer_kinds(self) -> list[tuple[str | None, int, bool]]:
        """The block name of every layer, as ``block_names``, a number that tells layers of a block apart, and whether queries pass it.

        The number is 0 unless they share weights: then each set is held by a layer and used again by others.
        """
        numbers: list[int] = []
        names, uses = self.block_names(), Counter[str | None]()
        for layer, (name, owner) in enumerate(zip(names, self.owners(), strict=True)):
            if owner != layer:
                numbers.append(numbers[owner])
                continue
            sharing, use = self.named_block(name).sharing, uses[name]
            sets = 0 if sharing is None else sharing.sets
            numbers.append(use if use < sets else sets + use % max(sets, 1))
            uses[name] += 1
        before = self.depth if self.queries is None else self.depth - self.queries.layers
        return [
            (name, number, layer >= before)
            for layer, (name, number) in enumerate(zip(names, numbers, strict=True))
        ]

    @property
    def end_norm(self) -> Component | None:
        """The norm that follows the last block, if one does."""
        if isinstance(self.final_norm, Component):
            return self.final_norm
        last = self.layer_blocks()[-1]
        return (
            last.norm
            if self.final_norm or (self.final_norm is None and not last.output_is_normalised)
            else None
        )

    @property
    def ends_with_norm(self) -> bool:
        """Whether a norm follows the last block."""
        return self.end_norm is not None

    def _uses(self) -> Iterator[tuple[tuple[str | int, ...], str]]:
        if isinstance(self.layers, int):
            return
        for i, entry in enumerate(self.layers):
            for path, run in entry.paths():
                if run.use is not None:
                    yield ("layers", i, *path, "use"), run.use

    def faults(self, context: RuleContext) -> Iterable[Fault]:
        """The violated rules of the layers and their blocks."""
        unknown = [(path, name) for path, name in self._uses() if name not in self.blocks]
        for path, name in unknown:
            remedy = suggestion(name, self.blocks) if self.blocks else "Define it under `blocks`."
            yield Fault(path, "must be one of the stack's named blocks", name, remedy)
        if unknown:
            return
        if self.depth > MAX_LAYERS:
            yield Fault(
                ("layers",), f"must have at most {MAX_LAYERS} layers in total", self.depth, "Reduce repeat."
            )
            return
        used = {run.use for run in self.runs()}
        for name in self.blocks:
            if name not in used:
                remedy = f"Add {{use: {name}}} to the list of layers, or remove the block."
                yield Fault(("blocks", name), "must be used by a layer", self.blocks[name].kind, remedy)
        yield from (fault.under("block") for fault in self.block.faults(context))
        for name, block in self.blocks.items():
            yield from (fault.under("blocks", name) for fault in block.faults(context))
        if isinstance(self.final_norm, Component):
            yield from (fault.under("final_norm") for fault in self.final_norm.faults(context))
        if self.altup is not None:
            yield from (fault.under("altup") for fault in self.altup.faults(context))
        if self.queries is not None:
            yield from (fault.under("queries") for fault in self.queries.faults(context, self.depth))
        yield from self._stream_faults(context)
        yield from self._source_faults(context)
        yield from self._mixer_faults()
        yield from self._sharing_faults()

    def _stream_faults(self, context: RuleContext) -> Iterable[Fault]:
        """Parts that act on one stream of a constant number of vectors, where the stack has another."""
        if self.queries is None and context.second_width is None:
            return
        beside = "a second stream" if self.queries is None else "queries"
        yield from default_faults(self, ("altup", "weighted_layer_sum"), f"must not be set beside {beside}")
        if len({block.passes_second for block in (self.block, *self.blocks.values())}) > 1:
            rule = "must all be two_streams, or none"
            yield Fault(("block", "kind"), rule, self.block.kind, "Use the same kind for all blocks.")
        blocks = [("block", self.block), *((f"blocks.{name}", block) for name, block in self.blocks.items())]
        for name, block in blocks:
            attention = None if self.queries is None else block.attention
            if attention is None:
                continue
            keys: dict[str, Any] = {key: True for key, _ in attention.fields_of_distance()}
            keys |= {
                "patch_window": attention.separate_window,
                "reuses_keys_values": attention.takes_keys_values,
            }
            for key in (key for key, is_set in keys.items() if is_set):
                rule = "must not be set beside queries, which have no place in the image"
                yield Fault((*name.split(".", 1), "attention", key), rule, "a value", "Remove it.")

    def _source_faults(self, context: RuleContext) -> Iterable[Fault]:
        """Layers that reuse keys and values that no layer before them has."""
        names, sources = self.block_names(), self.key_value_sources(context.d_model)
        for name, block, source in zip(names, self.layer_blocks(), sources, strict=True):
            if source is None and block.attention is not None and block.attention.takes_keys_values:
                path = ("block",) if name is None else ("blocks", name)
                yield Fault(
                    (*path, "attention", "reuses_keys_values"),
                    "requires a layer before it with its own keys and values, for as many heads of the same width, and with the "
                    "same window, chunk and position",
                    True,
                    "Put such a layer before it, or remove it.",
                )
                return

    def _mixer_faults(self) -> Iterable[Fault]:
        """The first layer whose mixer violates rules between it and the mixers before it."""
        earlier: list[MixerKind | None] = []
        for name, block in zip(self.block_names(), self.layer_blocks(), strict=True):
            path = ("block",) if name is None else ("blocks", name)
            faults = [] if block.mixer is None else list(block.mixer.layer_faults(earlier))
            yield from (fault.under(*path, "mixer") for fault in faults)
            if faults:
                return
            earlier.append(block.mixer)

    def _sharing_faults(self) -> Iterable[Fault]:
        """More sets of weights than layers that use them."""
        names, owners = self.block_names(), self.owners()
        counts = Counter(name for layer, name in enumerate(names) if owners[layer] == layer)
        for name, count in counts.items():
            sharing = self.named_block(name).sharing
            if sharing is not None and sharing.sets > count:
                path = ("block",) if name is None else ("blocks", name)
                yield Fault(
                    (*path, "sharing", "sets"),
                    f"must be at most {count}, the number of layers of this block",
                    sharing.sets,
                    "Reduce it, or add layers.",
                )

    def position_faults(self, position: PositionKind, context: RuleContext) -> Iterable[Fault]:
        """The violated rules of the effective position of this stack, relative to that position."""
        yield from position.faults(context)
        attentions = [block.attention for block in self._blocks_used() if block.attention is not None]
        if not (attentions or position.embedded or position.is_none):
            yield Fault(
                ("kind",),
                "acts inside attention, and no layer of the stack has one",
                position.kind,
                "Use none, learned or sinusoidal.",
            )
        affected = [
            attention
            for attention in attentions
            if attention.position_heads and attention.own_position is None
        ]
        for attention in affected:
            yield from position.attention_faults(attention, context)
        yield from position.layer_faults(
            [attention.own_position for attention in attentions if attention.own_position]
        )
        heads = sorted({attention.position_heads for attention in affected})
        if position.needs_equal_heads and len(heads) > 1:
            yield Fault(
                ("kind",),
                "requires equal numbers of heads in all blocks, because the layers of a stack share its biases",
                position.kind,
                f"The blocks have {' and '.join(map(str, heads))} heads: make them equal, or use rope.",
            )

    def _blocks_used(self) -> list[BlockParts]:
        return [self.named_block(name) for name in {run.use: None for run in self.runs()}]
