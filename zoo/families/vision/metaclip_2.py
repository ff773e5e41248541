"""MetaCLIP 2 (Chuang et al., 2025): ``MetaClip2Config``, ``MetaClip2Model`` and its encoders alone: CLIP, whose texts end where
``eos_token_id`` says, whatever it is."""

from __future__ import annotations

from dataclasses import replace

from zoo.families.common.dual import Tower
from zoo.families.common.family import Family, HeadClass
from zoo.families.common.template import Data, FieldContext, UnfitError
from zoo.families.vision.clip import CLIP, TEXT, VISION, End


class _End(End):
    """The token at which a text is pooled, by its id: the released models have token 2."""

    old = None

    def write(self, value: object, context: FieldContext) -> Data:
        data = super().write(value, context)
        if getattr(value, "token", None) == "highest":
            raise UnfitError("head.pooling.token highest")
        return data


def _named(family: Family, model_type: str) -> Family:
    """A family of CLIP with MetaCLIP 2's names and end of texts."""

    def head(kept: HeadClass) -> HeadClass:
        ends = {"pooling": _End()} if isinstance(kept.head.get("pooling"), End) else {}
        return replace(kept, head={**kept.head, **ends})

    classes = {name.replace("CLIP", "MetaClip2"): head(kept) for name, kept in family.classes.items()}
    tensors = replace(family.tensors, name=model_type)
    return replace(family, model_type=model_type, classes=classes, tensors=tensors)


_TEXT, _VISION = _named(TEXT, "metaclip_2_text_model"), _named(VISION, "metaclip_2_vision_model")


def _tower(tower: Tower, family: Family) -> Tower:
    own = {"pooling": _End()} if isinstance(tower.head["pooling"], End) else {}
    return Tower(family, tower.class_name.replace("CLIP", "MetaClip2"), {**tower.head, **own})


_WHOLE = replace(
    CLIP,
    model_type="metaclip_2",
    tensors=replace(CLIP.tensors, name="metaclip_2"),
    classes={"MetaClip2Model": CLIP.classes["CLIPModel"]},
    towers={"text": _tower(CLIP.towers["text"], _TEXT), "image": _tower(CLIP.towers["image"], _VISION)},
    second=False,
)

FAMILIES = (_TEXT, _VISION, _WHOLE)
