"""Two built models side by side: their modules, and what they cost."""

import pytest
from hypothesis import given, settings

from specs.base.errors import UserError
from specs.language.load import load
from specs.language.preset_files import PRESETS, preset_names
from specs.model.model import Model
from tests.strategies import model_data
from tests.thinned import one_in
from zoo.reports.module_pairs import in_order, pair
from zoo.reports.parameters import parameter_report
from zoo.reports.quantities import ComparedSizes, Measured, quantities
from zoo.reports.side import read_side
from zoo.reports.spec_difference import compare_specs


def report_of(spec):
    return parameter_report(spec)


def paired(a, b):
    return pair(report_of(a).root, report_of(b).root, ({}, {}))


def differing(a, b):
    """The pairs that differ in themselves, by path."""
    return {each.module.path: each for each in paired(a, b).walk() if each.differs_itself}


# ------------------------------------------------------------------------------------------------------ modules


@pytest.mark.parametrize(
    "name", ["gpt2", "bert-base", "t5-small", "albert-base-v2", "whisper-tiny", "mixtral-8x7b"]
)
def test_the_modules_of_a_model_are_those_of_itself(name):
    assert not paired(load(name), load(name)).differs


def test_modules_that_one_has_and_kinds_and_shapes_that_differ():
    found = differing(load("gpt2"), load("gpt2", ["position.kind=rope", "decoder.block.norm.kind=rms_norm"]))
    assert {path for path in found if ".blocks." not in path} == {"embedding.position", "decoder.final_norm"}
    removed = found["embedding.position"]
    assert (removed.b, removed.parameters) == (None, (1024 * 768, 0))
    norm = found["decoder.blocks.11.attention_norm"]
    assert [(side.kind, side.weights) for side in (norm.a, norm.b)] == [
        ("layer_norm", {"weight": (768,), "bias": (768,)}),
        ("rms_norm", {"weight": (768,)}),
    ]
    assert norm.parameters == (1536, 768)


def test_blocks_are_paired_by_index_and_the_rest_is_of_one_model():
    found = differing(load("gpt2"), load("gpt2", ["decoder.layers=14"]))
    assert set(found) == {"decoder.blocks.12", "decoder.blocks.13"}
    assert found["decoder.blocks.13"].parameters == (0, 7_087_872)


def test_the_only_stacks_of_two_models_are_paired():
    stacks = [each for each in paired(load("bert-base"), load("gpt2")).children if each.a and each.b]
    assert [(each.a.path, each.b.path) for each in stacks] == [
        ("embedding", "embedding"), ("encoder", "decoder"), ("head", "head"),
    ]  # fmt: skip


def test_a_weight_that_is_shared_no_more_is_a_difference():
    found = differing(load("gpt2"), load("gpt2-untied"))
    assert set(found) == {"head.vocabulary"}
    assert found["head.vocabulary"].parameters == (0, 50257 * 768)
    shared = differing(load("albert-base-v2"), load("albert-base-v2", ["encoder.layers=12"]))
    assert {path.split(".")[2] for path in shared} == {str(layer) for layer in range(1, 12)}


def test_modules_come_in_the_order_of_both():
    assert in_order(["a", "b", "d"], ["x", "a", "c", "d", "e"]) == ["x", "a", "c", "b", "d", "e"]


@pytest.mark.slow
@settings(max_examples=10, deadline=None)
@given(model_data(), model_data())
def test_parameters_that_differ_add_up_either_way_round(first, second):
    a, b = Model.model_validate(first), Model.model_validate(second)
    there, back = paired(a, b), paired(b, a)
    assert (
        there.parameters
        == back.parameters[::-1]
        == tuple(report_of(spec).total_parameters for spec in (a, b))
    )
    assert there.differs == back.differs
    for each in there.walk():
        if each.a and each.b and not each.differs_itself:
            inner = [sum(child.parameters[side] for child in each.children) for side in (0, 1)]
            assert each.parameters[0] - inner[0] == each.parameters[1] - inner[1]


# -------------------------------------------------------------------------------------------------------- costs


def costs_of(first, second, **sizes):
    a, b = Measured.of(load(first)), Measured.of(load(second))
    found = quantities(a, b, ComparedSizes.of((a.spec, b.spec), **sizes))
    return {each.name: each for each in found}


def test_an_encoder_reads_all_at_once_as_a_decoder_reads_a_prompt():
    found = costs_of("bert-base", "gpt2", batch=2, length=100)
    assert list(found) == [
        "parameters", "without embeddings", "forward", "step",
        "weights", "cache per token", "cache", "training",
    ]  # fmt: skip
    assert found["parameters"].as_dict() == {
        "name": "parameters", "unit": "parameters", "a": 109_482_240, "b": 124_439_808, "tokens": None,
    }  # fmt: skip
    assert found["weights"].b == 2 * 124_439_808
    assert (found["step"].a, found["step"].tokens) == (None, 100)


def test_modules_that_compute_otherwise_differ():
    name, sizes = "mixtral-8x7b", ComparedSizes(1, 100, 100)
    a, b = Measured.of(load(name)), Measured.of(load(name, ["decoder.block.feed_forward.top_k=4"]))
    found = pair(a.parameters.root, b.parameters.root, (a.flops(sizes), b.flops(sizes)))
    different = [each for each in found.walk() if each.differs_itself]
    assert {each.module.path.split(".", 3)[-1] for each in different} == {"feed_forward.experts"}
    assert all(each.flops[1] == 2 * each.flops[0] for each in different)


def test_the_costs_of_modules_add_up_to_the_model():
    measured = Measured.of(load("t5-small"))
    flops, stages = measured.flops(ComparedSizes(2, 50, 50)), measured.stages
    assert flops[""] == sum(stages[name].total.at(B=2, T=50, P=50, S=50) for name in ("encode", "prefill"))
    assert flops["encoder"] == sum(flops[f"encoder.blocks.{layer}"] for layer in range(6))


def test_caches_have_the_heads_and_windows_of_each_model():
    found = costs_of("gemma2-2b", "llama-3.2-1b", batch=3, length=5000)
    assert (found["cache per token"].a, found["cache per token"].b) == (
        2 * 26 * 2 * 4 * 256,
        2 * 16 * 2 * 8 * 64,
    )
    kept = 13 * (4096 + 5000)  # every other layer has a window
    assert found["cache"].a == 3 * 2 * 2 * 4 * 256 * kept
    assert costs_of("bert-base", "gpt2", batch=1, length=10)["cache"].a is None


def test_an_encoder_whose_inputs_are_of_one_size_reads_all_of_one():
    found = costs_of("whisper-tiny", "t5-small", batch=1, length=100)
    own, read = 2 * 4 * 2 * 6 * 64, 1500
    assert found["cache"].a == own * 100 + own * read
    step = Measured.of(load("whisper-tiny")).stages["step"].total
    assert found["step"].a == step.at(B=1, P=100, S=read)


def test_of_experts_those_are_active_that_a_token_meets():
    found = costs_of("mixtral-8x7b", "llama-3-8b", batch=1, length=10)["active parameters"]
    assert (found.a, found.b) == (12_879_925_248, 8_030_261_248)


def test_fixed_input_sizes_are_not_reported():
    assert costs_of("vit-base-16", "vit-base-32", batch=1, length=100)["forward"].tokens is None


def test_models_are_compared_at_a_length_that_both_are_made_for():
    def sizes(a, b, length=None):
        return ComparedSizes.of((load(a), load(b)), 2, length)

    assert sizes("llama-3-8b", "gpt2") == ComparedSizes(2, 1024, 1023)  # and one token more
    assert sizes("bert-base", "llama-3-8b") == ComparedSizes(2, 512, 511)
    assert sizes("t5-small", "t5-base") == ComparedSizes(2, 1024, 1024)
    assert sizes("t5-small", "t5-base", length=4096) == ComparedSizes(2, 4096, 4096)
    assert sizes("llama-3-8b", "gpt2", length=100) == ComparedSizes(2, 100, 100)
    with pytest.raises(
        UserError, match="length must fit the context of bert-base\n  value: 513\n  Use 512 or less"
    ):
        sizes("gpt2", "bert-base", length=513)


# -------------------------------------------------------------------------------------------------------- sides


def test_a_checkpoint_is_compared_as_the_spec_that_it_is_imported_as(tmp_path):
    import transformers

    transformers.GPT2Config().save_pretrained(tmp_path / "mine")
    for reference in (tmp_path / "mine", tmp_path / "mine/config.json"):
        found = compare_specs(read_side("gpt2"), read_side(str(reference)))
        assert found.same_architecture
    assert not compare_specs(read_side("gpt2-medium"), read_side(str(tmp_path / "mine"))).same_architecture


def test_assignments_change_any_side(tmp_path):
    import transformers

    transformers.GPT2Config().save_pretrained(tmp_path)
    changed = read_side(str(tmp_path), ["decoder.layers=3"])
    assert changed.spec.decoder.depth == 3


@one_in(8)
@pytest.mark.parametrize("name", preset_names()[::9])
def test_a_presets_file_is_the_same_as_the_preset(name):
    assert compare_specs(read_side(name), read_side(str(PRESETS / f"{name}.yaml"))).same
