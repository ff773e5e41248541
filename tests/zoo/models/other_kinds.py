"""Models that differ from another in one component, which is of another kind."""

from __future__ import annotations

import copy
import functools
from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

from specs.base.base import Component, Slot, Spec
from specs.base.errors import SpecError
from specs.base.registry import held_by_new_kind, kinds
from specs.language.document import Document
from specs.language.named_blocks import with_named_blocks
from specs.language.validation import validate
from specs.model.model import Model

Data = dict[str, Any]
Place = tuple[str, ...]

_MLP: Data = {"kind": "mlp", "hidden": 96, "activation": "gelu"}
_HEADS: Data = {"heads": 2, "head_dim": 16}
_BLOCK: Data = {
    "norm": {"kind": "rms_norm"},
    "attention": {"kind": "multi_head", **_HEADS},
    "feed_forward": _MLP,
}
_NORMED: Data = {"norm": {"kind": "none"}, "feed_forward": _MLP, "output_norm": {"kind": "none"}}
_SCALING: Data = {"factor": 2.0, "original_context_length": 64}
_LONG: Data = {"short_factor": [1.0] * 32, "long_factor": [2.0] * 32, "original_context_length": 64}
_CONFORMER: Data = {"kernel": 3, "activation": "silu", "norm": {"kind": "layer_norm"}}

REQUIRED: dict[str, Data] = {
    "multi_head": _HEADS,
    "grouped_query": {**_HEADS, "kv_heads": 1},
    "multi_query": _HEADS,
    "latent": {**_HEADS, "kv_rank": 8, "rope_dim": 8, "value_dim": 16},
    "mlp": {**_MLP, "token": 0},  # a feed-forward, or a connector
    "gated": {"hidden": 96, "activation": "silu"},
    "mixture": {"experts": 4, "top_k": 2, "expert": _MLP},
    "side_by_side": {"branches": {"one": _NORMED, "other": _NORMED}, "output_norm": {"kind": "none"}},
    "linear": {"token": 0, "factor": 2.0},  # a connector, or a scaling of rotations
    "resampler": {
        **{"token": 0, "projection": _MLP, "queries": 4, "layers": 1},
        "block": {"kind": "pre_norm", **_BLOCK},
    },
    "two_streams": {"second_feed_forward": _MLP}, "masks": {"labels": 3},
    "next_token": {"norm": {"kind": "rms_norm"}, "hidden_norm": {"kind": "rms_norm"}},
    "patches": {"image_size": 32, "patch_size": 8},
    "packed_patches": {"patch_size": 8}, "spectrogram": {"mel_bins": 8}, "subsampled_spectrogram": {"mel_bins": 8},
    "frames": {"width": 8},
    "waveform": {"convolutions": [{"channels": 64, "kernel": 3, "stride": 2}]},
    "filtered_waveform": {"convolutions": [{"channels": "d_model", "kernel": 3, "stride": 2}]},
    "several": {"heads": {"dense": {"kind": "pooled", "pooling": "mean"}, "sparse": {"kind": "token_weights"}}},
    "spans": {"label_token": 0}, "classification": {"labels": 3}, "distilled_classification": {"labels": 3},
    "patch_boxes": {"norm": {"kind": "layer_norm"}, "projection": 8},
    "token_classification": {"labels": 3}, "ctc": {"labels": 3}, "proportional": {"fraction": 0.5},
    "llama3": {**_SCALING, "low_freq_factor": 1.0, "high_freq_factor": 4.0},
    "yarn": _SCALING, "dynamic_ntk": _SCALING, "longrope": _LONG, "interpolated": {"side": 4},
    "gated_delta_net": {"heads": 2, "key_heads": 2},
    "kimi_delta_attention": {"heads": 2},
    "linear_attention": {"heads": 2, "key_width": 8, "value_width": 8},
    "mamba": {"width": 64, "step_rank": 4},
    "mamba2": {"heads": 4, "head_dim": 16, "state_size": 4},
    "rg_lru": {"width": 64, "heads": 2},
    "rwkv7": {"heads": 2, "decay_rank": 4, "update_rank": 4, "gate_rank": 4},
    "rwkv_channel_mix": {"hidden": 96}, "conformer": {"convolution": _CONFORMER}, "bottleneck": {"width": 16},
    "spectrogram_patches": {"frames": 8, "mel_bins": 8, "patch_size": 4, "frame_stride": 2, "bin_stride": 2},
}  # fmt: skip
"""The keys that a kind requires, where there are any; ``d_model`` stands for the width of the model."""


def with_another_kind(model: Model) -> Iterator[tuple[str, str, Model]]:
    """Yield the valid models that have a component of another kind, or none: the slot, the kind or ``null``, and the model."""
    data = model.model_dump(mode="json")
    for place, slot, component in _components(model, ()):
        present = "null" if component is None else component.kind
        stated = {} if component is None else _at(data, place)
        others: dict[str, Data | None] = {kind: _of_kind(slot, kind, stated) for kind in kinds(slot)}
        for kind, other in {**others, "null": None}.items():
            changed = None if kind == present else _changed(data, place, other)
            if changed is not None:
                yield slot, kind, changed


def _changed(data: Data, place: Place, component: Data | None) -> Model | None:
    """The model with another component; None where the rules forbid it."""
    changed = copy.deepcopy(data)
    _at(changed, place[:-1])[place[-1]] = _with_width(component, data["d_model"])
    try:
        return validate(with_named_blocks(Document(changed)))
    except SpecError:
        return None


def _of_kind(slot: str, kind: str, stated: Data) -> Data:
    """A component of a kind, with what it keeps of one of another kind."""
    keys = kinds(slot)[kind].spec.model_fields
    required = {key: value for key, value in REQUIRED.get(kind, {}).items() if key in keys}
    return {**required, **held_by_new_kind(stated, kind), "kind": kind}


def _with_width(part: Any, d_model: int) -> Any:
    if isinstance(part, dict):
        return {key: _with_width(value, d_model) for key, value in part.items()}
    if isinstance(part, list):
        return [_with_width(each, d_model) for each in part]
    return d_model if part == "d_model" else part


def _components(spec: Spec, place: Place) -> Iterator[tuple[Place, str, Component | None]]:
    """Yield every place in a spec for a component, with its slot and the component that it has."""
    for key, slot in _slots(type(spec)).items():
        value = getattr(spec, key)
        if slot is not None and not isinstance(value, dict | bool):
            yield (*place, key), slot, value
        parts = value if isinstance(value, dict) else {"": value}
        for name, part in parts.items():
            if isinstance(part, Spec):
                yield from _components(part, (*place, key, name) if name else (*place, key))


@functools.cache
def _slots(spec: type[Spec]) -> dict[str, str | None]:
    """The slot of every key of a spec; None for keys that hold no component."""
    hints = get_type_hints(spec, include_extras=True)
    return {key: next(_slots_in(hints[key]), None) for key in spec.model_fields}


def _slots_in(annotation: Any) -> Iterator[str]:
    for part in (*get_args(annotation), *getattr(annotation, "__metadata__", ())):
        if isinstance(part, Slot):
            yield part.name
        else:
            yield from _slots_in(part)


def _at(data: Any, place: Place) -> Any:
    for key in place:
        data = data[key]
    return data
