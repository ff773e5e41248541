"""A decoder must see its encoder's tokens, and not its padding."""

from __future__ import annotations

import torch

from zoo.checks.dependence import depends
from zoo.checks.padding import padded
from zoo.checks.result import Check, equal, skipped
from zoo.checks.stack_runner import StackRunner, another, draw_ids, draw_inputs, relative_difference
from zoo.checks.subject import CheckedModel


def cross_attention(side: StackRunner, subject: CheckedModel) -> Check:
    """Check that the decoder depends on the encoder."""
    read_beside = side.read_beside
    assert read_beside is not None

    def change() -> float:
        ids = draw_ids(1, side.length, side.vocabulary)
        source = draw_inputs(subject.spec, "encoder", 1, 1)
        if source.is_floating_point():
            changed = draw_inputs(subject.spec, "encoder", 1, 2)
        else:
            changed = source.clone()
            changed[:, -1] = another(source[:, -1], side.vocabulary)
        both = read_beside(torch.cat((source, changed)))(torch.cat((ids, ids)), None, None).tokens
        return relative_difference([x[:1] for x in both], [x[1:] for x in both])

    explanation = "decoder outputs change when an encoder token, or the whole image or audio, is replaced"
    return depends("cross-attention", subject, change, explanation)


def encoder_padding(side: StackRunner, subject: CheckedModel) -> Check:
    """Check that the decoder ignores the encoder's padding."""
    read_beside = side.read_beside
    assert read_beside is not None
    explanation = "decoder outputs do not change when the encoder input is padded, whatever the padding holds"
    source = draw_inputs(subject.spec, "encoder", 1, 1)
    if source.is_floating_point():
        reason = "images and audio are never padded"
        return skipped("encoder padding", explanation, reason)
    if side.vocabulary < 2:
        return skipped("encoder padding", explanation, "the vocabulary has only one token")
    ids = draw_ids(1, side.length, side.vocabulary)
    alone = read_beside(source)(ids, None, None)
    right, left = padded([source[0]], "right"), padded([source[0]], "left")
    sources, masks = torch.cat((right[0], left[0])), torch.cat((right[1], left[1]))
    changed = torch.where(masks == 1, sources, another(sources, side.vocabulary))
    read = read_beside(torch.cat((sources, changed)), torch.cat((masks, masks)))
    padded_tokens = read(ids.expand(4, -1), None, None).tokens
    same = [x.expand(4, *x.shape[1:]) for x in alone.tokens]
    return equal("encoder padding", relative_difference(same, padded_tokens), explanation)
