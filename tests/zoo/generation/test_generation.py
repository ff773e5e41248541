"""Generating with PyTorch models: what comes is what full passes give."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import zoo
from specs.base.errors import UserError
from tests.zoo.tiny import bert, gpt2, t5
from zoo.core.reduced import fewer_layers, narrowed, small_inputs
from zoo.models.decoder import Decoder
from zoo.models.encoder_decoder import EncoderDecoder

PROMPTS = [[3, 1, 4], [1], [5, 9, 2, 6]]


def decoder(**changes: Any) -> Decoder:
    model = zoo.build(gpt2(**changes), weights="random")
    assert isinstance(model, Decoder)
    with torch.no_grad():  # random weights of a recipe repeat what they read
        for parameter in model.parameters():
            parameter.add_(
                torch.randn(parameter.shape, generator=torch.Generator().manual_seed(parameter.numel()))
            )
    return model


def by_full_passes(model: Decoder, prompt: list[int], count: int) -> list[int]:
    ids = list(prompt)
    with torch.no_grad():
        for _ in range(count):
            ids.append(int(model(torch.tensor([ids])).logits[0, -1].argmax()))
    return ids[len(prompt) :]


@pytest.mark.parametrize("position", ["learned", "rope", "alibi"])
def test_a_batch_continues_as_full_passes_of_each_prompt_do(position: str) -> None:
    model = decoder(position={"kind": position})
    assert model.generate(PROMPTS, 5) == [by_full_passes(model, prompt, 5) for prompt in PROMPTS]


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000), st.permutations(range(3)))
def test_the_samples_of_a_row_depend_only_on_its_index(seed: int, order: list[int]) -> None:
    model = decoder()
    alone = model.generate([PROMPTS[0]], 4, temperature=1.0, seed=seed)
    together = model.generate([PROMPTS[0], *(PROMPTS[i] for i in order)], 4, temperature=1.0, seed=seed)
    assert together[0] == alone[0]


def test_sampling_with_one_candidate_is_greedy_and_other_seeds_draw_others() -> None:
    model = decoder()
    assert model.generate(PROMPTS, 4, temperature=2.0, top_k=1) == model.generate(PROMPTS, 4)
    drawn = {tuple(model.generate([[1]], 6, temperature=2.0, seed=seed)[0]) for seed in range(5)}
    assert len(drawn) > 1


def test_a_stop_token_ends_a_sequence_and_tokens_are_streamed() -> None:
    model = decoder()
    free = model.generate(PROMPTS, 5)
    stop = free[0][1]
    told: list[list[int | None]] = []
    found = model.generate(PROMPTS, 5, stop={stop}, tell=told.append)
    for row, tokens in enumerate(found):
        assert tokens == (free[row][: free[row].index(stop) + 1] if stop in free[row] else free[row])
        assert [step[row] for step in told if step[row] is not None] == tokens


def test_the_context_is_the_end() -> None:
    model = decoder(context_length=6)
    assert [len(tokens) for tokens in model.generate([[1, 2, 3, 4]], 20)] == [2]
    with pytest.raises(UserError, match="must fit the context of tiny-gpt2, which is 6 tokens"):
        model.generate([[1] * 6], 20)


def test_an_encoder_decoder_generates_the_tokens_of_full_passes() -> None:
    model = zoo.build(t5(), weights="random")
    assert isinstance(model, EncoderDecoder)
    found = model.generate(PROMPTS, 4, start=7)
    for prompt, tokens in zip(PROMPTS, found, strict=True):
        ids = [7]
        with torch.no_grad():
            for _ in range(4):
                ids.append(int(model(torch.tensor([prompt]), torch.tensor([ids])).logits[0, -1].argmax()))
        assert tokens == ids[1:]


def test_an_encoder_decoder_writes_of_a_sound() -> None:
    spec = narrowed(small_inputs(fewer_layers(zoo.load("whisper-tiny"))), 6)
    model = zoo.build(spec, weights="random")
    assert isinstance(model, EncoderDecoder)
    assert spec.encoder is not None
    frames = 2 * (spec.context_length_of(spec.encoder) or 0)
    (tokens,) = model.generate(torch.randn(1, spec.embedding_of(spec.encoder).mel_bins, frames), 3)  # type: ignore[attr-defined]
    assert len(tokens) == 3


def test_models_that_cannot_generate_are_refused_with_the_reason() -> None:
    model: Any = zoo.build
    with pytest.raises(UserError, match="was built without weights: pass weights"):
        model(gpt2()).generate([[1]])
    spec = gpt2(head={"kind": "none"})
    with pytest.raises(UserError, match="Generating needs a head of kind language_modeling\n  value: none"):
        model(spec, weights="random").generate([[1]])
    with pytest.raises(UserError, match="Token ids must be below the vocab_size of tiny-gpt2"):
        decoder().generate([[99]])
    for wrong in (None, [], "abc", ["abc"], [1, 2], [[1.0]], torch.tensor([[1, 2]])):
        with pytest.raises(UserError, match="Prompts must be lists of token ids\n"):
            model(gpt2(), weights="random").generate(wrong)
    assert not hasattr(zoo.build(bert()), "generate")
