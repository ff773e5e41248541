"""Embed sentences with sentence-transformers' ONNX backend: the answer to a request."""

from typing import Any

from sentence_transformers import SentenceTransformer


def answer(request: dict[str, Any]) -> dict[str, Any]:
    """The vector of each text."""
    model = SentenceTransformer(
        request["directory"], backend="onnx", model_kwargs={"file_name": "model.onnx"}
    )
    return {"vectors": model.encode(request["texts"]).tolist()}
