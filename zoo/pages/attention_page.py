"""A page with the attention of every head: a table of small maps, and the chosen one enlarged, with its tokens."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

import numpy as np
from torch import Tensor

from zoo.attention_maps.attend import Attended
from zoo.attention_maps.choice import Reader, StackName, looked_at, looks
from zoo.attention_maps.maps import LayerMap
from zoo.attention_maps.patches import PatchImage
from zoo.attention_maps.pictures import SINK, TITLES, Labels
from zoo.pages.page import asset, embedded, page
from zoo.pictures.style import DARK, LIGHT

_ALL, _UNSEEN = 254, 255
"""The byte for weight 1, and the byte for masked keys."""


def attention_page(
    attended: Attended,
    name: str,
    weights: str,
    labels: Labels,
    images: Mapping[Reader, PatchImage] | None = None,
) -> str:
    """The document for a model called ``name``; ``weights``: their source; ``images``: those that stacks read."""
    stacks = [_stack(stack, maps, labels, images or {}) for stack, maps in attended.maps.items()]
    data = {"stacks": stacks, "ramps": {"light": LIGHT.ramp, "dark": DARK.ramp}}
    read = "".join(
        f"<p><span class='quiet'>{reader}:</span> {escape(' '.join(labels[reader]))}</p>"
        for reader in labels
        if reader not in attended.names
    )
    body = f"""<h1>{escape(name)}: attention</h1>
<p class="quiet">Weights: {escape(weights)}.</p>
{read}
<p>One row per query token, one column per key. Below each head: the mean entropy of its weights over tokens; beside each
layer: the entropy of equal weights. Choose a head to enlarge it.{" Point at a row to see its attention over the image." if images else ""}</p>
<div id="stacks"></div>
<noscript><p>The maps need scripts, which are off.</p></noscript>"""
    script = f"const ATTENTION = {embedded(data)};\n{asset('attention.js')}"
    return page(f"{name}: attention", body, script, asset("attention.css"))


def _stack(
    stack: StackName, maps: Sequence[LayerMap], labels: Labels, images: Mapping[Reader, PatchImage]
) -> dict[str, Any]:
    image = images.get(looked_at(stack))
    return {
        "image": image and _image(image, len(labels[looked_at(stack)])),
        "title": TITLES[stack],
        "rows": labels[looks(stack)],
        "columns": [*labels[looked_at(stack)], *([SINK] * maps[0].sink)],
        "layers": [_layer(layer, relative=image is not None) for layer in maps],
    }


def _image(image: PatchImage, keys: int) -> dict[str, Any]:
    """The size of a grid of patches, the first key that is one, and the pixels of their image as bytes."""
    height, width = image.pixels.shape
    return {
        "rows": image.rows,
        "columns": image.columns,
        "first": keys - image.rows * image.columns,
        "height": height,
        "width": width,
        "pixels": base64.b64encode((image.pixels * 255).round().astype(np.uint8).tobytes()).decode(),
    }


def _layer(layer: LayerMap, *, relative: bool) -> dict[str, Any]:
    """The maps of a layer; ``relative``: as shares of the largest weight of each map, because weights of patches are small."""
    views = [*(layer.views(mean=True) if len(layer.heads) > 1 else ()), *layer.views()]
    names = [*(["mean"] if len(layer.heads) > 1 else ()), *map(str, layer.heads)]
    heads = []
    for name, view in zip(names, views, strict=True):
        whole = float(view.weights.max()) if relative else 1
        heads.append(
            {
                "name": name,
                "title": view.title,
                "entropy": round(view.entropy, 4),
                "whole": whole,
                "weights": _packed(view.shares / whole),
            }
        )
    return {"layer": layer.layer, "uniform": round(layer.uniform_entropy, 4), "heads": heads}


def _packed(shares: Tensor) -> str:
    """Shares as one byte each, row by row, with NaN for masked ones."""
    values = (shares * _ALL).round().nan_to_num(_UNSEEN).byte()
    return base64.b64encode(values.numpy().tobytes()).decode()
