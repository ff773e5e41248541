"""Whatever the language can say is built, runs, and behaves."""

from __future__ import annotations

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from specs.model.model import Model
from tests.strategies import Data, model_data
from tests.zoo.filled import random_model
from zoo.builder import assemble
from zoo.checks import check_behaviour, check_shapes
from zoo.core.reduced import fewer_layers, narrowed

relaxed = settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.slow
@relaxed
@given(model_data(), st.integers(0, 3))
def test_every_variant_has_shapes_and_behaves(data: Data, seed: int) -> None:
    spec = Model.model_validate(data)
    shapes = check_shapes(assemble(spec), spec)
    assert shapes.passed, shapes.problems
    behaviour = check_behaviour(spec, seed=seed)
    assert behaviour.passed, [check for check in behaviour.checks if check.status == "failed"]


@pytest.mark.slow
@relaxed
@given(model_data(architectures=["encoder", "decoder"]))
def test_every_variant_runs_with_weights_of_its_recipe(data: Data) -> None:
    spec = Model.model_validate(data)
    model = random_model(spec)
    stack = spec.last_stack
    embedding = spec.embedding_of(stack)
    if embedding.takes_tokens:
        outputs = model(torch.arange(6).reshape(2, 3))
    else:
        outputs = model(torch.randn(2, *embedding.input_shape(spec.context_length_of(stack))))
    assert outputs
    assert all(output.isfinite().all() for output in outputs.values())


@pytest.mark.slow
@relaxed
@given(model_data())
def test_the_dtype_changes_no_count_and_no_spec_is_lost_in_writing(data: Data) -> None:
    spec = Model.model_validate(data)
    counts = {
        sum(p.numel() for p in assemble(spec, dtype).parameters())
        for dtype in (torch.float32, torch.bfloat16)
    }
    assert len(counts) == 1
    assert Model.model_validate(spec.model_dump()) == spec


@pytest.mark.slow
@relaxed
@given(model_data())
def test_every_variant_has_reduced_models(data: Data) -> None:
    spec = Model.model_validate(data)
    short, narrow = fewer_layers(spec, 2), narrowed(spec, 2)
    for name, stack in spec.stacks():
        blocks = stack.layer_blocks()
        kept = getattr(short, name).layer_blocks()
        kinds = len(set(stack.layer_kinds()))
        assert len(kept) <= max(2, kinds)
        assert {id(block) for block in kept} == {id(block) for block in blocks}
        assert (kept[0], kept[-1]) == (blocks[0], blocks[-1]) or len(kept) == kinds
    assert assemble(short)
    assert assemble(narrow)
