"""Heads in drawings: from the last layer to the outputs."""

from __future__ import annotations

from collections.abc import Iterator

from specs import head as heads
from specs.model import Model
from zoo.drawing import wording
from zoo.drawing.diagram import Element, Label, Part
from zoo.drawing.parameters import Counts


def head_elements(spec: Model, counts: Counts, length: str) -> Iterator[Element]:
    """The parts of a model's head in the order in which it applies them, and the outputs above."""
    head, d_model = spec.head, spec.d_model
    tokens = wording.sizes("B", length, d_model)

    def part(title: str, module: str, *details: str) -> Part:
        path = f"head.{module}" if module else "head"
        count = counts.of([path])
        return Part("head", title, details, (path,), count, counts.text([count], [path]))

    def widths(module: str) -> str:
        rows, columns = counts.modules[f"head.{module}"].weights["weight"]
        return f"{columns:,} → {rows:,}"

    match head:
        case heads.NoHead():
            yield Label("Hidden states", tokens, "end")
        case heads.LanguageModeling():
            if head.scale is not None:
                inverse = head.scale == "inverse_sqrt_d_model"
                yield Part(
                    "other", f"× 1/√{d_model:,}" if inverse else f"× {wording.number(float(head.scale))}"
                )
            if head.projection:
                yield part("Projection", "projection", widths("projection"))
            fixed = ["fixed bias"] if head.bias == "fixed" else []
            cap = [] if head.softcap is None else [f"softcap {wording.number(head.softcap)}"]
            yield part("Language-model head", "vocabulary", widths("vocabulary"), *fixed, *cap)
            yield Label("Logits", wording.sizes("B", length, spec.vocab_size or 0), "end")
        case heads.MaskedLanguageModeling():
            yield part("Dense", "dense", widths("dense"), wording.ACTIVATIONS[head.activation])
            if head.norm.kind != "none":
                yield part(wording.title(head.norm.kind), "norm")
            yield part("Masked-language-model head", "vocabulary", widths("vocabulary"))
            yield Label("Logits", wording.sizes("B", length, spec.vocab_size or 0), "end")
        case heads.Pooler():
            activation = wording.ACTIVATIONS[head.activation]
            yield part("Pooler", "dense", "first token", widths("dense"), activation)
            yield Label("Pooled, and hidden states", f"{wording.sizes('B', d_model)}, {tokens}", "end")
        case heads.TransformingHead():
            yield from _transforming(head, part, widths, length, d_model)
        case _:
            yield part(wording.title(head.kind), "", *wording.said(head))
            yield Label("Outputs", "", "end")


def _transforming(head: heads.TransformingHead, part, widths, length: str, d_model: int) -> Iterator[Element]:  # type: ignore[no-untyped-def]
    of_sequence = isinstance(head, heads.SequenceHead)
    if isinstance(head, heads.SequenceHead):
        yield Part("head", "Pooling", (wording.pooling_words(head.pooling),))
    if head.activation is not None:
        yield part("Dense", "dense", widths("dense"), wording.ACTIVATIONS[head.activation])
    if head.norm is not None and head.norm.kind != "none":
        yield part(wording.title(head.norm.kind), "norm")
    rows = ["B"] if of_sequence else ["B", length]
    match head:
        case heads.Pooled():
            if head.projection is not None:
                yield part("Projection", "projection", widths("projection"))
            if head.normalize:
                yield Part("head", "Divided by its length")
            vector = wording.sizes(*rows, head.projection or d_model)
            yield Label(
                "Sequence vector, and hidden states",
                f"{vector}, {wording.sizes('B', length, d_model)}",
                "end",
            )
        case heads.QuestionAnswering():
            yield part("Start and end of the answer", "span", widths("span"))
            yield Label("Start and end logits", f"2 of {wording.sizes(*rows)}", "end")
        case heads.ReplacedTokenDetection():
            yield part("Replaced-token detection", "score", widths("score"))
            yield Label("Logits", wording.sizes(*rows), "end")
        case _:
            yield part("Classifier", "labels", widths("labels"))
            yield Label("Logits", wording.sizes(*rows, getattr(head, "labels", 0)), "end")
