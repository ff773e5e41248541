"""Generate with onnxruntime-genai: the answers to a request."""

import os
from functools import cache
from typing import Any

import onnxruntime_genai as genai

SWIFTSHADER = "/usr/lib/chromium/vk_swiftshader_icd.json"


def answer(request: dict[str, Any]) -> list[dict[str, Any]]:
    """The tokens after each batch of texts, with each adapter, and after each prompt about images."""
    if request.get("webgpu"):
        register_webgpu()
    model = genai.Model(request["directory"])
    adapters = genai.Adapters(model)
    for name, path in request.get("adapters", {}).items():
        adapters.load(path, name)
    count = request["new_tokens"]
    answers = [generated(model, count, texts) for texts in request.get("batches", [])]
    answers += [generated(model, count, **asked, adapters=adapters) for asked in request.get("adapted", [])]
    answers += [said(model, count, **asked) for asked in request.get("asked", [])]
    return answers


@cache
def register_webgpu() -> None:
    """Register the provider, once."""
    import onnxruntime_ep_webgpu

    os.environ["ORT_WEBGPU_EP_ALLOW_SOFTWARE_ADAPTER"] = "1"
    if os.path.exists(SWIFTSHADER) and not os.path.exists("/dev/dri"):
        os.environ.setdefault("VK_ICD_FILENAMES", SWIFTSHADER)
    genai.register_execution_provider_library(
        "WebGpuExecutionProvider", onnxruntime_ep_webgpu.get_library_path()
    )


def said(model: Any, new_tokens: int, prompt: str, images: list[str]) -> dict[str, Any]:
    """The tokens of a prompt about images, or about none, and those after it."""
    processor = model.create_multimodal_processor()
    inputs = processor(prompt, images=genai.Images.open(*images) if images else None)
    length = inputs["input_ids"].as_numpy().shape[-1]
    parameters = genai.GeneratorParams(model)
    total = length + new_tokens
    parameters.set_search_options(min_length=total, max_length=total, do_sample=False)
    generator = genai.Generator(model, parameters)
    generator.set_inputs(inputs)
    while not generator.is_done():
        generator.generate_next_token()
    found = [int(token) for token in generator.get_sequence(0)]
    return {"prompt": found[:length], "tokens": found[length:]}


def generated(
    model: Any, new_tokens: int, texts: list[str], adapter: str | None = None, adapters: Any = None
) -> dict[str, Any]:
    """The tokens after each text, with an adapter switched on if one is named, and the first text as the tokenizer gives it back."""
    tokenizer = genai.Tokenizer(model)
    prompts = tokenizer.encode_batch(texts).as_numpy()
    rows, length = prompts.shape
    total = length + new_tokens
    parameters = genai.GeneratorParams(model)
    parameters.set_search_options(batch_size=rows, min_length=total, max_length=total, do_sample=False)
    generator = genai.Generator(model, parameters)
    if adapter is not None:
        generator.set_active_adapter(adapters, adapter)
    generator.append_tokens(prompts)
    while not generator.is_done():
        generator.generate_next_token()
    tokens = [[int(token) for token in generator.get_sequence(row)[length:]] for row in range(rows)]
    return {"tokens": tokens, "echo": tokenizer.decode(prompts[0])}
