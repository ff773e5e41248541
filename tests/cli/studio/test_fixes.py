"""Every fix that is offered makes its problem go away, and no other come."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from cli.studio.fixes import fixes
from cli.studio.problems import problem_data
from cli.studio.typed_spec import TypedSpec
from specs.base.errors import Problem, SpecError
from tests.cli.studio.conftest import text_of

Labels = Callable[[str], dict[str, list[str]]]
GPT2 = text_of("gpt2")


@pytest.mark.parametrize(
    ("old", "new", "where", "label"),
    [
        ("heads: 12", "heads: 13", "decoder.block.attention.heads", "Use 12"),
        ("heads: 12", "head: 12", "decoder.block.attention.head", "Rename to heads"),
        ("kind: learned", "kind: rop", "position.kind", "Use rope"),
        ("{kind: learned}", "learned", "position", "Use learned"),
        ("kind: learned", "kind: rotary", "position.kind", "Use rope"),
        ("kind: mlp", "kind: swiglu", "decoder.block.feed_forward.kind", "Use gated, activation: silu"),
        (
            "{kind: mlp, hidden: 3072, activation: gelu_tanh}",
            "moe",
            "decoder.block.feed_forward",
            "Use mixture",
        ),
        (
            "{kind: multi_head, heads: 12, dropout: 0.1}",
            "gqa",
            "decoder.block.attention",
            "Use grouped_query",
        ),
        ("gelu_tanh", "swiglu", "decoder.block.feed_forward.activation", "Use gated, activation: silu"),
        ("gelu_tanh", "gelu_new", "decoder.block.feed_forward.activation", "Use gelu_tanh"),
        ("kind: mlp", "kind: silu_and_mul", "decoder.block.feed_forward.kind", "Use gated, activation: silu"),
        ("d_model: 768", "dmodel: 768", "dmodel", "Rename to d_model"),
        ("vocab_size: 50257", "vocab_size: '50257'", "vocab_size", "Use 50257"),
        ("hidden: 3072", "hidden: -1", "decoder.block.feed_forward.hidden", "Use 1"),
        ("gelu_tanh", "gelu_thanh", "decoder.block.feed_forward.activation", "Use gelu_tanh"),
        ("multi_head,", "grouped_query,", "decoder.block.attention.kv_heads", "Add kv_heads: 2"),
        ("context_length: 1024\n", "", "position.kind", "Set context_length: 512"),
        ("heads: 12", "heads: 12, window: 64, chunk: 64", "decoder.block.attention.chunk", "Remove window"),
        ("  layers: 12", "\tlayers: 12", "", "Indent with spaces"),
        (
            "head: {kind: language_modeling}",
            "head: {kind: classification}",
            "head.labels",
            "Add labels: 1000",
        ),
    ],
)
def test_a_problem_has_a_fix(fixes_of: Labels, old: str, new: str, where: str, label: str) -> None:
    assert old in GPT2
    labels = fixes_of(GPT2.replace(old, new))
    assert label in labels[where]


@pytest.mark.parametrize("head", ["mlm", "{kind: mlm}"])
def test_a_head_that_calls_for_a_norm_is_used(fixes_of: Labels, head: str) -> None:
    text = text_of("bert-base-cased")
    (line,) = (line for line in text.splitlines() if line.startswith("head:"))
    labels = fixes_of(text.replace(line, f"head: {head}"))
    assert labels.popitem()[1] == ["Use masked_language_modeling"]
    assert (
        "Set head.norm: {kind: layer_norm}"
        in fixes_of(text.replace(line, "head: {kind: masked_language_modeling}"))["head.norm"]
    )


def test_a_required_key_has_a_value_of_another_kind_if_none_of_its_own_works(fixes_of: Labels) -> None:
    text = GPT2.replace("768", "2048").replace(
        "{kind: multi_head, heads: 12, dropout: 0.1}", "{kind: multi_query}"
    )
    assert "Add heads: 16" in fixes_of(text)["decoder.block.attention.heads"]


def test_a_dense_feed_forward_becomes_the_expert_of_a_mixture(folder: Path) -> None:
    text = GPT2.replace("kind: mlp", "kind: moe")
    for where, label in (
        ("kind", "Use mixture; move hidden and activation into expert: {kind: mlp}"),
        ("experts", "Add experts: 128"),
        ("top_k", "Add top_k: 2"),
    ):
        with pytest.raises(SpecError) as caught:
            TypedSpec.read(text, folder)
        problems = problem_data(text, caught.value, folder)
        assert (problems[0]["path"][-1] == "kind") == (where == "kind")  # the cause comes first
        fixes = next(problem["fixes"] for problem in problems if problem["path"][-1] == where)
        text = next(fix["text"] for fix in fixes if fix["label"] == label)
    assert "expert: {kind: mlp, hidden: 3072, activation: gelu_tanh}" in text
    TypedSpec.read(text, folder)


def test_keys_of_a_dense_feed_forward_move_into_the_expert(fixes_of: Labels) -> None:
    labels = fixes_of(GPT2.replace("kind: mlp", "kind: mixture"))
    assert (
        "Move hidden and activation into expert: {kind: mlp}" in labels["decoder.block.feed_forward.expert"]
    )


def test_a_key_that_another_kind_left_is_removed_first(fixes_of: Labels) -> None:
    labels = fixes_of(text_of("llama-3-8b").replace("kind: rope", "kind: alibi"))
    assert labels == {"position.theta": ["Remove theta", "Set position.kind: rope"]}


def test_the_name_of_a_paper_brings_all_that_it_means(folder: Path) -> None:
    text = GPT2.replace("kind: mlp", "kind: swiglu")
    with pytest.raises(SpecError) as caught:
        TypedSpec.read(text, folder)
    (problem,) = problem_data(text, caught.value, folder)
    (fix,) = problem["fixes"]
    assert "{kind: gated, hidden: 3072, activation: silu}" in fix["text"]


@pytest.mark.parametrize(
    ("written", "labels"),
    [
        ("{kind: sinusoidal, base: 100}", ["Use sinusoidal, base: 100"]),
        (
            "{kind: rope, scaling: {kind: linear, factor: 2.0}}",
            ["Use rope, scaling: {kind: linear, factor: 2.0}"],
        ),
        ("{kind: rope, scaling: {kind: linear", []),
        ("{kind: [}", []),
    ],
)
def test_a_remedy_of_a_plugin_may_write_any_part(folder: Path, written: str, labels: list[str]) -> None:
    problem = Problem("must be another", ("position",), "learned", f"Write a mapping, such as {written}.")
    found = fixes(GPT2, problem, [problem], folder, time.monotonic() + 10)
    assert [fix.label for fix in found] == labels


def test_no_fix_names_a_kind_that_a_part_cannot_have(fixes_of: Labels) -> None:
    labels = fixes_of(GPT2.replace("kind: mlp", "kind: moe"))
    assert labels["decoder.block.feed_forward.hidden"] == ["Remove hidden", "Set feed_forward.kind: mlp"]


def test_fixes_leave_no_problem_of_their_own(folder: Path) -> None:
    wrong = (
        GPT2.replace("heads: 12", "heads: 13")
        .replace("hidden: 3072", "hiden: 3072")
        .replace("learned", "lerned")
    )
    with pytest.raises(SpecError) as caught:
        TypedSpec.read(wrong, folder)
    before = {(problem.path, problem.rule) for problem in caught.value.problems}
    data = problem_data(wrong, caught.value, folder)
    assert all(problem["fixes"] for problem in data)
    for problem in data:
        for fix in problem["fixes"]:
            assert fix["text"] != wrong
            try:
                TypedSpec.read(fix["text"], folder)
            except SpecError as error:
                left = {(other.path, other.rule) for other in error.problems}
                assert (tuple(problem["path"]), problem["message"]) not in left
                assert len(left - before) == 0 or problem["message"] == "is not a known key"


def test_a_base_outside_the_folder_has_no_fix_that_reads_it(fixes_of: Labels) -> None:
    assert fixes_of("extends: ../../etc/passwd\nname: a\n") == {"extends": []}


def test_problems_of_a_base_are_shown_at_the_top(folder: Path) -> None:
    (folder / "wrong.yaml").write_text("extends: tiny-gpt\nname: wrong\ndecoder: {layers: -2}\n")
    text = "\n\nextends: wrong.yaml\nname: a\n"
    with pytest.raises(SpecError) as caught:
        TypedSpec.read(text, folder)
    problem = problem_data(text, caught.value, folder)[0]
    assert (problem["where"], problem["line"]) == ("decoder.layers", 1)
    assert problem["source"].endswith("wrong.yaml")
