"""Small models with parts that read more than the stream: embeddings per layer, several streams, shared layers, images."""

from __future__ import annotations

from typing import Any

from specs.model.model import Model
from tests.parallel.models import GATED, GROUPED, HEADS, MIXTURE, MLP, RMS, decoder, encoder

LAYER = {"kind": "pre_norm", "norm": RMS, "attention": GROUPED, "feed_forward": GATED}
PER_LAYER = {"width": 8, "activation": "gelu_tanh", "norm": RMS}
PLAIN = {"kind": "rms_norm", "weight": False}
STREAMS = {"streams": 3, "norm": RMS}


def reusing() -> Model:
    """Gemma 4: layers that reuse keys and values, an embedding of the tokens for each, a factor on each output."""
    gemma = {"per_layer_embedding": PER_LAYER, "output_scale": 1.5}
    block = {**LAYER, **gemma, "attention": {**GROUPED, "value_norm": PLAIN, "values": "keys"}}
    again = {**LAYER, **gemma, "attention": {**GROUPED, "value_norm": PLAIN, "reuses_keys_values": True}}
    stack = {"layers": [{"repeat": 2}, {"use": "again"}], "block": block, "blocks": {"again": again}}
    return decoder({"attention": GROUPED}, decoder=stack)


def several_streams() -> Model:
    """Gemma 3n: three streams, low-rank residuals, embeddings per layer, and gates that are mostly zero."""
    further = {"per_layer_embedding": PER_LAYER, "low_rank_residual": {"rank": 4, "norm": RMS}}
    sparse = {**GATED, "activation": "gelu_tanh", "sparsity": 0.7}
    block = {**LAYER, "kind": "sandwich", **further}
    layers = [{"use": "sparse"}, {"repeat": 2}]
    blocks = {"sparse": {**block, "feed_forward": sparse}}
    return decoder({}, decoder={"layers": layers, "block": block, "blocks": blocks, "altup": STREAMS})


def side_by_side() -> Model:
    """Gemma 4 26B: a dense feed-forward and a mixture side by side."""
    branches = {
        "dense": {"norm": RMS, "feed_forward": GATED, "output_norm": RMS},
        "experts": {"norm": RMS, "feed_forward": MIXTURE, "output_norm": RMS},
    }
    both = {"kind": "side_by_side", "branches": branches, "output_norm": RMS}
    return decoder({"attention": GROUPED, "feed_forward": both})


def conformer() -> Model:
    """Two feed-forwards, an attention and a convolution in each layer."""
    block = {
        "kind": "conformer", "norm": {"kind": "layer_norm"}, "attention": HEADS,
        "convolution": {"kernel": 3, "norm": {"kind": "layer_norm"}},
        "feed_forward": MLP,
    }  # fmt: skip
    return encoder(encoder={"layers": 2, "block": block})


def shared_with_adapters() -> Model:
    """Zamba 2: a transformer that two layers share, with adapters, beside Mamba-2."""
    mamba = {"kind": "mamba2", "heads": 8, "head_dim": 4, "state_size": 4, "groups": 1}
    block = {"kind": "pre_norm", "norm": RMS, "attention": None, "mixer": mamba, "feed_forward": None}
    hybrid = {
        "kind": "side_transformer", "norm": RMS, "mixer": mamba,
        "attention": {"kind": "multi_head", "heads": 4, "head_dim": 8, "bias": False},
        "feed_forward": GATED,
        "sharing": {"sets": 1, "adapters": {"rank": 2, "attention": True}},
    }  # fmt: skip
    stack = {
        "layers": [{}, {"use": "hybrid"}, {}, {"use": "hybrid"}],
        "block": block,
        "blocks": {"hybrid": hybrid},
    }
    return decoder({"attention": GROUPED}, decoder=stack)


def images(**connector: Any) -> Model:
    """Qwen2.5-VL: packed patches of images of any size, and windows of them."""
    axial = {"kind": "axial_rope", "coordinates": "index", "theta": 10.0}
    patches = {**LAYER, "attention": {**HEADS, "position": axial}, "feed_forward": MLP}
    windowed = {**patches, "attention": {**HEADS, "position": axial, "patch_window": 2}}
    norm = {"kind": "layer_norm"}
    return decoder(
        {"attention": GROUPED}, architecture="vision-language", d_model=32,
        position={"kind": "rope", "sections": {"pairs": [0, 1, 1], "interleaved": True}},
        image={
            "d_model": 16,
            "position": {"kind": "interpolated", "side": 3},
            "embedding": {"kind": "packed_patches", "patch_size": 2, "channels": 1},
            "layers": [{"use": "windowed"}, {}], "block": patches, "blocks": {"windowed": windowed},
        },
        connector={"kind": "mlp", "token": 31, "shuffle": 2, "norm": norm, "hidden": 24, **connector},
    )  # fmt: skip


def two_streams() -> Model:
    """LiLT: a narrower stream of places on a page."""
    norm = {"kind": "layer_norm"}
    block = {
        "kind": "two_streams", "norm": norm, "attention": HEADS, "feed_forward": MLP, "second_feed_forward": MLP,
    }  # fmt: skip
    layout = {"coordinates": 5, "width": 16, "norm": norm}
    return encoder(d_model=48, embedding={"layout": layout}, encoder={"layers": 2, "block": block})


def relative_boxes() -> Model:
    """BROS: places on a page relative to each other."""
    norm, attention = {"kind": "layer_norm"}, {**HEADS, "position": {"kind": "relative_boxes"}}
    block = {"kind": "post_norm", "norm": norm, "attention": attention, "feed_forward": MLP}
    return encoder(d_model=64, embedding={"corners": 2.0}, encoder={"layers": 2, "block": block})


NEWEST: dict[str, Model] = {
    "two-streams": two_streams(),
    "relative-boxes": relative_boxes(),
    "reusing": reusing(),
    "several-streams": several_streams(),
    "side-by-side": side_by_side(),
    "conformer": conformer(),
    "shared-with-adapters": shared_with_adapters(),
    "images": images(),
    "deepstack": images(deepstack={"layers": [0], "norm": {"kind": "layer_norm"}}),
}
