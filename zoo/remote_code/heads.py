"""The class of a model with its head."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from torch import nn

from specs.model.model import Model
from zoo.components.linear import Linear
from zoo.components.pooling import TokenSequence
from zoo.remote_code import model_template, seq2seq_template
from zoo.remote_code.modules import INDENT, Modules
from zoo.remote_code.parts import place_of
from zoo.remote_code.stacks import carries_state
from zoo.remote_code.state_template import STATEFUL

HEADS: dict[str, tuple[str, str, str, str]] = {
    "masked_language_modeling": (
        "ForMaskedLM",
        "AutoModelForMaskedLM",
        "MaskedLMOutput",
        "Scores of masked tokens.",
    ),
    "classification": (
        "ForSequenceClassification",
        "AutoModelForSequenceClassification",
        "SequenceClassifierOutput",
        "Scores of classes for the whole sequence.",
    ),
    "token_classification": (
        "ForTokenClassification",
        "AutoModelForTokenClassification",
        "TokenClassifierOutput",
        "Scores of classes for each token.",
    ),
    "question_answering": (
        "ForQuestionAnswering",
        "AutoModelForQuestionAnswering",
        "QuestionAnsweringModelOutput",
        "Scores of the start and end of an answer.",
    ),
}
"""By the kind of a head: the suffix of its class, the class of transformers that loads it, its output, and what it gives."""


@dataclass(frozen=True)
class WrittenHead:
    """The text of a class, empty where the model has no head; its name, the class of transformers that loads it, and the stored
    name of every parameter.
    """

    text: str
    name: str
    auto: str
    names: dict[str, str]


def head_class(
    model: Any, spec: Model, prefix: str, modules: Modules, ties: Mapping[str, str]
) -> WrittenHead:
    """The class with the head of a model; ``ties``: the names of tied parameters, each with that of the first."""
    head, kind = model.head, spec.head.kind
    ours = [name for name, _ in model.named_parameters(remove_duplicate=False)]
    ours += [name for name, _ in model.named_buffers(remove_duplicate=False)]
    if kind == "none":
        return WrittenHead("", f"{prefix}Model", "AutoModel", {name: place_of(name, spec) for name in ours})
    children = [name for name, child in head.named_children() if [*child.parameters()]]
    simple = children in (["vocabulary"], ["labels"], ["span"]) and not [*head.buffers(recurse=False)]
    made = modules.constructed(head)
    place, output = "head", "head.vocabulary"
    methods = ""
    if simple:
        (child,) = children
        place = "lm_head" if child == "vocabulary" else "score" if child == "labels" else child
        output = place
        methods = _inlined_head(modules, head, child, place)
        made = _linear(modules, spec, getattr(head, child))
    names = {}
    for name in ours:
        if not name.startswith("head."):
            stored = f"model.{place_of(name, spec)}"
        else:
            stored = name.replace(f"head.{children[0]}.", f"{place}.") if simple else name
        names[name] = stored
    stored_ties = {names[name]: names[first] for name, first in ties.items() if name.startswith("head.")}
    scored = "self.scores" if simple else "self.head"
    assigned = f"{2 * INDENT}self.{place} = {made}"
    if kind == "language_modeling":
        seq2seq = spec.architecture == "encoder-decoder"
        text = (seq2seq_template.HEAD if seq2seq else model_template.CAUSAL_HEAD).format(
            prefix=prefix,
            ties=stored_ties,
            head=assigned,
            output=output,
            scores=scored,
            methods=methods,
            stateful=STATEFUL.lstrip("\n") if carries_state(model.decoder) else "",
        )
        if seq2seq:
            return WrittenHead(text, f"{prefix}ForConditionalGeneration", "AutoModelForSeq2SeqLM", names)
        return WrittenHead(text, f"{prefix}ForCausalLM", "AutoModelForCausalLM", names)
    suffix, auto, result, doc = HEADS[kind]
    modules.collected.reference(TokenSequence, "TokenSequence", set())
    text = model_template.HEAD.format(
        prefix=prefix,
        suffix=suffix,
        doc=doc,
        ties=stored_ties,
        head=assigned,
        output=model_template.OUTPUT_EMBEDDINGS.format(output=output)
        if kind == "masked_language_modeling"
        else "",
        outputs_doc="",
        scores=scored,
        result=result,
        methods=methods,
    )
    return WrittenHead(text, f"{prefix}{suffix}", auto, names)


def _linear(modules: Modules, spec: Model, layer: Linear) -> str:
    made = modules.constructed(layer)
    rows = f", {layer.out_features}, bias"
    return made.replace(rows, ", config.vocab_size, bias") if layer.out_features == spec.vocab_size else made


def _inlined_head(modules: Modules, head: nn.Module, child: str, place: str) -> str:
    """The forward of a head with one layer, as a method of the class that has the layer."""
    name = modules.written(head)
    text = modules.collected.definitions.pop(name)
    methods = text[text.index(f"{INDENT}def forward(") :].replace(f"self.{child}", f"self.{place}")
    dropped = re.sub(r"self\.dropout\b", "self.head_dropout", methods)
    return "\n" + dropped.replace("def forward(", "def scores(", 1).rstrip() + "\n"
