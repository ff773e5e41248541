"""Sabotage: every way to get an export wrong is caught, and nothing of it is kept."""

from __future__ import annotations

import json
import math
import operator
from collections.abc import Callable
from dataclasses import replace
from inspect import signature, unwrap
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
import torch.nn.functional as F

from exporters.data.proto import model_proto
from exporters.export import export
from exporters.graph.builder import GraphBuilder
from exporters.graph.emitters import registry
from exporters.graph.emitters.registry import Call, Operand
from exporters.steps import graphs as graphs_module
from exporters.verification.cases import cases
from exporters.verification.result import OutputComparison, Verification, VerificationError
from specs.kinds.mixture import Mixture
from specs.language.load import load
from specs.model.model import Model
from tests.exporters.models import GRAPH_ONLY, verified, written
from tests.thinned import one_in
from tests.zoo.tiny import BLOCK, bert, clip, gpt2, t5, vit, whisper
from zoo import functional
from zoo.components.router import Router
from zoo.context import StackContext
from zoo.record.certificate import certify
from zoo.tracing.symbols import Placeholder, Symbols

Patch = pytest.MonkeyPatch
Sabotage = Callable[[Patch], None]


def replaced(patch: Patch, target: Any, change: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Change the emitter of a function."""
    patch.setitem(registry._emitters, target, change(registry._emitters[target]))


def operation(patch: Patch, change: Callable[..., Any]) -> None:
    """Change what is written: ``change(original, graph, name, *inputs, **attributes)``."""
    original = GraphBuilder.op

    def op(graph: GraphBuilder, name: str, *inputs: Any, **attributes: Any) -> Any:
        return change(lambda *a, **k: original(graph, *a, **k), graph, name, *inputs, **attributes)

    patch.setattr(GraphBuilder, "op", op)


def body(patch: Patch, function: Any, changed: Callable[..., Any]) -> None:
    """Change what a trace sees in one of our functions; the reference keeps its own."""
    patch.setattr(function, "__wrapped__", changed)


def seen_from(patch: Patch, change: Callable[[Any, Any], tuple[Any, Any]]) -> None:
    """Change the positions of queries and keys by which a bias tells who sees whom."""
    original = unwrap(functional.attention_bias)

    def bias(mask: Any, position: Any, queries: Any, keys: Any, *rest: Any, **named: Any) -> Any:
        moved = (queries, keys) if queries is None else change(queries, keys)
        return original(mask, position, *moved, *rest, **named)

    body(patch, functional.attention_bias, bias)


def no_causal_mask(patch: Patch) -> None:
    seen_from(patch, lambda queries, keys: (queries, keys * 0))


def causal_mask_one_off(patch: Patch) -> None:
    seen_from(patch, lambda queries, keys: (queries, keys - 1))


def causal_mask_from_the_first_key(patch: Patch) -> None:
    seen_from(patch, lambda queries, keys: (queries - queries[:, :1], keys))


def padding_has_places(patch: Patch) -> None:
    """Distances count places, and not real tokens."""

    def by_place(queries: Any, keys: Any) -> tuple[Any, Any]:
        length = keys.shape[1]
        places = functional.positions_from(0, length, keys)[None]
        return places[:, length - queries.shape[1] :], places

    seen_from(patch, by_place)


def no_padding_mask(patch: Patch) -> None:
    original = unwrap(functional.attention_bias)
    body(
        patch,
        functional.attention_bias,
        lambda mask, *rest, **named: original(None if mask is None else mask * 0 + 1, *rest, **named),
    )


def padding_on_the_right_only(patch: Patch) -> None:
    body(patch, functional.token_positions, lambda mask, length: functional.positions_from(
        mask.shape[1] - length, length, mask)[None])  # fmt: skip


def mask_of_the_first_row_for_all(patch: Patch) -> None:
    original = unwrap(functional.attention_bias)

    def bias(mask: Any, *rest: Any, **named: Any) -> Any:
        return original(None if mask is None else mask[:1].expand(mask.shape), *rest, **named)

    body(patch, functional.attention_bias, bias)


def fixed_batch(patch: Patch) -> None:
    original = GraphBuilder.size

    def size(graph: GraphBuilder, sizes: Any, *rest: Any) -> Any:
        return graph.ints(1) if graph.symbols.name(sizes) == "batch_size" else original(graph, sizes, *rest)

    patch.setattr(GraphBuilder, "size", size)


def fixed_length(patch: Patch) -> None:
    original = GraphBuilder.size

    def size(graph: GraphBuilder, sizes: Any, *rest: Any) -> Any:
        named = str(graph.symbols.name(sizes))
        return (
            graph.ints(7)
            if named.endswith("sequence_length") and "past" not in named
            else original(graph, sizes, *rest)
        )

    patch.setattr(GraphBuilder, "size", size)


def half_of_the_heads_swapped(patch: Patch) -> None:
    def change(original: Any) -> Any:
        def emit(call: Call, x: Operand, *sizes: Any, **named: Any) -> Any:
            value = original(call, x, *sizes, **named)
            if not call.graph.path.endswith("attention") or call.result.ndim != 4:
                return value
            return call.op("Concat", *(call.op("Slice", value, *(call.graph.ints(n) for n in (start, end, 2)))
                                       for start, end in ((1, 9), (0, 1))), axis=2)  # fmt: skip

        return emit

    replaced(patch, "unflatten", change)


def another_eps(patch: Patch) -> None:
    def change(original: Any) -> Any:
        def emit(call: Call, *args: Any, **named: Any) -> Any:
            place = signature(original).bind(call, *args, **named)
            place.arguments["eps"] = place.arguments["eps"] * 100 + 1e-4
            return original(*place.args, **place.kwargs)

        return emit

    replaced(patch, F.layer_norm, change)
    replaced(patch, F.rms_norm, change)


def another_gelu(patch: Patch) -> None:
    replaced(patch, F.gelu, lambda original: lambda call, x, approximate="none": original(
        call, x, "none" if approximate == "tanh" else "tanh"))  # fmt: skip


def no_biases(patch: Patch) -> None:
    replaced(
        patch, F.linear, lambda original: lambda call, x, weight, bias=None: original(call, x, weight, None)
    )


def no_norm_weights(patch: Patch) -> None:
    def change(original: Any) -> Any:
        def emit(call: Call, *args: Any, **named: Any) -> Any:
            place = signature(original).bind(call, *args, **named)
            place.arguments["weight"] = None
            return original(*place.args, **place.kwargs)

        return emit

    replaced(patch, F.layer_norm, change)
    replaced(patch, F.rms_norm, change)


def no_scale(patch: Patch) -> None:
    replaced(patch, F.scaled_dot_product_attention, lambda original: lambda call, *a, **k: original(
        call, *a, **{**k, "scale": k["scale"] * 1.01}))  # fmt: skip


def transposed_matrices(patch: Patch) -> None:
    def change(op: Any, graph: Any, name: str, *inputs: Any, **attributes: Any) -> Any:
        if name == "Gemm" and len(set(inputs[1].dims)) == 1:
            attributes["transB"] = 0
        return op(name, *inputs, **attributes)

    operation(patch, change)


def weights_shifted_by_one_tensor(patch: Patch) -> None:
    def place(graph: Any, regions: Any, file: str) -> Any:
        names, places = list(regions), list(regions.values())
        shifted = dict(zip(names, places[1:] + places[:1], strict=True))
        return model_proto(
            graph, {name: replace(regions[name], offset=shifted[name].offset) for name in names}, file
        )

    patch.setattr(graphs_module, "model_proto", place)


def two_layers_exchanged(patch: Patch) -> None:
    def place(graph: Any, regions: Any, file: str) -> Any:
        swap = {".blocks.0.": ".blocks.1.", ".blocks.1.": ".blocks.0."}

        def other(name: str) -> str:
            part = next((part for part in swap if part in name and "feed_forward.up" in name), None)
            return name.replace(part, swap[part]) if part else name

        return model_proto(graph, {name: regions[other(name)] for name in regions}, file)

    patch.setattr(graphs_module, "model_proto", place)


def far_distances_one_bucket_off(patch: Patch) -> None:
    def change(original: Any) -> Any:
        def emit(call: Call, values: tuple[Any, ...], like: Operand) -> Any:
            if len(values) == 257:  # the buckets of T5's 128 distances on either side
                values = (*values[:100], *(max(0, bucket - 1) for bucket in values[100:102]), *values[102:])
                values = (values[0], *values[1:28], *(values[28:30][::-1]), *values[30:])
                values = (max(0, values[0] - 1), *values[1:])
            return original(call, values, like)

        return emit

    replaced(patch, functional.constant, change)


def distances_cut_off(patch: Patch) -> None:
    replaced(patch, "clamp", lambda original: lambda call, x, min=None, max=None: original(
        call, x, -80 if min == -128 else min, max))  # fmt: skip


def cache_in_front(patch: Patch) -> None:
    body(patch, functional.append, lambda past, new: new if past is None else torch.cat((new, past), 2))


def cache_thrown_away(patch: Patch) -> None:
    body(patch, functional.append, lambda past, new: new if past is None else torch.cat((past * 0, new), 2))


def positions_start_again(patch: Patch) -> None:
    original = unwrap(functional.positions_from)
    assert original

    def change(emitter: Any) -> Any:
        return lambda call, start, length, like: emitter(
            call, 0 if call.graph.path == "" else start, length, like
        )

    replaced(patch, functional.positions_from, change)
    body(
        patch, functional.token_positions, lambda mask, length: (mask.cumsum(1) - 1).clamp(min=0)[:, :length]
    )


def no_cross_mask(patch: Patch) -> None:
    original = unwrap(functional.attention_bias)

    def bias(mask: Any, position: Any, queries: Any, *rest: Any, **named: Any) -> Any:
        cross = mask is not None and queries is None
        return original(mask * 0 + 1 if cross else mask, position, queries, *rest, **named)

    body(patch, functional.attention_bias, bias)


def not_a_number_in_empty_rows(patch: Patch) -> None:
    original = unwrap(functional.attention_bias)

    def bias(*args: Any, **named: Any) -> Any:
        found = original(*args, **named)
        return found if found is None else torch.where(found < -1e30, found * 10, found)  # -inf

    body(patch, functional.attention_bias, bias)


def no_token_types(patch: Patch) -> None:
    replaced(patch, F.embedding, lambda original: lambda call, ids, weight, **k: original(
        call, _zero(call, ids) if call.graph.path.endswith("token_type") else ids, weight, **k))  # fmt: skip


def _zero(call: Call, ids: Operand) -> Operand:
    return Operand(call.op("Mul", ids.value, call.graph.constant(0, torch.int64)), ids.info)


def rounded(patch: Patch) -> None:
    def change(op: Any, graph: Any, name: str, *inputs: Any, **attributes: Any) -> Any:
        value = op(name, *inputs, **attributes)
        if name != "Softmax":
            return value
        return op("Cast", op("Cast", value, to=onnx.TensorProto.FLOAT16), to=onnx.TensorProto.FLOAT)

    operation(patch, change)


def rope(make: Any, **changes: Any) -> Model:
    return make(context_length=32, position={"kind": "rope"}, **changes)


def angles_turned(patch: Patch) -> None:
    original = unwrap(functional.rotary_embedding)
    body(patch, functional.rotary_embedding, lambda x, cos, sin, **k: original(x, cos, -sin, **k))


def angles_interleaved(patch: Patch) -> None:
    original = unwrap(functional.rotary_embedding)
    body(patch, functional.rotary_embedding, lambda x, cos, sin, dimensions, interleaved: original(
        x, cos, sin, dimensions=dimensions, interleaved=not interleaved))  # fmt: skip


def slower_angles(patch: Patch) -> None:
    original = unwrap(functional.angles)
    body(
        patch, functional.angles, lambda positions, f: original(positions, (f[0], *(x * 1.01 for x in f[1:])))
    )


GROUPED = {**BLOCK, "attention": {"kind": "grouped_query", "heads": 4, "kv_heads": 2}}


def heads_grouped_the_other_way(patch: Patch) -> None:
    def change(original: Any) -> Any:
        def emit(call: Call, query: Operand, *rest: Any, **named: Any) -> Any:
            order = call.graph.ints(0, 2, 1, 3)
            turned = Operand(call.op("Gather", query.value, order, axis=1), query.info)
            return call.op("Gather", original(call, turned, *rest, **named), order, axis=1)

        return emit

    replaced(patch, F.scaled_dot_product_attention, change)


def in_head(patch: Patch, target: Any, changed: Callable[..., Any]) -> None:
    """Change what an emitter writes in the head: ``changed(call, original, *args)``."""

    def change(original: Any) -> Any:
        def emit(call: Call, *args: Any, **named: Any) -> Any:
            if call.graph.path not in ("head", "text_head"):
                return original(call, *args, **named)
            return changed(call, lambda *a: original(call, *a, **named), *args)

        return emit

    replaced(patch, target, change)


def another_token_sought(patch: Patch) -> None:
    in_head(patch, operator.eq, lambda call, write, x, number: write(x, 8 if number in (7, 9) else number))


def the_second_such_token_taken(patch: Patch) -> None:
    in_head(patch, operator.eq, lambda call, write, x, number: write(x, 2 if number == 1 else number))


def padding_sought_too(patch: Patch) -> None:
    def found(call: Call, write: Any, a: Operand, b: Any) -> Any:
        is_mask = call.result.dtype == torch.int64 and b.dtype == torch.int64
        return a.value if is_mask else write(a, b)

    in_head(patch, operator.mul, found)


def nothing_where_the_token_is_missing(patch: Patch) -> None:
    in_head(patch, torch.where, lambda call, write, condition, a, b: a.value)


def padding_in_the_mean(patch: Patch) -> None:
    def share(call: Call, write: Any, mask: Operand, count: Operand) -> Any:
        ones = call.op("Add", call.op("Mul", mask.value, call.graph.constant(0, torch.int64)), call.graph.constant(1, torch.int64))  # fmt: skip
        return write(Operand(ones, mask.info), count)

    in_head(patch, operator.truediv, share)


def of_any_length(patch: Patch) -> None:
    in_head(patch, F.normalize, lambda call, write, x: x.value)


def scores_without_bounds(patch: Patch) -> None:
    in_head(patch, torch.tanh, lambda call, write, x: x.value)


def no_fixed_bias(patch: Patch) -> None:
    in_head(patch, operator.add, lambda call, write, x, bias: x.value)


def start_for_end(patch: Patch) -> None:
    in_head(patch, operator.getitem, lambda call, write, x, index: write(x, (..., 0)))


AT_TOKEN = {"head": {"kind": "pooled", "pooling": {"token": 7}}}
MEAN = {"head": {"kind": "pooled", "pooling": "mean", "normalize": True}}
CLASS = {"head": {"kind": "classification", "labels": 3, "pooling": {"token": 7}}}
ANSWERS = {"head": {"kind": "question_answering"}}
BOUNDED = {"head": {"kind": "language_modeling", "softcap": 1.0, "bias": "fixed"}}


def no_window(patch: Patch) -> None:
    original = unwrap(functional.attention_bias)
    body(patch, functional.attention_bias, lambda *args, **k: original(*args, **{**k, "window": None}))


def window_one_off(patch: Patch) -> None:
    original = unwrap(functional.attention_bias)

    def bias(*args: Any, window: int | None = None, **named: Any) -> Any:
        return original(*args, window=None if window is None else window + 2, **named)

    body(patch, functional.attention_bias, bias)


def no_chunks(patch: Patch) -> None:
    original = unwrap(functional.attention_bias)
    body(patch, functional.attention_bias, lambda *args, **k: original(*args, **{**k, "chunk": None}))


def chunks_that_begin_one_later(patch: Patch) -> None:
    original = unwrap(functional.attention_bias)

    def bias(*args: Any, chunk: int | None = None, **named: Any) -> Any:
        if chunk is not None:
            mask, added, queries, keys, like = args
            args = (mask, added, queries - 1 + chunk, keys - 1 + chunk, like)
        return original(*args, chunk=chunk, **named)

    body(patch, functional.attention_bias, bias)


def no_softcap(patch: Patch) -> None:
    original = unwrap(functional.attention)
    body(patch, functional.attention, lambda *args, **k: original(*args, **{**k, "softcap": None}))


def softcap_after_the_mask(patch: Patch) -> None:
    def change(op: Any, graph: Any, name: str, *inputs: Any, **attributes: Any) -> Any:
        if name != "Softmax":
            return op(name, *inputs, **attributes)
        cap = graph.constant(2.0, torch.float32)
        return op(name, op("Mul", op("Tanh", op("Div", inputs[0], cap)), cap), **attributes)

    operation(patch, change)


def no_sinks(patch: Patch) -> None:
    original = unwrap(functional.attention)
    body(patch, functional.attention, lambda *args, **k: original(*args, **{**k, "sinks": None}))


def no_norm_of_keys(patch: Patch) -> None:
    for norm in (F.layer_norm, F.rms_norm):
        replaced(patch, norm, lambda original: lambda call, x, *a, **k: x.value if (
            "key_norm" in call.graph.path) else original(call, x, *a, **k))  # fmt: skip


def no_clip(patch: Patch) -> None:
    replaced(patch, "clamp", lambda original: lambda call, x, *a, **k: x.value if (
        call.graph.path.endswith("attention")) else original(call, x, *a, **k))  # fmt: skip


def bases_exchanged(patch: Patch) -> None:
    original = unwrap(functional.angles)
    body(patch, functional.angles, lambda positions, f: original(positions, tuple(
        10000.0 ** (-i / len(f)) for i in range(len(f)))))  # fmt: skip


def nothing_rounded(patch: Patch) -> None:
    replaced(patch, functional.rounded_to_bfloat16, lambda original: lambda call, x: call.cast(
        x.value, x.dtype, torch.float32))  # fmt: skip


def attending(make: Any, **attention: Any) -> Model:
    """A small model in which attention has something more."""
    block = {**BLOCK, "attention": {"kind": "grouped_query", "heads": 2, "kv_heads": 1, **attention}}
    stacks = {name: {"layers": 2, "block": block} for name, _ in make().stacks()}
    return make(**stacks, context_length=8192, position={"kind": "rope"})


def columns_one_off(patch: Patch) -> None:
    def change(original: Any) -> Any:
        def emit(
            call: Any, x: Any, weight: Any, bias: Any = None, stride: Any = 1, padding: Any = 0, *rest: Any
        ) -> Any:
            value = original(call, x, weight, bias, stride, padding, *rest)
            pads = value.node.attributes["pads"]
            half = len(pads) // 2
            value.node.attributes["pads"] = [p - 1 for p in pads[:half]] + [p + 1 for p in pads[half:]]
            return value

        return emit

    replaced(patch, F.conv1d, change)


def patches_without_bias(patch: Patch) -> None:
    replaced(patch, F.conv2d, lambda original: lambda call, x, weight, bias, *rest: original(
        call, x, weight, None, *rest))  # fmt: skip


def class_token_last(patch: Patch) -> None:
    def change(original: Any) -> Any:
        return lambda call, tensors, dim=0: original(call, tensors[::-1], dim)

    replaced(patch, torch.cat, change)


RELATIVE = {"position": {"kind": "relative_bias"}}
AXIAL = vit(
    position={"kind": "axial_rope"},
    embedding={"kind": "patches", "image_size": 9, "patch_size": 3, "channels": 1},
)
"""Three rows and columns: two of each would turn by half a circle, where either sense is the same."""

CASES: list[tuple[Sabotage, list[Model]]] = [
    (no_causal_mask, [gpt2(), t5()]),
    (causal_mask_one_off, [gpt2(), rope(gpt2), gpt2(position={"kind": "alibi"})]),
    (causal_mask_from_the_first_key, [gpt2(context_length=32), t5(), gpt2(position={"kind": "none"})]),
    (padding_has_places, [attending(gpt2, window=4)]),
    (no_padding_mask, [bert(), gpt2(), t5()]),
    (padding_on_the_right_only, [bert(context_length=32), gpt2(context_length=32), t5(position={"kind": "sinusoidal"})]),
    (mask_of_the_first_row_for_all, [bert(), gpt2(), t5()]),
    (fixed_batch, [bert(), gpt2(), t5()]),
    (fixed_length, [bert(), gpt2(), t5()]),
    (half_of_the_heads_swapped, [gpt2(position={"kind": "alibi"}), t5()]),
    (another_eps, [bert(), gpt2(), t5()]),
    (another_gelu, [bert(), gpt2()]),
    (no_biases, [bert(), gpt2()]),
    (no_norm_weights, [bert(), gpt2(), t5()]),
    (no_scale, [bert(), gpt2(), t5()]),
    (transposed_matrices, [bert(), gpt2(), t5()]),
    (weights_shifted_by_one_tensor, [bert(), gpt2(), t5()]),
    (two_layers_exchanged, [bert(), gpt2(), t5()]),
    (far_distances_one_bucket_off, [t5(), bert(context_length=200, **RELATIVE), gpt2(context_length=200, **RELATIVE)]),
    (distances_cut_off, [t5()]),
    (cache_in_front, [gpt2(), rope(gpt2), t5(), gpt2(position={"kind": "none"})]),
    (cache_thrown_away, [gpt2(), rope(gpt2), t5(), gpt2(position={"kind": "none"})]),
    (positions_start_again, [gpt2(), rope(gpt2)]),
    (no_cross_mask, [t5(), rope(t5)]),
    (not_a_number_in_empty_rows, [bert(), t5()]),
    (no_token_types, [bert(), gpt2(embedding={"token_types": 2}), t5(embedding={"token_types": 2})]),
    (rounded, [bert(), gpt2(), t5()]),
    (angles_turned, [rope(bert), rope(gpt2), rope(t5), AXIAL]),
    (angles_interleaved, [rope(bert), rope(gpt2), rope(t5)]),
    (columns_one_off, [whisper()]),
    (patches_without_bias, [vit()]),
    (class_token_last, [vit(), vit(embedding={**vit().embedding.model_dump(), "registers": 2})]),
    (class_token_last, [vit(embedding={**vit().embedding.model_dump(), "distillation_token": True})]),
    (no_biases, [vit(), whisper()]),
    (half_of_the_heads_swapped, [whisper()]),
    (cache_in_front, [whisper()]),
    (slower_angles, [rope(bert), rope(gpt2), bert(position={"kind": "sinusoidal"})]),
    (angles_interleaved, [AXIAL]),
    (another_token_sought, [bert(**AT_TOKEN), gpt2(**AT_TOKEN), t5(**AT_TOKEN), clip(vocab_size=600)]),
    (the_second_such_token_taken, [bert(**AT_TOKEN), gpt2(**CLASS), t5(**AT_TOKEN)]),
    (padding_sought_too, [bert(**AT_TOKEN), bert(**CLASS), gpt2(**AT_TOKEN)]),
    (nothing_where_the_token_is_missing, [bert(**AT_TOKEN), gpt2(**CLASS), t5(**AT_TOKEN)]),
    (padding_in_the_mean, [bert(**MEAN), gpt2(**MEAN)]),
    (of_any_length, [bert(**MEAN), gpt2(**MEAN), t5(**MEAN)]),
    (scores_without_bounds, [bert(**BOUNDED), gpt2(**BOUNDED), t5(**BOUNDED)]),
    (no_fixed_bias, [bert(**BOUNDED), gpt2(**BOUNDED), t5(**BOUNDED)]),
    (start_for_end, [bert(**ANSWERS), gpt2(**ANSWERS), t5(**ANSWERS)]),
    (heads_grouped_the_other_way, [gpt2(decoder={"layers": 1, "block": GROUPED})]),
    (no_window, [attending(make, window=window) for make in (bert, gpt2, t5) for window in (4, 4096)]),
    (window_one_off, [attending(make, window=6) for make in (bert, gpt2)]),
    (no_chunks, [attending(gpt2, chunk=chunk) for chunk in (4, 4096)]),
    (chunks_that_begin_one_later, [attending(gpt2, chunk=6)]),
    (no_softcap, [attending(make, softcap=50.0) for make in (bert, gpt2, t5)]),
    (softcap_after_the_mask, [attending(gpt2, softcap=2.0)]),
    (no_sinks, [attending(make, sinks=True) for make in (bert, gpt2, t5)]),
    (no_norm_of_keys, [attending(make, qk_norm={"norm": {"kind": "layer_norm"}, "over": over})
                       for make in (bert, gpt2, t5) for over in ("head", "width", "each_head")]),
    (no_clip, [attending(make, clip=8.0) for make in (bert, gpt2, t5)]),
    (bases_exchanged, [attending(gpt2, position={"kind": "rope", "theta": 100.0})]),
    (nothing_rounded, [gpt2(d_model=24, position={"kind": "alibi", "precision": "bfloat16"}, decoder={
        "layers": 1, "block": {**BLOCK, "attention": {"kind": "multi_head", "heads": 12}}})]),
]  # fmt: skip


EVERY = [(sabotage, spec) for sabotage, specs in CASES for spec in specs]


@one_in(60)
@pytest.mark.parametrize(
    ("sabotage", "spec"),
    EVERY,
    ids=[f"{sabotage.__name__}-{spec.name}-{spec.position.kind}" for sabotage, spec in EVERY],
)
def test_sabotage_is_caught_and_nothing_is_kept(
    sabotage: Sabotage, spec: Model, tmp_path: Path, monkeypatch: Patch
) -> None:
    sabotage(monkeypatch)
    _caught(spec, tmp_path, "random")


@one_in(4)
@pytest.mark.parametrize("sabotage", [no_biases, fixed_length, cache_in_front, another_gelu])
def test_sabotage_of_a_graph_without_weights_is_caught(
    sabotage: Sabotage, tmp_path: Path, monkeypatch: Patch
) -> None:
    sabotage(monkeypatch)
    _caught(gpt2(), tmp_path, "none")


def _caught(spec: Model, directory: Path, weights: str) -> None:
    with pytest.raises(VerificationError, match="The export differs from the PyTorch model: ") as error:
        written(spec, directory / "x", weights=weights)
    report = json.dumps(error.value.verification.as_dict())
    assert json.loads(report)["passed"] is False
    assert "Infinity" not in report
    assert not list(directory.iterdir())


@pytest.mark.slow
def test_without_sabotage_these_models_pass(tmp_path: Path) -> None:
    for i, spec in enumerate({spec.model_dump_json(): spec for _, specs in CASES for spec in specs}.values()):
        verified(spec, tmp_path / str(i), weights="none")


def test_verification_can_be_left_out(tmp_path: Path, monkeypatch: Patch) -> None:
    no_causal_mask(monkeypatch)
    assert export(gpt2(), tmp_path / "x", GRAPH_ONLY).verification is None


def test_rejections_by_the_runtime_are_reported_by_case(tmp_path: Path, monkeypatch: Patch) -> None:
    fixed_batch(monkeypatch)
    with pytest.raises(VerificationError) as error:
        written(gpt2(), tmp_path / "x")
    faults = [c for c in error.value.verification.comparisons if c.fault]
    assert faults
    assert all(math.isinf(c.max_abs) and not c.passed for c in faults)
    assert "ONNX Runtime rejects it: " in str(error.value)


def test_a_file_that_does_not_load_is_reported(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.setattr(
        graphs_module, "model_proto", lambda graph, regions, file: model_proto(graph, regions, "elsewhere")
    )
    with pytest.raises(VerificationError, match="loading, all outputs: ONNX Runtime rejects it: ") as error:
        written(gpt2(), tmp_path / "x")
    assert error.value.verification.provider == "none"
    assert not list(tmp_path.iterdir())


def test_a_wrong_shape_is_reported(tmp_path: Path, monkeypatch: Patch) -> None:
    replaced(monkeypatch, F.linear, lambda original: lambda call, x, weight, bias=None: call.op(
        "Concat", *[original(call, x, weight, bias)] * (2 if call.graph.path == "head.vocabulary" else 1), axis=-1))  # fmt: skip
    with pytest.raises(VerificationError, match=r"logits: shape \(1, 1, 40\), but \(1, 1, 20\) in PyTorch"):
        written(gpt2(), tmp_path / "x")


def test_nonfinite_outputs_are_reported(tmp_path: Path, monkeypatch: Patch) -> None:
    replaced(monkeypatch, F.layer_norm, lambda original: lambda call, *a, **k: call.op(
        "Div", original(call, *a, **k), call.graph.constant(0.0, torch.float32)))  # fmt: skip
    with pytest.raises(VerificationError, match="not finite"):
        written(gpt2(), tmp_path / "x")


def comparison(case: str, output: str, max_abs: float, passed: bool = True) -> OutputComparison:
    return OutputComparison(case, "1 x 1", output, max_abs, max_abs, 1e-5, None, passed)


def test_the_largest_difference_is_reported() -> None:
    found = (
        comparison("a", "logits", 1e-6),
        comparison("b", "logits", 2e-5, False),
        comparison("c", "present", 0.5, False),
    )
    verification = Verification("CPUExecutionProvider", "onnxruntime", "the model itself", found)
    assert not verification.passed
    assert verification.max_abs == 0.5
    message = "The export differs from the PyTorch model: c, present: 5.00e-01, 1.0e-05 allowed."
    assert str(VerificationError(verification)) == message


def test_a_difference_where_all_experts_tie_is_told_with_the_remedy() -> None:
    found = (comparison("a", "logits", 0.5, False),)
    message = str(VerificationError(Verification("p", "r", "the model itself", found, tied=True)))
    assert message.splitlines()[1:] == [
        "  In every case a router chooses between experts with equal scores, and either choice is right: "
        "export weights whose routers tell tokens apart."
    ]


def test_nothing_compared_is_nothing_proven() -> None:
    assert not Verification("CPUExecutionProvider", "onnxruntime", "the model itself").passed


def test_the_cases_of_a_reduced_model_are_summarized_by_the_worst_of_each_output() -> None:
    own = Verification("p", "r", "the model itself", (comparison("a", "logits", 1e-6),))
    reduced = (
        comparison("a", "logits", 3e-6),
        comparison("b", "logits", 2e-6),
        comparison("b", "present", 1e-7),
    )
    both = own.followed_by(Verification("p", "r", "a reduced model", reduced))
    assert both.subject == "the model itself, and a reduced model"
    assert [(c.case, c.output) for c in both.comparisons] == [
        ("a", "logits"),
        ("reduced: a", "logits"),
        ("reduced: b", "logits"),
        ("reduced: b", "present"),
    ]
    assert [(c.case, c.output, c.max_abs) for c in both.summary] == [
        ("a", "logits", 1e-6),
        ("reduced: worst of 2 cases", "present", 1e-7),
        ("reduced: worst of 2 cases", "logits", 3e-6),
    ]


@pytest.mark.parametrize("context", [1, 2, 4, 5, 6, 8, 40, None])
@pytest.mark.parametrize("make", [bert, gpt2, t5])
def test_cases_stay_within_the_context(make: Any, context: int | None) -> None:
    position = {"kind": "sinusoidal"} if context is None else {"kind": "learned"}
    found = list(cases(make(context_length=context, position=position)))
    assert len({case.name for case in found}) == len(found)
    for case in found:
        for batch in filter(None, (case.batch, case.encoder)):
            assert 1 <= batch.inputs.shape[1] <= (context or 512)
            assert batch.inputs.shape == batch.mask.shape == batch.types.shape
            assert batch.inputs.max() < 20
        assert case.ends[0] >= 1
        assert case.ends[-1] == case.batch.inputs.shape[1]
        assert case.ends == sorted(set(case.ends))


@pytest.mark.parametrize("make", [bert, gpt2, t5])
def test_cases_go_beyond_whatever_is_local_and_pad_on_both_sides(make: Any) -> None:
    found = list(cases(make(context_length=400, position={"kind": "relative_bias", "max_distance": 150})))
    assert max(case.batch.inputs.shape[1] for case in found) > 150
    masks = [mask for case in found if (mask := (case.encoder or case.batch).mask) is not None]
    assert any((mask[:, 0] == 0).any() and (mask[:, -1] == 1).all() for mask in masks)
    assert any((mask[:, -1] == 0).any() and (mask[:, 0] == 1).all() for mask in masks)
    assert any((mask.sum(1) == 0).any() for mask in masks)
    assert {mask.shape[0] for mask in masks} >= {1, 2, 3}
    if make is not bert:
        pieces = {case.pieces for case in found}
        assert any(len(set(piece)) > 1 for piece in pieces)
        assert any(set(piece) == {1} for piece in pieces)


def test_the_numbers_of_a_trace_are_sizes_of_no_case() -> None:
    numbers = {
        n
        for pair in Symbols.of((Placeholder("x", torch.int64, ("B", "T")),), ()).values.values()
        for n in pair
    }
    far = {"kind": "relative_bias", "max_distance": 100_000}
    assert max(case.batch.inputs.shape[1] for case in cases(gpt2(context_length=None, position=far))) < min(
        numbers
    )


def test_token_types_are_drawn_where_a_model_has_them() -> None:
    types = torch.cat([case.batch.types.flatten() for case in cases(bert(embedding={"token_types": 3}))])
    assert set(types.tolist()) == {0, 1, 2}


@pytest.mark.slow
def test_a_model_that_makes_much_of_a_rounding_is_given_as_much(tmp_path: Path, monkeypatch: Patch) -> None:
    """With next to nothing allowed, all models are of that kind: PyTorch's own rounding is what is allowed then."""
    monkeypatch.setattr("exporters.verification.compare.TOLERANCE", 1e-8)
    spec = gpt2(initialization={"kind": "xavier_uniform"})
    result = verified(spec, tmp_path / "x")
    assert all(c.max_abs <= c.tolerance for c in result.verification.comparisons)
    assert any(c.tolerance > 1e-7 for c in result.verification.comparisons)
    assert {c.rounding is not None for c in result.verification.in_rounding} == {True}
    monkeypatch.setattr("exporters.verification.rounding_bound.EXACT_BYTES", 0)
    with pytest.raises(VerificationError):
        written(spec, tmp_path / "x")


TIES = """
name: ties
architecture: encoder-decoder
vocab_size: 16
d_model: 32
context_length: 32
position: {kind: learned}
encoder:
  layers: 1
  block: &block
    kind: pre_norm
    norm: {kind: layer_norm}
    attention: {kind: multi_head, heads: 2}
    feed_forward: {kind: mlp, hidden: 32, activation: gelu}
decoder:
  layers: 1
  block:
    kind: reordered_norm
    attention: {kind: multi_head, heads: 2}
    residual: {kind: none}
    norm: {kind: rms_norm}
    cross_attention: {kind: multi_head, heads: 2, sinks: true, bias: false}
    feed_forward: {kind: mixture, experts: 4, top_k: 2, expert: {kind: mlp, hidden: 16, activation: gelu}}
head: {kind: none}
"""
"""What attends to nothing gives 0 here, of which a router makes nothing: all its experts are equal."""


@pytest.mark.slow
def test_rows_with_tied_experts_are_excluded_and_reported(tmp_path: Path) -> None:
    (tmp_path / "ties.yaml").write_text(TIES)
    result = verified(load(tmp_path / "ties.yaml"), tmp_path / "x")
    told = {c.case: c.shape for c in result.verification.comparisons if "rows" in c.shape}
    assert told == {"reduced: nothing but padding": "2 x 6 -> 2 x 3, 1 of 2 rows"}


@pytest.mark.slow
def test_experts_of_weight_zero_exclude_no_rows(tmp_path: Path) -> None:
    """Scores so far apart that float32 has 0 for most of them."""
    experts = {"kind": "mlp", "hidden": 6, "activation": "relu"}
    block = {**BLOCK, "feed_forward": {"kind": "mixture", "experts": 6, "top_k": 3, "expert": experts}}
    spec = t5(initialization={"kind": "normal", "std": 60.0}, decoder={"layers": 2, "block": block})
    result = verified(spec, tmp_path / "x")
    assert not any("rows" in comparison.shape for comparison in result.verification.comparisons)


def test_a_case_without_a_clear_row_is_not_compared(tmp_path: Path, monkeypatch: Patch) -> None:
    """Here every case of at most ten tokens ties in all its rows."""
    margin, smallest = Router.margin, 10
    monkeypatch.setattr(
        Router, "margin", lambda self, x: margin(self, x) * (x.shape[0] * x.shape[1] > smallest)
    )
    block = {**BLOCK, "feed_forward": {"kind": "mixture", "experts": 4, "top_k": 2,
                                       "expert": {"kind": "mlp", "hidden": 6, "activation": "relu"}}}  # fmt: skip
    spec = gpt2(decoder={"layers": 1, "block": block})
    result = verified(spec, tmp_path / "x")
    compared = {comparison.case.removeprefix("reduced: ") for comparison in result.verification.comparisons}
    sizes = {case.name: case.batch.inputs.numel() for case in cases(spec)}
    clear = {name for name, size in sizes.items() if size > smallest}
    assert compared == clear | {"nothing but padding"}  # one row of it has no token, and no choice
    found = certify(tmp_path / "x")
    assert found.passed
    assert found.outputs


@one_in(2)
@pytest.mark.parametrize("cache_precision", ["float", "int8"])
def test_a_model_without_a_clear_row_is_compared_all_the_same(
    cache_precision: str, tmp_path: Path, monkeypatch: Patch
) -> None:
    """The check value is not recorded: another machine may choose otherwise."""
    monkeypatch.setattr(Router, "margin", lambda self, x: x[..., 0] * 0)
    block = {**BLOCK, "feed_forward": {"kind": "mixture", "experts": 4, "top_k": 2,
                                       "expert": {"kind": "mlp", "hidden": 6, "activation": "relu"}}}  # fmt: skip
    spec = gpt2(d_model=16, decoder={"layers": 1, "block": block})
    result = verified(spec, tmp_path / "x", target="cpu", cache_precision=cache_precision)
    assert result.verification.tied
    assert not any("rows" in comparison.shape for comparison in result.verification.comparisons)
    assert not certify(tmp_path / "x").outputs


def test_the_margin_of_a_router() -> None:
    def margin(logits: list[float], **router: Any) -> float:
        spec = Mixture.model_validate(
            {"experts": 4, "top_k": 2, "expert": {"kind": "mlp", "hidden": 2, "activation": "relu"}, "router": router}
        )  # fmt: skip
        built = Router(spec, StackContext.of(gpt2(d_model=4), "decoder"))
        if built.score_correction_bias is not None:
            built.score_correction_bias.zero_()
        return float(built.margin(torch.tensor([[logits]])).detach())

    assert margin([0.0, -1.0, -2.0, -3.0]) == pytest.approx(1 - math.exp(-1))
    assert margin([0.0, -1.0, -1.0, -3.0]) == 0.0
    assert margin([0.0, -500.0, -600.0, -700.0]) == math.inf
    grouped = {"groups": {"count": 2, "top": 1, "group_score_top_k": 1}}
    assert margin([0.0, -1.0, -500.0, -600.0], **grouped) == 1.0
    assert margin([-500.0] * 4, scores="sigmoid") == math.inf
    assert margin([30.0, 20.0, 19.0, 18.0], scores="sigmoid") == pytest.approx(1 - math.exp(-1))
    assert margin([-500.0] * 4, scores="sigmoid", score_correction_bias=True) == 0.0
    sparse = {"scores": "sparse_mixer", "normalize": False}
    assert margin([3.0, 2.0, 1.0, -1.0], **sparse) == pytest.approx(1 / 3 - 0.02)
    assert margin([3.0, 2.9, 1.0, -1.0], **sparse) == pytest.approx(1 / 30 - 0.02, rel=1e-4)
    assert (
        margin([3.0, 3.0, 1.0, -1.0], **sparse) == 0.0
    )  # of the two, the first is weighed against the second
