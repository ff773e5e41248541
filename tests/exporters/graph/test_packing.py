"""Padding taken out of encoders: the same vectors at real tokens, and no work for the others."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from exporters.graph.fusing import fuse
from exporters.graph.translate import Lowering
from exporters.target.targets import TARGETS
from specs.language.load import load
from specs.model.model import Model
from tests.exporters.graphs import message, placeholder
from tests.exporters.models import verified, written
from tests.strategies import Data, model_data
from tests.thinned import one_in
from tests.zoo.tiny import BLOCK, bert, t5, vit, whisper
from zoo import functional
from zoo.builder import assemble
from zoo.checkpoints.open_weights import open_weights
from zoo.core.reduced import fewer_layers, narrowed, small_tables
from zoo.tracing.symbols import Symbols
from zoo.tracing.tracer import Tracer
from zoo.weights.materialize import materialize

LENGTH = 10
PLAIN = {"heads": 2, "head_dim": 6}
GATED = {"kind": "gated", "hidden": 12, "activation": "silu"}


def block(**changes: Any) -> dict[str, Any]:
    return {"encoder": {"layers": 2, "block": {**BLOCK, **changes}}}


def local() -> dict[str, Any]:
    """Windows in every other layer."""
    narrow = {**BLOCK, "attention": {"kind": "multi_head", **PLAIN, "window": 4}}
    layers = [{"pattern": [{}, {"use": "narrow"}], "repeat": 2}]
    return {"encoder": {"layers": layers, "block": BLOCK, "blocks": {"narrow": narrow}}}


KINDS: dict[str, Model] = {
    "plain": bert(),
    "rope": bert(position={"kind": "rope", "layout": "interleaved"}, **block(norm={"kind": "rms_norm"})),
    "relative": bert(position={"kind": "relative_bias", "buckets": 8, "max_distance": 6}),
    "alibi": bert(position={"kind": "alibi"}, **block(feed_forward=GATED)),
    "windows": bert(position={"kind": "rope"}, **local()),
    "grouped": bert(**block(attention={"kind": "grouped_query", "heads": 4, "kv_heads": 2})),
    "softcap": bert(**block(attention={"kind": "multi_head", **PLAIN, "softcap": 5.0})),
    "normed": bert(**block(attention={"kind": "multi_head", **PLAIN, "qk_norm": {"norm": {"kind": "rms_norm"}}})),
    "pooled": bert(head={"kind": "pooled", "pooling": "mean", "normalize": True}),
    "last": bert(head={"kind": "classification", "labels": 3, "pooling": "last", "activation": "tanh"}),
    "scores": bert(head={"kind": "masked_language_modeling", "norm": {"kind": "layer_norm"}}),
    "span": bert(head={"kind": "question_answering"}),
}  # fmt: skip


class Written:
    """A model on target cpu, and in PyTorch."""

    def __init__(self, spec: Model, directory: Path) -> None:
        self.model = assemble(spec)
        materialize(self.model, open_weights("random", self.model, spec, seed=0))
        written(spec, directory, target="cpu")
        self.path = directory / "model.onnx"
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(self.path, options, providers=["CPUExecutionProvider"])
        self.products = _products(self.path)

    def feeds(self, mask: Tensor) -> dict[str, Tensor]:
        generator = torch.Generator().manual_seed(3)
        feeds = {"input_ids": torch.randint(20, mask.shape, generator=generator), "attention_mask": mask}
        return {**feeds, "token_type_ids": torch.randint(2, mask.shape, generator=generator)}


def _products(path: Path) -> list[str]:
    """Give every matrix product an output of the graph; the names of those outputs."""
    model = onnx.load(path, load_external_data=False)
    names = [node.output[0] for node in model.graph.node if node.op_type == "Gemm"]
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in names)
    onnx.save(model, path.with_name("products.onnx"))
    return names


@pytest.fixture(scope="module")
def models(tmp_path_factory: Any) -> Callable[[str], Written]:
    made: dict[str, Written] = {}

    def model(kind: str) -> Written:
        if kind not in made:
            made[kind] = Written(KINDS[kind], tmp_path_factory.mktemp(kind) / "x")
        return made[kind]

    return model


def masks() -> st.SearchStrategy[Tensor]:
    """Any mask: padding on either side, holes, rows with nothing else."""
    rows = st.integers(1, LENGTH).flatmap(
        lambda length: st.lists(
            st.lists(st.integers(0, 1), min_size=length, max_size=length), min_size=1, max_size=4
        )
    )
    return rows.map(torch.tensor)


@one_in(12)
@pytest.mark.parametrize("kind", KINDS)
def test_any_mask_gives_the_models_vectors_at_real_tokens_and_0_elsewhere(
    kind: str, models: Callable[[str], Written]
) -> None:
    model = models(kind)
    per_token = {"last_hidden_state", "start_logits", "end_logits"} | (
        {"logits"} if kind == "scores" else set()
    )

    @settings(max_examples=20, deadline=None, suppress_health_check=list(HealthCheck))
    @given(mask=masks())
    def check(mask: Tensor) -> None:
        feeds = model.feeds(mask)
        with torch.no_grad():
            expected = model.model(feeds["input_ids"], mask, token_type_ids=feeds["token_type_ids"])
        names = [output.name for output in model.session.get_outputs()]
        results = model.session.run(names, {name: value.numpy() for name, value in feeds.items()})
        for name, result in zip(names, map(torch.from_numpy, results), strict=True):
            real = mask == 1 if name in per_token else torch.ones(mask.shape[0], dtype=torch.bool)
            torch.testing.assert_close(result[real], expected[name][real], atol=1e-5, rtol=1e-4)
            if name in per_token:
                hidden = (mask == 0) & mask.any(1, keepdim=True)
                assert not result[hidden].any()

    check()


@one_in(3)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("pooled", "last")])
def test_matrices_are_multiplied_with_real_tokens_alone(kind: str, models: Callable[[str], Written]) -> None:
    model = models(kind)
    mask = torch.tensor([[1, 1, 0, 0, 0], [0, 0, 0, 1, 1], [1, 0, 1, 0, 1]])
    session = onnxruntime.InferenceSession(
        model.path.with_name("products.onnx"), providers=["CPUExecutionProvider"]
    )
    feeds = {name: value.numpy() for name, value in model.feeds(mask).items()}
    assert len(model.products) >= 8
    assert {len(product) for product in session.run(model.products, feeds)} == {7}


@one_in(10)
@pytest.mark.parametrize(
    "preset",
    [
        "bert-base", "roberta-base", "distilbert-base", "albert-base-v2", "electra-small", "minilm-l6", "e5-small",
        "gte-base", "modernbert-base", "t5-v1.1-xxl-encoder", "clip-vit-b32-text",
    ],
)  # fmt: skip
def test_every_family_of_encoders_is_verified(preset: str, tmp_path: Path) -> None:
    spec = narrowed(small_tables(fewer_layers(load(preset))), 8)
    assert spec.encoder is not None
    result = written(spec, tmp_path / "x", target="cpu")
    assert result.verification is not None
    assert result.verification.passed
    facts = result.graphs["model.onnx"]
    assert facts["operations"]["MultiHeadAttention"] == len(spec.encoder.layer_blocks())
    assert facts["unfused"] == []


@one_in(20)
@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16", "int8", "int4"])
@pytest.mark.parametrize("preset", ["bert-base", "albert-base-v2", "modernbert-base", "t5-v1.1-xxl-encoder"])
def test_encoders_on_cuda_compute_real_tokens_with_a_kernel_for_every_node(
    preset: str, precision: str, tmp_path: Path
) -> None:
    spec = narrowed(small_tables(fewer_layers(load(preset))), 8)
    result = verified(spec, tmp_path / "x", target="cuda", precision=precision)
    (graph,) = result.manifest.graphs.values()
    assert not graph.unfused
    assert graph.placement is not None
    assert (graph.placement.on_cpu, graph.placement.copies) == ({}, 0)
    model = onnx.load(tmp_path / "x" / "model.onnx", load_external_data=False)
    assert any(node.op_type == "NonZero" for node in model.graph.node)


@one_in(3)
@pytest.mark.parametrize(
    ("make", "name"), [(t5, "encoder_model"), (vit, "model"), (whisper, "encoder_model")]
)
def test_only_tokens_are_packed(make: Callable[[], Model], name: str, tmp_path: Path) -> None:
    result = written(make(), tmp_path / "x", target="cpu")
    assert result.verification is not None
    assert result.verification.passed
    graph = onnx.load(tmp_path / "x" / f"{name}.onnx", load_external_data=False).graph
    operations = [node.op_type for node in graph.node]
    assert operations.count("MultiHeadAttention") == 2
    assert ("NonZero" in operations) == (make is t5)


@pytest.mark.slow
@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=model_data())
def test_much_of_what_the_language_can_say_of_encoders_is_verified(data: Data, tmp_path_factory: Any) -> None:
    spec = Model.model_validate(data)
    if spec.encoder is not None:
        directory = tmp_path_factory.getbasetemp() / "drawn"
        shutil.rmtree(directory, ignore_errors=True)
        result = written(spec, directory, target="cpu")
        assert result.verification is not None
        assert result.verification.passed


# ------------------------------------------------------------------------------------------------ calls by themselves


class Custom(nn.Module):
    """An encoder that calls what it is given on embedded tokens and on the mask, between two linear layers."""

    def __init__(self, body: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table, self.first, self.last = nn.Embedding(20, 8), nn.Linear(8, 8), nn.Linear(8, 8)
        self.body = body

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        return self.last(self.body(self.first(self.table(ids)), mask))


class Wide(Custom):
    """One in float16 whose last layer is added to float32, after a dropout that drops nothing."""

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        x = self.first(self.table(ids))
        return F.dropout(self.last(self.body(x, mask)), 0.1, training=False).float() + x.float()


def lowered(module: Custom) -> tuple[onnx.ModelProto, list[str]]:
    """The graph on target cpu, and why it is not packed."""
    inputs = [placeholder(name, "i B T") for name in ("input_ids", "attention_mask")]
    symbols = Symbols.of(inputs, (20, 8))
    target = TARGETS["cpu"]
    traced = Tracer(module, symbols).run(lambda model, given: {"y": model(*given.values())}, inputs)
    unfused = fuse(traced, target, None)
    model = message(Lowering(traced, target, symbols, inputs).graph("tested"))
    weights = dict(module.named_parameters())
    for tensor in model.graph.initializer:
        if tensor.external_data:
            values = onnx.numpy_helper.from_array(weights[tensor.name].detach().numpy(), tensor.name)
            tensor.CopyFrom(values)
    return model, unfused


def attended(x: Tensor, mask: Tensor) -> Tensor:
    """Attention of two heads, with the tokens on the third axis."""
    bias = functional.attention_bias(mask, None, None, None, x, causal=False)
    heads = x.unflatten(-1, (2, 4)).transpose(1, 2)
    return functional.attention(heads, heads, heads, bias, scale=0.5).transpose(1, 2).flatten(2)


PACKED: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "view with sizes": lambda x, mask: x.view(x.shape[0], x.shape[1], 2, 4).reshape(x.shape[0], x.shape[1], 8),
    "expand": lambda x, mask: x[:, :, None].expand(x.shape[0], x.shape[1], 3, 8).mean(2),
    "softmax of features": lambda x, mask: F.softmax(x, -1),
    "softmax of heads": lambda x, mask: F.softmax(x.unflatten(-1, (2, 4)).transpose(1, 2), 1).transpose(1, 2).flatten(2),
    "largest": lambda x, mask: torch.cat((x.topk(3, -1)[0], x.topk(5, -1)[0]), -1),
    "slices": lambda x, mask: torch.cat((x[..., 4:], x[:, : x.shape[1], :4]), -1),
    "mask as a factor": lambda x, mask: x * mask[..., None].to(x.dtype),
    "tokens behind": lambda x, mask: (x.transpose(1, 2) * mask[:, None].to(x.dtype)).transpose(1, 2),
    "attention": attended,
    "product": lambda x, mask: x @ functional.constant((2.0,) * 8, x)[:, None] + x,
}  # fmt: skip
PADDED: dict[str, tuple[str, Callable[[Tensor, Tensor], Tensor]]] = {
    "first token": ("getitem", lambda x, mask: x[:, :1] + x),
    "mean of tokens": ("mean", lambda x, mask: x + x.mean(1, keepdim=True)),
    "softmax over tokens": ("softmax", lambda x, mask: F.softmax(x, 1)),
    "sum so far": ("cumsum", lambda x, mask: x.cumsum(1)),
    "rows as tokens": ("reshape", lambda x, mask: x.transpose(1, 2).reshape(x.shape[0], x.shape[1], 8)),
    "places": ("add", lambda x, mask: x + functional.positions_from(0, x.shape[1], x)[None, :, None].to(x.dtype)),
    "attention to all": ("multi_head_attention", lambda x, mask: attended_to_all(x)),
}  # fmt: skip


def attended_to_all(x: Tensor) -> Tensor:
    heads = x.unflatten(-1, (2, 4)).transpose(1, 2)
    return functional.attention(heads, heads, heads, None, scale=0.5).transpose(1, 2).flatten(2)


def results(model: onnx.ModelProto, module: Custom) -> tuple[Tensor, Tensor, Tensor]:
    mask = torch.tensor([[1, 1, 0, 0, 0], [0, 0, 0, 1, 1], [1, 0, 1, 0, 1], [0, 0, 0, 0, 0]])
    ids = torch.randint(20, mask.shape, generator=torch.Generator().manual_seed(1))
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (got,) = session.run(["y"], {"input_ids": ids.numpy(), "attention_mask": mask.numpy()})
    with torch.no_grad():
        return torch.from_numpy(np.asarray(got)), module(ids, mask), mask


@one_in(3)
@pytest.mark.parametrize("call", PACKED)
def test_calls_that_keep_tokens_apart_are_packed(call: str) -> None:
    module = Custom(PACKED[call])
    model, unfused = lowered(module)
    assert unfused == []
    assert any(node.op_type == "NonZero" for node in model.graph.node)
    got, expected, mask = results(model, module)
    taken = (mask == 1) | ~mask.any(1, keepdim=True)
    torch.testing.assert_close(got[taken], expected[taken], atol=1e-6, rtol=1e-5)
    assert not got[~taken].any()


def test_float16_products_with_float32_results_multiply_real_tokens_alone() -> None:
    """The product after attention too, whose tokens are unpacked."""
    module = Wide(attended).half()
    model, unfused = lowered(module)
    assert unfused == []
    del model.graph.output[:]
    products = [node.output[0] for node in model.graph.node if node.op_type == "Gemm"]
    model.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in products)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    mask = np.array([[1, 1, 0, 0, 0], [0, 0, 0, 1, 1], [1, 0, 1, 0, 1]])
    feeds = {"input_ids": np.zeros_like(mask), "attention_mask": mask}
    assert [len(product) for product in session.run(products, feeds)] == [7, 7]


@pytest.mark.parametrize("call", PADDED)
def test_an_encoder_that_mixes_tokens_without_a_mask_keeps_its_padding(call: str) -> None:
    name, body = PADDED[call]
    module = Custom(body)
    model, unfused = lowered(module)
    assert unfused == [f"no padding: the model: {name} mixes tokens without a mask"]
    assert not any(node.op_type == "NonZero" for node in model.graph.node)
    got, expected, _ = results(model, module)
    torch.testing.assert_close(got, expected, atol=1e-6, rtol=1e-5)
