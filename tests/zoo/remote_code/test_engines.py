"""Engines run a model's own code: continuous batching of transformers, with masks and a paged cache that are the engine's."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers

import zoo
from tests.thinned import one_in
from tests.zoo.remote_code.test_remote_code import IDS, SPECS, both

PROMPTS = [[1, 5, 2, 7], [4, 0, 11], [9, 8]]
SMALL = transformers.ContinuousBatchingConfig(page_size=16, num_blocks=8, max_batch_tokens=16)
"""Buffers of this size, where the engine would take most of the memory."""


@one_in(2)
@pytest.mark.parametrize(
    "case",
    [
        "windows",
        *(
            pytest.param(each, marks=pytest.mark.slow)
            for each in ("grouped", "learned positions", "soft caps", "growing queries, weighted inputs")
        ),
    ],
)
def test_continuous_batching_gives_the_same_tokens(case: str, tmp_path: Path) -> None:
    ours, theirs = both(SPECS[case], tmp_path)
    how = transformers.GenerationConfig(max_new_tokens=6, do_sample=False, eos_token_id=None)
    answers = theirs.generate_batch(PROMPTS, how, SMALL, warmup=False)
    found = [each.generated_tokens for each in answers.values()]
    assert found == [ours.generate([prompt], 6)[0] for prompt in PROMPTS]


def test_masks_of_engines_say_which_keys_a_query_sees(tmp_path: Path) -> None:
    ours, theirs = both(SPECS["windows"], tmp_path)
    row, column = torch.arange(6)[:, None], torch.arange(6)
    near = (column <= row) & (row - column < 3)
    with torch.no_grad():
        expected = ours(IDS)["logits"]
        for mask in (near[None, None], {"sliding_attention": torch.where(near, 0.0, -torch.inf)[None, None]}):
            found = theirs(IDS, attention_mask=mask, position_ids=torch.arange(6)[None], use_cache=False)
            torch.testing.assert_close(found.logits, expected, atol=1e-5, rtol=1e-5)


def test_positions_that_add_to_scores_take_masks_of_padding_alone(tmp_path: Path) -> None:
    _, theirs = both(SPECS["alibi"], tmp_path)
    with pytest.raises(ValueError, match="must be batch x tokens with 1 for real tokens; it has shape"):
        theirs(IDS, attention_mask=torch.ones(1, 1, 6, 6), position_ids=torch.arange(6)[None])


def test_a_variant_of_a_preset_has_classes_of_a_readable_name(tmp_path: Path) -> None:
    spec = zoo.load("tiny-gpt", ["decoder.layers=1", "decoder.block.norm.kind=rms_norm"])
    zoo.convert(spec, "random", tmp_path / "code", remote_code=True)
    code = (tmp_path / "code" / "modeling_tiny_gpt_variant.py").read_text()
    assert "class TinyGptVariantForCausalLM(" in code
