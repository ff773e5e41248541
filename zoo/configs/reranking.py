"""Rerankers of sentence-transformers that read their score off a decoder: the module LogitScore (Qwen3 Reranker).

The score of a text is how much likelier one token is to follow it than another. Both tokens' scores come from rows of one
matrix, so that the difference of the two rows is the only row of a classifier of the last token.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from specs.kinds.vocabulary_heads import LanguageModeling
from zoo.configs.causal_encoder import causal_encoder
from zoo.families.common.config import CONFIG, Config
from zoo.families.common.family import Family
from zoo.families.common.heads import LAST_TOKEN
from zoo.families.common.template import Data, read
from zoo.families.common.typed_fields import REQUIRED
from zoo.weights.modules import LOGIT_SCORE, Module, modules_in

_SETTINGS = "sentence_bert_config.json"
_LOGITS = "causal_logits"


@dataclass(frozen=True)
class ScoredTokens:
    """The ids of the token that speaks for relevance, and of the token against it, if there is one."""

    relevant: int
    irrelevant: int | None


def scored_tokens(directory: Path) -> ScoredTokens | None:
    """The tokens of a directory whose modules are a decoder and LogitScore; None for any other.

    Raises :class:`ConfigError` for unsupported settings of the two.
    """
    modules = modules_in(directory)
    if [module.kind for module in modules] != ["Transformer", LOGIT_SCORE]:
        return None
    return _tokens(modules)


def _tokens(modules: Sequence[Module]) -> ScoredTokens:
    body, score = modules
    settings = Config.load(body.directory / _SETTINGS, within=body.directory)
    settings.must("transformer_task", "text-generation", "LogitScore reads the scores of tokens")
    settings.must("module_output_name", _LOGITS, "LogitScore reads the scores of tokens")
    config = Config.load(score.directory / CONFIG, within=score.directory)
    config.must("module_input_name", _LOGITS, "only the scores of tokens are supported")
    tokens = ScoredTokens(config.int("true_token_id", default=REQUIRED), config.int("false_token_id"))
    config.strict = True
    config.finish()
    return tokens


def reranker_spec(tokens: ScoredTokens, config: Config, family: Family) -> Data:
    """The spec of a decoder, as a causal encoder with a score of its last token, without a name.

    Raises :class:`ConfigError` for families without such a class, and for those that change the scores of tokens further.
    """
    config.ignore("architectures")
    scoring = next((name for name, head in family.classes.items() if head is LAST_TOKEN), None)
    causal = next((head for head in family.classes.values() if head.kind == "language_modeling"), None)
    if scoring is None or causal is None:
        config.refuse(
            "model_type", "must be a family of decoders with a score of the last token for LogitScore"
        )
    head = LanguageModeling.model_validate({"kind": causal.kind, **read(causal.head, config)})
    if further := head.model_dump(exclude_defaults=True, exclude={"kind", "tie_embeddings"}):
        names = ", ".join(sorted(further))
        config.refuse(
            "model_type",
            f"must be a family whose head is a matrix alone for LogitScore, and its head has {names}",
        )
    data = family.body_spec(config, scoring)
    for name, token in (("true_token_id", tokens.relevant), ("false_token_id", tokens.irrelevant)):
        if token is not None and not 0 <= token < data["vocab_size"]:
            config.refuse("vocab_size", f"must be above {name} of LogitScore, which is {token}")
    data = causal_encoder(data)
    return {**data, "head": {"kind": "classification", "labels": 1, "pooling": "last", "bias": False}}
