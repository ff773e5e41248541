"""What the tests of encoders have in common."""

from __future__ import annotations

from typing import Any

import transformers
from hypothesis import strategies as st

from specs.model.model import Model
from tests.parity.families.family import FamilyTests
from tests.parity.families.harness import check
from tests.parity.families.llamas import LINEAR, YARN, rotation

ACTIVATIONS = st.sampled_from(["gelu", "gelu_new", "relu", "silu"])
EPS = st.sampled_from([1e-12, 1e-5, 1e-2])


def sides(model_class: type) -> tuple[str, ...]:
    """Where padding is tried: references that pool the first column take it for the first token."""
    name = model_class.__name__
    return ("right",) if name.endswith(("Model", "ForSequenceClassification")) else ("right", "left")


def classes(prefix: str) -> list[type]:
    """The classes of a family that have other heads than that of masked language modeling."""
    names = ("Model", "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering")
    return [getattr(transformers, f"{prefix}{name}") for name in names]


def labels(model_class: type) -> dict[str, Any]:
    """How many labels a head has: answers have a start and an end."""
    return {"num_labels": 2 if model_class.__name__.endswith("QuestionAnswering") else 5}


def draw_bert(data: st.DataObject) -> dict[str, Any]:
    """Any fields of a config with BERT's."""
    heads = data.draw(st.integers(1, 7), "heads")
    return dict(
        vocab_size=data.draw(st.integers(5, 90), "vocab_size"),
        hidden_size=heads * data.draw(st.integers(3, 9), "head_dim"),
        num_hidden_layers=data.draw(st.integers(1, 4), "layers"),
        num_attention_heads=heads,
        intermediate_size=data.draw(st.integers(1, 70), "hidden"),
        hidden_act=data.draw(ACTIVATIONS, "activation"),
        layer_norm_eps=data.draw(EPS, "eps"),
        type_vocab_size=data.draw(st.integers(1, 4), "token_types"),
        max_position_embeddings=data.draw(st.integers(1, 40), "context_length"),
        tie_word_embeddings=data.draw(st.booleans(), "tied"),
    )


def draw_rotary(data: st.DataObject, *, token_types: st.SearchStrategy[int]) -> dict[str, Any]:
    """Any fields of a config with BERT's whose heads are rotated."""
    heads = data.draw(st.integers(1, 5), "heads")
    fields = {
        "hidden_size": heads * 2 * data.draw(st.integers(2, 6), "pairs"),
        "num_attention_heads": heads,
        "type_vocab_size": data.draw(token_types, "token_types"),
        "max_position_embeddings": data.draw(st.integers(32, 128), "context_length"),
        "rope_parameters": dict(data.draw(st.sampled_from([rotation(50.0), LINEAR, YARN]), "rope")),
    }
    return {**draw_bert(data), **fields}


def check_encoder(model_class: type, config: Any, directory: Any, **options: Any) -> Model:
    """As the harness has it, with padding where the class takes it."""
    return check(model_class, config, directory, sides=sides(model_class), **options)


class EncoderTests(FamilyTests):
    """An encoder, all of whose classes are tried with any configuration."""

    check = staticmethod(check_encoder)

    def drawn_class(self, data: st.DataObject) -> type:
        return data.draw(st.sampled_from([self.model_class, *(each for each, _ in self.others)]), "class")
