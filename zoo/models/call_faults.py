"""The reasons why calls of a model fail: no weights, and inputs of another type, shape or range."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor
from torch.fx import Proxy

from specs.base.errors import UserError
from specs.kinds.embedding import EmbeddingKind
from specs.model.stack import Stack
from zoo.generation.prompts import weights_missing

if TYPE_CHECKING:
    from zoo.models.built_model import BuiltModel

INPUTS = ("inputs", "input_ids", "decoder_input_ids", "pixel_values")


def fault_of_call(model: BuiltModel, arguments: Mapping[str, Any], error: Exception) -> UserError | None:
    """The input at fault for an error of torch; None in a trace, and if no input is."""
    if any(isinstance(value, Proxy) for value in arguments.values()):
        return None
    if not all_meta(arguments.values()) and any(parameter.is_meta for parameter in model.parameters()):
        return weights_missing(model.spec)
    for name in INPUTS:
        if arguments.get(name) is not None:
            stack, embedding = _reader(model, name, arguments)
            faults = _token_faults if embedding.takes_tokens else _dense_faults
            if fault := next(faults(model, stack, name, arguments, error), None):
                return UserError(fault)
    return None


def all_meta(values: Iterable[object]) -> bool:
    """Whether all tensors among some arguments have shapes alone."""
    return all(value.is_meta for value in values if isinstance(value, Tensor))


def _reader(model: BuiltModel, name: str, arguments: Mapping[str, Any]) -> tuple[Stack, EmbeddingKind]:
    """The stack that reads an input, and its embedding."""
    spec = model.spec
    stack = spec.stack_named(arguments["name"]) if "name" in arguments else spec.first_stack
    if name.startswith("decoder"):
        stack = spec.decoder
    elif name == "pixel_values":
        stack = spec.image
    stack = stack or spec.first_stack
    return stack, spec.embedding_of(stack)


def _token_faults(
    model: BuiltModel, stack: Stack, name: str, arguments: Mapping[str, Any], error: Exception
) -> Iterator[str]:
    spec, ids = model.spec, arguments[name]
    if not isinstance(ids, Tensor):
        yield (
            f"{name} must be a tensor of token ids\n  value: {type(ids).__name__}\n"
            f"  Use torch.tensor([[1, 2, 3]]), a row for each sequence."
        )
        return
    if ids.ndim != 2:
        yield (
            f"{name} must have a row for each sequence, batch x tokens\n  value: shape {_sizes(ids)}\n"
            f"  Use {name}[None] for one sequence."
        )
        return
    if ids.is_floating_point():
        yield f"{name} must be integers\n  value: {ids.dtype}\n  Use {name}.long()."
        return
    side = "decoder_" if name.startswith("decoder") else ""
    mask, past = arguments.get(f"{side}attention_mask"), arguments.get("past_key_values")
    cached = 0 if past is None else model.get_submodule("decoder").past_length(past)  # type: ignore[operator]
    length = cached + ids.shape[1]
    if isinstance(mask, Tensor) and (mask.ndim != 2 or mask.shape[1] != length):
        yield (
            f"{side}attention_mask must have a column for each token, cached ones included: "
            f"{ids.shape[0]:,} x {length:,}\n  value: shape {_sizes(mask)}\n  Leave it out if no token is padding."
        )
    misshapen = [*_misshapen_beside(spec.embedding_of(stack), ids, arguments)]
    if misshapen or not isinstance(error, IndexError):  # of a table that is read beyond its rows
        yield from misshapen
        return
    yield from _out_of_range(name, ids, spec.vocab_size or 0, f"the vocab_size of {spec.name}")
    types = arguments.get("token_type_ids")
    if isinstance(types, Tensor):
        count = spec.embedding_of(stack).segment_count
        yield from _out_of_range("token_type_ids", types, count, f"the token types of {spec.name}")
    yield from _faults_beside(spec.embedding_of(stack), arguments)
    most, longest = spec.context_length_of(stack), _longest(length, mask, arguments.get("position_ids"))
    if most is not None and longest > most:
        yield (
            f"{name} must fit the context of {spec.name}, which is {most:,} tokens\n  value: {longest:,} tokens\n"
            f"  Use {most:,} or fewer, or build the spec with a larger context_length."
        )


def _misshapen_beside(embedding: EmbeddingKind, ids: Tensor, arguments: Mapping[str, Any]) -> Iterator[str]:
    """The faults of the shapes and types of tasks and boxes."""
    beside = arguments.get("beside", {})
    for name, _, is_box, is_real in embedding.token_inputs:
        values = beside.get(name)
        if not isinstance(values, Tensor):
            continue
        sizes = (*ids.shape, 4) if is_box else (*ids.shape,)
        if values.shape != sizes and values.shape != (1, *sizes[1:]):
            what = "a box of 4 edges" if is_box else "a task"
            yield (
                f"{name} must have {what} for each token: {' x '.join(f'{size:,}' for size in sizes)}\n"
                f"  value: shape {_sizes(values)}\n  Leave it out for zeros."
            )
        elif values.is_floating_point() and not is_real:
            yield f"{name} must be integers\n  value: {values.dtype}\n  Use {name}.long()."


def _faults_beside(embedding: EmbeddingKind, arguments: Mapping[str, Any]) -> Iterator[str]:
    """The faults of tasks and boxes."""
    beside = arguments.get("beside", {})
    for name, below, is_box, is_real in embedding.token_inputs:
        values = beside.get(name)
        if is_real or not isinstance(values, Tensor):
            continue
        yield from _out_of_range(name, values, below, f"the number of {'coordinates' if is_box else 'tasks'}")
        if is_box and values.device.type == "cpu" and (values[..., :2] > values[..., 2:]).any():
            yield (
                f"{name} must give the left and top edge of each token before the right and bottom edge\n"
                f"  value: {values[(values[..., :2] > values[..., 2:]).any(-1)][0].tolist()}\n"
                "  Write each box as left, top, right, bottom."
            )


def _out_of_range(name: str, ids: Tensor, count: int, rule: str) -> Iterator[str]:
    if ids.numel() and ids.device.type == "cpu":
        wrong = [value for value in (int(ids.max()), int(ids.min())) if not 0 <= value < count]
        if wrong:
            yield (
                f"{name} must be from 0 to below {rule}, which is {count:,}\n  value: {wrong[0]}\n"
                f"  Use 0 to {count - 1}."
            )


def _longest(length: int, mask: Tensor | None, position_ids: Tensor | None) -> int:
    """The number of tokens that the longest row has, or the slot that it reaches."""
    if position_ids is not None:
        return int(position_ids.max()) + 1
    return length if mask is None else int(mask.sum(1).max())


def _dense_faults(
    model: BuiltModel, stack: Stack, name: str, arguments: Mapping[str, Any], error: Exception
) -> Iterator[str]:
    embedding, values = model.spec.embedding_of(stack), arguments[name]
    own = embedding.input_name
    if not isinstance(values, Tensor):
        yield f"{own} must be a tensor\n  value: {type(values).__name__}\n  Use torch.from_numpy or torch.tensor."
    elif not (embedding.packed or embedding.any_length):
        shape = embedding.input_shape(model.spec.context_length_of(stack))
        if tuple(values.shape[1:]) != shape:
            sizes = " x ".join(map(str, ("batch", *shape)))
            yield f"{own} must be {sizes}\n  value: shape {_sizes(values)}\n  Resize or pad it to this shape."


def _sizes(tensor: Tensor) -> str:
    return " x ".join(map(str, tensor.shape)) or "()"
