"""Prompts about images as token ids, in the formats of Gemma 3, Idefics 3, InternVL, PaliGemma, Qwen-VL and SmolVLM."""

from __future__ import annotations

import re
from collections.abc import Sequence

from exporters.preprocessing.tiles import Grid
from exporters.runtime.text import TextTokenizer
from specs.model.model import Model
from zoo.checkpoints.carried import stated_in

_AROUND = "<|vision_start|>", "<|vision_end|>"
"""The tokens around an image in Qwen-VL, present in texts with placeholders."""

_PALIGEMMA = "PaliGemmaProcessor"

_TILE_MARKS = {"fake_image_token": "<fake_token_around_image>", "global_image_token": "<global-img>"}
"""The settings and usual names of two tokens: around each tile and the image, and before the whole image."""


def marked_ids(texts: Sequence[str], images: int, spec: Model, tokenizer: TextTokenizer) -> list[list[int]]:
    """The token ids of texts, with the image marks that the tokenizer's settings name or imply.

    A single text without images begins with all of them.
    """
    connector = spec.image_connector
    placeholder = tokenizer.token(connector.token)
    begin, end = tokenizer.stated("boi_token"), tokenizer.stated("eoi_token")
    if tokenizer.stated("processor_class") == _PALIGEMMA:
        start = tokenizer.stated("bos_token") or ""
        return [
            tokenizer.plain(_started(text, placeholder, start))
            for text in _with_images(texts, images, placeholder, placeholder)
        ]
    if spec.packs_images:
        marks = [mark for mark in _AROUND if len(tokenizer.plain(mark)) == 1]
        whole = placeholder.join(marks) if len(marks) == len(_AROUND) else placeholder
        return tokenizer.ids(_with_images(texts, images, whole, placeholder))
    around = tokenizer.stated("start_image_token"), tokenizer.stated("end_image_token")
    if around[0] and around[1]:
        marked = _with_images(texts, images, placeholder, placeholder)
        return tokenizer.ids([_between(text, placeholder, around[0], around[1]) for text in marked])
    if begin is None or end is None:
        return tokenizer.ids(texts)
    whole = f"\n\n{begin}{placeholder * spec.vectors_per_image}{end}\n\n"
    marked = _with_images(texts, images, begin, placeholder)
    return tokenizer.ids([text.replace(begin, whole) for text in marked])


def _with_images(texts: Sequence[str], images: int, mark: str, placeholder: str) -> list[str]:
    """Prefix a single text without marks or placeholders with one mark per image; leave other texts unchanged."""
    bare = len(texts) == 1 and mark not in texts[0] and placeholder not in texts[0]
    return [mark * images + texts[0]] if bare else list(texts)


def _between(text: str, placeholder: str, start: str, end: str) -> str:
    """Put marks around each isolated placeholder in a text of InternVL."""
    one = re.escape(placeholder)
    alone = f"(?<!{re.escape(start)})(?<!{one}){one}(?!{one})"
    return re.sub(alone, lambda _: f"{start}{placeholder}{end}", text)


def _started(text: str, placeholder: str, start: str) -> str:
    """Add PaliGemma's start token after the last image, and its newline after the text."""
    seen = text.rfind(placeholder) + len(placeholder) if placeholder in text else 0
    return f"{text[:seen]}{start}{text[seen:]}\n"


def image_ids(grids: Sequence[Grid], spec: Model, tokenizer: TextTokenizer) -> list[list[int]]:
    """The token ids of each image: a placeholder for every vector, between marks of rows and columns (InternVL has no marks
    between tiles)."""
    connector = spec.image_connector
    if tokenizer.stated("start_image_token"):
        return [[connector.token] * spec.vectors_per_image * grid.images for grid in grids]
    settings = stated_in(tokenizer.path.parent / "tokenizer_config.json")
    mark, whole = (
        settings[name] if isinstance(settings.get(name), str) else default
        for name, default in _TILE_MARKS.items()
    )
    vectors = tokenizer.token(connector.token) * spec.vectors_per_image

    def text(grid: Grid) -> str:
        rows = [
            "".join(f"{mark}<row_{row}_col_{column}>{vectors}" for column in range(1, grid.columns + 1))
            for row in range(1, grid.rows + 1)
        ]
        end = f"{mark}{whole}{vectors}{mark}"
        return "\n".join([*rows, "", end]) if rows else end

    return [tokenizer.plain(text(grid)) for grid in grids]
