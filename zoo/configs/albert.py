"""ALBERT (Lan et al., 2019): ``AlbertConfig``.

Layers come in groups, each ``inner_group_num`` layers that are passed through several times.
"""

from __future__ import annotations

from collections import Counter

from specs.model import Model
from specs.stack import LayerGroup, Stack
from zoo.configs.activations import read_activation
from zoo.configs.config import Config
from zoo.configs.decoders import stack_of
from zoo.configs.encoders import classification, masked, of_tokens, pooler, read_bert, read_norm, write_bert
from zoo.configs.family import ConfigFamily, Data, HeadClass


def _read(config: Config, class_name: str) -> Data:
    config.ignore("classifier_dropout_prob")  # of some heads
    config.ignore(
        "down_scale_factor", "gap_size", "layers_to_keep", "net_structure_type", "num_memory_blocks"
    )
    body = read_bert(
        config, vocab_size=30000, d_model=4096, heads=64, hidden=16384, activation="gelu_new", dropout=0.0
    )
    body["embedding"]["width"] = config.int("embedding_size", default=128)
    body["embedding"]["projection"] = {"bias": True}  # whatever the widths
    body["encoder"]["layers"] = _read_layers(config, body["encoder"]["layers"])
    return body


def _read_layers(config: Config, passes: int) -> int | list[Data]:
    """The layers of a stack that passes through a group so many times in all."""
    groups = config.int("num_hidden_groups", default=1)
    inner = config.int("inner_group_num", default=1)
    if not 1 <= groups <= passes:
        config.refuse("num_hidden_groups", f"must be from 1 to num_hidden_layers, which is {passes}")
    if inner < 1:
        config.refuse("inner_group_num", "must be 1 or more")
    if groups == passes and inner == 1:
        return passes
    times = Counter(int(i / (passes / groups)) for i in range(passes)).values()
    if inner == 1:
        return [{"repeat": count, "shared": True} for count in times]
    return [{"pattern": [{"repeat": inner}], "repeat": count, "shared": True} for count in times]


def groups_of(stack: Stack) -> tuple[int, int]:
    """How many groups of layers a stack has, and how many layers a group has, as far as it has groups."""
    entry = stack.layers if isinstance(stack.layers, int) else stack.layers[0]
    inner = sum(run.repeat for run in entry.pattern) if isinstance(entry, LayerGroup) else 1
    return len(set(stack.owners())) // inner, inner


def _write(model: Model) -> Data:
    stack = stack_of(model)
    groups, inner = groups_of(stack)
    return {
        **write_bert(model),
        "embedding_size": model.embedding_width,
        "num_hidden_layers": stack.depth // inner,
        "num_hidden_groups": groups,
        "inner_group_num": inner,
    }


def _dropout(config: Config) -> float:
    rate: float = config.float("classifier_dropout_prob", default=0.1)
    return rate


def _masked(config: Config) -> Data:
    return {"activation": read_activation(config, "hidden_act", "gelu_new"), "norm": read_norm(config)}


CLASSES = {
    "AlbertModel": pooler("pooler.weight"),
    "AlbertForMaskedLM": masked(_masked),
    "AlbertForPreTraining": masked(_masked),
    "AlbertForSequenceClassification": classification("tanh", _dropout),
    "AlbertForTokenClassification": of_tokens(_dropout),
    "AlbertForQuestionAnswering": HeadClass("question_answering"),
}

FAMILIES = (ConfigFamily("albert", _read, _write, CLASSES),)
