"""Retrieval of document images by late interaction (Faysse et al., 2024): ``ColPaliForRetrieval``, ``ColQwen2ForRetrieval`` and
``ColModernVBertForRetrieval``, a PaliGemma, a Qwen2-VL or a ModernVBERT with a normalized projection of every token's vector."""

from __future__ import annotations

from dataclasses import dataclass, replace

from specs.kinds.attention import MultiHeadShape
from specs.kinds.position import PositionKind
from specs.kinds.retrieval import MultiVector
from specs.kinds.rope_sections import RopeSections
from specs.kinds.vocabulary_heads import LanguageModeling
from specs.model.model import Model
from zoo.families.common import fields as f
from zoo.families.common.config import Config
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.rope import rope_of
from zoo.families.common.template import Data, FieldContext, UnfitError, read, write
from zoo.families.common.tensors import Rule, Tensors, affine
from zoo.families.common.vision_language import TEXT_CONFIG
from zoo.families.vision_language.modernvbert import FAMILIES as MODERNVBERT
from zoo.families.vision_language.paligemma import FAMILIES as PALIGEMMA
from zoo.families.vision_language.qwen2_vl import FAMILIES as QWEN2_VL

_MODEL, _WIDTH = "vlm_config", f.Int("embedding_dim", default=128)


@dataclass(frozen=True)
class _Retrieval(Family):
    """The model of a ``reader`` of images, with vectors of tokens instead of scores.

    The reference numbers all tokens in order, also where the reader's own class counts rows and columns of images
    (``sectioned``).
    """

    reader: Family = PALIGEMMA[0]
    sectioned: bool = False

    def spec(self, config: Config, class_name: str) -> Data:
        within = config.any(_MODEL)
        has_text = isinstance(within, dict) and TEXT_CONFIG in within
        inner = config.model(_MODEL, (self.reader.model_type,), ("vocab_size",) if has_text else ())
        data = self.reader.spec(inner, next(iter(self.reader.classes)))
        data["position"] = {key: value for key, value in data["position"].items() if key != "sections"}
        head = {"kind": "multi_vector", "projection": read(_WIDTH, config), "projection_bias": True}
        return {**data, "head": head}

    def config(self, model: Model, class_name: str) -> Data:
        head = model.head
        expected = MultiVector(projection=getattr(head, "projection", None), projection_bias=True)
        if head != expected or expected.projection is None:
            raise UnfitError("head: it is a normalized projection with a bias")
        scores = model.model_copy(
            update={"head": LanguageModeling(tie_embeddings=True), "position": self._position(model)}
        )
        return {
            "architectures": [class_name],
            "model_type": self.model_type,
            _MODEL: self.reader.config(scores, next(iter(self.reader.classes))),
            **write(_WIDTH, expected.projection, FieldContext.of(model, "head")),
        }

    def _position(self, model: Model) -> PositionKind:
        """The position of the model inside, whose config states sections where its own class needs them."""
        if not self.sectioned:
            return model.position
        rope, attention = rope_of(model.position), model.last_stack.layer_blocks()[0].attention
        if rope.sections is not None or not isinstance(attention, MultiHeadShape):
            raise UnfitError("position.sections: the tokens of images count as the others")
        pairs = attention.head_width(model.output_width) // 2
        first, second = pairs // 4, (pairs - pairs // 4) // 2
        sections = RopeSections(pairs=(first, second, pairs - first - second))
        return rope.model_copy(update={"sections": sections})


def _family(model_type: str, class_name: str, reader: Family, *, sectioned: bool = False) -> Family:
    tensors = Tensors(
        model_type,
        tuple(_inside(rule) for rule in reader.tensors.rules),
        heads={"multi_vector": affine("embedding_proj_layer", "head.projection")},
        optional=(*reader.tensors.optional, "vlm.*lm_head.weight"),
        unused=reader.tensors.unused,
    )
    classes = {class_name: HeadClass("multi_vector")}
    return _Retrieval(model_type, tensors, classes=classes, reader=reader, sectioned=sectioned)


def _inside(rule: Rule) -> Rule:
    """Return the rule of a tensor of the model inside, with or without the prefix of its own body."""
    names = [
        f"vlm.{part}" for name in (rule.stored, *rule.also) for part in (name.removeprefix("model."), name)
    ]
    stored, *also = dict.fromkeys(names)
    return replace(rule, stored=stored, also=tuple(also))


FAMILIES = (
    _family("colpali", "ColPaliForRetrieval", PALIGEMMA[0]),
    _family("colqwen2", "ColQwen2ForRetrieval", QWEN2_VL[0], sectioned=True),
    _family("colmodernvbert", "ColModernVBertForRetrieval", MODERNVBERT[0]),
)
