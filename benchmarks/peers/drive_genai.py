"""Prompts and steps by onnxruntime-genai."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime_genai as genai

from exporters.benchmark.serving import Call, Data, serve

ROOM = 512
"""Maximum number of steps in a round."""


def load(request: Data) -> Callable[[Data], Callable[[], Call]]:
    """A model with its cache in place, as configured by its builder."""
    config = genai.Config(request["path"])
    decoder = {"session_options": {"intra_op_num_threads": request["threads"]}}
    written = json.loads((Path(request["path"]) / "genai_config.json").read_text())["model"]["decoder"]
    if window := written.get("sliding_window"):
        decoder["sliding_window"] = {**window, "cache_slack": ROOM}  # so that every round can begin anew
    config.overlay(json.dumps({"model": {"decoder": decoder}}))
    model = genai.Model(config)

    def generator(tokens: int, room: int) -> genai.Generator:
        parameters = genai.GeneratorParams(model)
        parameters.set_search_options(
            batch_size=1, do_sample=False, min_length=tokens + room, max_length=tokens + room
        )
        return genai.Generator(model, parameters)

    def prepare(work: Data) -> Callable[[], Call]:
        if work["kind"] == "prompt":
            prompt = ids(work["lengths"][0])
            return lambda: lambda: generator(len(prompt), 1).append_tokens(prompt)
        assert work["kind"] == "step"
        past = ids(work["past"])
        under_way = generator(len(past), ROOM)
        under_way.append_tokens(past)
        under_way.generate_next_token()  # the scores of the prompt are there; those after it take a step

        def begin() -> Call:
            under_way.rewind_to(len(past))
            under_way.append_tokens(ids(1))
            return under_way.generate_next_token

        return begin

    return prepare


def ids(count: int) -> np.ndarray:
    """Token ids as in ``exporters/benchmark/workload.py``."""
    return 7 * np.arange(count, dtype=np.int32)


serve(load)
