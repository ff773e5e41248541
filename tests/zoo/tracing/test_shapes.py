"""Shapes in symbols."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from specs.language.load import load
from specs.model.model import Model
from tests.zoo.tiny import gpt2
from zoo.builder import assemble
from zoo.checks import ShapeReport, check_shapes
from zoo.checks.symbols import SIZES, TERMS, describe, name_size, symbols_in


def shapes(spec: Model) -> ShapeReport:
    return check_shapes(assemble(spec), spec)


def rows(report: ShapeReport) -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Inputs and outputs by path and method."""
    return {
        f"{row.path}.{row.method}".removesuffix(".forward"): (row.inputs, row.outputs)
        for row in report.modules
    }


def test_bert_base() -> None:
    report = shapes(load("bert-base"))
    assert report.passed
    assert report.symbols == {"B": "batch", "T": "tokens"}
    found = rows(report)
    assert found["embedding.token"] == (("B x T",), ("B x T x 768",))
    assert found["encoder.blocks.11.attention"] == (
        ("B x T x 768",),
        ("B x T x 768", "2 x (B x 12 x T x 64)"),
    )
    assert found["encoder.blocks.3.feed_forward.up"] == (("B x T x 768",), ("B x T x 3072",))
    assert found["head"][1] == ("last_hidden_state: B x T x 768", "pooler_output: B x 768")


def test_the_inputs_of_the_whole_model_have_names() -> None:
    found = rows(shapes(load("t5-small")))
    assert found[".encode"][0] == ("inputs: B x S", "attention_mask: B x S")
    assert found[".decode"][0][3:] == (
        "past_key_values: 6 x 2 x (B x 8 x P x 64)",
        "decoder_attention_mask: B x P+T",
    )


@pytest.mark.slow
def test_a_decoder_runs_with_a_cache() -> None:
    found = rows(shapes(load("llama-3.2-1b")))
    assert found["decoder.blocks.0.attention"] == (
        ("B x T x 2048", "2 x (B x 8 x P x 64)"),
        ("B x T x 2048", "2 x (B x 8 x P+T x 64)"),
    )
    assert found["decoder"][1] == ("B x T x 2048", "16 x 2 x (B x 8 x P+T x 64)")
    assert found["decoder.blocks.0.attention.key"] == (("B x T x 2048",), ("B x T x 512",))


@pytest.mark.slow
def test_an_encoder_decoder_encodes_and_decodes() -> None:
    report = shapes(load("t5-small"))
    assert report.passed
    assert set(report.symbols) == {"B", "T", "S", "P"}
    found = rows(report)
    assert found["encoder.blocks.0"][1] == ("B x S x 512", "2 x (B x 8 x S x 64)")
    assert found["decoder.position.bias"][1] == ("B x 8 x T x P+T",)
    assert found["decoder.blocks.0.cross_attention"] == (
        ("B x T x 512", "2 x (B x 8 x S x 64)"),
        ("B x T x 512",),
    )
    assert found["decoder.blocks.0.cross_attention.keys_values"][0] == ("B x S x 512",)
    calls = [row for row in report.modules if row.path == "encoder_embedding.token"]
    assert [row.outputs for row in calls] == [("B x S x 512",), ("B x T x 512",)]


def test_the_model_is_left_as_it_was() -> None:
    spec = gpt2()
    model = assemble(spec)
    before = {path: dict(vars(module)) for path, module in model.named_modules()}
    assert check_shapes(model, spec) == check_shapes(model, spec)
    assert {path: dict(vars(module)) for path, module in model.named_modules()} == before


def test_all_that_has_weights_is_shown() -> None:
    model = assemble(gpt2())
    shown = {row.path for row in check_shapes(model, gpt2()).modules}
    assert {path for path, module in model.named_modules() if module._parameters} <= shown


class FixedLength(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x + x.new_empty(6, x.shape[-1])


class Unpredictable(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.new_empty(x.shape[0], x.shape[1] ** 2 + 3, x.shape[2])


class LosesTheBatch(nn.Module):
    def forward(self, x: Tensor, mask: Tensor) -> dict[str, Tensor]:
        return {"logits": x[:1]}


def test_a_module_that_fails_is_named() -> None:
    model: Any = assemble(gpt2())
    model.decoder.blocks[1].feed_forward = FixedLength()
    report = check_shapes(model, gpt2())
    assert not report.passed
    first, line = report.problems[0].split("\n")
    assert first.startswith("decoder.blocks.1.feed_forward fails to run: RuntimeError")
    assert (
        line
        == f"  at {__file__}:{FixedLength.forward.__code__.co_firstlineno + 1}: return x + x.new_empty(6, x.shape[-1])"
    )


class Branches(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        if x.sum() > 0:
            return x
        return -x


def test_a_branch_on_values_is_named_with_its_line_and_a_way_out() -> None:
    model: Any = assemble(gpt2())
    model.decoder.blocks[1].feed_forward = Branches()
    (problem,) = check_shapes(model, gpt2()).problems
    assert problem.endswith(
        f"\n  at {__file__}:{Branches.forward.__code__.co_firstlineno + 1}: if x.sum() > 0:\n"
        "  Remove Python control flow on tensor values, such as with torch.where: shapes have no values."
    )


def test_a_size_that_follows_nothing_is_a_problem() -> None:
    model: Any = assemble(gpt2())
    model.embedding.token = nn.Sequential(model.embedding.token, Unpredictable())
    model.embedding.position = nn.Identity()
    model.embedding.position.embed_tokens = lambda x, positions, mask: x[:, : positions.shape[1]]
    report = check_shapes(model, gpt2())
    assert not report.passed
    assert any(problem.startswith("embedding.token.1 has a size") for problem in report.problems)


def test_outputs_must_follow_the_batch() -> None:
    model = assemble(gpt2())
    model.head = LosesTheBatch()
    assert check_shapes(model, gpt2()).problems == ("logits: 1 x T x 8 does not start with the batch, B",)


@pytest.mark.parametrize(
    ("sizes", "name"),
    [
        ((768, 768), "768"),
        (SIZES["B"], "B"),
        ((SIZES["P"][0] + SIZES["T"][0], SIZES["P"][1] + SIZES["T"][1]), "P+T"),
        ((SIZES["B"][0] * SIZES["T"][0], SIZES["B"][1] * SIZES["T"][1]), "B*T"),
        ((12 * SIZES["B"][0], 12 * SIZES["B"][1]), "12*B"),
        ((SIZES["S"][0] + 1, SIZES["S"][1] + 1), "S+1"),
        ((SIZES["T"][0] - 2, SIZES["T"][1] - 2), "T-2"),
        ((1, 1000), "?"),
    ],
)
def test_names_of_sizes(sizes: tuple[int, int], name: str) -> None:
    assert name_size(*sizes) == name


def test_no_two_terms_agree() -> None:
    assert len(set(TERMS.values.values())) == len(TERMS.values)
    assert len({b / a for a, b in TERMS.values.values()}) == len(TERMS.values)
    assert len({b - a for a, b in TERMS.values.values()}) == len(TERMS.values)


def test_nested_values() -> None:
    b, t = SIZES["B"], SIZES["T"]
    first, second = ([(n,), [(n, 4), (n, 4)], [[(n,)] * 2] * 3] for n in b)
    assert describe(first, second) == ("B", "2 x (B x 4)", "3 x 2 x (B)")
    assert describe({"a": (b[0], t[0])}, {"a": (b[1], t[1])}) == ("a: B x T",)
    assert describe(None, None) == ()
    assert symbols_in("present: 2 x (B x 12 x P+T x 64)") == {"B", "P", "T"}


@pytest.mark.slow
def test_a_deep_model_is_quick() -> None:
    spec = load("gpt3-175b")
    report = shapes(spec)
    assert report.passed
    assert sum(row.path.endswith(".feed_forward") for row in report.modules) == 96
    assert all(parameter.device == torch.device("meta") for parameter in assemble(spec).parameters())
