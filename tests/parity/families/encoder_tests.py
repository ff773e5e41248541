"""The tests of encoders of texts."""

from __future__ import annotations

from typing import Any, ClassVar

from hypothesis import strategies as st

from tests.parity.families.draws import ACTIVATION, FLAG, HIDDEN, LAYERS, VOCAB, drawn
from tests.parity.families.family import RightPaddedTests
from tests.parity.families.llamas import ALL, LINEAR, YARN, rotation

EPS = st.sampled_from([1e-12, 1e-5, 1e-2])
ROTARY: dict[str, dict[str, Any]] = {
    "odd heads": dict(
        vocab_size=61, hidden_size=30, num_hidden_layers=3, num_attention_heads=3, intermediate_size=17,
        hidden_act="gelu_new", layer_norm_eps=1e-3, type_vocab_size=3, max_position_embeddings=64,
        rope_parameters=rotation(300.0),
    ),
    "one layer": dict(
        vocab_size=33, hidden_size=40, num_hidden_layers=1, num_attention_heads=5, intermediate_size=96,
        layer_norm_eps=1e-6, max_position_embeddings=64, rope_parameters=YARN,
    ),
    "untied": dict(
        vocab_size=97, hidden_size=28, num_hidden_layers=2, num_attention_heads=7, intermediate_size=50,
        max_position_embeddings=31, rope_parameters=LINEAR, tie_word_embeddings=False,
    ),
}  # fmt: skip
"""Configurations of encoders with BERT's fields whose heads are rotated."""


def draw_bert(data: st.DataObject) -> dict[str, Any]:
    """Any fields of a config with BERT's."""
    heads = data.draw(st.integers(1, 7), "heads")
    fields = dict(
        vocab_size=VOCAB, hidden_size=heads * data.draw(st.integers(3, 9), "head_dim"), num_hidden_layers=LAYERS,
        num_attention_heads=heads, intermediate_size=HIDDEN, hidden_act=ACTIVATION, layer_norm_eps=EPS,
        type_vocab_size=st.integers(1, 4), max_position_embeddings=st.integers(1, 40), tie_word_embeddings=FLAG,
    )  # fmt: skip
    return drawn(data, fields)


def draw_rotary(data: st.DataObject, *, token_types: st.SearchStrategy[int]) -> dict[str, Any]:
    """Any fields of a config with BERT's whose heads are rotated."""
    heads = data.draw(st.integers(1, 5), "heads")
    return {
        **draw_bert(data),
        "hidden_size": heads * 2 * data.draw(st.integers(2, 6), "pairs"),
        "num_attention_heads": heads,
        "type_vocab_size": token_types,
        "max_position_embeddings": st.integers(32, 128),
        "rope_parameters": st.sampled_from([rotation(50.0), LINEAR, YARN]),
    }


class EncoderTests(RightPaddedTests):
    """An encoder of texts, padded on both sides if the class allows it."""

    options = {}
    heads: ClassVar[Any] = ALL

    def check(self, model_class: type, config: Any, directory: Any, **options: Any) -> Any:
        """With padding on the right alone for references that pool the first column, whether it is a token or not."""
        pools = model_class.__name__.endswith(("Model", "ForSequenceClassification"))
        sides = ("right",) if pools else ("right", "left")
        return super().check(model_class, config, directory, **{"sides": sides, **self.options, **options})
