"""Generate, or embed, with optimum.onnxruntime: a request on stdin, the answers on stdout."""

import json
import sys
from typing import Any

import optimum.onnxruntime
from transformers import AutoTokenizer

request = json.load(sys.stdin)
model = getattr(optimum.onnxruntime, request["class_name"]).from_pretrained(request["directory"])
tokenizer = AutoTokenizer.from_pretrained(request["directory"])
new_tokens = request.get("new_tokens")


def answer(texts: list[str]) -> dict[str, Any]:
    """The vectors of each text; or the tokens after it, and the first text as the tokenizer gives it back."""
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    if new_tokens is None:
        return {"vectors": model(**batch).last_hidden_state.tolist()}
    length = {"min_new_tokens": new_tokens, "max_new_tokens": new_tokens}
    found = model.generate(**batch, **length, do_sample=False, **request.get("options", {}))
    return {"tokens": found[:, -new_tokens:].tolist(), "echo": tokenizer.decode(batch["input_ids"][0])}


print(json.dumps([answer(texts) for texts in request["batches"]]))
