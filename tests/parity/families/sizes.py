"""Three sizes of tiny models, by how keys are shared among heads; configurations name one, and what differs from it."""

from __future__ import annotations

from typing import Any

GROUPED: dict[str, Any] = dict(
    vocab_size=61, hidden_size=60, num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=2, intermediate_size=41
)  # fmt: skip
MULTI_HEAD: dict[str, Any] = dict(
    vocab_size=47, hidden_size=40, num_hidden_layers=2, num_attention_heads=5, num_key_value_heads=5, intermediate_size=50
)  # fmt: skip
MULTI_QUERY: dict[str, Any] = dict(
    vocab_size=31, hidden_size=28, num_hidden_layers=1, num_attention_heads=7, num_key_value_heads=1, intermediate_size=33
)  # fmt: skip
