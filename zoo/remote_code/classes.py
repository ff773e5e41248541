"""The classes that transformers loads, from their templates."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from zoo.components.pooling import TokenSequence
from zoo.functional import attention, attention_bias
from zoo.remote_code.attentions import cached_windows, state_names
from zoo.remote_code.expressions import Expression, Group, call, formatted
from zoo.remote_code.source_template import render
from zoo.remote_code.subject import Subject

_MODELS = {
    "decoder": "decoder_model",
    "vision-language": "decoder_model",
    "encoder": "encoder_model",
    "encoder-decoder": "seq2seq_model",
    "dual-encoder": "dual_model",
}
"""The template of the model of each architecture."""


def serving(subject: Subject, name_of: Callable[[Any], str]) -> list[str]:
    """The code that the classes of transformers use.  ``name_of``: the names of functions and classes in the file."""
    names = {"attention": name_of(attention), "attention_bias": name_of(attention_bias)}
    parts = [render("making"), render("serving", **names)]
    for table in [*subject.tables.values()][:1]:
        parts.append(render("tokens", table=name_of(type(table))))
    if subject.spec.decodes:
        windows = cached_windows(subject.stack, subject.attentions)
        parts.append(render("caches", states=_states(subject), windows=windows))
    return parts


def _states(subject: Subject) -> str:
    names = state_names(subject.stack)
    if len(set(names)) == 1:
        return f"[{names[0]!r}] * {len(names)}"
    return formatted(Group("[", tuple(map(repr, names)), "]"))


def classes(
    subject: Subject,
    name_of: Callable[[Any], str],
    parts: Mapping[str, Expression],
    head: Expression,
    ties: Mapping[str, str],
    *,
    served: bool,
) -> list[str]:
    """The classes of a model with these parts and this head; ``served``: engines may have masks and caches of their own."""
    stored = subject.names
    of_head = {name for name in ties if name.startswith("head.") and subject.head is not None}
    calls = subject.attentions.calls.values()
    blocks = {name_of(type(block)) for stack in subject.stacks.values() for block in stack.blocks}
    fields = _fields(subject, name_of) | {
        "ties": {name: first for name, first in ties.items() if name not in of_head},
        "parts": formatted(call("filled", "self", **parts), 8),
        "prepared": served,
        "backend": served,
        "sdpa": all(attention.softcap is None and not attention.has_sinks for attention in calls),
        "blocks": sorted(blocks),
    }
    written = [render(name, **fields) for name in ("pretrained", _MODELS[subject.spec.architecture])]
    if subject.head is None:
        return written
    fields["ties"] = {stored[name]: stored[ties[name]] for name in of_head}
    return [*written, _head(subject, name_of, head, fields)]


def _fields(subject: Subject, name_of: Callable[[Any], str]) -> dict[str, Any]:
    """The values that fill most templates."""
    seq2seq = subject.spec.architecture == "encoder-decoder"
    tables = [*subject.tables]
    shared = len({id(table) for table in subject.tables.values()}) == 1
    targets = [f"self.{name}.token = " for name in (tables if shared else tables[:1])]
    reads_tokens, input_name = subject.input == "input_ids", subject.input
    new_cache = "DynamicCache()" if seq2seq else "DynamicCache(config=self.config)"
    return {
        "prefix": subject.prefix,
        "name": subject.spec.name,
        "base": name_of(type(subject.model)),
        "sequence": name_of(TokenSequence),
        "main": input_name,
        "token": f"self.{tables[0]}.token" if tables else "None",
        "set_token": f"{''.join(targets)}value" if tables else "pass",
        "cache": "StateCache()" if subject.own_cache else new_cache,
        "own_cache": subject.own_cache,
        "reads_tokens": reads_tokens,
        "beside": [name for name, *_ in subject.spec.embedding_of(subject.spec.first_stack).token_inputs],
        "inputs": f'one_of("{input_name} or inputs_embeds", {input_name}, inputs_embeds)'
        if reads_tokens
        else input_name,
        "images": subject.spec.architecture == "vision-language",
        "seq2seq": seq2seq,
    }


def _head(
    subject: Subject, name_of: Callable[[Any], str], head: Expression, fields: Mapping[str, Any]
) -> str:
    """The class of the model with its head."""
    assert subject.head is not None
    assert subject.stored_head is not None
    stored, lines = subject.stored_head, []
    if stored.layer is not None:
        layer = subject.model.head.get_submodule(stored.layer)
        known = layer.out_features == subject.spec.vocab_size
        rows = "config.vocab_size" if known else str(layer.out_features)
        options: dict[str, Expression] = {} if layer.bias is not None else {"bias": "False"}
        made = call(name_of(type(layer)), str(layer.in_features), rows, **options)
        lines.append(formatted(made, 8, f"self.{stored.path} = "))
    lines += [formatted(head, 8, "self.head = "), "        connect(self, self.model.serving)"]
    kind = subject.spec.head.kind
    seq2seq = subject.spec.architecture == "encoder-decoder"
    if kind == "language_modeling" and subject.spec.decodes:
        template = "seq2seq_head" if seq2seq else "causal_head"
    else:
        template = "decoder_head" if subject.spec.decodes else "head"
    scores_tokens = kind in ("language_modeling", "masked_language_modeling")
    return render(
        template,
        **fields,
        head="\n".join(lines),
        output=stored.output if scores_tokens else "",
        suffix=subject.head.suffix,
        result=subject.head.result,
        doc=subject.head.doc,
    )
