"""Embed sentences with sentence-transformers' ONNX backend: a request on stdin, the answer on stdout."""

import json
import sys

from sentence_transformers import SentenceTransformer

request = json.load(sys.stdin)
model = SentenceTransformer(request["directory"], backend="onnx", model_kwargs={"file_name": "model.onnx"})
print(json.dumps({"vectors": model.encode(request["texts"]).tolist()}))
