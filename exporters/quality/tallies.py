"""Accumulation of quality figures, case by case; the head decides which figures.

Shapes: batch B, tokens T, vocabulary or labels V, width D.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Protocol

import torch
from torch import Tensor

from exporters.quality import measures
from exporters.quality.outputs import Outputs, judged_positions
from exporters.quality.text_tallies import text_tally
from exporters.verification.cases import Case
from specs.model.model import Model

ROWS = 64
"""The number of positions whose scores are in float64 at a time."""


class Tally(Protocol):
    """Accumulates the outputs of the reference and of the files into figures by name."""

    def add(self, case: Case, wanted: Outputs | None, got: Outputs) -> None:
        """Add one case; ``wanted`` is None without a reference."""
        ...

    def figures(self) -> dict[str, float]:
        """The figures of all cases so far."""
        ...


def figures_of(tallies: Collection[Tally], empty: Tally) -> dict[str, float]:
    """The figures of the cases of several tallies of one class, as if one had got them; ``empty`` is a new one of the class."""
    for tally in tallies:
        _extend(empty, tally)
    return empty.figures()


def _extend(tally: Tally, other: Tally) -> None:
    """Add the cases of another tally of the same class."""
    own = vars(tally)
    for name, values in vars(other).items():
        if isinstance(values, list):
            own[name].extend(values)
        elif isinstance(values, dict):
            for head, part in values.items():
                _extend(own[name][head], part)


class Scores:
    """KL divergence and top-token agreement of scores, B T V or B V; for next-token scores also perplexity."""

    def __init__(self, *, next_token: bool) -> None:
        self._next_token = next_token
        self._kl: list[Tensor] = []
        self._same: list[Tensor] = []
        self._losses: list[Tensor] = []
        self._reference_losses: list[Tensor] = []

    def add(self, case: Case, wanted: Outputs | None, got: Outputs) -> None:
        scores, real = got["logits"], judged_positions(case, got["logits"])
        following = torch.zeros_like(real)  # positions with a real token after them
        tokens = torch.zeros(real.shape, dtype=torch.int64)
        if self._next_token:
            following[:, :-1] = real[:, :-1] & real[:, 1:]
            tokens[:, :-1] = case.batch.inputs[:, 1:]
        reference = None if wanted is None else wanted["logits"][real]
        scores, following, tokens = scores[real], following[real], tokens[real]
        for start in range(0, len(scores), ROWS):
            part = slice(start, start + ROWS)
            self._add(
                scores[part], following[part], tokens[part], None if reference is None else reference[part]
            )

    def _add(self, scores: Tensor, following: Tensor, tokens: Tensor, reference: Tensor | None) -> None:
        """Add positions: scores, N x V, whether each position has a next token, and that token."""
        log_q = measures.log_probabilities(scores)
        self._losses.append(measures.negative_log_likelihood(log_q, tokens)[following])
        if reference is not None:
            log_p = measures.log_probabilities(reference)
            self._kl.append(measures.kl_divergence(log_p, log_q))
            self._same.append(measures.same_top_token(log_p, log_q))
            self._reference_losses.append(measures.negative_log_likelihood(log_p, tokens)[following])

    def figures(self) -> dict[str, float]:
        figures = {}
        if self._kl:
            figures["kl"] = float(torch.cat(self._kl).mean())
            figures["top_token"] = float(torch.cat(self._same).double().mean())
        if self._next_token:
            figures["perplexity"] = measures.perplexity(torch.cat(self._losses))
        if self._next_token and self._reference_losses:
            figures["reference_perplexity"] = measures.perplexity(torch.cat(self._reference_losses))
        return figures


class Pairs:
    """Cosines of text and image vectors, and agreement of each one's nearest vector of the other kind."""

    def __init__(self) -> None:
        self._wanted: list[tuple[Tensor, Tensor]] = []
        self._got: list[tuple[Tensor, Tensor]] = []

    def add(self, case: Case, wanted: Outputs | None, got: Outputs) -> None:
        assert wanted is not None
        self._wanted.append(self.vectors(wanted))
        self._got.append(self.vectors(got))

    def vectors(self, outputs: Outputs) -> tuple[Tensor, Tensor]:
        """The vectors of texts, N W, and of images, M W."""
        return outputs["text_embeds"].float(), outputs["image_embeds"].float()

    def figures(self) -> dict[str, float]:
        (texts, images), (got_texts, got_images) = (
            map(torch.cat, zip(*side, strict=True)) for side in (self._wanted, self._got)
        )
        cosines = measures.cosine(torch.cat([texts, images]), torch.cat([got_texts, got_images]))
        agreements = [
            measures.match_agreement((texts, images), (got_texts, got_images)),
            measures.match_agreement((images, texts), (got_images, got_texts)),
        ]
        return {
            "cosine": float(cosines.mean()),
            "least_cosine": float(cosines.min()),
            "same_matches": sum(agreements) / len(agreements),
        }


class Values:
    """Cosines of each output of a head, at real tokens."""

    def __init__(self) -> None:
        self._cosines: list[Tensor] = []

    def add(self, case: Case, wanted: Outputs | None, got: Outputs) -> None:
        assert wanted is not None
        names = [
            name for name in wanted if name in got and not name.startswith(("present", "state", "encoder "))
        ]
        for row in range(len(case.batch.inputs)):
            mask = None if case.batch.real is None else case.batch.real[row] == 1
            for name in names:  # apart, as those of larger values would hide the others
                pair = [_real(side[name][row].float(), mask).flatten() for side in (wanted, got)]
                self._cosines.append(measures.cosine(pair[0][None], pair[1][None]))

    def figures(self) -> dict[str, float]:
        cosines = torch.cat(self._cosines)
        return {"cosine": float(cosines.mean()), "least_cosine": float(cosines.min())}


def _real(values: Tensor, mask: Tensor | None) -> Tensor:
    return values[mask] if mask is not None and values.shape[:1] == mask.shape else values


def tally_for(spec: Model) -> Tally:
    """The tally for a model's outputs."""
    tallies: dict[str, Callable[[], Tally]] = {
        "scores": lambda: Scores(next_token=scores_next_tokens(spec)),
        "pairs": Pairs,
        "values": Values,
    }
    compared = spec.head.compared_by
    return tallies[compared]() if compared in tallies else text_tally(spec.head)


def scores_next_tokens(spec: Model) -> bool:
    """Whether a decoder without an encoder scores each token from the previous tokens, so that perplexity is meaningful."""
    sees_ahead = spec.decoder is not None and spec.decoder.sees_prompt
    return spec.architecture in ("decoder", "vision-language") and spec.head.predicts_next and not sees_ahead
