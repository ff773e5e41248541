"""The purpose of a model, in the terms of its clients."""

from __future__ import annotations

from dataclasses import dataclass

from specs.model.model import Model


@dataclass(frozen=True)
class Purpose:
    """The ``pipeline`` tag of the Hugging Face hub, or None, and the suffix of the client's ``Auto...`` class."""

    pipeline: str | None
    suffix: str


_FEATURES = Purpose("feature-extraction", "FeatureExtraction")
_TEXT = {
    "masked_language_modeling": Purpose("fill-mask", "MaskedLM"),
    "classification": Purpose("text-classification", "SequenceClassification"),
    "token_classification": Purpose("token-classification", "TokenClassification"),
    "question_answering": Purpose("question-answering", "QuestionAnswering"),
    "spans": Purpose("token-classification", "TokenClassification"),
    "pooled": _FEATURES,
    "pooler": _FEATURES,
    "none": _FEATURES,
}
_IMAGE = {
    **dict.fromkeys(
        ("classification", "distilled_classification"),
        Purpose("image-classification", "ImageClassification"),
    ),
    "pooled": Purpose("image-feature-extraction", "FeatureExtraction"),
    "pooler": Purpose("image-feature-extraction", "FeatureExtraction"),
    "none": Purpose("image-feature-extraction", "FeatureExtraction"),
}
_MATCHING = Purpose("zero-shot-image-classification", "FeatureExtraction")
_DETECTING = Purpose("zero-shot-object-detection", "ZeroShotObjectDetection")
_AUDIO = {
    "classification": Purpose("audio-classification", "AudioClassification"),
    "ctc": Purpose("automatic-speech-recognition", "CTC"),
    "token_classification": Purpose(None, "AudioFrameClassification"),
    "none": _FEATURES,
}
_SENTENCES = Purpose("sentence-similarity", "FeatureExtraction")
_GENERATION = {
    "decoder": Purpose("text-generation", "CausalLM"),
    "encoder-decoder": Purpose("text2text-generation", "Seq2SeqLM"),
    "vision-language": Purpose("image-text-to-text", "ImageTextToText"),
}
_SPEECH, _CAPTIONS = (
    Purpose("automatic-speech-recognition", "SpeechSeq2Seq"),
    Purpose("image-to-text", "Vision2Seq"),
)
_BY_INPUT = {"input_ids": _TEXT, "pixel_values": _IMAGE, "input_features": _AUDIO, "input_values": _AUDIO}
_GENERATION_BY_INPUT = {"pixel_values": _CAPTIONS, "input_features": _SPEECH, "input_values": _SPEECH}


def purpose_of(spec: Model) -> Purpose:
    """Return the purpose of a model by its head and its first input; heads of plugins have no pipeline."""
    name = spec.embedding_of(spec.first_stack).input_name
    kind = spec.head.kind
    if spec.architecture == "dual-encoder":
        return _DETECTING if kind == "detection" else _MATCHING
    if kind == "language_modeling" and spec.architecture in _GENERATION:
        return _GENERATION_BY_INPUT.get(name) or _GENERATION[spec.architecture]
    if spec.head.sequence_output == "sentence_embedding":
        return _SENTENCES
    return _BY_INPUT.get(name, {}).get(kind, Purpose(None, "FeatureExtraction"))
