"""GLiNER as its library computes it, over a model of transformers: checkpoints with its tensors, and what they give."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tests.parity.reference import redraw

LABEL = 30
VOCABULARY = 32

ENCODERS: dict[str, dict[str, Any]] = {
    "deberta-v2": {
        **{"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24},
        **{"relative_attention": True, "position_buckets": 8, "norm_rel_ebd": "layer_norm", "share_att_key": True},
        **{"pos_att_type": "p2c|c2p", "position_biased_input": False, "type_vocab_size": 0},
    },
    "bert": {"hidden_size": 12, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 20},
    "modernbert": {
        **{"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24},
        **{"pad_token_id": 0, "bos_token_id": 0, "eos_token_id": 0, "cls_token_id": 0, "sep_token_id": 0},
    },
}  # fmt: skip


def two_layers(width: int, out: int) -> nn.Sequential:
    return nn.Sequential(nn.Linear(width, 4 * out), nn.ReLU(), nn.Dropout(0.4), nn.Linear(4 * out, out))


class GLiNER(nn.Module):
    """The encoder, and the layers after it, with the names of the library's tensors."""

    def __init__(self, family: str, width: int, layers: int, longest: int) -> None:
        super().__init__()
        config = transformers.AutoConfig.for_model(family, vocab_size=VOCABULARY, **ENCODERS[family])
        config._attn_implementation = "eager"
        own = config.hidden_size
        self.token_rep_layer = nn.ModuleDict(
            {"bert_layer": nn.ModuleDict({"model": transformers.AutoModel.from_config(config)})}
        )
        if width != own:
            self.token_rep_layer["projection"] = nn.Linear(own, width)
        if layers:
            lstm = nn.LSTM(width, width // 2, layers, bidirectional=True, batch_first=True)
            self.rnn = nn.ModuleDict({"lstm": lstm})
        ends = {name: two_layers(width, width) for name in ("project_start", "project_end")}
        spans = nn.ModuleDict({**ends, "out_project": two_layers(2 * width, width)})
        self.span_rep_layer = nn.ModuleDict({"span_rep_layer": spans})
        self.prompt_rep_layer = two_layers(width, width)
        self.config: Any = config
        self.width, self.layers, self.longest = width, layers, longest

    def forward(
        self, ids: Tensor, mask: Tensor, words: Tensor, counts: Tensor, spans: Tensor, real: Tensor
    ) -> Tensor:
        parts: Any = self
        x = parts.token_rep_layer["bert_layer"]["model"](ids, attention_mask=mask).last_hidden_state
        if "projection" in self.token_rep_layer:
            x = self.token_rep_layer["projection"](x)
        most = int(((ids == LABEL) * mask).sum(1).max())
        labels = x.new_zeros(len(ids), most, self.width)
        tokens = x.new_zeros(len(ids), spans.shape[1] // self.longest, self.width)
        for row, (own, seen) in enumerate(zip(ids, mask, strict=True)):
            places = [place for place, token in enumerate(own.tolist()) if token == LABEL and seen[place]]
            labels[row, : len(places)] = x[row, places]
            for place, word in enumerate(words[row].tolist()):
                if word:
                    tokens[row, word - 1] = x[row, place]
        if self.layers:
            packed = pack_padded_sequence(tokens, counts[:, 0], batch_first=True, enforce_sorted=False)
            read, _ = pad_packed_sequence(parts.rnn["lstm"](packed)[0], batch_first=True)
            tokens = torch.cat(
                (read, read.new_zeros(len(read), tokens.shape[1] - read.shape[1], self.width)), 1
            )
        layers, ends = parts.span_rep_layer["span_rep_layer"], spans * real[..., None]
        rows = torch.arange(len(ids))[:, None]
        first, last = (
            layers[f"project_{end}"](tokens)[rows, ends[..., at]] for at, end in enumerate(("start", "end"))
        )
        vectors = layers["out_project"](torch.cat((first, last), -1).relu())
        vectors = vectors.view(len(ids), -1, self.longest, self.width)
        return torch.einsum("BLKD,BCD->BLKC", vectors, self.prompt_rep_layer(labels))


def gliner(
    place: Path,
    family: str = "deberta-v2",
    width: int = 12,
    layers: int = 1,
    longest: int = 3,
    seed: int = 0,
    **fields: Any,
) -> GLiNER:
    """A drawn model, which is saved as its library saves it."""
    model = GLiNER(family, width, layers, longest).eval()
    redraw(model, seed)
    save_file(
        {name: tensor.contiguous() for name, tensor in model.state_dict().items()},
        place / "model.safetensors",
    )
    config = {
        **{
            "span_mode": "markerV0", "max_width": longest, "hidden_size": width, "num_rnn_layers": layers,
            "dropout": 0.4,
        },
        **{"class_token_index": LABEL, "vocab_size": VOCABULARY, "subtoken_pooling": "first", "max_len": 50},
        **{"model_type": None, "ent_token": "<<ENT>>", "sep_token": "<<SEP>>", "embed_ent_token": True},
        "encoder_config": model.config.to_dict(),
        **fields,
    }  # fmt: skip
    (place / "gliner_config.json").write_text(json.dumps(config))
    return model


def batch(
    longest: int, labels: tuple[int, ...] = (2, 1, 3), words: tuple[int, ...] = (5, 1, 4)
) -> dict[str, Tensor]:
    """Rows of labels, each a label token and two tokens, and words of one or two tokens, padded on the right."""
    generator = torch.Generator().manual_seed(4)
    rows, numbers = [], []
    for of_labels, of_words in zip(labels, words, strict=True):
        ids, own = [1], [0]
        for _ in range(of_labels):
            ids += [LABEL, *torch.randint(3, LABEL, (2,), generator=generator).tolist()]
            own += [0, 0, 0]
        ids, own = [*ids, LABEL + 1], [*own, 0]
        for word in range(1, of_words + 1):
            ids += torch.randint(3, LABEL, (1 + word % 2,), generator=generator).tolist()
            own += [word, *[0] * (word % 2)]
        rows.append([*ids, 2])
        numbers.append([*own, 0])
    length, most = max(map(len, rows)), max(words)
    first = torch.arange(most).repeat_interleave(longest)
    spans = torch.stack((first, first + torch.arange(longest).repeat(most)), -1)
    counts = torch.tensor(words)[:, None]
    return {
        "input_ids": torch.tensor([[*row, *[0] * (length - len(row))] for row in rows]),
        "attention_mask": torch.tensor([[1] * len(row) + [0] * (length - len(row)) for row in rows]),
        "words_mask": torch.tensor([[*row, *[0] * (length - len(row))] for row in numbers]),
        "text_lengths": counts,
        "span_idx": spans[None].repeat(len(rows), 1, 1),
        "span_mask": spans[:, 1] < counts,
    }
