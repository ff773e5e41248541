"""Bounds on devices: time, what bounds it, how much fits; and the machine at hand as measured."""

from __future__ import annotations

import pytest
import torch

import zoo
from specs.base.errors import UserError
from specs.files.device import Device
from specs.language.load import load
from specs.model.model import Model
from tests.zoo.tiny import BLOCK, bert, gpt2
from zoo.reports.devices import this_device
from zoo.reports.lengths import Lengths
from zoo.reports.report import Report, report
from zoo.reports.roofline import Demand, Room, roofline

DEVICE = Device(name="some", memory=1000.0, bandwidth=10.0, flops={"fp32": 50.0, "fp16": 100.0})


def room(need: int = 0, longest: int | None = None) -> Room:
    return Room(lambda batch, length: need + batch * length * 10, 1, 20, longest)


def test_the_slower_resource_bounds_a_call() -> None:
    demands = {"prefill": Demand(2000, 10, 5), "step": Demand(100, 40, 1)}
    found = roofline(DEVICE, "fp16", demands, room()).roofs
    assert found is not None
    assert (found["prefill"].bound, found["prefill"].seconds, found["prefill"].tokens_per_second) == (
        "compute",
        20.0,
        0.25,
    )
    assert (found["step"].bound, found["step"].seconds) == ("memory", 4.0)
    assert demands["step"].intensity == 2.5


def test_a_precision_that_a_device_lacks_is_computed_in_float32() -> None:
    demand = {"step": Demand(100, 1, 1)}
    wide = roofline(DEVICE, "bf16", demand, room()).roofs
    assert wide is not None
    assert wide["step"].seconds == 2.0
    halves = Device(name="half", memory=1000.0, bandwidth=10.0, flops={"fp16": 100.0})
    assert roofline(halves, "fp32", demand, room()).roofs is None


def test_the_largest_batch_and_context_are_the_last_that_fit() -> None:
    found = roofline(DEVICE, "fp16", {}, room(need=100))
    assert (found.count, found.largest_batch, found.largest_context) == (1, 4, 90)
    assert roofline(DEVICE, "fp16", {}, room(longest=64)).largest_context == 64


def test_several_devices_share_a_model_too_large_for_one() -> None:
    demand = {"step": Demand(100, 400, 1)}
    found = roofline(DEVICE, "fp16", demand, room(need=2500))
    assert found.roofs is not None
    assert (found.count, found.largest_batch) == (3, 2)
    assert found.roofs["step"].seconds == pytest.approx(400 / 30)
    this = roofline(DEVICE.model_copy(update={"name": "this"}), "fp16", demand, room(need=2500))
    assert (this.count, this.largest_batch, this.largest_context) == (1, 0, 0)


def of(spec: Model, precision: str = "fp32", **sizes: int) -> Report:
    return report(spec, Lengths.of(spec, **sizes), precision)


def test_a_step_reads_its_weights_and_its_cache_once() -> None:
    spec = gpt2()
    found = of(spec, batch=3, past=7)
    demand = found.demand("step")
    model = zoo.build(spec)
    positions = dict(model.named_parameters())[
        "embedding.position.table.weight"
    ].nbytes  # looked up row by row
    per_token = 2 * 2 * 8 * 4
    assert (
        demand.bytes
        == sum(weight.nbytes for weight in model.parameters()) - positions + 3 * (7 + 1) * per_token
    )
    assert demand.tokens == 3
    assert demand.flops == found.costs.stages["step"].total.at(B=3, P=7)


def test_what_fits_is_weights_and_caches_and_scores() -> None:
    spec = gpt2()
    found = of(spec)
    weights = sum(weight.nbytes for weight in zoo.build(spec).parameters())
    assert found.need(3, 10) == weights + 3 * 10 * 2 * 2 * 8 * 4 + 3 * 20 * 4
    encoder = of(bert())
    assert (
        encoder.need(2, 5)
        > encoder.need(1, 5)
        > sum(weight.nbytes for weight in zoo.build(bert()).parameters())
    )


def mixture(top_k: int) -> Model:
    expert = {"kind": "mlp", "hidden": 12, "activation": "relu"}
    router = {"normalize": False}
    feed_forward = {"kind": "mixture", "experts": 4, "top_k": top_k, "expert": expert, "router": router}
    return gpt2(decoder={"layers": 2, "block": {**BLOCK, "feed_forward": feed_forward}})


def test_a_step_reads_the_experts_that_its_tokens_choose() -> None:
    one, every = (of(mixture(top_k), past=0).demand("step") for top_k in (1, 4))
    expert = 2 * (8 * 12 + 12 + 12 * 8 + 8) * 4  # of both layers, in bytes
    assert every.bytes - one.bytes == 3 * expert
    assert of(mixture(1), batch=64, past=0).demand("step").bytes > one.bytes + 2.9 * expert
    assert every.flops > one.flops


def test_quantized_weights_are_read_in_their_stored_size() -> None:
    spec = gpt2()
    plain = of(spec, past=0).demand("step").bytes
    weights = {"int4": of(spec).weights["fp32"] // 8}
    packed = report(spec, Lengths.of(spec, past=0), "int4", weights=weights)
    cached = 2 * 2 * 8 * 4
    assert packed.demand("step").bytes - cached // 2 == (plain - cached) // 8
    assert packed.dtype == torch.float16


def test_an_unknown_precision_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UserError, match="Precision 'fp15' is unknown\n  Did you mean 'fp16'"):
        of(gpt2(), "fp15")


@pytest.mark.slow
def test_the_machine_at_hand_is_measured() -> None:
    found = this_device("fp32")
    assert found.name == "this"
    assert found.summary.endswith("as measured")
    assert 1e8 < found.bandwidth < 1e14
    assert 1e8 < found.flops["fp32"] < 1e16
    assert found.memory > 1e8


def test_the_public_report() -> None:
    found = zoo.report(load("gpt2"), batch=2, length=64, devices=["t4"])
    data = found.as_dict()
    assert data["sizes"] == {"batch": 2, "length": 64, "past": 64}
    assert data["parameters"]["total"] == 124439808
    assert data["stages"]["prefill"]["at"]["matmul"] == found.costs.stages["prefill"].total.at(B=2, T=64)
    assert data["devices"][0]["device"]["name"] == "t4"
    assert data["memory"]["cache"]["bytes"] == 2 * 64 * 12 * 2 * 768 * 2


def test_states_of_constant_size_fit_at_every_length() -> None:
    found = of(load("mamba2-130m", ["decoder.layers=1"]))
    assert all(each.fits_any_context for each in found.rooflines)
    assert not any(each.fits_any_context for each in of(load("gpt2")).rooflines)
