"""The gallery of the presets: one page with their drawings, figures and family tree, which needs no server."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict
from multiprocessing import get_context
from typing import Any

from markupsafe import Markup

from specs.forms.kinship import Structure, family_tree
from specs.language.catalog import ARCHITECTURES, Preset
from specs.language.load import load
from zoo.pages.gallery_card import PRECISION, Card, digest_of, make_card
from zoo.pages.gallery_tree import tree_svg
from zoo.pages.page import asset, embedded, page
from zoo.pages.rendering import render

FORMAT = 1
_DATA = re.compile(r'<script type="application/json" id="gallery-data">(.*?)</script>', re.DOTALL)
_WORKERS, _ENOUGH = 8, 25
"""Most worker processes, and the cards from which on a second one is worth its start."""

CardProgress = Callable[[int, int], None]
"""Called with the number of cards that are made, and of all to make."""


def gallery_page(
    presets: Sequence[Preset], earlier: str = "", progress: CardProgress = lambda done, total: None
) -> str:
    """The page of some presets.  Cards that the page ``earlier`` has, and that would be the same, are taken from it."""
    cards = _cards(presets, _kept(earlier), progress)
    dated = [preset for preset in presets if preset.year is not None]
    nodes = family_tree(
        [(preset.name, preset.year or 0, Structure.of(load(preset.name))) for preset in dated]
    )
    tree = tree_svg(nodes, {preset.name: preset.architecture for preset in presets}) if nodes else ""
    parents = {
        member: [node.name, node.parent, list(node.changes)] for node in nodes for member in node.members
    }
    data = {
        "format": FORMAT,
        "precision": PRECISION,
        "cards": {preset.name: asdict(cards[preset.name]) for preset in presets},
        "family": parents,
    }
    body = render(
        "gallery.html",
        count=len(presets),
        years=f"{min(p.year or 9999 for p in dated)} to {max(p.year or 0 for p in dated)}" if dated else "",
        architectures=[name for name in ARCHITECTURES if any(p.architecture == name for p in presets)],
        features=_counted(feature for preset in presets for feature in preset.features),
        tasks=_counted(task for preset in presets for task in preset.tasks),
        tree=Markup(tree),
        data=Markup(embedded(data)),
    )
    style = asset("report.css") + asset("gallery.css")
    return page(
        "Gallery of architectures",
        body,
        asset("gallery_models.js") + asset("gallery.js"),
        style,
        "zoo gallery",
    )


def _counted(values: Iterator[str]) -> list[tuple[str, int]]:
    """The distinct values by name, with their numbers."""
    return sorted(Counter(values).items())


def _kept(text: str) -> dict[str, Card]:
    """The cards of an earlier page; none if the text is no such page."""
    match = _DATA.search(text)
    try:
        data: Any = json.loads(match[1]) if match else {}
        return (
            {name: Card(**card) for name, card in data["cards"].items()} if data["format"] == FORMAT else {}
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _cards(presets: Sequence[Preset], kept: Mapping[str, Card], progress: CardProgress) -> dict[str, Card]:
    cards, missing = {}, []
    for preset in presets:
        card = kept.get(preset.name)
        if card is not None and card.digest == digest_of(preset):
            cards[preset.name] = card
        else:
            missing.append(preset)
    workers = min(_WORKERS, os.cpu_count() or 1, len(missing) // _ENOUGH)
    made = _made_by(workers, missing) if workers > 1 else ((preset, make_card(preset)) for preset in missing)
    if missing:
        progress(0, len(missing))
    for done, (preset, card) in enumerate(made, 1):
        cards[preset.name] = card
        progress(done, len(missing))
    return cards


def _made_by(workers: int, presets: Sequence[Preset]) -> Iterator[tuple[Preset, Card]]:
    """The cards of presets as worker processes finish them."""
    pool = ProcessPoolExecutor(workers, get_context("spawn"), _alone)
    try:
        futures = {pool.submit(make_card, preset): preset for preset in presets}
        for future in as_completed(futures):
            yield futures[future], future.result()
    finally:
        pool.shutdown(cancel_futures=True)


def _alone() -> None:
    """Let a worker process use one thread: there is one worker for each processor."""
    import torch

    torch.set_num_threads(1)
