"""Measures of the distance between two models' outputs.

Shapes: positions N, vocabulary V, vectors N x D. All are computed in float64.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor


def log_probabilities(scores: Tensor) -> Tensor:
    """log softmax(scores) in float64, N x V."""
    return scores.double().log_softmax(-1)


def kl_divergence(log_p: Tensor, log_q: Tensor) -> Tensor:
    """KL(p || q) = sum over v of p_v (log p_v - log q_v) in nats for each position, N, from log probabilities N x V."""
    return (log_p.exp() * (log_p - log_q)).sum(-1)


def negative_log_likelihood(log_p: Tensor, tokens: Tensor) -> Tensor:
    """-log p_t in nats for each position and its token t, N, from log probabilities N x V and tokens N."""
    return -log_p.gather(-1, tokens[:, None])[:, 0]


def perplexity(log_likelihoods: Tensor) -> float:
    """exp(mean negative log likelihood), from the negative log likelihood of each token in nats."""
    return float(log_likelihoods.double().mean().exp())


def same_top_token(reference: Tensor, scores: Tensor) -> Tensor:
    """Whether both assign the highest score to the same token, per position: N booleans from N x V twice."""
    return reference.argmax(-1) == scores.argmax(-1)


def cosine(reference: Tensor, vectors: Tensor) -> Tensor:
    """a.b / (|a| |b|) for each pair of rows, N, from N x D twice; 1 if both rows are zero, 0 if one is."""
    a, b = reference.double(), vectors.double()
    sizes = a.norm(dim=-1) * b.norm(dim=-1)
    both_zero = (a.norm(dim=-1) == 0) & (b.norm(dim=-1) == 0)
    return torch.where(both_zero, 1.0, (a * b).sum(-1) / sizes.clamp(min=1e-300))


def cosine_table(vectors: Tensor) -> Tensor:
    """The cosine of each pair of vectors, N x N from N x D."""
    return products(_unit(vectors))


def products(vectors: Tensor) -> Tensor:
    """The product of each pair of vectors, N x N from N x D."""
    return vectors.double() @ vectors.double().T


def score_agreement(reference: Tensor, scores: Tensor, neighbours: int = 10) -> float:
    """The share of common nearest neighbours in two tables of scores, N x N each, averaged over the rows.

    A row is not its own neighbour. With fewer than ``neighbours + 1`` rows, each has N - 1 neighbours.
    """
    count = min(neighbours, len(reference) - 1)
    if count < 1:
        return 1.0
    first, second = (_nearest(values, count) for values in (reference, scores))
    common = (first[:, :, None] == second[:, None, :]).any(-1)
    return float(common.double().mean())


def late_interaction(queries: Sequence[Tensor], texts: Sequence[Tensor]) -> Tensor:
    """The score of each text for each query, N x M, from their vectors, T x W each: the sum, over a query's vectors, of the largest
    product with a vector of the text (ColBERT: Khattab and Zaharia, 2020); 0 for a text without vectors."""
    none = torch.zeros((), dtype=torch.float64)
    return torch.stack(
        [
            torch.stack([(query @ text.T).amax(-1).sum() if len(text) else none for text in texts])
            for query in queries
        ]
    )


def match_agreement(reference: tuple[Tensor, Tensor], vectors: tuple[Tensor, Tensor]) -> float:
    """The share of rows with the same nearest row of the other set, by cosine, in two pairs of sets, N x D and M x D."""
    first, second = ((_unit(rows) @ _unit(others).T).argmax(-1) for rows, others in (reference, vectors))
    return float((first == second).double().mean())


def edit_distance(reference: Sequence[int], tokens: Sequence[int]) -> int:
    """The least number of insertions, deletions and substitutions between two sequences (Levenshtein)."""
    row = list(range(len(tokens) + 1))
    for count, wanted in enumerate(reference, 1):
        diagonal, row[0] = row[0], count
        for column, got in enumerate(tokens, 1):
            changed = diagonal + (wanted != got)
            diagonal, row[column] = row[column], min(changed, row[column] + 1, row[column - 1] + 1)
    return row[-1]


def token_error_rate(pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> float:
    """Edit distance over reference length, both summed over pairs of reference and output; 0 without any tokens."""
    length = sum(len(reference) for reference, _ in pairs)
    return sum(edit_distance(*pair) for pair in pairs) / length if length else 0.0


def _nearest(scores: Tensor, count: int) -> Tensor:
    """The other rows with the highest scores for each row, N x count, from N x N."""
    others = scores.masked_fill(torch.eye(len(scores), dtype=torch.bool), -torch.inf)
    return others.topk(count, -1).indices


def _unit(vectors: Tensor) -> Tensor:
    """Vectors of length 1, in float64."""
    wide = vectors.double()
    return wide / wide.norm(dim=-1, keepdim=True).clamp(min=1e-300)
