"""Generate, from texts or recordings, embed or match, with optimum.onnxruntime: the answers to a request."""

from typing import Any

import optimum.onnxruntime
import torch
from transformers import AutoTokenizer


def answer(request: dict[str, Any]) -> list[dict[str, Any]]:
    """An answer to each batch of texts, to each recording, and to pairs of texts and images."""
    model = getattr(optimum.onnxruntime, request["class_name"]).from_pretrained(request["directory"])
    answers = []
    for texts in request.get("batches", []):
        batch, echo = tokenized(request, texts)
        if "new_tokens" in request:
            answers.append({"tokens": generated(model, request, batch), "echo": echo})
        else:
            answers.append({"vectors": model(**batch).last_hidden_state.tolist()})
    for samples in request.get("heard", []):
        inputs = {"input_values": torch.tensor(samples)[None]}
        answers.append({"tokens": generated(model, request, inputs)})
    if "pairs" in request:
        answers.append({"scores": matches(model, request)})
    return answers


def tokenized(request: dict[str, Any], texts: list[str]) -> tuple[Any, str]:
    """A padded batch of texts, and the first text as the tokenizer gives it back."""
    tokenizer = AutoTokenizer.from_pretrained(request["directory"])
    batch = tokenizer(texts, padding=True, return_tensors="pt")
    return batch, tokenizer.decode(batch["input_ids"][0])


def generated(model: Any, request: dict[str, Any], inputs: Any) -> list[list[int]]:
    """The tokens after some inputs."""
    count = request["new_tokens"]
    length = {"min_new_tokens": count, "max_new_tokens": count}
    found = model.generate(**inputs, **length, do_sample=False, **request.get("options", {}))
    return found[:, -count:].tolist()


def matches(model: Any, request: dict[str, Any]) -> list[list[float]]:
    """The score of each text for each image."""
    pairs = request["pairs"]
    images = torch.tensor(pairs["values"]).view(pairs["sizes"])
    batch, _ = tokenized(request, pairs["texts"])
    found = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"], pixel_values=images)
    return found.logits_per_image.tolist()
