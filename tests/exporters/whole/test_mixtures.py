"""Mixtures of experts in every precision, for every target: which operation computes them, and what catches mistakes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from exporters.export import export
from exporters.graph.emitters import every_expert, expert_loop, mixture
from exporters.graph.emitters.expert_matrices import ExpertWeights
from exporters.graph.emitters.mixture_call import MixtureCall
from exporters.graph.emitters.registry import Operand
from exporters.graph.fusing.mixtures import activation_attributes
from exporters.graph.precisions import PRECISIONS
from exporters.graph.proto_bodies import bodies
from exporters.graph.quantization import interleaved
from exporters.graph.quantization.matrix import QuantizedMatrix
from exporters.steps.options import ExportOptions
from exporters.target.targets import TARGETS
from exporters.verification.result import VerificationError
from tests.exporters.mixtures import D_MODEL, MIXTURES
from tests.exporters.models import GRAPH_ONLY
from tests.exporters.reduced_presets import filled
from tests.thinned import one_in
from zoo.core.tensors import weight_tensors
from zoo.weights.blocks import Quantized

Patch = pytest.MonkeyPatch

QUANTIZED = ("int8", "int4", "q4f16")
UNFIT = {
    "gelu": "MoE: decoder.blocks.0.feed_forward.experts: gated experts with activation gelu_tanh",
    "weighted inputs": "MoE: decoder.blocks.0.feed_forward.experts: experts whose input is weighted",
    "multiplied": "MoE: decoder.blocks.0.feed_forward.experts: gated experts with a multiplier of the gate",
}
ODD = "QMoE: decoder.blocks.0.feed_forward.experts: no block divides the widths 32 and 72 of experts"

GRID = [
    (name, target, precision)
    for name in MIXTURES
    for target in TARGETS
    for precision in PRECISIONS
    if precision not in TARGETS[target].unsupported_precisions
]


def expected_operation(name: str, target: str, precision: str) -> str:
    """What is to compute the mixtures of a model: no operation of its own where every size is static."""
    if TARGETS[target].static_shapes:
        return "none"
    if target == "webgpu":
        return "QMoE" if precision in QUANTIZED and name not in {*UNFIT, "odd"} else "Scan"
    if target not in ("cpu", "cuda") or name in UNFIT:
        return "Scan"
    if target == "cpu" and precision == "bf16":
        return "Scan"  # the processor's MoE knows no bfloat16
    return "QMoE" if precision in QUANTIZED and name != "odd" else "MoE"


def expected_reasons(name: str, target: str, precision: str) -> list[str]:
    """Why no operation of the target computes them as they are."""
    if name in UNFIT and ((target == "cpu" and precision != "bf16") or target == "cuda"):
        return [UNFIT[name]]
    return [ODD] if name == "odd" and precision in QUANTIZED else []


@one_in(116)
@pytest.mark.parametrize(("name", "target", "precision"), GRID)
def test_a_mixture_is_exported_and_verified(name: str, target: str, precision: str, tmp_path: Path) -> None:
    result = export(MIXTURES[name], tmp_path / "x", ExportOptions.of(target=target, precision=precision))
    found, reasons = Counter[str](), []
    for graph, facts in result.graphs.items():
        model = onnx.load(tmp_path / "x" / graph, load_external_data=False)
        onnx.checker.check_model(tmp_path / "x" / graph)
        found.update(node.op_type for node in model.graph.node)
        reasons += facts["unfused"]
    layers = 2 if name == "encoder-decoder" else 1
    expected = expected_operation(name, target, precision)
    assert {each: found[each] for each in ("MoE", "QMoE", "Scan")} == {
        each: layers * (each == expected) for each in ("MoE", "QMoE", "Scan")
    }
    if expected == "none":
        assert not found.keys() & {"NonZero", "If", "Loop", "Compress"}
    assert [each for each in reasons if "MoE" in each] == expected_reasons(name, target, precision)


@one_in(2)
@pytest.mark.parametrize(("name", "target"), [("swiglu", "cpu"), ("gelu", "portable")])
def test_experts_have_symmetric_blocks_where_other_matrices_have_zero_points(
    name: str, target: str, tmp_path: Path
) -> None:
    export(MIXTURES[name], tmp_path / "x", ExportOptions(target=target, precision="int4", asymmetric=True))
    model = onnx.load(tmp_path / "x/model.onnx", load_external_data=False)
    zeros = [each.name for each in model.graph.initializer if each.name.endswith("zero_point")]
    assert zeros
    assert not any(".experts." in each for each in zeros)


def test_experts_of_quantized_models_are_stored_in_their_blocks(tmp_path: Path) -> None:
    for target in ("cpu", "portable"):
        for precision, bits in (("int8", 8), ("int4", 4)):
            place = tmp_path / target / precision
            export(MIXTURES["gpt-oss"], place, GRAPH_ONLY.changed(target=target, precision=precision))
            model = onnx.load(place / "model.onnx", load_external_data=False)
            codes = {
                each.name: list(each.dims)
                for each in model.graph.initializer
                if each.name.endswith(".blocks") and ".experts." in each.name
            }
            columns = [6, 64, D_MODEL * bits // 8]
            gates = {"gate_up": [6, 128, columns[2]]} if target == "cpu" else {"gate": columns, "up": columns}
            assert {name.split(".")[-2]: dims for name, dims in codes.items()} == {
                **gates,
                "down": [6, D_MODEL, 64 * bits // 8],
            }


def test_a_loop_computes_an_expert_only_where_a_token_chose_it(tmp_path: Path) -> None:
    export(MIXTURES["swiglu"], tmp_path / "x", GRAPH_ONLY.changed(target="portable"))
    model = onnx.load(tmp_path / "x/model.onnx", load_external_data=False)
    (scan,) = (node for node in model.graph.node if node.op_type == "Scan")
    outer, *inner = bodies(scan)
    assert "Gemm" not in {node.op_type for node in outer.node}
    taken, other = (
        attribute.g for node in outer.node if node.op_type == "If" for attribute in node.attribute
    )
    products = [sum(node.op_type == "Gemm" for node in body.node) for body in (taken, other)]
    assert sorted(products) == [0, 3]
    assert len(inner) == 2


@pytest.mark.slow
def test_an_expert_that_overflows_counts_only_where_it_is_chosen(tmp_path: Path) -> None:
    spec = MIXTURES["gpt-oss"]
    weights = {name: tensor.detach().clone() for name, tensor in weight_tensors(filled(spec))}
    for name, values in weights.items():
        if name.endswith("router.bias"):
            values[5] = -1e3
        elif name.endswith("experts.up.weight"):
            values[5] *= 3e4 / values[5].abs().max()
    save_file(weights, tmp_path / "w.safetensors")
    options = ExportOptions(target="tensorrt", precision="fp16", weights=str(tmp_path / "w.safetensors"))
    assert export(spec, tmp_path / "x", options).verification is not None


# ------------------------------------------------------------------------------------------------ sabotage


def gate_and_up_swapped(patch: Patch) -> None:
    patch.setattr(MixtureCall, "gate_first", property(lambda self: [*self.into]))
    for module in (expert_loop, every_expert):
        inner = module._inner
        patch.setattr(module, "_inner", lambda each, values, inner=inner: inner(each, values[::-1]))


def experts_in_reverse(patch: Patch) -> None:
    def reversed_choice(call: Any, x: Any, weights: Any, chosen: Operand, logits: Any, *rest: Any) -> Any:
        turned = call.op("Sub", call.graph.constant(5, torch.int64), chosen.value)
        return MixtureCall(call, x, weights, replace(chosen, value=turned), None, *rest)

    patch.setattr(mixture, "MixtureCall", reversed_choice)


def no_bias_of_down(patch: Patch) -> None:
    patch.setattr(
        mixture,
        "operands",
        lambda parts: [ExpertWeights(weight, bias if len(parts) > 1 else None) for weight, bias in parts],
    )


def scales_of_an_expert_three_hundredths_too_large(patch: Patch) -> None:
    original = QuantizedMatrix._tensors

    def tensors(self: QuantizedMatrix, part: Quantized) -> Any:
        scales = part.scales.clone()
        if "experts" in self.names[0]:
            scales[: len(scales) // 6] *= 1.03
        return original(self, Quantized(part.codes, scales, part.zeros))

    patch.setattr(QuantizedMatrix, "_tensors", tensors)


def rows_of_the_next_expert(patch: Patch) -> None:
    patch.setattr(
        interleaved, "groups", lambda pieces, size, groups=interleaved.groups: [*groups(pieces, size)][::-1]
    )


def no_limit(patch: Patch) -> None:
    original = activation_attributes

    def without(inner: nn.Module) -> Any:
        return {key: value for key, value in (original(inner) or {}).items() if key != "swiglu_limit"}

    patch.setattr(mixture, "activation_attributes", without)


def sums_as_they_are(patch: Patch) -> None:
    """MoE's weights, normalized, are not multiplied by their sum."""
    patch.setattr(mixture, "_times_total", lambda experts, mixed, parts: mixed)


def weights_on_the_output(patch: Patch) -> None:
    patch.setattr(mixture, "MixtureCall", lambda *given: replace(MixtureCall(*given), of_input=False))


def every_expert_alike(patch: Patch) -> None:
    """All experts count, and not the chosen ones alone."""
    chosen = every_expert._chosen

    def of_all(experts: MixtureCall) -> Any:
        which, shares = chosen(experts)
        one = experts.call.graph.constant(1.0, experts.dtype)
        return which, experts.call.op("Max", shares, experts.call.op("Mul", one, one))

    patch.setattr(every_expert, "_chosen", of_all)


def one_choice_of_each_row(patch: Patch) -> None:
    reduced = every_expert._chosen

    def first(experts: MixtureCall) -> Any:
        which, shares = reduced(experts)
        ints = experts.call.graph.ints
        return which, experts.call.op("Mul", shares, experts.call.op("Squeeze", experts.call.op(
            "Slice", which, ints(0), ints(1), ints(1)), ints(1)))  # fmt: skip

    patch.setattr(every_expert, "_chosen", first)


EVERYWHERE = [
    ("cpu", "fp32"), ("cpu", "int8"), ("cpu", "int4"), ("portable", "fp32"), ("portable", "int4"),
    ("tensorrt", "fp32"), ("tensorrt", "int8"), ("tensorrt", "int4"),
]  # fmt: skip
SABOTAGE: list[tuple[Callable[[Patch], None], str, tuple[str, str]]] = [
    *((gate_and_up_swapped, "gpt-oss", place) for place in EVERYWHERE),
    *((experts_in_reverse, "gpt-oss", place) for place in EVERYWHERE),
    *((no_bias_of_down, "gpt-oss", place) for place in EVERYWHERE),
    *(
        (scales_of_an_expert_three_hundredths_too_large, "gpt-oss", place)
        for place in EVERYWHERE
        if place[1] != "fp32"
    ),
    *((weights_on_the_output, "weighted inputs", place) for place in EVERYWHERE),
    (rows_of_the_next_expert, "swiglu", ("cpu", "fp32")),
    *((no_limit, "gpt-oss", place) for place in EVERYWHERE[:3]),
    *((every_expert_alike, "swiglu", place) for place in EVERYWHERE[5:]),
    *((one_choice_of_each_row, "relu", place) for place in EVERYWHERE[5:]),
    *((sums_as_they_are, name, ("cpu", "fp32")) for name in ("sigmoid", "relu")),
]


@one_in(56)
@pytest.mark.parametrize(
    ("sabotage", "name", "place"), SABOTAGE, ids=[f"{s.__name__}-{n}-{'-'.join(p)}" for s, n, p in SABOTAGE]
)
def test_sabotage_of_a_mixture_is_caught(
    sabotage: Callable[[Patch], None], name: str, place: tuple[str, str], tmp_path: Path, monkeypatch: Patch
) -> None:
    sabotage(monkeypatch)
    with pytest.raises(VerificationError):
        export(MIXTURES[name], tmp_path / "x", ExportOptions.of(target=place[0], precision=place[1]))
    assert not list(tmp_path.iterdir())
