"""The PyTorch reference of a quantized cache: attention to rounded keys and values, including the prompt's.

Both sides compute keys in float32, in different orders, so that a key near the tie between two codes may round either way. At a
tie the file's code is used, so that everything after it can be compared; elsewhere a different code is an error.
Shapes: batch B, key-value heads G, tokens S, head width K.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from exporters.graph.quantization.cache_scales import QuantizedCache
from exporters.verification.cases import Case
from exporters.verification.quantized_cache.attending import CachedAttention, CachedAttentions
from exporters.verification.reference import (
    PRESENT,
    Expected,
    ExpectedCase,
    Reference,
    Run,
    at_their_places,
    run_again,
    side_by_side,
)
from exporters.verification.result import CodeTies

TIE = 2e-5
"""The largest distance from a tie at which either code is accepted, relative to the layer's largest value: the rounding error
of float32 sums in another order."""


class CachedPass:
    """A full pass, ``run``, with keys and values rounded to codes.

    stored: the file's codes, B S and all codes of a token. ``ties`` counts codes of real tokens in the last call.
    """

    def __init__(self, cache: QuantizedCache, stored: Tensor, run: Run) -> None:
        self._cache, self._stored, self._run = cache, stored, run
        self.ties = CodeTies(0, 0)

    def __call__(self, model: Any, case: Case) -> dict[str, Tensor]:
        mask, stored = case.batch.mask, self._stored
        assert mask is not None
        if case.gap:  # all tokens of a row are at the front
            order = mask.argsort(dim=1, descending=True, stable=True)
            stored, real = stored.gather(1, order[..., None].expand_as(stored)), mask.gather(1, order) == 1
        else:
            real = mask == 1
        theirs, codes = _by_layer(stored, model), list[Tensor]()
        self.ties = CodeTies(0, 0)

        def rounded(values: Tensor, scale: Tensor) -> Tensor:
            scale, stored_codes = scale.to(values.dtype), next(theirs).to(values.dtype)
            own = self._cache.format.codes(values, scale)
            chosen = at_ties(values, scale, own, stored_codes)
            differs = (chosen != own).transpose(1, 2)[real]
            self.ties += CodeTies(differs.numel(), int(differs.sum()))
            codes.append(chosen)
            return chosen * scale

        def in_codes(call: CachedAttention) -> tuple[Tensor, Tensor]:
            of_keys, of_values = self._cache.scales[call.path]
            return rounded(call.key, of_keys), rounded(call.value, of_values)

        with CachedAttentions(model, in_codes):
            outputs = self._run(model, case)
        present = side_by_side(codes)
        outputs[PRESENT] = at_their_places(present, mask) if case.gap else present
        return outputs


def with_stored_codes(
    reference: Reference,
    expected: Expected,
    cache: QuantizedCache,
    stored: Sequence[Tensor | None],
    progress: Callable[[str], None],
) -> tuple[Expected, CodeTies]:
    """Return the expected outputs with a quantized cache, and the number of codes at ties.

    stored: the file's codes in each case, in the form of :class:`CachedPass`; None for a case that did not run.
    """
    cases, ties = list[ExpectedCase](), CodeTies(0, 0)
    for expected_case, codes in zip(expected.cases, stored, strict=True):
        if codes is None:
            cases.append(expected_case)
            continue
        progress(f"{expected_case.case.name}, PyTorch, {cache.format.name} cache")
        run = CachedPass(cache, codes, expected_case.run)
        again = run_again(reference.model, expected_case, run)
        cases.append(replace(again, case=expected_case.case) if expected.tied else again)
        ties += run.ties
    return replace(expected, cases=tuple(cases)), ties


def at_ties(values: Tensor, scale: Tensor, own: Tensor, stored: Tensor) -> Tensor:
    """The ``stored`` codes where they are as close to the values as the ``own`` codes, within rounding: B G S K."""
    far = (values - stored * scale).abs()
    return torch.where(far <= scale.abs() / 2 + TIE * values.abs().max(), stored, own)


def _by_layer(stored: Tensor, model: Any) -> Iterator[Tensor]:
    """B S and all codes of a token -> B G S K, the keys and then the values of each layer."""
    start = 0
    for attention in model.decoder.attentions.values():
        for heads, _, width in (tensor.dims for tensor in attention.state):
            part = stored[..., start : start + heads * width]
            start += heads * width
            yield part.unflatten(-1, (heads, width)).transpose(1, 2)
