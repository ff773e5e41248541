"""The rules of heads that score spans."""

from __future__ import annotations

from typing import Any

import pytest

from specs.base.errors import SpecError
from specs.model.model import Model
from tests.zoo.tiny import bert, gpt2, vit

SPANS: dict[str, Any] = {"kind": "spans", "label_token": 3}


@pytest.mark.parametrize(
    ("make", "head", "message"),
    [
        (gpt2, {}, "requires an encoder whose tokens see each other, as labels come before the text"),
        (vit, {}, "requires an embedding of tokens"),
        (bert, {"label_token": 20}, "must be below vocab_size, which is 20"),
        (
            bert,
            {"projection": 7, "recurrent": {"kind": "lstm"}},
            "needs words with an even width, half of it for each direction",
        ),
        (bert, {"recurrent": {"kind": "gru"}}, "must be a registered recurrent kind"),
        (bert, {"max_width": 0}, "greater than 0"),
    ],
)
def test_a_violated_rule_is_named(make: Any, head: dict[str, Any], message: str) -> None:
    with pytest.raises((SpecError, ValueError), match=message):
        make(head={**SPANS, **head})


def test_several_heads_have_no_spans() -> None:
    heads = {"dense": {"kind": "pooled", "pooling": "mean"}, "spans": SPANS}
    with pytest.raises(ValueError, match="must be a head for retrieval"):
        bert(head={"kind": "several", "heads": heads})


def test_reduced_models_look_for_a_token_of_their_vocabulary() -> None:
    from zoo.core.reduced import reduced_models

    spec: Model = bert(
        vocab_size=70_000, head={**SPANS, "label_token": 69_999, "recurrent": {"kind": "lstm"}}
    )
    reduced = [model for model, _ in reduced_models(spec)]
    assert reduced
    assert all((model.head.token_to_find or 0) < (model.vocab_size or 0) for model in reduced)


@pytest.mark.parametrize("kind", ["pooled", "classification"])
def test_an_encoder_of_images_has_no_token_to_pool_at(kind: str) -> None:
    labels = {"labels": 3} if kind == "classification" else {}
    with pytest.raises(
        ValueError, match=r"1 validation error[\s\S]*requires an embedding of tokens"
    ) as caught:
        vit(head={"kind": kind, "pooling": {"token": 5}, **labels})
    assert "vocab_size" not in str(caught.value)
