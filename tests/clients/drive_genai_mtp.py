"""Generate with onnxruntime-genai and a draft by multi-token prediction: the answer to a request."""

from typing import Any

import numpy as np
import onnxruntime_genai as genai


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The tokens of a prompt and those after it, and how many of them the draft proposed."""
    model, draft = genai.Model(request["directory"]), genai.Model(request["draft"])
    parameters = genai.GeneratorParams(model)
    parameters.set_search_options(max_length=request["length"], do_sample=False)
    parameters.set_speculative_options(max_draft_tokens=request["draft_tokens"])
    generator = genai.MtpGenerator(model, draft, parameters)
    generator.append_tokens(np.array(request["prompt"], np.int32))
    while not generator.is_done():
        generator.generate_next_token()
    tokens = [int(token) for token in generator.get_sequence()]
    return {"tokens": tokens, "accepted": generator.get_stats()["draft_tokens_accepted"]}
