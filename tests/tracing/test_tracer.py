"""Traces: which sizes are numbers and which are symbols, where a call came from, and what cannot be traced."""

from __future__ import annotations

import operator
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Barrier, BrokenBarrierError
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import fx, nn

from exporters.graph.trace import trace_and_lower
from exporters.graph.values import Graph
from exporters.target.targets import TARGETS
from specs.model.model import Model
from tests.zoo.tiny import BLOCK, bert, gpt2, t5
from zoo import functional
from zoo.builder import assemble
from zoo.ops import TensorInfo
from zoo.ops.creation import size
from zoo.tracing.symbols import Placeholder, Symbols
from zoo.tracing.tasks import tasks
from zoo.tracing.tracer import Tracer, UntraceableError

INPUTS = (Placeholder("x", torch.float32, ("B", "T", 6)), Placeholder("mask", torch.int64, ("B", "P + T")),
          Placeholder("past", torch.float32, ("B", "P", 6)))  # fmt: skip


class Inner(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function
        self.weight = nn.Parameter(torch.ones(6))
        self.register_buffer("table", torch.ones(6), persistent=False)

    def forward(self, *values: Any) -> Any:
        return self.function(self, *values)


class Outer(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.inner = Inner(function)

    def forward(self, *values: Any) -> Any:
        return self.inner(*values)


def trace(function: Callable[..., Any]) -> tuple[fx.Graph, Symbols]:
    """The trace of a function of (module, x, mask, past) inside a module called ``inner``."""
    symbols = Symbols.of(INPUTS, ())
    call = lambda model, values: {"y": model(*values.values())}  # noqa: E731
    return Tracer(Outer(function), symbols).run(call, INPUTS), symbols


def targets(graph: fx.Graph) -> list[Any]:
    return [node.target for node in graph.nodes if node.op in ("call_function", "call_method")]


def seen(function: Callable[..., Any]) -> Any:
    """What a function of the traced x returns, as it was during the trace."""
    result = []

    def call(m: Any, x: Any, mask: Any, past: Any) -> Any:
        result.append(function(x))
        return x

    trace(call)
    return result[0]


def test_static_facts_are_plain_python() -> None:
    assert seen(lambda x: x.shape[-1]) == 6
    assert type(seen(lambda x: x.size(2))) is int
    assert seen(lambda x: (x.ndim, x.dim(), x.dtype, x.device)) == (3, 3, torch.float32, torch.device("meta"))
    assert seen(lambda x: x.transpose(1, 2).shape[1]) == 6
    assert seen(lambda x: x.unflatten(-1, (2, 3)).shape[2:]) == (2, 3)
    assert seen(lambda x: x.shape[1] - x.shape[1]) == 0
    assert len(seen(lambda x: x.size())) == 3


def test_symbolic_sizes_are_recorded_and_named() -> None:
    graph, symbols = trace(lambda m, x, mask, past: torch.cat((past, x), 1)[:, x.shape[1] :])
    sizes = [node for node in graph.nodes if node.target is size]
    assert [symbols.name(node.meta["info"]) for node in sizes] == ["B", "T"]  # as .shape asks for all
    joined = next(node for node in graph.nodes if node.target is torch.cat)
    shapes = [info.shape for info in joined.meta["info"]]
    assert [symbols.name(pair) for pair in zip(*shapes, strict=True)] == ["B", "P + T", 6]


def test_an_unnamed_size_is_not_a_symbol() -> None:
    graph, symbols = trace(lambda m, x, mask, past: x[:, 1:])
    cut = next(node for node in graph.nodes if node.target is operator.getitem)
    pair = tuple(info.shape[1] for info in cut.meta["info"])
    assert symbols.name(pair) is None
    assert pair[0] != pair[1]


@pytest.mark.parametrize("parts", [4, 64, 512, 8192])
def test_a_divided_or_cut_size_is_not_taken_for_a_number(parts: int) -> None:
    assert not isinstance(seen(lambda x: x.shape[1] // parts), int)


def test_sums_of_symbols_are_the_sums_of_their_numbers() -> None:
    values = Symbols.of(INPUTS, ()).values
    assert values["P + T"] == tuple(map(sum, zip(values["P"], values["T"], strict=True)))
    assert len({number for pair in values.values() for number in pair}) == 2 * len(values)


def test_the_numbers_are_primes_that_no_static_size_has() -> None:
    first = Symbols.of(INPUTS, ())
    taken = {number for name in "BTP" for number in first.values[name]}
    second = Symbols.of(INPUTS, taken)
    numbers = {number for name in "BTP" for number in second.values[name]}
    assert not numbers & taken
    for number in numbers | taken:
        assert all(number % divisor for divisor in range(2, int(number**0.5) + 1))


def _heads(width: int) -> dict[str, Any]:
    return {**BLOCK, "attention": {"kind": "multi_head", "heads": 2, "head_dim": width}}


COLLIDING = [1009, 1013, 1019, 65_537, 65_539]


@pytest.mark.parametrize("number", COLLIDING)
def test_a_model_with_sizes_like_the_numbers_keeps_its_sizes_apart(number: int) -> None:
    spec = gpt2(vocab_size=number, context_length=number, decoder={"layers": 1, "block": _heads(2)})
    data = spec.model_dump()
    data["decoder"]["block"]["feed_forward"]["hidden"] = number
    graph = _graph(Model.model_validate(data))
    assert [str(dim) for dim in graph.outputs[0].dims or ()] == [
        "batch_size",
        "sequence_length",
        str(number),
    ]


def _graph(spec: Model) -> Graph:
    model = assemble(spec)
    return trace_and_lower(model, tasks(model, spec)[-1], TARGETS["portable"])


def test_every_call_knows_its_module() -> None:
    graph, _ = trace(lambda m, x, mask, past: F.relu(x) * m.weight)
    found = {node.target: node.meta["path"] for node in graph.nodes if node.op == "call_function"}
    assert found == {F.relu: "inner", operator.mul: "inner"}
    spec = bert()
    model = assemble(spec)
    task = tasks(model, spec)[0]
    traced = Tracer(model, Symbols.of(task.inputs, ())).run(task.call, task.inputs)
    paths = [node.meta.get("path") for node in traced.nodes if node.target is F.linear]
    layer = [
        "attention.key", "attention.value", "attention.query", "attention.output", "feed_forward.up",
        "feed_forward.down",
    ]  # fmt: skip
    assert paths == [f"encoder.blocks.{i}.{name}" for i in (0, 1) for name in layer]


def test_parameters_are_read_once_under_the_first_of_their_names() -> None:
    spec = gpt2()
    model = assemble(spec)
    task = tasks(model, spec)[0]
    traced = Tracer(model, Symbols.of(task.inputs, ())).run(task.call, task.inputs)
    names = [node.target for node in traced.nodes if node.op == "get_attr"]
    assert sorted(names) == sorted(name for name, _ in model.named_parameters())
    assert "head.vocabulary.weight" not in names


def test_the_result_of_a_semantic_op_records_its_call() -> None:
    def attend(m: Any, x: Any, mask: Any, past: Any) -> Any:
        heads = x[:, None]
        return functional.attention(heads, heads, heads, None, scale=0.5)

    graph, _ = trace(attend)
    assert F.scaled_dot_product_attention in targets(graph)
    assert functional.attention not in targets(graph)
    node = next(node for node in graph.nodes if node.target is F.scaled_dot_product_attention)
    (call,) = node.meta["semantic_calls"]
    assert call.function is functional.attention
    assert call.args == (node.args[0],) * 3 + (None,)
    assert call.kwargs == {"scale": 0.5}


def test_a_result_that_is_an_argument_records_no_call() -> None:
    graph, _ = trace(lambda m, x, mask, past: functional.append(None, x * 2.0))
    assert not any("semantic_calls" in node.meta for node in graph.nodes)


def test_operations_with_an_entry_are_not_followed() -> None:
    graph, _ = trace(
        lambda m, x, mask, past: x + functional.angles(functional.token_positions(mask, 1), (1.0,))
    )
    assert functional.constant in targets(graph)
    assert functional.angles not in targets(graph)


def test_several_results_are_several_values() -> None:
    graph, _symbols = trace(lambda m, x, mask, past: x.chunk(2, -1)[1])
    result = next(node for node in graph.nodes if node.target is operator.getitem)
    assert isinstance(result.meta["info"][0], TensorInfo)
    assert result.meta["info"][0].shape[-1] == 3


def decides(m: Any, x: Any, *rest: Any) -> Any:
    if x.sum() > 0:
        return x
    return -x


def compares_sizes(m: Any, x: Any, *rest: Any) -> Any:
    return x if x.shape[1] > 5 else -x


UNTRACEABLE: list[tuple[Callable[..., Any], str]] = [
    (decides, "TraceError: symbolically traced variables cannot be used as inputs to control flow"),
    (compares_sizes, "TypeError: sizes cannot be compared: they differ between calls"),
    (lambda m, x, mask, past: x + torch.ones(6), "a tensor is neither an input nor a weight: make it with zoo.functional.constant"),
    (lambda m, x, mask, past: x + m.table, "a tensor is neither an input nor a weight"),
    (lambda m, x, mask, past: x + m.state_dict()["weight"][0], "weight is read past its module, as from state_dict(): read it as an attribute, such as self.weight"),
    (lambda m, x, mask, past: torch.cat([*x]), "cannot be iterated"),
    (lambda m, x, mask, past: x[mask], "TypeError: indexing with a tensor or a list is not traced: use F.embedding"),
    (lambda m, x, mask, past: x * float(mask.sum()), "TypeError: float() argument"),
    (lambda m, x, mask, past: x / (x.shape[1] / 2), "dividing two sizes must give an integer: use //"),
    (lambda m, x, mask, past: x * x.shape[1] ** 0.5, "pow of a size must give an integer"),
    (lambda m, x, mask, past: F.linear(x, m.weight[None, :5]), "a linear layer expects 5 input features, got 6"),
    (lambda m, x, mask, past: x + past, "do not broadcast"),
    (lambda m, x, mask, past: x.reshape(5, -1), "cannot reshape"),
    (lambda m, x, mask, past: nn.Linear(6, 6)(x), "a tensor is neither an input nor a weight"),
    (lambda m, x, mask, past: 1 // 0, "ZeroDivisionError: integer division or modulo by zero"),
]  # fmt: skip


@pytest.mark.parametrize(("function", "reason"), UNTRACEABLE)
def test_untraceable_code_is_reported_with_module_and_line(function: Callable[..., Any], reason: str) -> None:
    with pytest.raises(UntraceableError) as error:
        trace(function)
    first, line, remedy = str(error.value).splitlines()
    assert first.startswith("inner cannot be traced: ")
    assert reason in first
    number = function.__code__.co_firstlineno
    assert f"{__file__}:" in line
    assert int(line.split(f"{__file__}:")[1].split(":")[0]) - number in (0, 1)
    assert (
        remedy == "  Remove Python control flow on tensor values, or export through torch.onnx (via torch)."
    )


def test_tensors_made_of_sizes_are_followed_without_being_made() -> None:
    graph, symbols = trace(lambda m, x, mask, past: torch.ones((x.shape[0], x.shape[1], x.shape[1], 4096)))
    made = next(node for node in graph.nodes if node.target is torch.ones)
    shapes = [info.shape for info in made.meta["info"]]
    assert [symbols.name(pair) for pair in zip(*shapes, strict=True)] == ["B", "T", "T", 4096]


def test_a_failing_trace_leaves_the_model_as_it_was() -> None:
    model = Outer(lambda m, x: x.undefined() if isinstance(x, fx.Proxy) else x + 1)
    given = (INPUTS[0],)
    with pytest.raises(UntraceableError):
        Tracer(model, Symbols.of(given, ())).run(lambda m, v: {"y": m(v["x"])}, given)
    torch.testing.assert_close(model(torch.zeros(1, 1, 6)), torch.ones(1, 1, 6))


@pytest.mark.filterwarnings("ignore:`torch.jit")
def test_modules_of_torchscript_are_refused_and_others_left_as_they_were() -> None:
    compiled = torch.jit.script(nn.Identity())
    model, given = nn.Sequential(Inner(lambda m, x: x * m.weight), compiled, nn.Linear(6, 6)), INPUTS[:1]
    with pytest.raises(UntraceableError, match="a module of TorchScript has no Python code"):
        Tracer(model, Symbols.of(given, ())).run(lambda m, v: {"y": m(v["x"])}, given)
    assert not any("forward" in vars(model[place]) for place in (0, 2))
    assert model(torch.zeros(1, 1, 6)).shape == (1, 1, 6)


def test_an_error_after_a_caught_one_names_the_module_that_raised_it() -> None:
    def function(m: Any, x: Any, mask: Any, past: Any) -> Any:
        try:
            m.failing(x)
        except UnicodeError:
            return m.outer(x * 2)

    def fails(m: Any, x: Any) -> Any:
        raise UnicodeError

    model = Outer(function)
    model.inner.add_module("failing", Inner(fails))
    model.inner.add_module("outer", Inner(lambda m, x: x))
    call = lambda model, values: {"y": model(*values.values())}  # noqa: E731
    graph = Tracer(model, Symbols.of(INPUTS, ())).run(call, INPUTS)
    (node,) = (node for node in graph.nodes if node.op == "call_function")
    assert node.meta["within"] == ("", "inner")
    model.inner.outer = Inner(lambda m, x: x.undefined())
    with pytest.raises(UntraceableError, match=r"^inner\.outer cannot be traced"):
        Tracer(model, Symbols.of(INPUTS, ())).run(call, INPUTS)
    model.inner.outer = Inner(lambda m, x: x)
    model.inner.function = lambda m, *values: function(m, *values) + bool(values[0])
    with pytest.raises(UntraceableError, match=r"^inner cannot be traced"):
        Tracer(model, Symbols.of(INPUTS, ())).run(call, INPUTS)


def test_weights_that_are_not_read_as_attributes_are_weights() -> None:
    for read in (lambda m: next(m.parameters()), lambda m: m._parameters.get("weight")):
        graph, _ = trace(lambda m, x, mask, past: x * read(m))  # noqa: B023
        assert [node.target for node in graph.nodes if node.op == "get_attr"] == ["inner.weight"]


def test_threads_trace_one_model_in_turn() -> None:
    both = Barrier(2)

    def function(m: Any, x: Any) -> Any:
        with suppress(BrokenBarrierError):
            both.wait(0.05)  # until the other is in the same module, if that can be
        return x * m.weight

    model, given = Outer(function), INPUTS[:1]
    call = lambda model, values: {"y": model(values["x"])}  # noqa: E731
    with ThreadPoolExecutor(2) as threads:
        graphs = list(threads.map(lambda _: Tracer(model, Symbols.of(given, ())).run(call, given), range(2)))
    assert [len(graph.nodes) for graph in graphs] == [4, 4]
    assert "forward" not in vars(model.inner)
    assert type(model.inner._parameters) is dict


def test_a_thread_runs_a_model_that_another_traces() -> None:
    x = torch.ones(1, 1, 6)

    def function(m: Any, x: Any) -> Any:
        return x * m.weight + 1

    def call(model: Any, values: Any) -> Any:
        y = model(values["x"])
        with ThreadPoolExecutor(1) as thread:
            torch.testing.assert_close(thread.submit(model, x).result(), torch.full((1, 1, 6), 2.0))
        return {"y": y}

    graph = Tracer(Outer(function), Symbols.of(INPUTS[:1], ())).run(call, INPUTS[:1])
    assert len(graph.nodes) == 5


def test_all_architectures_trace_without_an_unnamed_size_in_their_outputs() -> None:
    for spec in (gpt2(), bert(), t5()):
        model = assemble(spec)
        for task in tasks(model, spec):
            graph = trace_and_lower(model, task, TARGETS["portable"])
            for output in graph.outputs:
                assert output.dims
                assert None not in output.dims, output.name


def test_what_a_forward_registers_is_gone_after_the_trace() -> None:
    def registers(m: Any, x: Any, *rest: Any) -> Any:
        m.added, m.count = nn.ReLU(), 3
        m.register_buffer("more", torch.ones(1))
        m.register_parameter("other", nn.Parameter(torch.ones(1)))
        del m.weight
        return x + 1

    model, symbols = Outer(registers), Symbols.of(INPUTS, ())
    before = [name for name, _ in (*model.named_modules(), *model.named_parameters(), *model.named_buffers())]
    Tracer(model, symbols).run(lambda m, values: {"y": m(*values.values())}, INPUTS)
    after = [name for name, _ in (*model.named_modules(), *model.named_parameters(), *model.named_buffers())]
    assert after == before
    assert not hasattr(model.inner, "count")
