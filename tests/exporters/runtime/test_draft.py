"""Exports that can draft for others, and those that are refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from exporters.runtime.draft import check_draft
from exporters.runtime.exported import Exported, open_export
from exporters.runtime.generation import Generator
from exporters.runtime.speculative import SpeculativeGenerator
from specs.base.errors import UserError
from specs.model.model import Model
from tests.exporters.models import written
from tests.exporters.runtime.test_speculative import spec, tokens
from tests.thinned import one_in
from tests.zoo.tiny import bert, gpt2, t5


def refused(target: Exported, draft: Exported) -> str:
    with pytest.raises(UserError) as error:
        check_draft(target, draft)
    return str(error.value)


@one_in(3)
@pytest.mark.parametrize("size", [20, 24, 18])
def test_tables_padded_differently_share_a_tokenizer(tmp_path: Path, size: int) -> None:
    """As those of Qwen2.5 in several sizes."""
    for name, rows in (("target", 20), ("draft", size)):
        written(spec("windowed", vocab_size=rows), tmp_path / name, target="cpu", verify=False)
    target, draft = (open_export(tmp_path / name) for name in ("target", "draft"))
    if size != 20:
        assert refused(target, draft) == (
            f"A draft must have the vocabulary of its target.\n  value: {tmp_path}/target has 20 tokens, {tmp_path}/draft has {size}\n"
            "  Choose a draft of the same family, or put both tokenizers beside the exports if only padding differs."
        )
    for name in ("target", "draft"):
        tokens(tmp_path / name, "abcdefghijklmnopqr")
    found = SpeculativeGenerator(target, draft, 4).generate([[3, 19, 4], [18]], 20)
    assert found.continuations == [
        Generator(target).generate([prompt], 20).continuations[0] for prompt in ([3, 19, 4], [18])
    ]


def test_other_tokenizers_are_refused(tmp_path: Path) -> None:
    written(spec("windowed"), tmp_path / "target", target="cpu", verify=False)
    shutil.copytree(tmp_path / "target", tmp_path / "draft")
    tokens(tmp_path / "target", "abcd")
    target, draft = (open_export(tmp_path / name) for name in ("target", "draft"))
    check_draft(target, draft)  # one of them has none, and the sizes are equal
    tokens(tmp_path / "draft", "abdc")
    assert refused(target, draft) == (
        f"A draft must have the tokenizer of its target: 2 tokens of {tmp_path}/target and {tmp_path}/draft differ.\n"
        "  value: 'c' is 2 and 3, 'd' is 3 and 2\n  Choose a draft of the same family."
    )


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (bert(), "encoder, head none"),
        (t5(), "encoder-decoder, head language_modeling"),
        (gpt2(head={"kind": "classification", "labels": 3, "pooling": "last"}), "decoder, head classification"),
    ],
)  # fmt: skip
def test_only_decoders_draft(tmp_path: Path, other: Model, words: str) -> None:
    written(gpt2(), tmp_path / "gpt2", verify=False)
    written(other, tmp_path / "other", verify=False)
    decoder, another = open_export(tmp_path / "gpt2"), open_export(tmp_path / "other")
    for what, pair in (("The target of a draft", (another, decoder)), ("A draft", (decoder, another))):
        assert refused(*pair) == (
            f"{what} must be a decoder with a head of kind language_modeling.\n  value: {tmp_path}/other, {words}\n"
            "  Leave out draft, or choose another export."
        )


def test_a_draft_may_score_the_last_token_alone(tmp_path: Path) -> None:
    for name in ("all", "last"):
        written(spec("windowed"), tmp_path / name, target="cpu", verify=False, logits=name)
    target, last = (open_export(tmp_path / name) for name in ("all", "last"))
    found = SpeculativeGenerator(target, last, 3).generate([[3, 1, 4]], 20)
    assert found.continuations == Generator(target).generate([[3, 1, 4]], 20).continuations
    assert found.accepted == found.proposed
    assert refused(last, target) == (
        f"The target of a draft must return scores of all tokens.\n  value: {tmp_path}/last, logits last\n"
        "  Export it again with logits all."
    )


def test_a_cache_that_holds_a_window_drops_no_tokens(tmp_path: Path) -> None:
    for name in ("full", "window"):
        written(spec("windowed"), tmp_path / name, target="cpu", verify=False, window_cache=name == "window")
    full, window = (open_export(tmp_path / name) for name in ("full", "window"))
    for what, pair in (("The target of a draft", (window, full)), ("A draft", (full, window))):
        assert refused(*pair) == (
            f"{what} must be able to drop tokens from its cache, and a cache that holds a window alone is not.\n"
            f"  value: {tmp_path}/window, window_cache\n  Export it again without window_cache."
        )
