"""Heads in drawings: from the last layer to the outputs."""

from __future__ import annotations

from collections.abc import Iterator

from specs.base.base import Component
from specs.kinds import head as heads
from specs.kinds.patch_boxes import Detection, PatchBoxes
from zoo.core.units import number_text
from zoo.drawing import wording
from zoo.drawing.diagram import Element, Label, Part
from zoo.drawing.parameters import Counts
from zoo.drawing.wording import TIMES, sizes


def head_elements(
    stated: Component, path: str, d_model: int, counts: Counts, length: str
) -> Iterator[Element]:
    """The parts of the head at ``path`` in order, and its outputs.  ``length``: that of the stream."""
    head = _Head(counts, path, d_model, length)
    match stated:
        case heads.NoHead():
            yield Label("Hidden states", head.stream, "end")
        case heads.LanguageModeling():
            yield from head.language_modeling(stated)
        case heads.MaskedLanguageModeling():
            yield from head.dense(stated)
            yield head.matrix("Masked-language-model head", "vocabulary")
            yield head.logits("vocabulary")
        case heads.Pooler():
            yield Label("Hidden states", head.stream, "out")
            yield head.matrix("Pooler", "dense", wording.ACTIVATIONS[stated.activation], first="first token")
            yield Label("Pooled output", sizes("B", d_model), "end")
        case heads.Classification():
            yield from head.pooled(stated)
            yield head.matrix("Classifier", "labels")
            yield Label("Logits", sizes("B", stated.labels), "end")
        case heads.Pooled():
            yield Label("Hidden states", head.stream, "out")
            yield from head.pooled(stated)
            if stated.projection is not None:
                yield head.matrix("Projection", "projection")
            if stated.normalize:
                yield Part("head", "Divided by its length")
            yield Label("Sequence vector", sizes("B", stated.projection or d_model), "end")
        case PatchBoxes():
            words = (f"{TIMES} class token, between two norms", "box: three layers", "vector: projection")
            yield counts.part("head", "Boxes and vectors", words, path)
            yield Label("Patch vectors", sizes("B", "patches", stated.projection), "end")
        case heads.TokenClassification():
            yield from head.dense(stated)
            yield head.matrix("Classifier of tokens", "labels")
            yield head.logits("labels")
        case heads.QuestionAnswering():
            yield from head.dense(stated)
            yield head.matrix("Start and end of the answer", "span")
            yield Label("Start and end logits", f"2 of {sizes('B', length)}", "end")
        case heads.ReplacedTokenDetection():
            yield from head.dense(stated)
            yield head.matrix("Replaced-token detection", "score")
            yield Label("Logits", sizes("B", length), "end")
        case _:
            yield counts.part("head", wording.title(stated.kind), wording.plain_fields_text(stated), path)
            yield Label("Outputs", "", "end")


def vector_elements(
    stated: Component, path: str, d_model: int, counts: Counts, length: str
) -> Iterator[Element]:
    """The same for a head whose vector goes on to another head."""
    *parts, end = head_elements(stated, path, d_model, counts, length)
    yield from parts
    if isinstance(end, Label):
        yield Label("", end.shape)


def meeting_elements(stated: Component, counts: Counts) -> Iterator[Element]:
    """The head in which two stacks meet, and its outputs; nothing for other heads."""
    if isinstance(stated, heads.Contrastive):
        factor = ("products of the vectors", f"{TIMES} a trained factor")
        details = factor if stated.bias is None else (*factor, "+ a trained number")
        yield counts.part("head", "Similarity", details, "head")
        yield Label("Logits", f"images {TIMES} texts", "end")
    if isinstance(stated, Detection):
        yield Part("head", "Similarity", ("products of unit vectors", "shifted and scaled by each patch"))
        yield Label("Logits and boxes", f"images {TIMES} patches {TIMES} texts, {TIMES} 4", "end")


class _Head:
    """Makes the parts of a head."""

    def __init__(self, counts: Counts, path: str, d_model: int, length: str) -> None:
        self._counts, self._path, self._d_model, self._length = counts, path, d_model, length
        self.stream = sizes("B", length, d_model)

    def matrix(self, title: str, module: str, *details: str, first: str = "") -> Part:
        """A matrix with its widths, and text before and after them."""
        path = f"{self._path}.{module}"
        words = [*([first] if first else []), self._counts.widths(path), *details]
        return self._counts.part("head", title, words, path)

    def logits(self, module: str) -> Label:
        """The output per token, with the width of a matrix."""
        return Label(
            "Logits", sizes("B", self._length, self._counts.sizes(f"{self._path}.{module}")[0]), "end"
        )

    def language_modeling(self, head: heads.LanguageModeling) -> Iterator[Element]:
        """The scores of the next token."""
        yield from self.dense(head)
        if head.scale == "inverse_sqrt_d_model":
            yield Part("other", f"{TIMES} 1/√{self._d_model:,}")
        elif head.scale is not None:
            yield Part("other", f"{TIMES} {number_text(head.scale)}")
        if head.projection:
            yield self.matrix("Projection", "projection")
        fixed = ["fixed bias"] if head.bias == "fixed" else []
        cap = [] if head.softcap is None else [f"softcap {number_text(head.softcap)}"]
        yield self.matrix("Language-model head", "vocabulary", *fixed, *cap)
        yield self.logits("vocabulary")

    def pooled(self, head: heads.SequenceHead) -> Iterator[Element]:
        """One transformed vector per sequence."""
        words = (wording.pooling_words(head.pooling),)
        pooling = Part("head", "Pooling", words)
        if isinstance(head.pooling, heads.AttentionPooling):
            pooling = self._counts.part("head", "Pooling", words, f"{self._path}.pooling")
        dense = list(self.dense(head))
        yield from [*dense, pooling] if head.transform == "tokens" else [pooling, *dense]

    def dense(self, head: heads.TransformingHead | heads.MaskedLanguageModeling) -> Iterator[Element]:
        """The head's dense layer, activation and norm, each if present."""
        if head.activation is not None:
            yield self.matrix("Dense", "dense", wording.ACTIVATIONS[head.activation])
        norm: Component | None = head.norm
        if norm is not None and norm.kind != "none":
            yield self._counts.part("norm", wording.title(norm.kind), [], f"{self._path}.norm")
