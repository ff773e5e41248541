"""Layers that reuse keys and values, and embeddings of single layers, in every report and check that follows from them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from exporters.rounding.calibration import pass_over
from exporters.rounding.streaming import calibrate
from exporters.verification.cases import cases
from specs.base.errors import UserError
from specs.language.load import load
from specs.model.model import Model
from tests.zoo.filled import random_model
from tests.zoo.tiny import BLOCK, gpt2
from zoo.builder import assemble
from zoo.checks.behaviour import check_behaviour
from zoo.parallel.stage_limits import check_stages
from zoo.reports.folding import Folded
from zoo.reports.memory import cache
from zoo.reports.parameters import parameter_report
from zoo.weights.materialize import materialize
from zoo.weights.random import RandomWeights


def tiny() -> Model:
    """Two layers with keys and values, and three that reuse them; wide heads without a window, narrow ones with one."""
    norm = {"kind": "rms_norm"}
    shape = {"kind": "grouped_query", "heads": 4, "kv_heads": 2, "head_dim": 6}
    window = {"head_dim": 4, "window": 3, "position": {"kind": "rope", "theta": 50.0}}
    per_layer = {"width": 5, "vocab_size": 7, "activation": "gelu", "norm": norm}

    def block(**attention: Any) -> dict[str, Any]:
        own = {**shape, "value_norm": {**norm, "weight": False}, **attention}
        return {**BLOCK, "attention": own, "per_layer_embedding": per_layer, "output_scale": 1.5}

    return gpt2(
        position={"kind": "rope"},
        decoder={
            "layers": [{"use": "local"}, {}, {"use": "local_again", "repeat": 2}, {"use": "again"}],
            "block": block(values="keys"),
            "blocks": {
                "local": block(**window),
                "again": block(reuses_keys_values=True),
                "local_again": block(**window, reuses_keys_values=True),
            },
        },
    )


def test_a_layer_that_reuses_keys_and_values_has_no_state() -> None:
    model: Any = assemble(tiny())
    assert [len(state) for state in model.decoder.states] == [2, 2, 0, 0, 0]
    names = [name for name, _ in model.decoder.blocks[2].attention.named_parameters()]
    assert not any(name.startswith(("key", "value")) for name in names)


def test_every_check_passes() -> None:
    report = check_behaviour(tiny())
    assert report.passed, [check for check in report.checks if check.status == "failed"]


def test_caches_and_tables_are_counted_once() -> None:
    spec = load("gemma4-e2b-text")
    held = cache(Folded.of(spec), torch.float16)
    assert held is not None
    assert held.bytes_per_token == 2 * (12 * 2 * 256 + 3 * 2 * 512)  # 15 of 35 layers
    report = parameter_report(spec)
    assert report.embedding_parameters == 262144 * (1536 + 35 * 256)


def test_tokens_beyond_a_table_read_its_first_row() -> None:
    spec = tiny()
    model: Any = random_model(spec)
    branch = model.decoder.blocks[0].per_layer_embedding
    x = torch.randn(1, 3, spec.d_model, generator=torch.Generator().manual_seed(0))
    beyond, first = (branch(x, torch.tensor([ids]), x) for ids in ([7, 8, 3], [0, 0, 3]))
    assert torch.equal(beyond, first)
    assert not torch.equal(branch(x, torch.tensor([[1, 0, 3]]), x), first)


def test_a_pass_whose_weights_are_loaded_layer_by_layer_gives_the_same_outputs() -> None:
    spec = tiny()
    whole: Any = assemble(spec)
    source = RandomWeights(whole, spec)
    materialize(whole, source)
    case = max(cases(spec, "right"), key=lambda each: 0 if each.pieces else each.batch.inputs.numel())
    seen: list[torch.Tensor] = []
    lazy: Any = assemble(spec)
    lazy.decoder.register_forward_hook(lambda module, args, result: seen.append(result[0]))
    calibrate(lazy, source, {}, pass_over(case), Path(), lambda done, count: None)
    whole.decoder.register_forward_hook(lambda module, args, result: seen.append(result[0]))
    with torch.no_grad():
        whole(case.batch.inputs, case.batch.mask)
    assert torch.allclose(seen[0], seen[1], atol=1e-6)


def test_stages_of_a_pipeline_do_not_reuse_keys_and_values_of_each_other() -> None:
    data = tiny().model_dump()
    spec = Model.model_validate({**data, "head": {"kind": "language_modeling", "tie_embeddings": False}})
    with pytest.raises(UserError, match=r"decoder\.layers reuse keys and values of others"):
        check_stages(assemble(spec), 2)
