"""The tests of encoders of texts."""

from __future__ import annotations

from typing import Any, ClassVar

from hypothesis import strategies as st

from tests.parity.families.draws import ACTIVATION, FLAG, HIDDEN, LAYERS, VOCAB, drawn
from tests.parity.families.family import RightPaddedTests
from tests.parity.families.llamas import ALL, LINEAR, YARN, rotation

EPS = st.sampled_from([1e-12, 1e-5, 1e-2])


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
