"""The measures of quality against independent implementations."""

from __future__ import annotations

import math
from difflib import SequenceMatcher

import numpy as np
import pytest
import scipy.spatial.distance
import scipy.special
import torch
import torch.nn.functional as F
from sklearn.neighbors import NearestNeighbors

from exporters.quality import measures


def two(rows: int, width: int, noise: float = 0.5) -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(3)
    first = 3 * torch.randn(rows, width, generator=generator)
    return first, first + noise * torch.randn(rows, width, generator=generator)


def kl(first: torch.Tensor, second: torch.Tensor) -> torch.Tensor:
    return measures.kl_divergence(*map(measures.log_probabilities, (first, second)))


def test_kl_divergence_is_scipys() -> None:
    first, second = two(9, 31)
    p, q = (scipy.special.softmax(each.double().numpy(), -1) for each in (first, second))
    expected = scipy.special.rel_entr(p, q).sum(-1)
    np.testing.assert_allclose(kl(first, second).numpy(), expected, rtol=1e-10)


def test_kl_divergence_of_a_model_from_itself_is_0() -> None:
    first, _ = two(9, 31)
    assert float(kl(first, first + 4.0).abs().max()) < 1e-6  # an offset changes nothing


def test_kl_divergence_is_not_symmetric() -> None:
    first, second = two(9, 31, noise=3.0)
    there, back = kl(first, second), kl(second, first)
    assert float((there - back).abs().min()) > 1e-3


def test_likelihood_and_perplexity_are_torchs() -> None:
    scores, _ = two(12, 17)
    tokens = torch.arange(12) % 17
    expected = F.cross_entropy(scores.double(), tokens, reduction="none")
    found = measures.negative_log_likelihood(measures.log_probabilities(scores), tokens)
    torch.testing.assert_close(found, expected)
    assert measures.perplexity(found) == pytest.approx(float(expected.mean().exp()))


def test_perplexity_of_equal_scores_is_the_size_of_the_vocabulary() -> None:
    found = measures.negative_log_likelihood(measures.log_probabilities(torch.zeros(5, 64)), torch.arange(5))
    assert measures.perplexity(found) == pytest.approx(64)


def test_same_top_token() -> None:
    scores = torch.tensor([[1.0, 2.0], [2.0, 1.0], [0.0, 5.0]])
    assert measures.same_top_token(scores, -scores).tolist() == [False, False, False]
    assert measures.same_top_token(scores, torch.tensor([[0.0, 1.0]] * 3)).tolist() == [True, False, True]


def test_cosine_is_scipys() -> None:
    first, second = two(6, 40)
    expected = [1 - scipy.spatial.distance.cosine(a, b) for a, b in zip(first, second, strict=True)]
    np.testing.assert_allclose(measures.cosine(first, second).numpy(), expected, rtol=1e-6)


def test_cosine_of_nothing() -> None:
    zero, one = torch.zeros(1, 4), torch.ones(1, 4)
    assert float(measures.cosine(zero, zero)) == 1
    assert float(measures.cosine(zero, one)) == 0


def _agreement(first: torch.Tensor, second: torch.Tensor) -> float:
    return measures.score_agreement(measures.cosine_table(first), measures.cosine_table(second))


@pytest.mark.parametrize("noise", [0.0, 0.5, 3.0])
def test_rank_agreement_is_scikit_learns(noise: float) -> None:
    first, second = two(40, 12, noise)
    near = [
        NearestNeighbors(n_neighbors=11, metric="cosine").fit(each).kneighbors(each, return_distance=False)
        for each in (first, second)
    ]
    shares = [
        len((set(a) - {row}) & (set(b) - {row})) / 10 for row, (a, b) in enumerate(zip(*near, strict=True))
    ]
    assert _agreement(first, second) == pytest.approx(np.mean(shares))


def test_rank_agreement_of_few_rows() -> None:
    first, second = two(3, 12)
    assert _agreement(first, second) == 1  # of two others, both are the nearest two
    assert _agreement(first[:1], second[:1]) == 1


@pytest.mark.parametrize(
    ("reference", "tokens", "distance"),
    [("kitten", "sitting", 3), ("", "abc", 3), ("abc", "", 3), ("abc", "abc", 0), ("intention", "execution", 5)],
)  # fmt: skip
def test_edit_distance(reference: str, tokens: str, distance: int) -> None:
    assert measures.edit_distance([*map(ord, reference)], [*map(ord, tokens)]) == distance


def test_edit_distance_is_within_its_bounds() -> None:
    generator = np.random.default_rng(2)
    for _ in range(50):
        first, second = (generator.integers(3, size=generator.integers(1, 9)).tolist() for _ in range(2))
        matched = sum(
            block.size for block in SequenceMatcher(None, first, second, False).get_matching_blocks()
        )
        found = measures.edit_distance(first, second)
        assert abs(len(first) - len(second)) <= found <= len(first) + len(second) - 2 * matched
        assert found == measures.edit_distance(second, first)


def test_token_error_rate() -> None:
    assert measures.token_error_rate([([1, 2, 3, 4], [1, 2, 4]), ([5] * 6, [5] * 6)]) == pytest.approx(0.1)
    assert measures.token_error_rate([]) == 0
    assert math.isclose(measures.token_error_rate([([1], [2, 3])]), 2.0)
