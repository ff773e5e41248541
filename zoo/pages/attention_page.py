"""A page with the attention of every head: a table of small maps, and the chosen one enlarged, with its tokens."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from torch import Tensor

from zoo.attention_maps.attend import Attended, Reader, looked_at, looks
from zoo.attention_maps.choice import StackName
from zoo.attention_maps.maps import LayerMap
from zoo.attention_maps.pictures import SINK, TITLES
from zoo.pages.page import asset, embedded, page
from zoo.pictures.style import DARK, LIGHT

_ALL, _UNSEEN = 254, 255
"""The byte for weight 1, and the byte for masked keys."""


def attention_page(
    attended: Attended, name: str, weights: str, labels: Mapping[Reader, Sequence[str]]
) -> str:
    """The document for a model called ``name``; ``weights``: their source; ``labels``: those of tokens."""
    stacks = [_stack(stack, maps, labels) for stack, maps in attended.maps.items()]
    data = {"stacks": stacks, "ramps": {"light": LIGHT.ramp, "dark": DARK.ramp}}
    read = "".join(
        f"<p><span class='quiet'>{reader}:</span> {escape(' '.join(labels[reader]))}</p>" for reader in labels
    )
    body = f"""<h1>{escape(name)}: attention</h1>
<p class="quiet">Weights: {escape(weights)}.</p>
{read}
<p>One row per query token, one column per key. Below each head: the mean entropy of its weights over tokens; beside each
layer: the entropy of equal weights. Choose a head to enlarge it.</p>
<div id="stacks"></div>
<noscript><p>The maps need scripts, which are off.</p></noscript>"""
    script = f"const ATTENTION = {embedded(data)};\n{asset('attention.js')}"
    return page(f"{name}: attention", body, script, asset("attention.css"))


def _stack(
    stack: StackName, maps: Sequence[LayerMap], labels: Mapping[Reader, Sequence[str]]
) -> dict[str, Any]:
    return {
        "title": TITLES[stack],
        "rows": labels[looks(stack)],
        "columns": [*labels[looked_at(stack)], *([SINK] * maps[0].sink)],
        "layers": [_layer(each) for each in maps],
    }


def _layer(layer: LayerMap) -> dict[str, Any]:
    views = [*(layer.views(mean=True) if len(layer.heads) > 1 else ()), *layer.views()]
    names = [*(["mean"] if len(layer.heads) > 1 else ()), *map(str, layer.heads)]
    return {
        "layer": layer.layer,
        "uniform": round(layer.uniform_entropy, 4),
        "heads": [
            {
                "name": name,
                "title": view.title,
                "entropy": round(view.entropy, 4),
                "weights": _packed(view.shares),
            }
            for name, view in zip(names, views, strict=True)
        ],
    }


def _packed(shares: Tensor) -> str:
    """Shares as one byte each, row by row, with NaN for masked ones."""
    values = (shares * _ALL).round().nan_to_num(_UNSEEN).byte()
    return base64.b64encode(values.numpy().tobytes()).decode()
