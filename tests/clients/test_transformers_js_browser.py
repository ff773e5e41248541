"""transformers.js, in Chromium with WebGPU and with WebAssembly, computes what transformers does.

The adapter is SwiftShader, whose subgroups are too narrow for ONNX Runtime's fused attention: they are hidden from it, as the example
page does (``examples/web/subgroups.js``).
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest

from exporters.export import export
from exporters.steps.options import ExportOptions
from specs.language.load import load
from tests.clients.chromium import WASM, WEBGPU, Chromium
from tests.clients.conftest import NEW_TOKENS, Agree, Near
from tests.clients.spectrograms import whisper
from tests.parity.minilm import SENTENCES, SPEC, load_minilm
from zoo import import_checkpoint

pytestmark = [pytest.mark.clients, pytest.mark.timeout(900)]

both = pytest.mark.parametrize("client", [WEBGPU, WASM], ids=["webgpu", "wasm"])


@both
def test_vectors_of_trained_weights(client: Chromium, near: Near) -> None:
    near(client, "transformers-js", "webgpu", class_name="AutoModel")


@both
@pytest.mark.parametrize("name", ["llama", "gpt2", "qwen3"])
def test_a_decoder(client: Chromium, name: str, agrees: Agree) -> None:
    agrees(client, name, "transformers-js", "webgpu", class_name="AutoModelForCausalLM")


@both
def test_tokens_from_spectrograms(client: Chromium, tmp_path: Path) -> None:
    origin = tmp_path / "reference"
    features, expected = whisper(origin, NEW_TOKENS)
    options = ExportOptions(weights=str(origin), layout="transformers-js", target="webgpu")
    export(import_checkpoint(origin), tmp_path / "deployed", options)
    answers = client(
        tmp_path / "deployed",
        class_name="AutoModelForSpeechSeq2Seq",
        spectrograms=[{"sizes": [*each.shape], "values": each.flatten().tolist()} for each in features],
        new_tokens=NEW_TOKENS,
        options={"no_repeat_ngram_size": 1},
    )
    found = [tokens for each in answers for tokens in each["tokens"]]
    print(f"Whisper on {client.device}\n  transformers.js {found}\n  transformers    {expected}")
    assert found == expected


def test_a_wrong_scale_of_attention_is_seen_on_the_provider(tmp_path: Path) -> None:
    minilm = load_minilm()
    options = ExportOptions(
        weights=str(minilm.directory), layout="transformers-js", target="webgpu", verify=False
    )
    export(load(SPEC), tmp_path / "deployed", options)
    path = tmp_path / "deployed" / "onnx" / "model.onnx"
    model = onnx.load(path, load_external_data=False)
    for node in model.graph.node:
        for attribute in node.attribute:
            if node.op_type == "MultiHeadAttention" and attribute.name == "scale":
                attribute.f *= 1.5
    onnx.save(model, path)
    (answer,) = WEBGPU(tmp_path / "deployed", batches=[[SENTENCES[0]]], class_name="AutoModel")
    wanted = minilm.hidden_states()[0, : len(answer["vectors"][0])].numpy()
    assert np.abs(np.array(answer["vectors"][0]) - wanted).max() > 1e-2
