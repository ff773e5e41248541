"""Serve an exported decoder over HTTP, with the standard library, numpy and onnxruntime.

zoo export smollm2-135m --weights path/to/checkpoint --logits last -o build/smollm2
python examples/server.py build/smollm2 8000
curl localhost:8000 -d '{"ids": [1, 2, 3], "max_new_tokens": 8}'
"""

import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import onnxruntime


def generate(session: onnxruntime.InferenceSession, ids: list[int], count: int) -> list[int]:
    """The best next tokens, one after another; keys and values go from each step to the next."""
    cache = {}
    for value in session.get_inputs():
        if value.name.startswith("past"):  # 1 x heads x 0 tokens x width
            cache[value.name] = np.zeros([1, value.shape[1], 0, value.shape[3]], np.float32)
    new, outputs = ids, [output.name for output in session.get_outputs()]
    for total in range(len(ids), len(ids) + count):
        step = {"input_ids": np.array([new]), "attention_mask": np.ones((1, total), np.int64)}
        results = dict(zip(outputs, session.run(None, {**step, **cache}), strict=True))
        cache = {name: results[name.replace("past_key_values", "present")] for name in cache}
        new = [int(results["logits"][0, -1].argmax())]
        ids = [*ids, *new]
    return ids[len(ids) - count :]


class Handler(BaseHTTPRequestHandler):
    session: onnxruntime.InferenceSession

    def do_POST(self) -> None:
        try:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            ids = generate(self.session, asked["ids"], asked.get("max_new_tokens", 16))
            status, answer = 200, {"ids": ids}
        except Exception as error:  # whatever is wrong with a request ends that request alone
            status, answer = 400, {"error": f"{type(error).__name__}: {error}"}
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())


if __name__ == "__main__":
    Handler.session = onnxruntime.InferenceSession(f"{sys.argv[1]}/model.onnx")
    ThreadingHTTPServer(("localhost", int(sys.argv[2])), Handler).serve_forever()
