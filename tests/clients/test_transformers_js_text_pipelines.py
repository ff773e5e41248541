"""Pipelines of transformers.js give from texts what transformers gives."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers

from tests.clients.checkpoints import EOS, SIZES, VOCABULARY
from tests.clients.conftest import TEXTS
from tests.clients.pipelines import KINDS, LABELS, MASK, assert_near, by_label, deployed, piped

pytestmark = pytest.mark.clients


def encoder(suffix: str) -> Callable[[], transformers.PreTrainedModel]:
    """DistilBERT or, for a masked token, ModernBERT with a head."""
    family, config_class = ("ModernBert", transformers.ModernBertConfig)
    sizes: dict[str, Any] = {
        **SIZES,
        "vocab_size": VOCABULARY + 1,
        "max_position_embeddings": 64,
        "pad_token_id": 0,
    }
    if suffix != "MaskedLM":
        family, config_class = ("DistilBert", transformers.DistilBertConfig)
        sizes = dict(
            dim=64, n_layers=2, n_heads=4, hidden_dim=96, vocab_size=VOCABULARY, max_position_embeddings=64
        )
    model_class = getattr(transformers, f"{family}For{suffix}")
    labels = LABELS if suffix.endswith("Classification") else {}
    return lambda: model_class(config_class(**sizes, **labels))


def test_classes_of_texts(tmp_path: Path) -> None:
    origin = deployed(encoder("SequenceClassification"), None, tmp_path)
    found = piped(tmp_path, "text-classification", texts=TEXTS, given=[{"top_k": 4}])
    rows = [origin.tokenizer(text, return_tensors="pt") for text in TEXTS]
    with torch.no_grad():
        logits = torch.cat([origin.model(**row).logits for row in rows])
    assert_near("text-classification", found, by_label(logits, KINDS))


def test_classes_of_texts_without_training(tmp_path: Path) -> None:
    origin = deployed(encoder("SequenceClassification"), None, tmp_path)
    labels = ["temple", "words", "a fox"]
    found = piped(tmp_path, "zero-shot-classification", texts=TEXTS, given=[labels])
    entails = []
    for text in TEXTS:
        pairs = [origin.tokenizer(text, f"This example is {label}.", return_tensors="pt") for label in labels]
        with torch.no_grad():
            entails.append(torch.stack([origin.model(**pair).logits[0, 2] for pair in pairs]))
    answers = [
        [dict(label=label, score=score) for label, score in zip(each["labels"], each["scores"], strict=True)]
        for each in found
    ]
    assert_near("zero-shot-classification", answers, by_label(torch.stack(entails), labels))


def test_answers_in_texts(tmp_path: Path) -> None:
    origin, question = deployed(encoder("QuestionAnswering"), None, tmp_path), f"What is there?{EOS}"
    for text in TEXTS:
        (answer,) = piped(tmp_path, "question-answering", texts=[question], given=[text])
        given = origin.tokenizer(question, text, return_tensors="pt")
        first = given.input_ids[0].tolist().index(origin.tokenizer.sep_token_id) + 1
        with torch.no_grad():
            outputs = origin.model(**given)
        logits = torch.stack((outputs.start_logits[0], outputs.end_logits[0]))
        logits[:, 1:first] = -torch.inf  # the question; the first token takes its share, and is no answer
        start, end = logits.softmax(-1)[:, first:]
        shares = torch.triu(start[:, None] * end)
        begin, last = divmod(int(shares.argmax()), len(end))
        span = given.input_ids[0, first + begin : first + last + 1]
        far = abs(answer["score"] - float(shares.max()))
        print(f"question-answering: {answer['answer']!r} differs from transformers by {far:.1e}")
        assert answer["answer"] == origin.tokenizer.decode(span)
        assert far < 1e-5


def test_classes_of_tokens(tmp_path: Path) -> None:
    origin = deployed(encoder("TokenClassification"), None, tmp_path)
    found = piped(tmp_path, "token-classification", texts=TEXTS)
    for text, answer in zip(TEXTS, found, strict=True):
        with torch.no_grad():
            shares = origin.model(**origin.tokenizer(text, return_tensors="pt")).logits[0].softmax(-1)
        scores, places = shares.max(-1)
        assert [each["entity"] for each in answer] == [KINDS[place] for place in places]
        far = float((torch.tensor([each["score"] for each in answer]) - scores).abs().max())
        print(f"token-classification: transformers.js differs from transformers by at most {far:.1e}")
        assert far < 1e-5


def test_masked_tokens(tmp_path: Path) -> None:
    origin = deployed(encoder("MaskedLM"), None, tmp_path, MASK)
    texts = [f"{text}{MASK}" for text in TEXTS]
    found = piped(tmp_path, "fill-mask", texts=texts, given=[{"top_k": 8}])
    for text, answer in zip(texts, found, strict=True):
        with torch.no_grad():
            shares = origin.model(**origin.tokenizer(text, return_tensors="pt")).logits[0, -1].softmax(-1)
        best = shares.topk(8)
        assert [each["token"] for each in answer] == best.indices.tolist()
        far = float((torch.tensor([each["score"] for each in answer]) - best.values).abs().max())
        print(f"fill-mask: transformers.js differs from transformers by at most {far:.1e}")
        assert far < 1e-5
