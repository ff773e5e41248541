"""The choice of additional outputs of a model.

Hidden states are numbered as by ``output_hidden_states`` of transformers: 0 is the input of the first layer, and i the output of the
i-th.  The last follows the final norm, except in stacks of images or audio without a decoder that attends to them, and in both stacks
of a dual encoder, where it precedes the norm as in transformers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from specs.base.errors import UserError, option_name
from specs.files.layer_outputs import OUTPUT_NAMES, Kind, RequestedOutputs, requested
from specs.model.model import Model
from specs.model.stack import Stack, StackName
from zoo.attention_maps.choice import heads_by_layer

_STACKS_READ = {"attention": "self-attention", "cross": "cross-attention"}


@dataclass(frozen=True)
class LayerOutput:
    """An additional output: its stack and kind, and its number, which the last hidden state (the stack's output) does not have.

    ``normed``: whether it follows the final norm.
    """

    stack: StackName
    kind: Kind
    layer: int | None = None
    normed: bool = False

    @property
    def name(self) -> str:
        """The name of the graph's output, such as ``hidden_states.9``."""
        name = OUTPUT_NAMES[self.kind]
        return name if self.layer is None else f"{name}.{self.layer}"


def chosen_outputs(spec: Model, values: Sequence[str]) -> tuple[LayerOutput, ...]:
    """The additional outputs that the values of the option name, and the hidden state that the next step of a decoder of hidden
    states reads.

    Raises :class:`specs.base.errors.UserError` for a stack or layer that the model does not have.
    """
    reads = spec.reads_hidden_states
    own = ("last_hidden_state",) if reads else ()
    return tuple(dict.fromkeys(output for value in (*own, *values) for output in _outputs(spec, value)))


def of_reduced(spec: Model, outputs: Sequence[LayerOutput]) -> tuple[LayerOutput, ...]:
    """The outputs of a reduced model that are nearest to the outputs of the model."""
    nearest: list[LayerOutput] = []
    for output in outputs:
        numbers = _numbers(spec, output.stack, output.kind)
        if output.layer is None:
            nearest.append(output)
        elif output.normed or not numbers:
            nearest += _numbered(spec, output.stack, output.kind, numbers[-1:])
        else:
            inner = numbers[: -1 if output.kind == "hidden" else None]
            nearest += _numbered(
                spec, output.stack, output.kind, [min(inner, key=lambda n: abs(n - (output.layer or 0)))]
            )
    return tuple(dict.fromkeys(nearest))


def _outputs(spec: Model, value: str) -> Iterator[LayerOutput]:
    wanted = requested(value)
    stack = _stack(spec, wanted, value)
    if wanted.kind == "last_hidden_state":
        yield LayerOutput(stack, wanted.kind)
        return
    _check_form(spec, stack, wanted.kind, value)
    layers, numbers = wanted.layers, _numbers(spec, stack, wanted.kind)
    if not numbers:
        raise UserError(
            f"{option_name('outputs')} names attention weights, which the {stack} of {spec.name} does not have\n"
            f"  value: {value}\n  Leave it out, or use hidden for hidden states."
        )
    count = _count(spec.stack(stack), wanted.kind)
    places = numbers if layers is None else [n + count if n < 0 else n for n in layers]
    for asked, number in zip(places if layers is None else layers, places, strict=True):
        if not 0 <= number < count:
            raise UserError(
                f"{option_name('outputs')} must name layers of the {stack} of {spec.name}: {_range(count)}\n"
                f"  value: {asked} in {value}\n  {_meaning(wanted.kind, count)}"
            )
        if number not in numbers:
            able = ", ".join(map(str, numbers[:8])) + (" or another" if len(numbers) > 8 else "")
            raise UserError(
                f"{option_name('outputs')} names layer {number}, which has no {_STACKS_READ[wanted.kind]}, of the {stack} of {spec.name}\n"
                f"  value: {asked} in {value}\n  Use {able}."
            )
    yield from _numbered(spec, stack, wanted.kind, places)


def _stack(spec: Model, wanted: RequestedOutputs, value: str) -> StackName:
    """The stack that a value names, or the only one that it can mean."""
    names = [name for name, _ in spec.stacks()]
    able = [name for name in names if wanted.kind != "cross" or (name == "decoder" and "encoder" in names)]
    if not able:
        raise UserError(
            f"{option_name('outputs')} cross needs a decoder that attends to an encoder\n"
            f"  value: {value}; {spec.name} is a model of architecture {spec.architecture}\n  Use attention instead."
        )
    if wanted.stack is None and len(able) == 1:
        return able[0]
    if wanted.stack not in able:
        bare = value.removeprefix(f"{wanted.stack}.")
        choices = " or ".join(f"{name}.{bare}" if len(names) > 1 else bare for name in able)
        rule = "must name a stack" if wanted.stack is None else "names a stack that the model does not have"
        raise UserError(
            f"{option_name('outputs')} {rule}: {spec.name} has {' and '.join(names)}\n"
            f"  value: {value}\n  Use {choices}."
        )
    return wanted.stack


def _check_form(spec: Model, stack: StackName, kind: Kind, value: str) -> None:
    """Refuse hidden states of layers that pass on several streams, and weights of keys that are no tokens."""
    layers = spec.stack(stack)
    if kind == "attention" and any(
        block.attention is not None and block.attention.summarized_tokens is not None
        for block in layers.layer_blocks()
    ):
        raise UserError(
            f"{option_name('outputs')} attention needs layers that attend to tokens alone; the layers of {spec.name} also attend to sums of blocks\n"
            f"  value: {value}\n  Use hidden for hidden states, or remove block_summaries."
        )
    if kind == "hidden" and layers.altup is not None:
        raise UserError(
            f"{option_name('outputs')} hidden needs layers with one residual stream; the layers of {spec.name} have several (altup)\n"
            f"  value: {value}\n  Use last_hidden_state."
        )


def _numbers(spec: Model, stack: StackName, kind: Kind) -> list[int]:
    """The numbers of a stack's outputs of one kind."""
    if kind == "hidden":
        return [*range(_count(spec.stack(stack), kind))]
    heads = heads_by_layer(spec).get("cross" if kind == "cross" else stack, [])
    return [layer for layer, count in enumerate(heads) if count != 0]


def _numbered(spec: Model, stack: StackName, kind: Kind, numbers: Sequence[int]) -> Iterator[LayerOutput]:
    last = _count(spec.stack(stack), kind) - 1
    for number in numbers:
        normed = kind == "hidden" and number == last and _ends_with_norm(spec, stack)
        yield LayerOutput(stack, kind, number, normed)


def _count(stack: Stack, kind: Kind) -> int:
    """The number of a stack's layers, or of its hidden states: one more."""
    return stack.depth + (kind == "hidden")


def _ends_with_norm(spec: Model, name: StackName) -> bool:
    """Whether the last hidden state of a stack follows its final norm, as transformers has it."""
    stack = spec.stack(name)
    attended = spec.architecture == "encoder-decoder"
    return spec.architecture != "dual-encoder" and (attended or spec.embedding_of(stack).takes_tokens)


def _range(count: int) -> str:
    return f"0 to {count - 1}, or {-count} to -1" if count > 1 else "0 or -1"


def _meaning(kind: Kind, count: int) -> str:
    if kind != "hidden":
        return "Use a number in this range; layers count from 0."
    return f"Use a number in this range; 0 is the input of the first layer, and {count - 1} the last hidden state."
