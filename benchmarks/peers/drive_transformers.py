"""Prompts and steps by transformers in PyTorch, eager."""

import copy
from collections.abc import Callable
from inspect import signature

import torch
from transformers import AutoModelForCausalLM

from exporters.benchmark.serving import Call, Data, serve


def load(request: Data) -> Callable[[Data], Callable[[], Call]]:
    """A checkpoint in float32."""
    torch.set_num_threads(request["threads"])
    model = AutoModelForCausalLM.from_pretrained(
        request["path"], dtype=torch.float32, attn_implementation="eager"
    ).eval()

    cache = "cache_params" if "cache_params" in signature(model.forward).parameters else "past_key_values"

    @torch.inference_mode()
    def read(tokens: torch.Tensor, past: object = None) -> object:
        return getattr(model(tokens, **{cache: past}, use_cache=True, logits_to_keep=1), cache)

    def prepare(work: Data) -> Callable[[], Call]:
        if work["kind"] == "prompt":
            prompt = ids(work["lengths"][0])
            return lambda: lambda: read(prompt)
        assert work["kind"] == "step"
        past = read(ids(work["past"]))

        def begin() -> Call:
            held = copy.deepcopy(past)  # each step leaves one token more in it
            return lambda: read(ids(1), held)

        return begin

    return prepare


def ids(count: int) -> torch.Tensor:
    """Token ids as in ``exporters/benchmark/workload.py``."""
    return (7 * torch.arange(count))[None] % 251


serve(load)
