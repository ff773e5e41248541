"""The classes of transformers by the kind of a head, and where the layer that engines look for is stored."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from torch import nn

from specs.model.model import Model
from zoo.remote_code.bindings import RemoteCodeError


@dataclass(frozen=True)
class HeadClass:
    """The class of a model with its head: its suffix, the class of transformers that loads it, its outputs, and what it gives."""

    suffix: str
    auto: str
    result: str
    doc: str


_SEQUENCES = ("SequenceClassifierOutput", "Scores of classes for the whole sequence.")
_IMAGES = HeadClass("ForImageClassification", "AutoModelForImageClassification", "ImageClassifierOutput", "Scores of classes.")  # fmt: skip
_SOUND = HeadClass("ForAudioClassification", "AutoModelForAudioClassification", *_SEQUENCES)
_LANGUAGE = HeadClass("ForCausalLM", "AutoModelForCausalLM", "CausalLMOutputWithPast", "")
_HEADS = {
    "masked_language_modeling": HeadClass("ForMaskedLM", "AutoModelForMaskedLM", "MaskedLMOutput", "Scores of masked tokens."),
    "classification": HeadClass("ForSequenceClassification", "AutoModelForSequenceClassification", *_SEQUENCES),
    "token_classification": HeadClass("ForTokenClassification", "AutoModelForTokenClassification", "TokenClassifierOutput",
                                      "Scores of classes for each token."),
    "question_answering": HeadClass("ForQuestionAnswering", "AutoModelForQuestionAnswering", "QuestionAnsweringModelOutput",
                                    "Scores of the start and end of an answer."),
    "ctc": HeadClass("ForCTC", "AutoModelForCTC", "CausalLMOutput", "Scores of labels for each frame."),
    "pooler": HeadClass("WithPooler", "AutoModel", "BaseModelOutputWithPooling", "The last hidden state and one vector of it."),
}  # fmt: skip
_BY_INPUT = {
    ("classification", "pixel_values"): _IMAGES,
    ("classification", "input_values"): _SOUND,
    ("classification", "input_features"): _SOUND,
}
_OTHER = HeadClass("WithHead", "AutoModel", "ModelOutput", "The outputs of the head, by name.")


def class_of(spec: Model, input_name: str) -> HeadClass | None:
    """The class of a spec's model with its head; None if the head adds nothing."""
    kind = spec.head.kind
    if kind == "none" or spec.architecture == "dual-encoder":
        return None
    if spec.architecture in ("encoder-decoder", "vision-language") and kind != "language_modeling":
        raise RemoteCodeError(
            f"{spec.name}: head {kind} of {spec.architecture} cannot be written as remote code\n"
            "  Use language_modeling or none."
        )
    if spec.architecture == "encoder-decoder":
        auto = "AutoModelForSeq2SeqLM" if input_name == "input_ids" else "AutoModelForSpeechSeq2Seq"
        auto = "AutoModelForImageTextToText" if input_name == "pixel_values" else auto
        return HeadClass("ForConditionalGeneration", auto, "Seq2SeqLMOutput", "")
    if spec.architecture == "vision-language":
        return HeadClass(
            "ForConditionalGeneration", "AutoModelForImageTextToText", "CausalLMOutputWithPast", ""
        )
    if kind == "language_modeling":
        return _LANGUAGE
    return _BY_INPUT.get((kind, input_name), _HEADS.get(kind, _OTHER))


_STORED = {"vocabulary": "lm_head", "labels": "score"}


@dataclass(frozen=True)
class Stored:
    """Where the weights of a head are: ``layer`` of the head is ``place`` of the model that has the head, if it is all there is."""

    layer: str | None
    place: str
    output: str

    def name(self, name: str) -> str:
        """The stored name of a parameter of the head."""
        return name if self.layer is None else name.replace(f"head.{self.layer}.", f"{self.place}.", 1)


def stored_head(head: Any) -> Stored:
    """Where the weights of a head are: those of a single layer under the names that engines expect."""
    assert isinstance(head, nn.Module)
    with_weights = [name for name, child in head.named_children() if [*child.parameters()]]
    own = [*head.parameters(recurse=False), *head.buffers(recurse=False)]
    if with_weights in (["vocabulary"], ["labels"], ["span"]) and not own:
        place = _STORED.get(with_weights[0], with_weights[0])
        return Stored(with_weights[0], place, place)
    return Stored(None, "head", "head.vocabulary")
