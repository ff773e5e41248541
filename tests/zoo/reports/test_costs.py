"""FLOPs of every stage, against what torch counts while the real modules run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

import zoo
from specs.base.errors import UserError
from specs.language.load import load
from specs.model.model import Model
from tests.exporters.reduced_presets import structures
from tests.thinned import one_in
from tests.zoo.components.whole_chunks import small_blocks, source_tokens, tokens
from tests.zoo.reports.expert_flops import flop_counter
from tests.zoo.reports.task_sizes import input_values
from tests.zoo.tiny import bert, gpt2, t5, vit, whisper
from zoo.builder import ZooModel, assemble
from zoo.core.reduced import reduced_models, small_inputs
from zoo.models.decoder import Decoder
from zoo.models.encoder import Encoder
from zoo.reports.costs import Costs, costs
from zoo.reports.polynomial import WHOLE, Polynomial
from zoo.reports.trace import Trace
from zoo.reports.trace import traced as graph_of
from zoo.tracing.symbols import Placeholder
from zoo.tracing.task import Task
from zoo.tracing.tasks import tasks

PRESETS = ["bert-base", "gpt2", "t5-small", "llama-3-8b", "gemma2-2b", "mixtral-8x7b", "gpt-oss-20b", "deepseek-v3",
           "vit-base-16", "whisper-tiny", "qwen3.5-0.8b-text", "mamba2-130m", "mamba-130m", "lfm2-350m", "albert-base-v2", "modernbert-base", "electra-small", "opt-350m"]  # fmt: skip


def smallest(name: str) -> Model:
    """A preset's narrowest reduced model."""
    *_, (small, _) = reduced_models(small_inputs(load(name)))
    return small_blocks(small)


def run(spec: Model, model: ZooModel, task: Task, sizes: dict[str, int]) -> int:
    """What torch counts in one call of a task."""
    with torch.no_grad(), sdpa_kernel(SDPBackend.MATH), flop_counter() as counter:
        task.call(model, input_values(spec, task, sizes))
    return int(counter.get_total_flops())


def stages_of(found: Costs, task: Task, sizes: dict[str, int]) -> dict[str, dict[str, int]]:
    """The stages that one task is, each at its sizes; none of a task without products, or one that another holds."""
    if task.name == "vision_encoder":
        return {"see": sizes}
    if task.name in ("embedding", "text_model", "vision_model"):
        return {}
    if task.name == "encoder_model":
        return {"encode": sizes}
    if "forward" in found.stages:
        return {"forward": sizes}
    return {"prefill": {**sizes, "P": 0}, "step": {**sizes, "T": 1}}


def assert_counted(spec: Model, **sizes: int) -> None:
    found, model = costs(spec), zoo.build(spec, weights="random").requires_grad_(False)
    for task in tasks(model, spec):
        for stage, at in stages_of(found, task, sizes).items():
            assert found.stages[stage].total.at(**at) == run(spec, model, task, at), (spec.name, stage)


@one_in(4)
@pytest.mark.parametrize("name", PRESETS)
def test_matrix_products_are_those_that_torch_counts(name: str) -> None:
    spec = smallest(name)
    assert_counted(spec, B=3, T=tokens(spec), P=5, S=source_tokens(spec))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*structures()} - set(PRESETS)))
def test_matrix_products_of_all_structures_are_those_that_torch_counts(name: str) -> None:
    spec = smallest(name)
    assert_counted(spec, B=3, T=tokens(spec), P=5, S=source_tokens(spec))


SIZES = st.integers(1, 5)


@pytest.mark.slow
@settings(max_examples=6, deadline=None)
@given(
    batch=SIZES, new=SIZES, past=st.integers(0, 5), encoder=SIZES, architecture=st.sampled_from([bert, gpt2, t5]),
)  # fmt: skip
def test_costs_hold_at_any_size(batch: int, new: int, past: int, encoder: int, architecture: Any) -> None:
    assert_counted(architecture(), B=batch, T=new, P=past, S=encoder)


@pytest.mark.parametrize("spec", [vit(), whisper()])
def test_images_and_sounds_have_fixed_lengths(spec: Model) -> None:
    found = costs(spec)
    first = next(iter(found.stages.values()))
    assert first.total.symbols == ["B"]
    assert_counted(spec, B=2, T=3, P=4, S=6)


def test_queries_cost_in_the_layers_that_they_pass() -> None:
    spec = smallest("eomt-large-coco-panoptic-640")
    assert_counted(spec, B=3)
    assert costs(load("eomt-large-coco-panoptic-640")).stages["forward"].total.at(B=1) == 1_335_941_857_280


def test_a_whole_large_model_costs_what_torch_counts_on_meta_tensors() -> None:
    spec = load("bert-base")
    model = assemble(spec)
    assert isinstance(model, Encoder)
    ids = torch.ones(2, 128, dtype=torch.int64, device="meta")
    with flop_counter() as counter, sdpa_kernel(SDPBackend.MATH):
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


def test_different_kinds_of_layers_are_distinguished() -> None:
    found = costs(load("deepseek-v2-lite")).stages["step"]
    dense, routed = found.under("decoder.blocks.0.feed_forward"), found.under("decoder.blocks.1.feed_forward")
    assert dense != routed
    assert found.under("decoder.blocks.2.feed_forward") == routed


def test_a_shared_layer_is_charged_at_each_of_its_places() -> None:
    found = costs(load("albert-base-v2")).stages["forward"]
    assert found.under("encoder.blocks.11") == found.under("encoder.blocks.0")
    assert found.under("encoder").at(B=1, T=1) == 12 * found.under("encoder.blocks.0").at(B=1, T=1)


def test_the_products_of_a_mixture_are_those_of_the_chosen_experts() -> None:
    found = costs(load("mixtral-8x7b"))
    mixture = "decoder.blocks.3.feed_forward"
    matrices, weighting = (
        2 * 3 * 2 * 4096 * 14336,
        2 * 2 * 4096,
    )  # 2 of 8 experts, and the sum of their outputs
    prefill = found.stages["prefill"]
    assert str(prefill.under(f"{mixture}.experts")) == f"{matrices + weighting:,} B T"
    assert str(prefill.under(f"{mixture}.router")) == f"{2 * 4096 * 8:,} B T"
    assert found.stages["step"].under(mixture).at(B=5) == prefill.under(mixture).at(B=5, T=1)


def test_products_by_role() -> None:
    found = costs(load("mixtral-8x7b"))
    by_role, step = found.by_role("step"), found.stages["step"]
    assert list(by_role) == ["attention", "router", "experts", "head"]
    assert str(by_role["router"]) == f"{32 * 2 * 4096 * 8:,} B"
    assert by_role["head"] == step.under("head")
    shared = costs(load("albert-base-v2")).by_role("forward")  # one layer's weights, the products of twelve
    assert shared["feed-forward"].at(B=1, T=1) == 12 * 2 * 2 * 768 * 3072


@pytest.mark.parametrize("name", ["deepseek-v2-lite", "t5-small", "whisper-tiny"])
def test_roles_have_every_product(name: str) -> None:
    found = costs(load(name))
    for stage in found.stages:
        assert Polynomial.sum(found.by_role(stage).values()) == found.stages[stage].total


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
    trace = Trace(graph_of(Own(function), task), task)  # type: ignore[arg-type]
    return Polynomial.sum(trace.flops(node)[0] for node in trace.calls)


def test_functions_without_a_rule_are_counted_by_torch() -> None:
    assert str(traced(lambda x: torch.einsum("bti,bsi->bts", x, x))) == "12 B T²"
    assert str(traced(lambda x: torch.bmm(x, x.transpose(1, 2)))) == "12 B T²"


def test_a_cost_that_is_not_a_polynomial_is_refused() -> None:
    with pytest.raises(UserError) as error:
        traced(lambda x: x[:, : x.shape[1] // (2 * WHOLE)] @ x.transpose(1, 2))
    assert str(error.value) == (
        "The cost of the model is not a polynomial that is linear in each batch and at most quadratic in lengths\n"
        "  value: matmul"
    )


def test_a_step_of_a_recurrence_costs_less_than_a_share_of_a_chunk() -> None:
    """A chunk also combines its tokens with one another, which a single token need not."""
    found = costs(load("qwen3.5-0.8b-text", ["decoder.layers=[{use: linear_attention}, {}]"]))
    heads, width = 16, 128
    step = found.stages["step"].modules["decoder.blocks.0.mixer"]
    assert step.at(B=3, P=1000) == 3 * heads * 6 * width * width
    prefill = found.stages["prefill"].modules["decoder.blocks.0.mixer"]
    assert prefill.at(B=1, T=6400) == 100 * prefill.at(B=1, T=64) > 6400 * step.at(B=1, P=0)
