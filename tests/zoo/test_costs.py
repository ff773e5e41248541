"""FLOPs of every stage, against what torch counts while the real modules run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

import zoo
from specs.catalog import preset_names
from specs.errors import UserError
from specs.load import load
from specs.model import Model
from tests.zoo.tiny import bert, gpt2, t5, vit, whisper
from zoo.builder import ZooModel, assemble
from zoo.models.decoder import Decoder
from zoo.models.encoder import Encoder
from zoo.reports.costs import Costs, costs
from zoo.reports.polynomial import Polynomial
from zoo.reports.trace import SYMBOLS, Trace
from zoo.reports.work import products_at
from zoo.tracing.symbols import SUM, Placeholder
from zoo.tracing.tasks import Task, tasks
from zoo.twin import small_inputs, twins

PRESETS = ["bert-base", "gpt2", "t5-small", "llama-3-8b", "gemma2-2b", "mixtral-8x7b", "gpt-oss-20b", "deepseek-v3",
           "vit-base-16", "whisper-tiny", "albert-base-v2", "modernbert-base", "electra-small", "opt-350m"]  # fmt: skip


def smallest(name: str) -> Model:
    """A preset's narrowest twin."""
    *_, (small, _) = twins(small_inputs(load(name)))
    return small


def run(model: ZooModel, task: Task, sizes: dict[str, int]) -> int:
    """What torch counts in one call of a task."""

    def size(dim: int | str) -> int:
        return dim if isinstance(dim, int) else sum(sizes[SYMBOLS[part]] for part in dim.split(SUM))

    def value(name: str, dtype: torch.dtype, shape: tuple[int, ...]) -> Tensor:
        return torch.ones(shape, dtype=dtype) if dtype == torch.int64 else torch.randn(shape, dtype=dtype)

    values = {each.name: value(each.name, each.dtype, tuple(map(size, each.dims))) for each in task.inputs}
    if "token_type_ids" in values:
        values["token_type_ids"] *= 0
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        task.call(model, values)
    return int(counter.get_total_flops())


def stages_of(found: Costs, task: Task, sizes: dict[str, int]) -> dict[str, dict[str, int]]:
    """The stages that one task is, each at its sizes."""
    if task.name == "encoder_model":
        return {"encode": sizes}
    if "forward" in found.stages:
        return {"forward": sizes}
    return {"prefill": {**sizes, "P": 0}, "step": {**sizes, "T": 1}}


def assert_counted(spec: Model, **sizes: int) -> None:
    found, model = costs(spec), zoo.build(spec, weights="random")
    for task in tasks(model, spec):
        for stage, at in stages_of(found, task, sizes).items():
            assert found.stages[stage].total.at(**at) == run(model, task, at), (spec.name, stage)


@pytest.mark.parametrize("name", PRESETS)
def test_matrix_products_are_those_that_torch_counts(name: str) -> None:
    assert_counted(smallest(name), B=3, T=7, P=5, S=6)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(preset_names()) - set(PRESETS)))
def test_matrix_products_of_all_presets_are_those_that_torch_counts(name: str) -> None:
    assert_counted(smallest(name), B=3, T=7, P=5, S=6)


SIZES = st.integers(1, 5)


@settings(max_examples=6, deadline=None)
@given(
    batch=SIZES,
    new=SIZES,
    past=st.integers(0, 5),
    encoder=SIZES,
    architecture=st.sampled_from([bert, gpt2, t5]),
)
def test_costs_hold_at_any_size(batch: int, new: int, past: int, encoder: int, architecture: Any) -> None:
    assert_counted(architecture(), B=batch, T=new, P=past, S=encoder)


@pytest.mark.parametrize("spec", [vit(), whisper()])
def test_images_and_sounds_have_fixed_lengths(spec: Model) -> None:
    found = costs(spec)
    first = next(iter(found.stages.values()))
    assert first.total.symbols == ["B"]
    assert_counted(spec, B=2, T=3, P=4, S=6)


def test_a_whole_large_model_costs_what_torch_counts_on_meta_tensors() -> None:
    spec = load("bert-base")
    model = assemble(spec)
    assert isinstance(model, Encoder)
    ids = torch.ones(2, 128, dtype=torch.int64, device="meta")
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        model(ids)
    assert costs(spec).stages["forward"].total.at(B=2, T=128) == counter.get_total_flops()


def test_every_layer_is_charged_where_it_stands() -> None:
    spec = load("gemma3-270m")
    found = costs(spec).stages["prefill"]
    model = assemble(spec)
    assert isinstance(model, Decoder)
    paths = {path for path, _ in model.named_modules()}
    assert set(found.modules) | set(found.elements) <= paths | {""}
    layers = [found.under(f"decoder.blocks.{layer}") for layer in range(len(model.decoder.blocks))]
    assert layers[0] == layers[-1]
    head, rest = found.under("head"), found.under("embedding")
    assert sum((*layers, head, rest), start=layers[0] * 0) == found.total
    assert str(found.under("head.vocabulary")) == f"{2 * 640 * 262144:,} B T"


def test_layers_of_several_kinds_are_told_apart() -> None:
    found = costs(load("deepseek-v2-lite")).stages["step"]
    dense, routed = found.under("decoder.blocks.0.feed_forward"), found.under("decoder.blocks.1.feed_forward")
    assert dense != routed
    assert found.under("decoder.blocks.2.feed_forward") == routed


def test_a_shared_layer_is_charged_at_each_of_its_places() -> None:
    found = costs(load("albert-base-v2")).stages["forward"]
    assert found.under("encoder.blocks.11") == found.under("encoder.blocks.0")
    assert found.under("encoder").at(B=1, T=1) == 12 * found.under("encoder.blocks.0").at(B=1, T=1)


def test_active_products_are_those_of_the_chosen_experts() -> None:
    spec = load("mixtral-8x7b")
    found = costs(spec).stages["prefill"]
    experts = "decoder.blocks.3.feed_forward.experts"
    assert found.modules[experts] == 4 * found.active[experts]
    router = "decoder.blocks.3.feed_forward.router"
    assert found.modules[router] == found.active[router]
    dense = costs(load("llama-3-8b")).stages["prefill"]
    assert dense.total == dense.total_active


def test_the_encoders_keys_and_values_are_charged_to_encoding() -> None:
    stages = costs(load("t5-small")).stages
    key = "decoder.blocks.5.cross_attention.key"
    assert stages["encode"].under(key) == stages["encode"].under("decoder.blocks.5.cross_attention.value")
    assert not stages["step"].under(key)


def test_element_operations_are_counted_apart() -> None:
    found = costs(gpt2()).stages["prefill"]
    up, inner = "decoder.blocks.0.feed_forward.up", "decoder.blocks.0.feed_forward.inner"
    assert str(found.elements[up]) == "12 B T"  # the bias
    assert str(found.elements["decoder.blocks.0.attention_norm"]) == "56 B T"  # seven steps
    assert found.elements[inner].at(B=1, T=1) == 12
    assert inner not in found.modules


# --------------------------------------------------------------------------------- components that are not the zoo's


class Own(nn.Module):
    """Something that a plugin may compute."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Tensor:
        return self.function(x)


def traced(function: Callable[[Tensor], Tensor]) -> Polynomial:
    """The matrix products of a function of x: B T 6."""
    inputs = (Placeholder("x", torch.float32, ("batch_size", "sequence_length", 6)),)
    task = Task("model", inputs, lambda model, values: {"y": model(values["x"])})
    trace = Trace(Own(function), task)  # type: ignore[arg-type]
    return Polynomial.sum(trace.polynomial(node, partial(products_at, node)) for node in trace.calls)


def test_functions_without_a_rule_cost_what_torch_counts() -> None:
    assert str(traced(lambda x: torch.einsum("bti,bsi->bts", x, x))) == "12 B T²"
    assert str(traced(lambda x: torch.bmm(x, x.transpose(1, 2)))) == "12 B T²"


def test_a_cost_that_is_no_polynomial_is_refused() -> None:
    with pytest.raises(UserError) as error:
        traced(lambda x: x[:, : x.shape[1] // 2] @ x.transpose(1, 2))
    assert str(error.value) == (
        "what the model costs is no polynomial: linear in the batch and at most quadratic in lengths\n"
        "  it calls matmul, whose result has other sizes"
    )
