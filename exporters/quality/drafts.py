"""The share of a draft's tokens that its target accepts, predicted on text (Leviathan et al., 2023).

Shapes: positions T, vocabulary V.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from exporters.quality.measures import log_probabilities, same_top_token
from exporters.quality.outputs import Outputs, judged_positions
from exporters.quality.runners import Runner
from exporters.quality.tallies import ROWS
from exporters.verification.cases import Batch, Case


@dataclass(frozen=True)
class DraftRunner:
    """A draft with ``vocabulary`` tokens; it reads ids that it lacks as its last, as :class:`exporters.runtime.draft.Drafter`
    does."""

    files: Runner
    vocabulary: int

    def outputs(self, case: Case) -> Mapping[str, Tensor]:
        batch = replace(case.batch, inputs=case.batch.inputs.clamp(max=self.vocabulary - 1))
        return self.files.outputs(replace(case, batch=batch))

    def greedy(self, encoder: Batch, start: int, ends: Collection[int], most: int) -> list[int]:
        return self.files.greedy(encoder, start, ends, most)


class DraftTally:
    """The probability that the target accepts the draft's token at each position of the texts, and the tokens that a call of the
    target gives for ``draft_tokens`` proposals.

    In greedy decoding it is 1 where both have the same best token. In sampling at temperature 1 it is the sum over all tokens of
    min(p, q), where p are the target's probabilities and q the draft's.
    """

    def __init__(self, draft_tokens: int) -> None:
        self._draft_tokens = draft_tokens
        self._greedy: list[Tensor] = []
        self._sampling: list[Tensor] = []

    def add(self, case: Case, wanted: Outputs | None, got: Outputs) -> None:
        """Add the scores of the draft, ``wanted``, and of the target, ``got``."""
        assert wanted is not None
        target, draft = got["logits"], _aligned(wanted["logits"], got["logits"].shape[-1])
        for scores, proposed, real in zip(target, draft, judged_positions(case, target), strict=True):
            parts = [
                _accepted(p, q)
                for p, q in zip(scores[real].split(ROWS), proposed[real].split(ROWS), strict=True)
            ]
            greedy, sampling = (torch.cat(values) for values in zip(*parts, strict=True))
            self._greedy.append(greedy)
            self._sampling.append(sampling)

    def figures(self) -> dict[str, float]:
        return {
            "greedy_acceptance": float(torch.cat(self._greedy).mean()),
            "greedy_tokens_per_call": tokens_per_call(self._greedy, self._draft_tokens),
            "sampling_acceptance": float(torch.cat(self._sampling).mean()),
            "sampling_tokens_per_call": tokens_per_call(self._sampling, self._draft_tokens),
        }


def tokens_per_call(accepted: list[Tensor], draft_tokens: int) -> float:
    """The mean number of tokens of one call, over all its places in the texts: the proposals up to the first rejected one, and
    one token of the target.

    accepted: the probability at each position of each text, T.
    """
    counts = [
        1 + values.unfold(0, min(draft_tokens, len(values)), 1).cumprod(-1).sum(-1) for values in accepted
    ]
    return float(torch.cat(counts).mean())


def _accepted(target: Tensor, draft: Tensor) -> tuple[Tensor, Tensor]:
    """The probability of acceptance at each position, T, in greedy decoding and in sampling, from scores T V."""
    log_p, log_q = log_probabilities(target), log_probabilities(draft)
    return same_top_token(target, draft).double(), torch.minimum(log_p, log_q).exp().sum(-1)


def _aligned(scores: Tensor, vocabulary: int) -> Tensor:
    """Cut scores to ``vocabulary`` tokens, or pad them; a missing token has probability 0."""
    missing = vocabulary - scores.shape[-1]
    return F.pad(scores, (0, missing), value=-torch.inf)
