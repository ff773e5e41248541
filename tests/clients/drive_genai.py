"""Generate with onnxruntime-genai: a request on stdin, the answers on stdout."""

import json
import sys
from typing import Any

import onnxruntime_genai as genai

request = json.load(sys.stdin)
new_tokens = request["new_tokens"]
model = genai.Model(request["directory"])
tokenizer = genai.Tokenizer(model)


def generated(texts: list[str]) -> dict[str, Any]:
    """The tokens after each text, and the first text as the tokenizer gives it back."""
    prompts = tokenizer.encode_batch(texts).as_numpy()
    rows, length = prompts.shape
    total = length + new_tokens
    parameters = genai.GeneratorParams(model)
    parameters.set_search_options(batch_size=rows, min_length=total, max_length=total, do_sample=False)
    generator = genai.Generator(model, parameters)
    generator.append_tokens(prompts)
    while not generator.is_done():
        generator.generate_next_token()
    tokens = [[int(token) for token in generator.get_sequence(row)[length:]] for row in range(rows)]
    return {"tokens": tokens, "echo": tokenizer.decode(prompts[0])}


print(json.dumps([generated(texts) for texts in request["batches"]]))
