"""Inputs of the example programs that run an export."""

from __future__ import annotations

from specs.model import Model
from zoo.checkpoints.carried import GENERATION
from zoo.manifest import Manifest
from zoo.records import GraphRecord

TOKENIZER = "tokenizer.json"
"""The file that the Rust tokenizers of all clients read."""


def example_ids(spec: Model, graph: GraphRecord) -> str:
    """Return a few valid token ids as the items of a list."""
    longest = min(4, graph.context_length or 4)
    return ", ".join(str(1 + place % max(1, (spec.vocab_size or 2) - 1)) for place in range(longest))


def lacks_start_token(spec: Model, manifest: Manifest) -> bool:
    """Return whether a client needs the start token of an encoder-decoder as an argument."""
    return spec.architecture == "encoder-decoder" and GENERATION not in manifest.files
