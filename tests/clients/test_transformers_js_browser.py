"""transformers.js, in Chromium with WebGPU and with WebAssembly, computes what transformers does."""

from __future__ import annotations

import pytest

from tests.clients.chromium import WASM, WEBGPU, Chromium
from tests.clients.conftest import Agree, Near

pytestmark = [pytest.mark.clients, pytest.mark.timeout(900)]

both = pytest.mark.parametrize("client", [WEBGPU, WASM], ids=["webgpu", "wasm"])


@both
def test_vectors_of_trained_weights(client: Chromium, near: Near) -> None:
    near(client, "transformers-js", "webgpu", class_name="AutoModel")


@both
@pytest.mark.parametrize("name", ["llama", "gpt2"])
def test_a_decoder(client: Chromium, name: str, agrees: Agree) -> None:
    agrees(client, name, "transformers-js", "webgpu", class_name="AutoModelForCausalLM")
