"""Generate, from texts or recordings, embed or match, with optimum.onnxruntime: a request on stdin, the answers on stdout."""

import json
import sys
from typing import Any

import optimum.onnxruntime
import torch
from transformers import AutoTokenizer

request = json.load(sys.stdin)
model = getattr(optimum.onnxruntime, request["class_name"]).from_pretrained(request["directory"])
tokenizer = AutoTokenizer.from_pretrained(request["directory"]) if {"batches", "pairs"} & {*request} else None
new_tokens = request.get("new_tokens")


def answer(texts: list[str]) -> dict[str, Any]:
    """The vectors of each text; or the tokens after it, and the first text as the tokenizer gives it back."""
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    if new_tokens is None:
        return {"vectors": model(**batch).last_hidden_state.tolist()}
    return {"tokens": generated(batch), "echo": tokenizer.decode(batch["input_ids"][0])}


def generated(inputs: Any) -> list[list[int]]:
    """The tokens after some inputs."""
    length = {"min_new_tokens": new_tokens, "max_new_tokens": new_tokens}
    found = model.generate(**inputs, **length, do_sample=False, **request.get("options", {}))
    return found[:, -new_tokens:].tolist()


def matches(pairs: dict[str, Any]) -> list[list[float]]:
    """The score of each text for each image."""
    images = torch.tensor(pairs["values"]).view(pairs["sizes"])
    batch = tokenizer(pairs["texts"], padding=True, return_tensors="pt")
    found = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], pixel_values=images)
    return found.logits_per_image.tolist()


answers = [answer(texts) for texts in request.get("batches", [])]
for samples in request.get("heard", []):
    answers.append({"tokens": generated({"input_values": torch.tensor(samples)[None]})})
if "pairs" in request:
    answers.append({"scores": matches(request["pairs"])})
print(json.dumps(answers))
