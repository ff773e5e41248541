"""A PyTorch model that attends to rounded keys and values as the kernels do, those of the prompt included.

Both sides compute keys in float32, in different orders, so that a key near the tie between two codes may round either
way. There the code of the file is used, so that everything after it can be compared; anywhere else a different code
is an error. Shapes: batch B, key-value heads G, tokens S, head width K.
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
    at_their_places,
    full_pass,
    run_again,
    side_by_side,
)
from exporters.verification.result import CodeTies

TIE = 2e-5
"""The largest distance from a tie at which either code is accepted, relative to the largest value of the layer: the
rounding error of float32 sums in another order."""


class CachedPass:
    """All outputs of a model in a case, as :func:`exporters.verification.reference.full_pass`, with keys and values rounded to
    codes.

    stored: the codes of the file, B S and those of a token. ``ties`` counts codes of real tokens in the last call.
    """

    def __init__(self, cache: QuantizedCache, stored: Tensor) -> None:
        self._cache, self._stored = cache, stored
        self.ties = CodeTies(0, 0)

    def __call__(self, model: Any, case: Case) -> dict[str, Tensor]:
        mask, stored = case.batch.mask, self._stored
        assert mask is not None
        if case.gap:  # the tokens of a row are together at the front
            order = mask.argsort(dim=1, descending=True, stable=True)
            stored, real = stored.gather(1, order[..., None].expand_as(stored)), mask.gather(1, order) == 1
        else:
            real = mask == 1
        theirs, codes = _by_layer(stored, model), list[Tensor]()
        self.ties = CodeTies(0, 0)

        def rounded(values: Tensor, scale: Tensor) -> Tensor:
            scale, given = scale.to(values.dtype), next(theirs).to(values.dtype)
            own = self._cache.format.codes(values, scale)
            chosen = at_ties(values, scale, own, given)
            differs = (chosen != own).transpose(1, 2)[real]
            self.ties += CodeTies(differs.numel(), int(differs.sum()))
            codes.append(chosen)
            return chosen * scale

        def in_codes(call: CachedAttention) -> tuple[Tensor, Tensor]:
            of_keys, of_values = self._cache.scales[call.path]
            return rounded(call.key, of_keys), rounded(call.value, of_values)

        with CachedAttentions(model, in_codes):
            outputs = full_pass(model, case)
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
    """The expected outputs with a quantized cache, and its codes at ties.

    stored: the codes of the file in each case, as :class:`CachedPass` takes them, or None where it does not run.
    """
    found, ties = list[ExpectedCase](), CodeTies(0, 0)
    for each, codes in zip(expected.cases, stored, strict=True):
        if codes is None:
            found.append(each)
            continue
        progress(f"{each.case.name}, PyTorch, {cache.format.name} cache")
        run = CachedPass(cache, codes)
        again = run_again(reference.model, each, run)
        found.append(replace(again, case=each.case) if expected.tied else again)
        ties += run.ties
    return replace(expected, cases=tuple(found)), ties


def at_ties(values: Tensor, scale: Tensor, own: Tensor, given: Tensor) -> Tensor:
    """The ``given`` codes where they are as close to the values as the ``own`` ones, within rounding: B G S K."""
    far = (values - given * scale).abs()
    return torch.where(far <= scale.abs() / 2 + TIE * values.abs().max(), given, own)


def _by_layer(stored: Tensor, model: Any) -> Iterator[Tensor]:
    """B S and the codes of a token -> B G S K, the keys and then the values of each layer."""
    start = 0
    for attention in model.decoder.attentions.values():
        for heads, _, width in (each.dims for each in attention.state):
            part = stored[..., start : start + heads * width]
            start += heads * width
            yield part.unflatten(-1, (heads, width)).transpose(1, 2)
