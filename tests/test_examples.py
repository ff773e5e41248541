"""The examples do what they say."""

from __future__ import annotations

import importlib.util
import json
import threading
import urllib.error
import urllib.request
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import onnxruntime
import pytest

import zoo
from specs.language.load import load

EXAMPLES = Path(__file__).parents[1] / "examples"


def example(name: str) -> ModuleType:
    """An example as a module."""
    described = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert described is not None
    assert described.loader is not None
    module = importlib.util.module_from_spec(described)
    described.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_training_and_exporting(tmp_path, capsys):
    example("train_and_export").main(str(tmp_path / "out"))
    told = capsys.readouterr().out
    assert float(told.partition("% of answers")[0].split()[-1]) > 90
    assert json.loads((tmp_path / "out" / "build.json").read_text())["verification"]["passed"]


def test_the_server_generates_the_models_tokens(tmp_path):
    model = zoo.build(load("tiny-gpt", ["decoder.layers=1", "d_model=32"]), weights="random")
    zoo.export(model, tmp_path / "out", logits="last", verify=False)
    server = example("server")
    server.Handler.session = onnxruntime.InferenceSession(tmp_path / "out" / "model.onnx")
    server.Handler.log_message = lambda *_: None
    with ThreadingHTTPServer(("localhost", 0), server.Handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        try:
            address = f"http://localhost:{running.server_port}"
            [expected] = model.generate([[5, 6, 7]], 6)  # type: ignore[operator]
            assert answer(address, {"ids": [5, 6, 7], "max_new_tokens": 6}) == {"ids": expected}
            with pytest.raises(urllib.error.HTTPError) as wrong:
                answer(address, {"words": "none"})
            assert json.loads(wrong.value.read())["error"] == "KeyError: 'ids'"
        finally:
            running.shutdown()
            thread.join()


def answer(address, question):
    with urllib.request.urlopen(address, json.dumps(question).encode(), timeout=200) as reply:
        return json.load(reply)


def test_the_server_is_short():
    assert len((EXAMPLES / "server.py").read_text().splitlines()) <= 50


@pytest.mark.slow
def test_the_notebook_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    cells = json.loads((EXAMPLES / "first_look.ipynb").read_text())["cells"]
    names: dict[str, Any] = {"__name__": "notebook"}
    for cell in cells:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [], "clear the outputs before you commit"
            exec(compile("".join(cell["source"]), "first_look.ipynb", "exec"), names)
    assert names["written"].verification.passed


def test_models_that_recall_are_of_one_size():
    counts = {
        name: sum(each.numel() for each in zoo.build(EXAMPLES / "recall" / f"{name}.yaml").parameters())
        for name in ("attention", "hybrid", "state")
    }
    assert max(counts.values()) < 1.3 * min(counts.values())
