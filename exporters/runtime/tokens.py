"""Rows of token ids as inputs of graphs: batch B, T new tokens, S past and new tokens."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from exporters.runtime.graph import Ids, LoadedGraph
from zoo.core.graph_names import WORD_INPUTS


def padded(rows: Sequence[Sequence[int]], *, right: bool) -> tuple[Ids, Ids]:
    """Rows of ids, padded on one side to the longest, B T, and their mask."""
    longest = max(map(len, rows))
    ids, mask = (np.zeros((len(rows), longest), np.int64) for _ in range(2))
    for row, tokens in enumerate(rows):
        slots = slice(0, len(tokens)) if right else slice(longest - len(tokens), longest)
        ids[row, slots], mask[row, slots] = tokens, 1
    return ids, mask


def token_inputs(graph: LoadedGraph, ids: Ids, mask: Ids) -> dict[str, Ids]:
    """The token inputs of a graph: ids, B T, and, if it takes them, their mask, B S, types (all 0) and positions.

    Positions count the real tokens; in a graph without a mask, padding has position -1.
    """
    length = ids.shape[1]
    positions = mask.cumsum(1)[:, -length:] - 1
    padding = 0 if "attention_mask" in graph.inputs else -1
    inputs = {
        "input_ids": ids,
        "attention_mask": mask,
        "token_type_ids": np.zeros_like(ids),
        "position_ids": np.where(mask[:, -length:] == 1, positions, padding),
    }
    return {name: array for name, array in inputs.items() if name in graph.inputs}


def word_inputs(numbers: Ids, width: int) -> dict[str, Ids]:
    """The inputs of words and of spans of up to ``width`` words; ``numbers``: the number of the word that each token begins, from 1, or
    0, B T."""
    counts = numbers.max(1, keepdims=True)
    first = np.repeat(np.arange(max(1, int(counts.max()))), width)
    spans = np.stack((first, first + np.tile(np.arange(width), len(first) // width)), -1)
    values = (numbers, counts, np.repeat(spans[None], len(numbers), 0), spans[:, 1] < counts)
    return dict(zip(WORD_INPUTS, values, strict=True))
