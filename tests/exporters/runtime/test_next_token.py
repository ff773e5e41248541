"""Drafts that read the hidden states of their target: the tokens of the target alone, and the proposals of full PyTorch passes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

import zoo
from exporters.export import export
from exporters.exported.evaluate import evaluate, predict_draft
from exporters.runtime.draft import check_draft
from exporters.runtime.exported import Exported, open_export
from exporters.runtime.generation import Generator
from exporters.runtime.speculative import SpeculativeGenerator
from exporters.steps.options import ExportOptions
from specs.base.errors import UserError
from specs.model.model import Model
from tests.exporters.models import written
from tests.exporters.runtime.test_speculative import DECODERS, TARGETS, spec
from tests.thinned import one_in
from tests.zoo.tiny import BLOCK
from zoo.builder import assemble
from zoo.checks.behaviour import check_behaviour
from zoo.checks.shapes import check_shapes
from zoo.generation.sampling import Sampling

PROMPTS = [[3, 1, 4, 1, 5], [9]]


def module_of(target: Model, directory: Path) -> tuple[Model, Path]:
    """A module with the table, scores and first layer of a target, and its weights: it reads tokens, and a bit of the hidden states."""
    assert target.decoder is not None
    block = target.decoder.block if target.decoder.block.attention else BLOCK
    embedding = {"kind": "next_token", "norm": {"kind": "none"}, "hidden_norm": {"kind": "rms_norm"}}
    data = {
        **target.model_dump(exclude_unset=True),
        "name": "module",
        "decoder": {"layers": 1, "block": block},
        "embedding": embedding,
    }
    module = Model.model_validate(data)
    weights = zoo.build(module, weights="random").state_dict()
    width = target.d_model
    weights["embedding.projection.weight"] = torch.cat([torch.eye(width), 0.2 * torch.eye(width)], 1)
    save_file(weights, directory / "module.safetensors")
    return module, directory / "module.safetensors"


def pair(
    directory: Path, target: Model, *, to: str = "cpu", **options: Any
) -> tuple[Exported, Exported, Any]:
    """The exports of a target and its module, and the module in PyTorch."""
    module, weights = module_of(target, directory)
    options = {"target": to, "verify": False, **options}
    written(target, directory / "target", outputs=("last_hidden_state",), **options)
    written(module, directory / "draft", weights=str(weights), **options)
    exports = [open_export(directory / name) for name in ("target", "draft")]
    return exports[0], exports[1], zoo.build(module, weights=str(weights))


@torch.inference_mode()
def simulated(
    target: Any, module: Any, prompt: Sequence[int], most: int, draft_tokens: int
) -> tuple[list[int], int, int]:
    """Greedy decoding with full passes: the tokens, and the numbers of proposed and of accepted ones."""
    hidden: list[Tensor] = []
    target.head.register_forward_pre_hook(lambda head, inputs: hidden.append(inputs[0][0]))
    module.head.register_forward_pre_hook(lambda head, inputs: hidden.append(inputs[0][0]))

    def best(model: Any, tokens: Sequence[int], **more: Tensor) -> list[int]:
        hidden.clear()
        return model(torch.tensor([tokens]), **more).logits[0].argmax(-1).tolist()

    tokens, proposed, accepted = [*prompt, best(target, prompt)[-1]], 0, 0
    while len(tokens) - len(prompt) < most:
        best(target, tokens)
        states = hidden[0][:-1]
        read = tokens[1:]
        for _ in range(min(draft_tokens, most - (len(tokens) - len(prompt)) - 1)):
            token = best(module, read, hidden_states=states[None])[-1]
            read, states = [*read, token], torch.cat([states, hidden[0][-1:]])
        drafts = read[len(tokens) - 1 :]
        wanted = best(target, [*tokens, *drafts])[len(tokens) - 1 :]
        right = next((i for i, (a, b) in enumerate(zip(drafts, wanted, strict=False)) if a != b), len(drafts))
        tokens += [*drafts[:right], wanted[right]]
        proposed, accepted = proposed + len(drafts), accepted + right
    return tokens[len(prompt) :], proposed, accepted


@one_in(2)
@pytest.mark.parametrize("to", ["portable", "cpu"])
def test_its_graph_is_verified_with_its_hidden_states(tmp_path: Path, to: str) -> None:
    module, weights = module_of(spec("windowed"), tmp_path)
    done = written(module, tmp_path / "draft", target=to, weights=str(weights))
    assert done.verification is not None
    compared = {comparison.output for comparison in done.verification.comparisons}
    assert {"logits", "last_hidden_state", "present"} <= compared


def test_it_behaves_as_a_decoder(tmp_path: Path) -> None:
    module, _ = module_of(spec("windowed"), tmp_path)
    assert check_shapes(assemble(module), module).passed
    checks = check_behaviour(module).checks
    assert {check.name for check in checks} >= {
        "causal",
        "cache, token by token",
        "padding side",
        "gradients",
    }
    assert all(check.status == "passed" for check in checks), checks


@pytest.mark.parametrize("draft_tokens", [pytest.param(1, marks=pytest.mark.slow), 4])
def test_proposals_are_those_of_full_pytorch_passes(tmp_path: Path, draft_tokens: int) -> None:
    target = spec("windowed")
    whole, draft, module = pair(tmp_path, target)
    found = SpeculativeGenerator(whole, draft, draft_tokens).generate(PROMPTS[:1], 24)
    model = zoo.build(target, weights="random")
    tokens, proposed, accepted = simulated(model, module, PROMPTS[0], 24, draft_tokens)
    assert found.continuations[0].ids == tokens
    assert (found.proposed, found.accepted) == (proposed, accepted)
    assert 0 < accepted < proposed


@pytest.mark.slow
@pytest.mark.parametrize("to", TARGETS)
@pytest.mark.parametrize("name", DECODERS)
def test_a_draft_changes_no_token(tmp_path: Path, name: str, to: str) -> None:
    """For states that can be divided, and for those that cannot, after which rejected tokens are read again."""
    whole, draft, _ = pair(tmp_path, spec(name), to=to)
    alone = Generator(whole)
    for draft_tokens in (1, 3):
        found = SpeculativeGenerator(whole, draft, draft_tokens).generate(PROMPTS, 40)
        assert found.continuations == [alone.generate([prompt], 40).continuations[0] for prompt in PROMPTS]
        assert found.proposed


@pytest.mark.slow
def test_sampling_draws_from_the_target(tmp_path: Path) -> None:
    whole, draft, _ = pair(tmp_path, spec("windowed"))
    sampling = Sampling(temperature=1.5, top_k=6)
    found = SpeculativeGenerator(whole, draft, 2).generate([[3, 1]] * 300, 4, sampling)
    assert 0.05 < found.accepted / found.proposed < 0.95
    alone = Generator(whole).generate([[3, 1]] * 300, 4, sampling)
    for place in (1, 2):
        shares = [
            np.bincount([each.ids[place] for each in generation.continuations], minlength=20) / 300
            for generation in (found, alone)
        ]
        np.testing.assert_allclose(shares[0], shares[1], atol=0.12)


@pytest.mark.slow
def test_the_prediction_on_generated_texts_is_what_generation_measures(tmp_path: Path) -> None:
    whole, draft, _ = pair(tmp_path, spec("windowed"))
    prompts = [[first, second] for first in range(20) for second in range(2)]
    found = SpeculativeGenerator(whole, draft, 1).generate(prompts, 38)
    np.save(tmp_path / "texts.npy", np.array([[*each.prompt, *each.ids] for each in found.continuations]))
    quality = predict_draft(whole, draft, 1, tmp_path / "texts.npy", None, lambda stage: None)
    assert found.acceptance == pytest.approx(quality.figures["greedy_acceptance"], abs=0.05)
    assert 0.1 < quality.figures["greedy_acceptance"] < 0.9


def refusal(call: Any, *arguments: Any) -> str:
    with pytest.raises(UserError) as error:
        call(*arguments)
    return str(error.value)


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    target = spec("windowed")
    _, draft, module = pair(tmp_path, target)
    written(target, tmp_path / "bare", target="cpu", verify=False)
    assert refusal(check_draft, open_export(tmp_path / "bare"), draft) == (
        "The target of a draft that reads hidden states must return them.\n"
        f"  value: {tmp_path}/bare has no output last_hidden_state\n  Export it again with outputs last_hidden_state."
    )
    wide = spec("windowed", d_model=48)
    written(wide, tmp_path / "wide", target="cpu", verify=False, outputs=("last_hidden_state",))
    assert refusal(check_draft, open_export(tmp_path / "wide"), draft) == (
        "The hidden states of a target must be as wide as those that its draft reads.\n"
        f"  value: {tmp_path}/wide has 48, {tmp_path}/draft reads 32\n  Choose a draft of the same checkpoint."
    )
    alone = "module reads the hidden states of another model, and does not run alone\n  value: embedding next_token\n"
    assert refusal(Generator(draft).generate, [[1]], 3).startswith(alone)
    assert refusal(evaluate, draft, None, None, None, lambda stage: None).startswith(alone)
    assert refusal(module, torch.tensor([[1, 2]])).startswith(
        "module reads the hidden states of another model beside its tokens\n  value: none\n"
    )
    options = ExportOptions(weights=str(tmp_path / "module.safetensors"), precision="int4", rounding="gptq")
    assert refusal(export, draft.spec, tmp_path / "gptq", options) == (
        "rounding gptq needs representative inputs\n"
        "  value: module reads the hidden states of another model, and does not run alone\n  Leave rounding gptq out."
    )
    assert refusal(check_draft, draft, draft).startswith("The target of a draft must read tokens alone.")
