"""How alike specs are: oneself first, kin before strangers."""

from __future__ import annotations

from specs.forms.likeness import Features, Likenesses, features
from specs.language.load import load


def likeness(a: Features, b: Features) -> float:
    return Likenesses({"b": b}).to(a)["b"]


def alike(a: str, b: str) -> float:
    return likeness(features(load(a)), features(load(b)))


def test_a_spec_is_like_itself_whatever_its_name_and_dropout() -> None:
    assert alike("gpt2", "gpt2") == 1
    same = features(load("gpt2", ["name=other", "decoder.block.dropout=0.3"]))
    assert likeness(features(load("gpt2")), same) == 1


def test_likeness_is_mutual_and_a_share() -> None:
    for pair in (("gpt2", "t5-small"), ("bert-base", "llama-3-8b"), ("mixtral-8x7b", "mistral-7b")):
        assert alike(*pair) == alike(*reversed(pair))
        assert 0 < alike(*pair) < 1


def test_kin_are_nearer_than_strangers() -> None:
    assert alike("gpt2", "gpt2-medium") > alike("gpt2", "llama-2-7b") > alike("gpt2", "t5-small")
    assert alike("llama-3-8b", "mistral-7b") > alike("llama-3-8b", "gemma2-2b")


def test_a_number_that_is_near_counts_for_more_than_one_that_is_far() -> None:
    base = features(load("gpt2"))
    near, far = (
        features(load("gpt2", [f"decoder.block.feed_forward.hidden={hidden}"])) for hidden in (3200, 400)
    )
    assert likeness(base, near) > likeness(base, far)
