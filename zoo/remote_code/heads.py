"""The classes of transformers by the kind of a head, and where the layer that engines look for is stored."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from specs.kinds.token_heads import QuestionAnswering
from specs.model.model import Model
from zoo.families.own import HEAD_LAYERS


@dataclass(frozen=True)
class HeadClass:
    """The class of a model with its head: its suffix, the class of transformers that loads it, its outputs, and what it gives."""

    suffix: str
    auto: str
    result: str
    doc: str


_CLASSES = "Scores of classes for the whole sequence."
_HEADS = {
    "language_modeling": HeadClass("ForCausalLM", "AutoModelForCausalLM", "CausalLMOutputWithPast", ""),
    "masked_language_modeling": HeadClass("ForMaskedLM", "AutoModelForMaskedLM", "MaskedLMOutput", "Scores of masked tokens."),
    "classification": HeadClass("ForSequenceClassification", "AutoModelForSequenceClassification", "SequenceClassifierOutput", _CLASSES),
    "token_classification": HeadClass("ForTokenClassification", "AutoModelForTokenClassification", "TokenClassifierOutput",
                                      "Scores of classes for each token."),
    "question_answering": HeadClass("ForQuestionAnswering", "AutoModelForQuestionAnswering", "QuestionAnsweringModelOutput",
                                    "Scores of the start and end of an answer."),
    "ctc": HeadClass("ForCTC", "AutoModelForCTC", "CausalLMOutput", "Scores of labels for each frame."),
    "pooler": HeadClass("WithPooler", "AutoModel", "BaseModelOutputWithPooling", "The last hidden state and one vector of it."),
}  # fmt: skip
_IMAGES = HeadClass("ForImageClassification", "AutoModelForImageClassification", "ImageClassifierOutput", "Scores of classes.")  # fmt: skip
_SOUND = HeadClass("ForAudioClassification", "AutoModelForAudioClassification", "SequenceClassifierOutput", _CLASSES)  # fmt: skip
_CLASSIFIERS = {"pixel_values": _IMAGES, "input_values": _SOUND, "input_features": _SOUND}
_SEQ2SEQ = {"input_ids": "AutoModelForSeq2SeqLM", "pixel_values": "AutoModelForImageTextToText"}
_OTHER = HeadClass("WithHead", "AutoModel", "ModelOutput", "The outputs of the head, by name.")


def class_of(spec: Model, input_name: str) -> HeadClass | None:
    """The class of a spec's model with its head; None if the head adds nothing, or is part of the model."""
    kind = spec.head.kind
    if kind == "none" or spec.architecture == "dual-encoder":
        return None
    if kind == "classification" and input_name in _CLASSIFIERS:
        return _CLASSIFIERS[input_name]
    if kind == "language_modeling" and spec.architecture == "encoder":
        return _HEADS["masked_language_modeling"] if input_name == "input_ids" else _OTHER
    if kind == "language_modeling" and spec.architecture != "decoder":
        auto = _SEQ2SEQ.get(input_name, "AutoModelForSpeechSeq2Seq")
        auto = "AutoModelForImageTextToText" if spec.architecture == "vision-language" else auto
        return HeadClass("ForConditionalGeneration", auto, "", "")
    if isinstance(spec.head, QuestionAnswering) and spec.head.relevance:
        return replace(_HEADS[kind], result="ModelOutput")  # the class of answers has no field for it
    return _HEADS.get(kind, _OTHER)


@dataclass(frozen=True)
class StoredHead:
    """Where the weights of a head are: ``layer`` of the head is ``path`` in the model that has the head, if it is all there is."""

    layer: str | None
    path: str
    output: str

    @classmethod
    def of(cls, head: Any) -> StoredHead:
        """The weights of a single layer are under the name that engines expect."""
        assert isinstance(head, nn.Module)
        with_weights = [name for name, child in head.named_children() if [*child.parameters()]]
        own = [*head.parameters(recurse=False), *head.buffers(recurse=False)]
        if len(with_weights) == 1 and with_weights[0] in HEAD_LAYERS and not own:
            path = HEAD_LAYERS[with_weights[0]]
            return cls(with_weights[0], path, path)
        return cls(None, "head", "head.vocabulary")

    def name(self, name: str) -> str:
        """The stored name of a parameter of the head."""
        return name if self.layer is None else name.replace(f"head.{self.layer}.", f"{self.path}.", 1)
