"""DeiT with a distillation token (Touvron et al., 2020): ``DeiTConfig``, ``DeiTModel``, ``DeiTForImageClassification`` and
``DeiTForImageClassificationWithTeacher``.

DeiT without one is a ViT, and its checkpoints name it so.
"""

from __future__ import annotations

from zoo.families.common.family import Family, HeadClass
from zoo.families.common.heads import Labels
from zoo.families.common.tensors import Rule, Tensors, modules
from zoo.families.common.transforms import Unsqueezed
from zoo.families.vision import vit

_BODY = {**vit.BODY, "embedding": {**vit.BODY["embedding"], "distillation_token": True}}
_CLASSIFIERS = {
    "cls_classifier": "head.class_labels",
    "distillation_classifier": "head.distillation_labels",
}
_TENSORS = Tensors(
    "deit",
    (
        Rule("embeddings.distillation_token", ("embedding.distillation_token.weight",), Unsqueezed()),
        *vit.RULES,
    ),
    prefix="deit.",
    outside=("classifier.", *(f"{name}." for name in _CLASSIFIERS)),
    heads={**vit.HEADS, "distilled_classification": modules(_CLASSIFIERS)},
    optional=(*vit.OPTIONAL, *(f"{name}.*" for name in _CLASSIFIERS)),
)

FAMILIES = (
    Family(
        "deit",
        _TENSORS,
        _BODY,
        {
            "DeiTForImageClassification": vit.CLASSIFIER,
            "DeiTForImageClassificationWithTeacher": HeadClass(
                "distilled_classification", {"labels": Labels()}
            ),
            "DeiTModel": vit.POOLER,
        },
        fixed=vit.FIXED,
        ignored=vit.IGNORED,
    ),
)
