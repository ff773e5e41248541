"""The parameter report: every tensor counted once, by identity, at the module that holds it first."""

import json
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from torch import nn

from specs.base.errors import SpecError, UserError
from specs.language.load import load
from specs.model.model import Model
from tests.strategies import model_data
from zoo.builder import assemble
from zoo.core.reduced import fewer_layers
from zoo.core.tensors import weight_bytes
from zoo.core.units import total_and_active
from zoo.reports.folding import Folded
from zoo.reports.memory import stored_bytes
from zoo.reports.parameters import built_tree, module_tree, parameter_report
from zoo.reports.roles import roles


def report_of(name, *assignments):
    return parameter_report(load(name, assignments))


def test_bert_base_module_by_module():
    report = report_of("bert-base")
    assert report.total_parameters == 109_482_240
    assert {module.path: (module.kind, module.parameters) for module in report.root.children} == {
        "embedding": ("tokens", 23_837_184),
        "encoder": ("Stack", 85_054_464),
        "head": ("pooler", 590_592),
    }
    query = report.module("encoder.blocks.3.attention.query")
    assert (query.kind, query.weights) == ("Linear", {"weight": (768, 768), "bias": (768,)})
    assert report.module("encoder.blocks.3").kind == "post_norm"
    assert report.module("encoder.blocks.3").parameters == 7_087_872


def test_tables_of_tokens_token_types_and_positions_are_the_embedding_parameters():
    report = report_of("bert-base")
    assert report.embedding_parameters == (30522 + 2 + 512) * 768
    assert report.non_embedding_parameters == 109_482_240 - report.embedding_parameters
    assert report_of("gpt2-untied").embedding_parameters == (50257 + 1024) * 768
    assert (
        report_of("t5-small").embedding_parameters == 32128 * 512
    )  # its relative biases belong to attention


@pytest.mark.parametrize(
    "name", ["bert-base", "bert-base-mlm", "gpt2", "t5-small", "transformer-base", "llama-3.2-1b"]
)
def test_every_level_adds_up_to_the_real_tensors(name):
    report = report_of(name)
    model = assemble(load(name))
    assert report.total_parameters == sum(parameter.numel() for parameter in model.parameters())
    for module in report.root.walk():
        own = sum(
            model.get_parameter(f"{module.path}.{weight}").numel()
            for weight in module.weights
            if weight not in module.shared
        )
        assert module.parameters == own + sum(child.parameters for child in module.children)


def test_a_tied_head_is_counted_at_the_embedding():
    head = report_of("gpt2").module("head.vocabulary")
    assert head.parameters == 0
    assert head.weights == {"weight": (50257, 768)}
    assert head.shared == {"weight": "embedding.token.weight"}


def test_t5_has_one_token_table_and_a_bias_table_for_each_stack():
    report = report_of("t5-small")
    assert report.total_parameters == 60_506_624
    shared = {module.path: dict(module.shared) for module in report.root.walk() if module.shared}
    assert shared == {
        "decoder_embedding.token": {"weight": "encoder_embedding.token.weight"},
        "head.vocabulary": {"weight": "encoder_embedding.token.weight"},
    }
    assert report.module("encoder.position.table").parameters == 32 * 8
    assert report.module("decoder.position.table").parameters == 32 * 8


def test_a_norm_that_branches_share_is_counted_once():
    report = report_of("gpt2", "decoder.block.kind=parallel")
    block = report.module("decoder.blocks.0")
    assert [child.path for child in block.children if "weight" in child.weights and not child.shared] == [
        "decoder.blocks.0.norm"
    ]
    assert report.module("decoder.blocks.0.attention_norm").shared["weight"] == "decoder.blocks.0.norm.weight"


def test_a_layer_that_is_shared_is_counted_once():
    block = report_of("gpt2").module("decoder.blocks.0").parameters
    report = report_of("gpt2", "decoder.layers=[{repeat: 12, shared: true}]")
    assert report.total_parameters == 124_439_808 - 11 * block
    last = report.module("decoder.blocks.11.attention.query")
    assert (last.parameters, last.shared["weight"]) == (0, "decoder.blocks.0.attention.query.weight")


def test_weights_that_someone_shares_by_hand_are_counted_once():
    model: Any = assemble(load("tiny-gpt"))
    for block in model.decoder.blocks[1:]:
        block.feed_forward = model.decoder.blocks[0].feed_forward
    shared = sum(parameter.numel() for parameter in model.decoder.blocks[0].feed_forward.parameters())
    assert built_tree(model).parameters == 223_616 - 3 * shared


def test_published_counts_are_compared_with_the_built_ones():
    report = report_of("torch-transformer")
    assert report.met
    assert [str(comparison) for comparison in report.comparisons] == [
        "expected 63,084,544 = built 63,084,544",
        "encoder + decoder: expected 44,140,544 = built 44,140,544",
        "encoder.blocks.0: expected 3,152,384 = built 3,152,384",
        "decoder.blocks.0: expected 4,204,032 = built 4,204,032",
    ]


def test_a_wrong_parameter_count_is_reported_with_the_difference():
    report = report_of("tiny-gpt", "expect.parameters=223617", "expect.modules={head: 5}")
    assert not report.met
    assert [str(comparison) for comparison in report.comparisons] == [
        "expected 223,617, but built 223,616 (-1)",
        "head: expected 5, but built 0 (-5)",
    ]


def test_active_parameters_are_compared_too():
    report = report_of("mixtral-8x7b", "expect.active_parameters=5")
    assert [str(comparison) for comparison in report.comparisons] == [
        "active per token: expected 5, but built 12,879,925,248 (+12,879,925,243)",
    ]


def test_the_sentence_of_a_mixture_has_its_active_parameters():
    assert (
        total_and_active(46_702_792_704, 12_879_925_248)
        == "46,702,792,704 parameters, 12.9B active per token"
    )
    assert total_and_active(124_439_808, 124_439_808) == "124,439,808 parameters"
    assert str(report_of("mixtral-8x7b")).startswith("mixtral-8x7b: 46,702,792,704 parameters, 12.9B active")


def test_a_count_of_a_module_that_is_not_there():
    with pytest.raises(SpecError) as caught:
        report_of("tiny-gpt", "expect.modules={decoder.block: 5}")
    assert str(caught.value).splitlines() == [
        "expect.modules['decoder.block']: must be the path of a module, or several joined by +",
        "  value: 5",
        "  tiny-gpt+expect.modules=_decoder.block_5_ has no module 'decoder.block'. Did you mean 'decoder.blocks'?",
    ]


def test_selected_modules_count_together_and_those_within_others_once():
    report = report_of("torch-transformer")
    selected = report.select(["encoder", "decoder", "decoder.blocks.0"])
    assert [module.path for module in selected] == ["encoder", "decoder"]
    data = report.as_dict(selected)
    assert data["selected_parameters"] == 44_140_544
    assert data["total_parameters"] == 63_084_544
    assert all(module["path"].startswith(("encoder", "decoder")) for module in data["modules"])


def test_an_unknown_module_gets_the_nearest():
    with pytest.raises(
        UserError, match=r"gpt2 has no module 'decoder.block.0'. Did you mean 'decoder.blocks'\?"
    ):
        report_of("gpt2").module("decoder.block.0")


def test_the_json_has_every_module_with_weights():
    data = json.loads(json.dumps(report_of("gpt2").as_dict()))
    assert (data["name"], data["total_parameters"]) == ("gpt2", 124_439_808)
    assert data["embedding_parameters"] + data["non_embedding_parameters"] == data["total_parameters"]
    assert data["active_parameters"] == data["total_parameters"]
    expected = {"path": "", "active": False, "published": 124_439_808, "built": 124_439_808, "met": True}
    assert data["expected"] == [expected]
    modules = {module["path"]: module for module in data["modules"]}
    assert modules["head.vocabulary"] == {
        "path": "head.vocabulary",
        "kind": "Linear",
        "parameters": 0,
        "weights": {"weight": [50257, 768]},
        "shared_with": {"weight": "embedding.token.weight"},
    }
    assert modules["decoder.blocks.11.feed_forward.up"]["weights"] == {"weight": [3072, 768], "bias": [3072]}
    tops = [module for path, module in modules.items() if "." not in path]
    assert sum(module["parameters"] for module in tops) == data["total_parameters"]


def test_any_module_can_be_reported():
    root = built_tree(nn.Sequential(nn.Linear(2, 3), nn.ReLU()))
    assert root.parameters == 9
    assert [module.path for module in root.walk() if module.has_weights] == ["", "0"]


FOLDED = ["albert-base-v2", "bart-base", "bloom-560m", "clip-vit-b32-text", "deepseek-v2-lite", "gemma3-270m", "modernbert-base",
          "qwen2-0.5b", "smollm3-3b", "t5-small", "vit-base-16", "whisper-tiny"]  # fmt: skip


@pytest.mark.parametrize("name", FOLDED)
def test_equal_layers_that_are_built_once_or_twice_count_as_all_do(name):
    folded, whole = Folded.of(load(name)), assemble(load(name))
    assert module_tree(folded) == built_tree(whole)
    assert stored_bytes(folded, torch.float16) == weight_bytes(whole.to(torch.float16))
    assert sum(role.parameters for role in roles(folded)) == sum(each.numel() for each in whole.parameters())


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(model_data())
def test_equal_layers_of_any_spec_count_as_all_do(data):
    spec = Model.model_validate(data)
    folded, whole = Folded.of(spec), assemble(spec)
    assert module_tree(folded) == built_tree(whole)
    assert stored_bytes(folded, torch.float32) == weight_bytes(whole)


@pytest.mark.slow
def test_ten_thousand_layers_are_not_built():
    folded = Folded.of(load("tiny-gpt", ["decoder.layers=10000"]))
    model: Any = folded.model
    assert len(model.decoder.blocks) == 2
    report = parameter_report(folded.spec)
    assert len(report.module("decoder.blocks").children) == 10_000
    block = report.module("decoder.blocks.9999").parameters
    assert report.module("decoder").parameters == 10_000 * block + 2 * 64


def test_equal_blocks_with_many_names_are_one():
    names = [f"b{n}" for n in range(50)]
    blocks, layers = ", ".join(f"{n}: {{}}" for n in names), ", ".join(f"{{use: {n}}}" for n in names)
    spec = load("tiny-gpt", [f"decoder.blocks={{{blocks}}}", f"decoder.layers=[{layers}]"])
    model: Any = Folded.of(spec).model
    assert len(model.decoder.blocks) == 2
    assert fewer_layers(spec, 1).decoder.depth == 1


@pytest.mark.parametrize("name", ["gpt2", "gpt-j-6b", "gpt-oss-20b"])
def test_layers_that_share_within_themselves_are_alike(name):
    report = report_of(name)
    first, second = report.module("decoder.blocks.0"), report.module("decoder.blocks.1")
    assert first.likeness == second.likeness
    assert first.children[0].likeness != first.children[1].likeness
