"""Records hidden states and attention weights of a model while it runs or is traced.

Shapes: batch B, heads H, queries T, keys S, width D.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from specs.base.errors import UserError, option_name
from specs.model.stack import StackName
from zoo import functional
from zoo.attention_maps.following import FollowedAttentions
from zoo.builder import ZooModel
from zoo.core.precision import wide
from zoo.layer_outputs.choice import LayerOutput
from zoo.tracing.task import BATCH, IMAGES, Task

Recorded = dict[LayerOutput, Tensor]
"""Hidden states, B T D, and attention weights, B H T S."""


@contextmanager
def recorded_outputs(model: ZooModel, outputs: Collection[LayerOutput]) -> Iterator[Recorded]:
    """A context that yields the outputs of every stack that runs in it, in float32 or wider."""
    held: Recorded = {}

    def keep(stack: StackName, kind: Any, layer: int | None, x: Tensor, *, normed: bool = False) -> None:
        output = LayerOutput(stack, kind, layer, normed)
        if output in outputs:
            held[output] = wide(x)

    with ExitStack() as contexts:
        for name in {output.stack for output in outputs}:
            for handle in _hooks(name, model.get_submodule(name), keep):
                contexts.callback(handle.remove)
        if any(output.kind in ("attention", "cross") for output in outputs):
            contexts.enter_context(_Weights(model, outputs, keep))
        yield held


def with_layer_outputs(task: Task, outputs: Collection[LayerOutput]) -> Task:
    """The task with the additional outputs of the stack that it runs, as far as its head does not give them; a graph of several
    stacks has none.

    Its call raises :class:`specs.base.errors.UserError` for an output that the model does not compute.
    """
    if not outputs:
        return task

    def call(model: Any, values: Mapping[str, Any]) -> Mapping[str, Any]:
        ran = set[StackName]()
        with _noting(model, ran), recorded_outputs(model, outputs) as held:
            results = task.call(model, values)
        wanted = [output for output in outputs if ran == {output.stack} and output.name not in results]
        for output in wanted:
            _check(output, held)
        return {**results, **{output.name: _by_row(task, values, held[output]) for output in wanted}}

    return replace(task, call=call)


def _by_row(task: Task, values: Mapping[str, Any], x: Tensor) -> Tensor:
    """The output of a graph that takes images per row: B num_images ..."""
    first = task.inputs[0]
    return x.unflatten(0, values[first.name].shape[:2]) if first.dims[:2] == (BATCH, IMAGES) else x


def _hooks(name: StackName, stack: Any, keep: Callable[..., None]) -> Iterator[RemovableHandle]:
    """Hooks that pass the hidden states of a stack to ``keep``; a shared block stands for several layers."""
    count = 0

    def begin(module: nn.Module, inputs: Any) -> None:
        nonlocal count
        count = 0

    def first(module: nn.Module, inputs: Any) -> None:
        if count == 0:
            keep(name, "hidden", 0, stack.first_stream(inputs[0]))

    def after(module: nn.Module, inputs: Any, output: Any) -> None:
        nonlocal count
        count += 1
        keep(name, "hidden", count, stack.first_stream(output[0]))

    def normed(module: nn.Module, inputs: Any, output: Any) -> None:
        keep(name, "hidden", count, output, normed=True)

    def end(module: nn.Module, inputs: Any, output: Any) -> None:
        keep(name, "last_hidden_state", None, output[0])

    yield stack.register_forward_pre_hook(begin)
    for block in dict.fromkeys(stack.blocks):
        yield block.register_forward_pre_hook(first)
        yield block.register_forward_hook(after)
    yield stack.final_norm.register_forward_hook(normed)
    yield stack.register_forward_hook(end)


class _Weights(FollowedAttentions):
    """A context in which ``keep`` receives the weights of chosen attentions, without the weights of sinks."""

    def __init__(self, model: ZooModel, outputs: Collection[LayerOutput], keep: Callable[..., None]) -> None:
        super().__init__(model)
        self._keep = keep
        self._chosen = {(output.stack, output.kind, output.layer) for output in outputs}

    def attends(self, args: tuple[Any, ...], options: dict[str, Any]) -> Tensor:
        cross = self.stack == "cross"
        chosen = ("decoder" if cross else self.stack, "cross" if cross else "attention", self.layer)
        if chosen not in self._chosen:
            return functional.attention(*args, **options)
        query, key, value, bias = args
        options = {name: option for name, option in options.items() if name != "dropout"}
        weights = functional.attention_weights(query, key, bias, **options)
        weights = weights if options.get("sinks") is None else weights[..., :-1]  # B H T S
        self._keep(*chosen, weights)
        return functional.mixed_values(weights, value)


@contextmanager
def _noting(model: ZooModel, ran: set[StackName]) -> Iterator[None]:
    """A context that adds the names of the stacks that run."""
    with ExitStack() as contexts:
        for name, _ in model.spec.stacks():
            stack: nn.Module = model.get_submodule(name)
            handle = stack.register_forward_pre_hook(lambda module, inputs, name=name: ran.add(name))
            contexts.callback(handle.remove)
        yield


def _check(output: LayerOutput, held: Recorded) -> None:
    if output not in held:
        raise UserError(
            f"{option_name('outputs')} names {output.name}, and layer {output.layer} of the {output.stack} computes no attention weights: "
            "its attention does not call zoo.functional.attention\n  Leave it out, or use hidden for hidden states."
        )
