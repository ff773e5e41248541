"""A page with the attention of every head: small maps in a table, and the one that is chosen large, with its tokens."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from torch import Tensor

from zoo.attending.attend import Attended, Reader, looked_at, looks
from zoo.attending.choice import StackName
from zoo.attending.maps import LayerMap
from zoo.attending.pictures import SINK, TITLES
from zoo.pages.page import asset, embedded, page
from zoo.pictures.style import DARK, LIGHT

_ALL, _UNSEEN = 254, 255
"""A byte for the whole weight, and the one for places where a query may not look."""


def attention_page(
    attended: Attended, name: str, weights: str, labels: Mapping[Reader, Sequence[str]]
) -> str:
    """The document for a model called ``name``; ``weights`` says where its weights are from, ``labels`` are of tokens."""
    stacks = [_stack(stack, maps, labels) for stack, maps in attended.maps.items()]
    data = {"stacks": stacks, "ramps": {"light": LIGHT.ramp, "dark": DARK.ramp}}
    read = "".join(
        f"<p><span class='quiet'>{reader}:</span> {escape(' '.join(labels[reader]))}</p>" for reader in labels
    )
    body = f"""<h1>{escape(name)}: attention</h1>
<p class="quiet">Weights: {escape(weights)}.</p>
{read}
<p>A row is a token that looks, a column one that is looked at. Below each head stands the entropy of its weights, the mean
over tokens; that of equal weights stands at its layer. Choose a head to see it large.</p>
<div id="stacks"></div>
<noscript><p>The maps are drawn by a script, and scripts are off.</p></noscript>"""
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
    """Shares, with NaN where there can be none, as a byte each, row by row."""
    values = (shares * _ALL).round().nan_to_num(_UNSEEN).byte()
    return base64.b64encode(values.numpy().tobytes()).decode()
