"""The predicted acceptance of drafts: by hand, and against what generation measures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from exporters.exported.evaluate import predict_draft
from exporters.quality.drafts import DraftTally, tokens_per_call
from exporters.quality.runners import decoding
from exporters.runtime.exported import open_export
from exporters.runtime.speculative import SpeculativeGenerator
from tests.exporters.models import written
from tests.exporters.runtime.test_speculative import spec
from zoo.generation.sampling import Sampling


def test_acceptance_is_agreement_and_the_sum_of_least_probabilities() -> None:
    target = torch.tensor([[0.5, 0.3, 0.2], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]]).log()
    draft = torch.tensor([[0.6, 0.4, 0.0], [0.4, 0.3, 0.3], [0.1, 0.1, 0.8]]).log()
    tally = DraftTally(2)
    tally.add(
        decoding(torch.zeros(1, 3, dtype=torch.int64)), {"logits": draft[None]}, {"logits": target[None]}
    )
    figures = tally.figures()
    assert figures["greedy_acceptance"] == pytest.approx(2 / 3)  # top tokens 0 and 0, 1 and 0, 2 and 2
    assert figures["sampling_acceptance"] == pytest.approx((0.8 + 0.5 + 0.8) / 3)
    assert figures["greedy_tokens_per_call"] == pytest.approx(((1 + 1 + 0) + (1 + 0 + 0)) / 2)
    assert figures["sampling_tokens_per_call"] == pytest.approx((1 + 0.8 + 0.4 + 1 + 0.5 + 0.4) / 2)


def test_even_acceptance_gives_the_tokens_of_the_paper() -> None:
    """(1 - a^(k+1)) / (1 - a), for acceptances that do not depend on the place (Leviathan et al., 2023, equation 1)."""
    accepted = [torch.full((50,), 0.7, dtype=torch.float64)]
    for count in (1, 4, 9):
        assert tokens_per_call(accepted, count) == pytest.approx((1 - 0.7 ** (count + 1)) / 0.3)
    assert tokens_per_call([torch.ones(3)], 8) == 4  # a text that is shorter than the proposals


@pytest.mark.slow
@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_the_prediction_on_generated_texts_is_what_generation_measures(
    tmp_path: Path, temperature: float
) -> None:
    """Texts of the target itself, with one proposal at a time: every token after the first is judged once, and half of them
    are proposed."""
    exports = []
    for shallow in (False, True):
        directory = tmp_path / str(shallow)
        written(spec("windowed", shallow=shallow), directory, target="cpu", verify=False)
        exports.append(open_export(directory))
    prompts = [[first, second] for first in range(20) for second in range(2)]
    found = SpeculativeGenerator(exports[0], exports[1], 1).generate(prompts, 38, Sampling(temperature))
    rows = np.array([[*each.prompt, *each.ids] for each in found.continuations])
    np.save(tmp_path / "texts.npy", rows)
    quality = predict_draft(exports[0], exports[1], 1, tmp_path / "texts.npy", None, lambda stage: None)
    kind = "sampling" if temperature else "greedy"
    assert found.acceptance == pytest.approx(quality.figures[f"{kind}_acceptance"], abs=0.05)
    assert 0.1 < quality.figures[f"{kind}_acceptance"] < 0.9
