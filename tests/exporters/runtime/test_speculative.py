"""Speculative decoding: the tokens of the target alone, whatever the draft proposes."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models

from exporters.runtime.draft import check_draft
from exporters.runtime.exported import Exported, open_export
from exporters.runtime.generation import Continuation, Generator
from exporters.runtime.speculative import SpeculativeGenerator
from specs.base.errors import UserError
from specs.model.model import Model
from tests.exporters.models import written
from tests.exporters.runtime.test_running import DECISIVE, LATENT, LLAMA
from tests.exporters.whole.test_mixers import MIXERS
from tests.strategies import model_data
from tests.thinned import one_in
from tests.zoo.tiny import BLOCK, bert, gpt2, t5
from zoo.generation.sampling import Sampling, probabilities

DECODERS: dict[str, dict[str, Any]] = {
    "gpt2": {"decoder": {"layers": 2, "block": BLOCK}},
    "windowed": LLAMA,
    "latent": LATENT,
    **{
        kind: {
            "position": {"kind": "rope"},
            "decoder": {
                "layers": [{"use": "mixing"}, {}],
                "block": BLOCK,
                "blocks": {"mixing": {**BLOCK, "attention": None, "mixer": {"kind": kind, **mixer}}},
            },
        }
        for kind, mixer in MIXERS.items()
    },
}
"""Decoders with attention, and hybrids of each mixer with a state of constant size."""
TARGETS = ["portable", "cpu", "tensorrt"]
PROMPTS = st.lists(st.lists(st.integers(0, 19), min_size=1, max_size=12), min_size=1, max_size=2)


def spec(name: str, *, shallow: bool = False, **changes: Any) -> Model:
    """A decoder by its name, or its first layer: the random weights of the layer are the same."""
    head = {"kind": "language_modeling", "tie_embeddings": False}  # tied, it would repeat its input
    data = {**DECODERS[name], "context_length": 40, "head": head, **changes}
    layers = data["decoder"]["layers"]
    if shallow and isinstance(layers, list):
        data |= {"decoder": {**data["decoder"], "layers": layers[:1]}, "position": {"kind": "none"}}
    elif shallow:
        data["decoder"] = {**data["decoder"], "layers": 1}
    return gpt2(initialization=DECISIVE, **data)


@dataclass
class Pair:
    """A target alone, and with its first layer and with itself as the draft."""

    alone: Generator
    drafted: SpeculativeGenerator
    own: SpeculativeGenerator

    def without(self, prompts: Sequence[list[int]], most: int, **options: Any) -> list[Continuation]:
        """The continuations by the target alone, each on its own."""
        return [self.alone.generate([prompt], most, **options).continuations[0] for prompt in prompts]


Opens = Callable[[str, str], Pair]


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Opens:
    """Loads the exports of a decoder for a target, once."""
    place = tmp_path_factory.mktemp("drafts")

    @cache
    def get(name: str, target: str) -> Pair:
        exports = []
        for shallow in (False, True):
            directory = place / f"{name}-{target}-{shallow}"
            written(spec(name, shallow=shallow), directory, target=target, verify=False)
            exports.append(open_export(directory))
        whole, draft = exports
        return Pair(
            Generator(whole), SpeculativeGenerator(whole, draft, 1), SpeculativeGenerator(whole, whole, 1)
        )

    return get


@one_in(6)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", DECODERS)
@given(
    prompts=PROMPTS,
    draft_tokens=st.integers(1, 9),
    most=st.integers(1, 40),
    own=st.booleans(),
    stop=st.lists(st.integers(0, 19), max_size=1),
)
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_draft_changes_no_token(
    opened: Opens,
    name: str,
    target: str,
    prompts: list[list[int]],
    draft_tokens: int,
    most: int,
    own: bool,
    stop: list[int],
) -> None:
    """The draft is the first layer of the target, or, as its ``own``, the target itself: then every proposal is accepted."""
    pair = opened(name, target)
    drafted = pair.own if own else pair.drafted
    drafted.draft_tokens = draft_tokens
    told: list[list[int]] = []
    found = drafted.generate(prompts, most, stop=stop, tell=told.append)
    assert found.continuations == pair.without(prompts, most, stop=stop)
    assert [token for (token,) in told] == [token for each in found.continuations for token in each.ids]
    assert 0 <= found.accepted <= found.proposed
    if own and not stop:
        assert found.accepted == found.proposed
