"""Every operation has one entry, and its entry is what autograd and torch do."""

from __future__ import annotations

import operator
import weakref
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from exporters.graph.emitters.registry import emitters
from specs.base.errors import PluginError
from specs.language.load import load
from specs.model.model import Model
from tests.exporters.reduced_presets import structures
from tests.thinned import one_in
from tests.whole_specs import specs_of_seed
from zoo import functional
from zoo.builder import assemble
from zoo.components.spans import LstmLayer
from zoo.core.reduced import fewer_layers
from zoo.functional import channel_recurrence, matrix_recurrence
from zoo.ops import operations, register_operation, target_name
from zoo.ops.flops import no_flops
from zoo.ops.operation import CALLS
from zoo.ops.saved import saves_nothing
from zoo.ops.tokens import separate
from zoo.reports.flops import operations_without_entry
from zoo.reports.saved_tensors import saved_tensors, trained_values
from zoo.tracing.sizing import SizedGraph
from zoo.tracing.symbols import Placeholder, Symbols
from zoo.tracing.task import Task
from zoo.tracing.tasks import tasks, tasks_with_merged_decoder, tasks_with_static_cache, training_task
from zoo.tracing.tracer import Tracer


def test_every_operation_has_an_emitter_and_every_emitter_an_operation() -> None:
    assert emitters().keys() == operations().keys()


def without_entry(model: Any, task: Task) -> tuple[str, ...]:
    graph = Tracer(model, task.symbols(())).run(task.call, task.inputs)
    return operations_without_entry(node for node in graph.nodes if node.op in CALLS)


def assert_entries(spec: Model) -> None:
    model = assemble(spec)
    assert without_entry(model.train(), training_task(spec)) == ()
    model.eval()
    deployed = [*tasks(model, spec), *tasks_with_merged_decoder(model, spec)]
    if spec.decoder is not None:
        deployed += tasks_with_static_cache(model, spec, 8)
    for task in deployed:
        assert without_entry(model, task) == (), task.name


@one_in(20)
@pytest.mark.parametrize("name", structures())
def test_every_call_of_a_preset_has_an_entry(name: str) -> None:
    assert_entries(fewer_layers(load(name), layers=1))


@one_in(3)
@pytest.mark.parametrize("number", range(12))
def test_every_call_of_a_random_spec_has_an_entry(number: int, drawn: list[Model]) -> None:
    assert_entries(drawn[number])


@pytest.fixture(scope="module")
def drawn() -> list[Model]:
    return specs_of_seed(7, 12)


def test_an_operation_has_one_entry() -> None:
    with pytest.raises(PluginError, match="operation linear already has an entry"):
        register_operation(
            F.linear, shape=lambda x, *rest: x, flops=no_flops, saved=saves_nothing, mixing=separate
        )


def test_a_name_is_that_of_a_method_or_function() -> None:
    assert [target_name(target) for target in ("sum", torch.sum, operator.add)] == ["sum", "sum", "add"]


# --------------------------------------------------------------------------------------- against autograd


class Applied(nn.Module):
    """A function of a trained value, x plus a parameter, which saves nothing itself."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function
        self.offset = nn.Parameter(torch.randn(6))
        self.weight = nn.Parameter(torch.randn(5, 6))
        self.vector = nn.Parameter(torch.randn(6))
        self.experts = nn.Parameter(torch.randn(4, 5, 6))
        self.experts_bias = nn.Parameter(torch.randn(4, 5))
        self.lstm = LstmLayer(6)

    def forward(self, x: Any) -> Any:
        return self.function(self, x + self.offset)


INPUTS = (Placeholder("x", torch.float32, ("B", "T", 6)),)
SIZES = {"B": 2, "T": 3}


def entry_bytes(model: Applied) -> int:
    """Bytes saved by the entries' rules, without the outputs."""
    graph = Tracer(model, Symbols.of(INPUTS, ())).run(lambda m, values: {"y": m(values["x"])}, INPUTS)
    (infos,) = SizedGraph(graph, INPUTS, [SIZES]).by_point
    saved = saved_tensors(graph, trained_values(graph), fused=False)
    return sum(each.bytes_at(infos) for each in saved if each.by.op != "output")


class Packed:
    """A tensor that autograd saves, as long as a gradient needs it."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


def autograd_bytes(model: Applied) -> int:
    """Bytes that autograd saves for the gradient of the result, each memory once, without parameters."""
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    saved: weakref.WeakSet[Packed] = weakref.WeakSet()

    def pack(tensor: Tensor) -> Packed:
        packed = Packed(tensor)
        saved.add(packed)
        return packed

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda packed: packed.tensor):
        result = model(torch.rand(2, 3, 6) + 0.5)
    assert result.requires_grad
    storages = [each.tensor.untyped_storage() for each in saved if each.tensor.ndim]
    found = {storage.data_ptr(): storage.nbytes() for storage in storages}
    return sum(size for place, size in found.items() if place not in own)


def chosen(x: Any) -> Any:
    """An expert for each row, B T 6 -> B T."""
    return (x.sum(-1) * 0).long()


def real(x: Any) -> Any:
    """A mask of real tokens: B T 6 -> B T."""
    return (x.sum(-1) * 0).detach() + 1


def linear_attention(
    groups: int, masked: bool, trains_state: bool, m: Applied, x: Any, *, fixed: bool = False
) -> Any:
    """Three heads of width 2, in chunks of 2 tokens."""
    heads = x.unflatten(-1, (3, 2)).transpose(1, 2)  # B 3 T 2
    query, key, decay = heads[:, :groups] + 1, heads[:, :groups] + 2, heads.sum(-1) + 3
    given = real(x) if masked else None
    if fixed:
        decay = functional.constant((-1.0,), x)[None, :, None].expand(x.shape[0], 3, x.shape[1])
    out, state = functional.linear_attention(query, key, heads, decay, None, given)
    return out.sum() + state.sum() if trains_state else out.sum() + 0


def diagonal_recurrence(masked: bool, m: Applied, x: Any) -> Any:
    out, state = functional.diagonal_recurrence(x, x + 1, None, real(x) if masked else None)
    return out.sum() + state.sum()


def selective_scan(masked: bool, m: Applied, x: Any) -> Any:
    given = real(x) if masked else None
    out, state = functional.selective_scan(
        x, x + 1, m.weight.transpose(0, 1) + 0, x[..., :5] + 0, x[..., 1:], None, given
    )
    return out.sum() + state.sum()


def by_delta_rule(x: Any, per_channel: bool) -> Any:
    """The gated delta rule of two heads, whose queries, keys, values and gates are parts of x, B T 6."""
    heads = x.unsqueeze(1)  # B 1 T 6
    key, value = heads[..., :2], torch.cat((heads[..., 2:], heads[..., :4]), 1)  # B 1 T 2, B 2 T 4
    gate = -value[..., :2] if per_channel else -value[..., 0]
    mixed, state = functional.gated_delta_rule(key, key * 2, value, gate, value[..., 1], None, None)
    return mixed.sum() + state.sum()


def by_generalized_rule(x: Any) -> Any:
    """The generalized delta rule of two heads, whose inputs are parts of x, B T 6."""
    heads = torch.stack((x, x + 1), 1)  # B 2 T 6
    query, key, value = heads[..., :2], heads[..., 2:4], heads[..., 1:5]
    decay, recall, erase = -key, heads[..., 4:], heads[..., 1:3]
    mixed, state = functional.generalized_delta_rule(query, key, value, decay, recall, erase, None, None)
    return mixed.sum() + state.sum()


SAVED: dict[str, Callable[[Applied, Any], Any]] = {
    "add": lambda m, x: x + m.vector + 0,
    "neg": lambda m, x: (-x).neg() + 0,
    "mul": lambda m, x: x * m.vector + 0,
    "mul by a number": lambda m, x: x * 3.0 + 0,
    "div": lambda m, x: x / m.vector + 0,
    "pow": lambda m, x: x**3 + 0,
    "where": lambda m, x: torch.where(x > 0, x, -x) + 0,
    "abs": lambda m, x: x.abs() + 0,
    "gelu": lambda m, x: F.gelu(x) + 0,
    "silu": lambda m, x: F.silu(x) + 0,
    "elu": lambda m, x: F.elu(x) + 0,
    "softplus": lambda m, x: F.softplus(x) + 0,
    "relu": lambda m, x: F.relu(x) + 0,
    "sin": lambda m, x: torch.sin(x) + 0,
    "cos": lambda m, x: torch.cos(x) + 0,
    "tanh": lambda m, x: torch.tanh(x) + 0,
    "sigmoid": lambda m, x: torch.sigmoid(x) + 0,
    "exp": lambda m, x: torch.exp(x) + 0,
    "log": lambda m, x: torch.log(x * x + 1) + 0,
    "sqrt": lambda m, x: torch.sqrt(x.exp()) + 0,
    "rsqrt": lambda m, x: torch.rsqrt(x.exp()) + 0,
    "clone": lambda m, x: x.clone() + 0,
    "float": lambda m, x: x.float() + 0,
    "views": lambda m, x: x.transpose(0, 1).unsqueeze(0).flatten(0, 1)[:, 1:].tanh() + 0,
    "split": lambda m, x: torch.cat(x.split(2, -1), 1) + 0,
    "narrow": lambda m, x: x.narrow(1, 1, 2) + 0,
    "cat": lambda m, x: torch.cat((x, x), 1) + 0,
    "stack": lambda m, x: torch.stack((x, x), 1) + 0,
    "sum": lambda m, x: x.sum(-1) + 0,
    "mean": lambda m, x: x.mean(1) + 0,
    "cumsum": lambda m, x: x.cumsum(1) + 0,
    "topk": lambda m, x: x.topk(2)[0] + 0,
    "gather": lambda m, x: x.gather(1, (x * 0).long()) + 0,
    "gather of what was chosen": lambda m, x: torch.gather(x, -1, x.topk(2)[1]) + 0,
    "expert_linear": lambda m, x: functional.expert_linear(x, m.experts, m.experts_bias, chosen(x)) + 0,
    "expert_linear without a bias": lambda m, x: functional.expert_linear(x, m.experts, None, chosen(x)) + 0,
    "expert_linear of a shared row": lambda m, x: (
        functional.expert_linear(x.unsqueeze(2), m.experts, m.experts_bias, x[..., :4].topk(3)[1]) + 0
    ),
    **{
        f"linear_attention of {groups} groups{of}{trained}": partial(
            linear_attention, groups, masked, trains_state
        )
        for groups in (1, 3)
        for masked, of in ((False, ""), (True, " with padding"))
        for trains_state, trained in ((True, ""), (False, ", whose state is not trained"))
    },
    **{
        f"linear_attention of {groups} groups with fixed decays": partial(
            linear_attention, groups, False, True, fixed=True
        )
        for groups in (1, 3)
    },
    **{
        f"{scan.__name__}{of}": partial(scan, masked)
        for scan in (diagonal_recurrence, selective_scan)
        for masked, of in ((False, ""), (True, " with padding"))
    },
    "gated_delta_rule": lambda m, x: by_delta_rule(x, per_channel=False),
    "gated_delta_rule per channel": lambda m, x: by_delta_rule(x, per_channel=True),
    "generalized_delta_rule": lambda m, x: by_generalized_rule(x),
    "lstm": lambda m, x: m.lstm(x, (x.sum((1, 2)) * 0).long() + 2) + 0,
    "token_shift": lambda m, x: functional.token_shift(x, None, None)[0] * m.vector + 0,
    "token_shift beside padding": lambda m, x: (
        functional.token_shift(x, None, functional.token_alignment(x[..., 0] > 0.5, 2))[0] * m.vector + 0
    ),
    "causal_convolution": lambda m, x: (
        functional.causal_convolution(x, m.weight.transpose(0, 1)[:, :3], m.vector, None, None)[0] + 0
    ),
    "causal_convolution beside padding": lambda m, x: (
        functional.causal_convolution(
            x, m.weight.transpose(0, 1)[:, :3], m.vector, None, functional.token_alignment(x[..., 0] > 0.5, 3)
        )[0]
        + 0
    ),
    "softmax": lambda m, x: F.softmax(x, -1) + 0,
    "rms_norm": lambda m, x: F.rms_norm(x, (6,), m.vector) + 0,
    "rms_norm without a weight": lambda m, x: F.rms_norm(x, (6,)).tanh() + 0,
    "normalize": lambda m, x: F.normalize(x, dim=-1) + 0,
    "normalize along tokens": lambda m, x: F.normalize(x, 2.0, 1).tanh() + 0,
    "layer_norm": lambda m, x: F.layer_norm(x, (6,), m.vector) + 0,
    "linear": lambda m, x: F.linear(x, m.weight) + 0,
    "matmul": lambda m, x: x @ x.transpose(1, 2) + 0,
    "no dropout": lambda m, x: F.dropout(x, 0.0).tanh() + 0,
    "rounded": lambda m, x: functional.rounded_to_bfloat16(x) + 0,
}


@one_in(5)
@pytest.mark.parametrize("name", SAVED)
def test_entries_save_the_same_tensors_as_autograd(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_recurrence, "CHUNK", 2)
    monkeypatch.setattr(channel_recurrence, "CHUNK", 2)
    model = Applied(SAVED[name])
    assert entry_bytes(model) == autograd_bytes(model)
