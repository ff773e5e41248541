"""Gates as operations of their own: norms times an activation, the decay and update rate of delta rules, convolutions."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from exporters.target.targets import TARGETS
from tests.exporters.graphs import Module, assert_same, graph_of
from zoo import functional

FUSED = ["cuda"]
LENGTHS = [{"B": batch, "T": length} for batch, length in ((1, 1), (2, 7), (3, 65))]


def operations(model: Any) -> Counter[str]:
    """The operations of a graph, those inside others included."""
    return Counter(node.op_type for node in model.graph.all_nodes())


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("activation", [F.silu, torch.sigmoid])
@pytest.mark.parametrize("inputs", [("f B T 6", "f B T 6"), ("f B T 2 6", "f B T 2 6")])
def test_gated_norms(inputs: tuple[str, str], activation: Any, target: str) -> None:
    def gated(x: Any, gate: Any, weight: Any) -> Any:
        return F.rms_norm(x, (6,), weight, 1e-3) * activation(gate)

    model = assert_same(gated, *inputs, "f 6", sizes=LENGTHS, target=target)
    assert operations(model)["GatedRMSNorm"] == (target in FUSED)


def test_gates_of_another_shape_or_order_stay_as_they_are() -> None:
    def broadcast(x: Any, gate: Any, weight: Any) -> Any:
        return F.rms_norm(x, (6,), weight, 1e-3) * F.silu(gate[:, :, :1])

    def before(x: Any, gate: Any, weight: Any) -> Any:
        return F.rms_norm(x * F.silu(gate), (6,), weight, 1e-3)

    for function in (broadcast, before):
        model = assert_same(function, "f B T 6", "f B T 6", "f 6", sizes=LENGTHS, target="cuda")
        assert operations(model)["GatedRMSNorm"] == 0


HEADS = ("f B 2 T 6", "f B 2 T 6", "f B 4 T 5", "f B T 4", "f B T 4", "f 4", "f 4", "f B 4 6 5", "i B T")


def ruled(
    query: Any, key: Any, value: Any, steps: Any, update: Any, bias: Any, rates: Any, state: Any, mask: Any
) -> Any:
    """A delta rule with the gates of Qwen3-Next, and padding."""
    key = functional.unit_length(key, 1e-6)
    decay = -rates.exp() * F.softplus(steps + bias)
    gates = decay.transpose(1, 2), torch.sigmoid(update).transpose(1, 2)
    return functional.gated_delta_rule(query / 8, key, value, *gates, state, (mask > -3).to(torch.int64))


@pytest.mark.parametrize("target", ["cuda", "cpu", "webgpu"])
def test_the_gates_of_delta_rules(target: str) -> None:
    found = operations(assert_same(ruled, *HEADS, sizes=LENGTHS, target=target))
    assert found["LinearAttentionGate"] == (target in FUSED)
    assert found["Sigmoid"] == found["Softplus"] == (target not in FUSED)


def test_an_update_in_another_dtype_stays_apart() -> None:
    halves = [text.replace("f ", "h ") if place == 4 else text for place, text in enumerate(HEADS)]
    found = operations(graph_of(Module(ruled), *halves, target="cuda"))
    assert (found["LinearAttentionGate"], found["Sigmoid"]) == (1, 1)


@pytest.mark.parametrize("target", ["cuda", "cpu", "webgpu"])
def test_the_activations_of_convolutions(target: str) -> None:
    """Also where padding was moved out of the way in between."""

    def activated(x: Any, weight: Any, state: Any, mask: Any) -> Any:
        real = (mask > -3).to(torch.int64)
        y, last = functional.causal_convolution(x, weight, None, state, functional.token_alignment(real, 4))
        return F.silu(y) * real[:, :, None], last

    inputs = ("f B T 6", "f 6 4", "f B 6 3", "i B T")
    found = operations(assert_same(activated, *inputs, sizes=LENGTHS, target=target))
    assert found["CausalConvWithState"] == 1
    assert found["Sigmoid"] == (target not in FUSED)


def test_a_convolution_with_another_use_keeps_its_values() -> None:
    def twice(x: Any, weight: Any, state: Any) -> Any:
        y, last = functional.causal_convolution(x, weight, None, state, None)
        return F.silu(y) + y, last

    assert (
        operations(assert_same(twice, "f B T 6", "f 6 4", "f B 6 3", sizes=LENGTHS, target="cuda"))["Sigmoid"]
        == 1
    )
