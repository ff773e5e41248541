"""The share of a draft's tokens that its target accepts, predicted on text (Leviathan et al., 2023).

Shapes: batch B, positions T, proposals of a call K, vocabulary V.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import torch
import torch.nn.functional as F
from torch import Tensor

from exporters.quality.measures import log_probabilities, same_top_token
from exporters.quality.outputs import Outputs, judged_positions
from exporters.quality.runners import Files, Runner
from exporters.quality.tallies import ROWS
from exporters.verification.cases import Batch, Case
from zoo.core.graph_names import HIDDEN, HIDDEN_STATES


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


@dataclass(frozen=True)
class RememberedFiles(Files):
    """The files of a target, which keep the outputs of the last case: its draft reads the hidden states among them."""

    last: list[tuple[Case, Mapping[str, Tensor]]] = field(default_factory=list)

    def outputs(self, case: Case) -> Mapping[str, Tensor]:
        if not self.last or self.last[0][0] is not case:
            self.last[:] = [(case, super().outputs(case))]
        return self.last[0][1]


@dataclass(frozen=True)
class NextTokenRunner(DraftRunner):
    """A draft that reads the hidden states of its ``target``, and scores each of a call's ``draft_tokens`` proposals: B K T V.

    After the first, it reads its own hidden states, at all positions of the text.
    """

    target: RememberedFiles
    draft_tokens: int

    def outputs(self, case: Case) -> Mapping[str, Tensor]:
        assert case.batch.mask is not None
        ids, mask, hidden = case.batch.inputs, case.batch.mask, self.target.outputs(case)[HIDDEN]
        scores = []
        for _ in range(min(self.draft_tokens, ids.shape[1] - 1)):
            batch = replace(
                case.batch,
                inputs=ids[:, 1:],
                mask=mask[:, 1:],
                types=torch.zeros_like(ids[:, 1:]),
                beside={HIDDEN_STATES: hidden[:, :-1].float()},
            )
            outputs = super().outputs(replace(case, batch=batch))
            scores.append(F.pad(outputs["logits"], (0, 0, 1, 0)))
            hidden = F.pad(outputs[HIDDEN], (0, 0, 1, 0))
        return {"logits": torch.stack(scores, 1)} if scores else {}


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
        if "logits" not in wanted:  # a text of one token, after which nothing is proposed
            return
        target, draft = got["logits"], _aligned(wanted["logits"], got["logits"].shape[-1])
        for scores, proposed, real in zip(target, draft, judged_positions(case, target), strict=True):
            if proposed.dim() == 2:
                greedy, sampling = _accepted(scores[real], proposed[real])
            else:
                calls = _calls(scores[real], proposed[:, real])
                greedy, sampling = map(torch.stack, zip(*calls, strict=True))
            self._greedy.append(greedy)
            self._sampling.append(sampling)

    def figures(self) -> dict[str, float]:
        return {
            "greedy_acceptance": float(_of_first(self._greedy).mean()),
            "greedy_tokens_per_call": tokens_per_call(self._greedy, self._draft_tokens),
            "sampling_acceptance": float(_of_first(self._sampling).mean()),
            "sampling_tokens_per_call": tokens_per_call(self._sampling, self._draft_tokens),
        }


def _of_first(accepted: list[Tensor]) -> Tensor:
    """The probability of acceptance of the first proposal of each call."""
    return torch.cat([values if values.dim() == 1 else values[0] for values in accepted])


def _calls(target: Tensor, draft: Tensor) -> list[tuple[Tensor, Tensor]]:
    """The acceptance of each proposal of the calls from each position but the first, which has no hidden state before it: scores
    T V and K T V."""
    count = target.shape[0] - draft.shape[0]
    return [
        _accepted(target[1 + step :][:count], scores[1 + step :][:count]) for step, scores in enumerate(draft)
    ]


def tokens_per_call(accepted: list[Tensor], draft_tokens: int) -> float:
    """The mean number of tokens of one call, over all its places in the texts: the proposals up to the first rejected one, and
    one token of the target.

    accepted: the probability at each position of each text, T, or of each proposal of each call, K T.
    """
    counts = [
        1 + (values if values.dim() == 2 else _proposals(values, draft_tokens)).cumprod(0).sum(0)
        for values in accepted
    ]
    return float(torch.cat(counts).mean())


def _proposals(accepted: Tensor, draft_tokens: int) -> Tensor:
    """The acceptance of the proposals of the call from each position: T -> K T."""
    return accepted.unfold(0, min(draft_tokens, len(accepted)), 1).T


def _accepted(target: Tensor, draft: Tensor) -> tuple[Tensor, Tensor]:
    """The probability of acceptance at each position, T, in greedy decoding and in sampling, from scores T V."""
    parts = [
        torch.minimum(log_probabilities(p), log_probabilities(q)).exp().sum(-1)
        for p, q in zip(target.split(ROWS), draft.split(ROWS), strict=True)
    ]
    return same_top_token(target, draft).double(), torch.cat(parts)


def _aligned(scores: Tensor, vocabulary: int) -> Tensor:
    """Cut scores to ``vocabulary`` tokens, or pad them; a missing token has probability 0."""
    missing = vocabulary - scores.shape[-1]
    return F.pad(scores, (0, missing), value=-torch.inf)
