"""RoBERTa (Liu et al., 2019) and XLM-RoBERTa (Conneau et al., 2020): ``RobertaConfig``, ``XLMRobertaConfig``.

Positions count from behind the padding token's id, as they did in fairseq: that many rows of the table are not used.
"""

from __future__ import annotations

from specs.model import Model
from zoo.configs.config import Config
from zoo.configs.encoders import (
    classification,
    learned_of,
    masked,
    of_tokens,
    pooler,
    read_bert,
    read_norm,
    write_bert,
)
from zoo.configs.family import ConfigFamily, Data, HeadClass, UnfitError


def _read(config: Config, class_name: str) -> Data:
    config.ignore("classifier_dropout")  # of some heads
    body = read_bert(config, vocab_size=50265 if class_name.startswith("Roberta") else 30522)
    padding = config.int("pad_token_id", default=1)
    context = body["context_length"] - padding - 1
    if context < 1:
        config.refuse(
            "max_position_embeddings", f"must exceed {padding + 1}, where positions start: pad_token_id + 1"
        )
    return {**body, "context_length": context, "position": {"kind": "learned", "offset": padding + 1}}


def _write(model: Model) -> Data:
    offset = learned_of(model).offset
    if not offset:
        raise UnfitError("position.offset 0: it is 1 after the padding token's id")
    return {**write_bert(model), "pad_token_id": offset - 1}


def _masked(config: Config) -> Data:
    return {"activation": "gelu", "norm": read_norm(config)}


def _classes(prefix: str) -> dict[str, HeadClass]:
    return {
        f"{prefix}Model": pooler(),
        f"{prefix}ForMaskedLM": masked(_masked),
        f"{prefix}ForSequenceClassification": classification("tanh"),
        f"{prefix}ForTokenClassification": of_tokens(),
        f"{prefix}ForQuestionAnswering": HeadClass("question_answering"),
    }


FAMILIES = (
    ConfigFamily("roberta", _read, _write, _classes("Roberta")),
    ConfigFamily("xlm-roberta", _read, _write, _classes("XLMRoberta")),
)
