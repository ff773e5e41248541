"""Caches of keys and values in 8 and 4 bits: their arithmetic, their scales, exports that have them, and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx
import pytest
import torch
from torch import Tensor

from exporters.export import export
from exporters.exported.model_source import model_source
from exporters.graph.emitters import group_query_attention as emitter
from exporters.graph.quantization.cache_scales import CacheScale
from exporters.graph.quantization.cache_scheme import CacheFormat
from exporters.quality.budget import CACHE_LIMITS, LIMITS, Budget, budget_of
from exporters.rounding.quantized_cache import calibrate
from exporters.runtime.exported import open_export
from exporters.runtime.generation import Generator
from exporters.steps.options import ExportOptions
from exporters.target.targets import CONTRIB
from exporters.verification.quantized_cache import reference
from exporters.verification.result import CodeTies, VerificationError
from specs.base.descriptions import field_descriptions
from specs.base.errors import UserError
from specs.files.export_options import OptionTable
from specs.model.model import Model
from tests.exporters.graph.test_precisions import wide
from tests.exporters.models import verified
from tests.exporters.quality import checkpoints
from tests.exporters.verification.test_verification import operation
from tests.thinned import one_in
from tests.zoo.tiny import BLOCK, bert, gpt2, t5
from zoo.builder import assemble
from zoo.record.records import CacheRecord
from zoo.weights.random import RandomWeights

Patch = pytest.MonkeyPatch
FORMATS = [CacheFormat(8), CacheFormat(4)]
CPU = {"target": "cpu"}


def grouped(**changes: Any) -> Model:
    """A decoder with rotated keys, four heads, and two of keys and values."""
    attention = {"kind": "grouped_query", "heads": 4, "kv_heads": 2}
    spec = {"layers": 2, "block": {**BLOCK, "attention": attention}}
    return wide(gpt2, position={"kind": "rope"}, decoder=spec, **changes)


def reusing() -> Model:
    """A decoder whose second layer attends to the keys and values of the first."""
    again = {**BLOCK, "attention": {"kind": "multi_head", "heads": 2, "reuses_keys_values": True}}
    return gpt2(decoder={"layers": [{}, {"use": "again"}], "block": BLOCK, "blocks": {"again": again}})


@pytest.mark.parametrize("cache", FORMATS)
def test_the_runtime_rounds_as_the_scheme_does_and_prompts_attend_to_their_own_codes(
    cache: CacheFormat,
) -> None:
    import onnxruntime

    heads, width, tokens = 2, 16, 5
    generator = torch.Generator().manual_seed(3)
    query, key, value = (torch.randn(1, tokens, heads * width, generator=generator) for _ in range(3))
    scales = [torch.rand(1, heads, 1, width, generator=generator) / cache.high * 4 + 1e-3 for _ in range(2)]
    kind = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(str(cache.dtype).removeprefix("torch.")))
    floats, past = onnx.TensorProto.FLOAT, [1, heads, None, cache.stored_width(width)]
    given: dict[str, tuple[int, Any, Any]] = {
        **{name: (floats, [1, None, heads * width], x.numpy()) for name, x in zip("qkv", (query, key, value), strict=True)},
        **{name: (kind, past, np.zeros((*past[:2], 0, past[3]), str(cache.dtype).removeprefix("torch."))) for name in ("pk", "pv")},
        "last": (onnx.TensorProto.INT32, [1], np.array([tokens - 1], np.int32)),
        "total": (onnx.TensorProto.INT32, [], np.array(tokens, np.int32)),
        **{name: (floats, [1, heads, 1, width], x.numpy()) for name, x in zip(("ks", "vs"), scales, strict=True)},
    }  # fmt: skip
    node = onnx.helper.make_node(
        "GroupQueryAttention", ["q", "k", "v", "pk", "pv", "last", "total", *[""] * 5, "ks", "vs"], ["y", "ok", "ov"],
        domain=CONTRIB, num_heads=heads, kv_num_heads=heads, k_quant_type="PER_CHANNEL", v_quant_type="PER_CHANNEL",
        kv_cache_bit_width=cache.bits,
    )  # fmt: skip
    graph = onnx.helper.make_graph(
        [node], "g", [onnx.helper.make_tensor_value_info(name, *facts[:2]) for name, facts in given.items()],
        [onnx.helper.make_tensor_value_info(name, element, None) for name, element in (("y", floats), ("ok", kind), ("ov", kind))],
    )  # fmt: skip
    opsets = [onnx.helper.make_opsetid("", 18), onnx.helper.make_opsetid(CONTRIB, 1)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    got, *stored = map(torch.from_numpy, session.run(None, {name: each[2] for name, each in given.items()}))

    queries, keys, values = (x.unflatten(-1, (heads, width)).transpose(1, 2) for x in (query, key, value))
    codes = [cache.codes(x, scale) for x, scale in zip((keys, values), scales, strict=True)]
    assert all(int(each.min()) == cache.low and int(each.max()) == cache.high for each in codes)
    for ours, theirs in zip(codes, stored, strict=True):
        assert torch.equal(cache.unpacked(theirs), ours)
    rounded_keys, rounded_values = (each * scale for each, scale in zip(codes, scales, strict=True))
    wanted = torch.nn.functional.scaled_dot_product_attention(
        queries, rounded_keys, rounded_values, is_causal=True
    )
    torch.testing.assert_close(got, wanted.transpose(1, 2).flatten(2), atol=2e-6, rtol=1e-5)


@pytest.mark.parametrize("cache", FORMATS)
def test_scales_have_the_least_error_of_all_that_are_tried(cache: CacheFormat) -> None:
    generator = torch.Generator().manual_seed(5)
    values = torch.randn(500, 2, 8, generator=generator)  # N G K
    values[0] = 6.0  # one token with outliers, which hardly counts
    weights = torch.ones(500, 2)
    weights[0] = 1e-3

    def error(scale: Tensor) -> Tensor:
        heads = values.transpose(0, 1)
        return ((cache.codes(heads, scale) * scale - heads).square() * weights.T[..., None]).sum(1)

    found = calibrate.searched(cache, values, weights)
    unclipped = values.transpose(0, 1).abs().amax(1, keepdim=True) / cache.high
    assert bool((error(found) < 0.5 * error(unclipped)).all())
    assert bool((error(found) <= error(found * 1.2)).all() and (error(found) <= error(found * 0.8)).all())


def test_a_channel_that_is_always_zero_has_a_scale() -> None:
    assert bool((calibrate.searched(CacheFormat(8), torch.zeros(4, 1, 8), torch.ones(4, 1)) > 0).all())


def test_codes_of_the_file_are_taken_at_ties_alone() -> None:
    scale, values = torch.tensor(0.5), torch.tensor([0.7500001, 0.7500001, 0.8, 1.0])
    own = CacheFormat(8).codes(values, scale)
    given = torch.tensor([1.0, 3.0, 1.0, 2.0])
    assert reference.at_ties(values, scale, own, given).tolist() == [1.0, 2.0, 2.0, 2.0]


def test_a_cache_whose_codes_are_mostly_ties_does_not_pass() -> None:
    assert CodeTies(1000, 10).passed
    assert not CodeTies(1000, 11).passed


@one_in(2)
@pytest.mark.parametrize("precision", ["int8", "int4"])
def test_a_decoder_with_a_quantized_cache(tmp_path: Path, precision: Literal["int8", "int4"]) -> None:
    found = verified(grouped(), tmp_path / "out", target="cpu", cache_precision=precision)
    assert found.manifest.cache == CacheRecord(kind="shared", padding="right", precision=precision)
    assert found.manifest.options.cache_precision == precision
    facts = found.graphs["model.onnx"]
    assert facts["inputs"]["past_key_values.0.key"][-1] == 16 * int(precision.removeprefix("int")) // 8
    assert facts["minimum_runtime"] == "onnxruntime 1.28.0"
    ties = found.verification.ties
    assert ties.compared > 1000
    assert ties.passed
    assert "decoder.blocks.1.attention.value_scale" in found.manifest.tensors["model.onnx.data"]
    session = Generator(open_export(tmp_path / "out"))
    prompt = [5, 7, 11, 2]
    generated = session.generate([prompt], 6).continuations[0].ids
    for count, token in enumerate(generated):  # a prompt attends to codes, as steps do
        scores = session.begin([prompt], 6, 0)[0].read([prompt + generated[:count]])
        assert int(scores[0].argmax()) == token


@pytest.mark.slow
@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize("precision", ["fp16", "int4", "int8"])
def test_precisions_and_targets_with_a_quantized_cache(tmp_path: Path, precision: str, target: str) -> None:
    for cache in ("int8", "int4"):
        verified(grouped(), tmp_path / cache, precision=precision, target=target, cache_precision=cache)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"attention": {"kind": "multi_head", "heads": 2, "window": 4}},
        {"attention": {"kind": "multi_head", "heads": 2, "softcap": 20.0}},
        {"attention": {"kind": "multi_head", "heads": 2, "sinks": True}},
        {"attention": {"kind": "multi_head", "heads": 2, "qk_norm": {"norm": {"kind": "rms_norm"}}}},
    ],
    ids=lambda changes: "-".join(changes["attention"]),
)
def test_kinds_of_attention_with_a_quantized_cache(tmp_path: Path, changes: dict[str, Any]) -> None:
    spec = wide(gpt2, position={"kind": "rope"}, decoder={"layers": 2, "block": {**BLOCK, **changes}})
    for cache in ("int8", "int4"):
        verified(spec, tmp_path / cache, target="cpu", cache_precision=cache)


def test_scales_are_the_same_every_time() -> None:
    spec = grouped()
    source = RandomWeights(assemble(spec), spec)
    case = calibrate.random_case(spec)
    first, second = (
        calibrate.calibrated_scales(CacheFormat(4), spec, source, case, lambda stage: None) for _ in range(2)
    )
    assert first.keys() == second.keys() == {f"decoder.blocks.{layer}.attention" for layer in range(2)}
    for path, pair in first.items():
        assert all(torch.equal(*each) for each in zip(pair, second[path], strict=True))
        assert all(scale.shape == (2, 1, 16) and bool((scale > 0).all()) for scale in pair)


def scales_too_large(patch: Patch) -> None:
    original = CacheScale.pieces
    patch.setattr(CacheScale, "pieces", lambda self, source: ((1.02 * x,) for (x,) in original(self, source)))


def scales_of_the_next_head(patch: Patch) -> None:
    def pieces(self: CacheScale, source: Any) -> Any:
        assert self.values is not None
        yield (self.values.roll(1, 0).reshape(-1),)

    patch.setattr(CacheScale, "pieces", pieces)


def scales_swapped(patch: Patch) -> None:
    original = emitter._scales
    patch.setattr(emitter, "_scales", lambda *args: original(*args)[::-1])


def another_bit_width(patch: Patch) -> None:
    def op(write: Any, graph: Any, name: str, *inputs: Any, **attributes: Any) -> Any:
        if "kv_cache_bit_width" in attributes:
            attributes["kv_cache_bit_width"] = 8
        return write(name, *inputs, **attributes)

    operation(patch, op)


@one_in(4)
@pytest.mark.parametrize(
    "sabotage", [scales_too_large, scales_of_the_next_head, scales_swapped, another_bit_width]
)
def test_sabotage_of_a_quantized_cache_is_caught(sabotage: Any, tmp_path: Path, monkeypatch: Patch) -> None:
    sabotage(monkeypatch)
    with pytest.raises(VerificationError):
        export(grouped(), tmp_path / "x", ExportOptions(target="cpu", cache_precision="int4"))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("spec", "options", "message"),
    [
        (gpt2(), {"cache_precision": "int2"}, "cache_precision 'int2' is unknown"),
        (bert(), {}, "cache_precision applies only to decoders\n  value: tiny-bert; an encoder has no cache\n  Leave it out."),
        (t5(), {}, "cache_precision applies only to decoders\n  value: tiny-t5; the caches of an encoder-decoder grow"),
        (grouped(), {"target": "portable"}, "cache_precision int8 needs attention operations with scales for their cache\n"
         "  value: target portable\n  Pass target cpu or target cuda, or leave it out."),
        (grouped(), {"via": "torch"}, "cache_precision needs zoo's own tracer\n  value: via torch\n"),
        (grouped(), {"precision": "bf16"}, "cache_precision int8 needs every attention of tiny-gpt2 fused with its cache\n"
         "  value: GroupQueryAttention: decoder.blocks.0.attention: GroupQueryAttention has no kernel for bfloat16\n"),
        (gpt2(), {}, "the head width is 4, and must be a multiple of 8"),
        (reusing(), {}, "cache_precision int8 needs keys and values of its own in every layer, because each has its scales\n"
         "  value: tiny-gpt2, whose layer 1 reuses the keys and values of another layer\n  Leave it out."),
    ],
)  # fmt: skip
def test_unsupported_quantized_caches_are_refused(
    spec: Model, options: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UserError) as error:
        export(spec, tmp_path / "x", ExportOptions(**{**CPU, "cache_precision": "int8", **options}))
    assert message in str(error.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("layout", ["optimum", "transformers-js"])
def test_clients_that_pad_on_the_left_have_float_caches(layout: str, tmp_path: Path) -> None:
    origin = checkpoints.llama(tmp_path / "checkpoint")
    options = ExportOptions(weights=str(origin), layout=layout, target="cpu", cache_precision="int8")
    message = f"layout {layout}, whose client pads on the left\n  Pass layout onnx or genai, or leave it out."
    with pytest.raises(UserError) as error:
        export(model_source(str(origin)).spec, tmp_path / "x", options)
    assert message in str(error.value)


def test_the_budget_of_a_cache_comes_on_top() -> None:
    found = budget_of({"kl": 0.0}, "int4", None, None, "int8")
    limit = LIMITS["int4"].max_kl + CACHE_LIMITS["int8"].max_kl
    assert found == Budget("kl", limit, "int4 with an int8 cache")
    assert budget_of({"kl": 0.0}, "fp32", None, None, "int4").limit == CACHE_LIMITS["int4"].max_kl


@pytest.mark.slow
def test_a_quantized_cache_of_real_weights_is_calibrated_and_judged(tmp_path: Path) -> None:
    origin = checkpoints.llama(tmp_path / "checkpoint")
    spec = model_source(str(origin)).spec
    found = export(
        spec,
        tmp_path / "out",
        ExportOptions(weights=str(origin), target="cpu", cache_precision="int4", max_kl=1.0),
    )
    assert found.quality is not None
    assert found.quality.figures["kl"] > 0
    assert found.quality.budget == Budget("kl", 1.0, "fp32 with an int4 cache")
    assert found.manifest.calibrated_on is not None


@pytest.mark.slow
def test_a_cache_has_the_same_scales_without_verification(tmp_path: Path) -> None:
    origin = checkpoints.llama(tmp_path / "checkpoint", text=False)
    spec = model_source(str(origin)).spec
    graphs = set()
    for verify in (True, False):
        options = ExportOptions(weights=str(origin), target="cpu", cache_precision="int8", verify=verify)
        export(spec, tmp_path / f"{verify}", options)
        graphs.add((tmp_path / f"{verify}" / "model.onnx").read_bytes())
    assert len(graphs) == 1


def test_help_states_the_budgets_of_caches() -> None:
    kl, cosine = (field_descriptions(OptionTable)[name] for name in ("max_kl", "min_cosine"))
    for name, limits in CACHE_LIMITS.items():
        assert f"an {name} cache adds {limits.max_kl:g}" in kl or f"an {name} cache {limits.max_kl:g}" in kl
        off = f"{1 - limits.min_cosine:.3g}"
        assert f"{off} with an {name} cache" in cosine or f"{off} with {name}" in cosine
