"""A second stream beside that of the tokens, and queries beside patches: what goes with them."""

import pytest

from specs.base.errors import SpecError
from specs.language.load import load

BLOCK, LAYOUT = "encoder.block", "{coordinates: 9, width: 192, norm: {kind: layer_norm}}"


@pytest.mark.parametrize(
    ("preset", "assignment", "message"),
    [
        ("lilt", "embedding.boxes=9", "embedding.layout: must not be set beside boxes, which reads the boxes"),
        ("lilt", "embedding.layout.width=190", f"{BLOCK}.attention.heads: must divide the width of the second stream, which is 190"),
        ("lilt", "embedding.layout=null", f"{BLOCK}.kind: needs an embedding with a second stream"),
        ("lilt", f"{BLOCK}.attention.softcap=3", f"{BLOCK}.attention.softcap: must not be set in a block of two streams"),
        ("lilt", f"{BLOCK}.attention={{kind: multi_query, heads: 12}}", f"{BLOCK}.attention.kind: must be multi_head"),
        ("lilt", f"{BLOCK}.layer_scale=0.1", f"{BLOCK}.layer_scale: must not be set in a block of two streams"),
        ("lilt", "position={kind: rope}", f"{BLOCK}.kind: requires positions in the embedding"),
        ("lilt", "encoder.causal=true", f"{BLOCK}.kind: belongs to an encoder"),
        ("lilt", "encoder.weighted_layer_sum=true", "encoder.weighted_layer_sum: must not be set beside a second stream"),
        ("lilt", "encoder={layers: [{use: other}, {repeat: 11}], blocks: {other: {kind: post_norm}}}", f"{BLOCK}.kind: must all be two_streams, or none"),
        ("bert", f"embedding.layout={LAYOUT}", "embedding.layout: must be read by the blocks"),
        ("bert", "embedding.corners=2", "embedding.corners: must be read by the blocks"),
        ("bert", f"{BLOCK}.attention.position={{kind: relative_boxes}}", "requires an embedding with corners"),
        ("gpt2", f"embedding.layout={LAYOUT}", "embedding.layout: requires architecture: encoder"),
        ("eomt", "encoder.queries=null", "head.kind: requires queries in the stack"),
        ("eomt", "head={kind: none}", "encoder.queries: must be read by the head masks of an encoder"),
        ("eomt", "position={kind: relative_bias_2d}", "encoder.queries: requires positions in the embedding"),
        ("eomt", f"{BLOCK}.attention.window=8", f"{BLOCK}.attention.window: must not be set beside queries"),
        ("eomt", "encoder.weighted_layer_sum=true", "encoder.weighted_layer_sum: must not be set beside queries"),
    ],
)  # fmt: skip
def test_the_rules(preset: str, assignment: str, message: str) -> None:
    names = {"lilt": "lilt-roberta-en-base", "bert": "bert-base", "eomt": "eomt-large-coco-panoptic-640"}
    with pytest.raises(SpecError) as caught:
        load(names.get(preset, preset), [assignment, "expect={}"])
    assert message in str(caught.value)
