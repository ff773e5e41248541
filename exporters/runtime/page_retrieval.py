"""Vectors of pages, which are images, and of queries, for retrieval by late interaction (ColPali, ColQwen2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from exporters.preprocessing.fitting import PROCESSOR
from exporters.preprocessing.packed import PackedImages
from exporters.runtime.decoding import Decoding
from exporters.runtime.embedding import CallByCall, ImageEmbedder, Images
from exporters.runtime.exported import Exported
from exporters.runtime.graph import Floats
from exporters.runtime.text import TextTokenizer
from specs.base.errors import UserError
from specs.model.model import Model
from zoo.checkpoints.carried import stated_in
from zoo.generation.prompts import check_prompts

AUGMENTATION = 10
"""The number of padding tokens after a query, whose vectors are compared as well."""

_PAGE = "<|im_start|>user\n<|vision_start|>{image}<|vision_end|>Describe the image.<|im_end|><|endoftext|>"


@dataclass(frozen=True)
class PagePrompts:
    """The texts around a page and a query as the processors of ColPali and ColQwen2 write them, or the settings of a
    checkpoint's processor."""

    spec: Model
    tokenizer: TextTokenizer
    page: str
    query: str
    start: str

    @classmethod
    def beside(cls, directory: Path, spec: Model, tokenizer: TextTokenizer) -> PagePrompts:
        """Read the settings in a directory.  Raises :class:`specs.base.errors.UserError` without a padding token."""
        assert spec.connector is not None
        settings, image = stated_in(directory / PROCESSOR), tokenizer.token(spec.connector.token)
        packed = spec.packs_images
        start = "" if packed else tokenizer.stated("bos_token") or ""
        page = settings.get("visual_prompt_prefix") or (
            _PAGE.format(image=image) if packed else "Describe the image."
        )
        whole = str(page) if packed else f"{image}{start}{page}\n"
        query = settings.get("query_prefix") or ("Query: " if packed else "Question: ")
        prompts = cls(spec, tokenizer, whole, str(query), start)
        if tokenizer.padding_id is None or prompts.page_ids(1).count(spec.connector.token) != 1:
            raise UserError(
                f"{tokenizer.path} must name a pad_token, and the text of a page in {PROCESSOR} must have the token of images ({spec.connector.token}) once\n"
                f"  value: {whole!r}\n  Use the tokenizer and the processor of the checkpoint."
            )
        return prompts

    def page_ids(self, vectors: int) -> list[int]:
        """The token ids of a page that an image of some vectors stands in."""
        assert self.spec.connector is not None
        token = self.spec.connector.token
        ids = self._ids(self.page)
        return [part for word in ids for part in ([token] * vectors if word == token else [word])]

    def query_ids(self, query: str) -> list[int]:
        """The token ids of a query."""
        padding = self.tokenizer.stated("pad_token") or ""
        return self._ids(f"{self.start}{self.query}{query}{padding * AUGMENTATION}\n")

    def _ids(self, text: str) -> list[int]:
        """The token ids of a text; PaliGemma's processor writes special tokens itself."""
        return self.tokenizer.ids([text])[0] if self.spec.packs_images else self.tokenizer.plain(text)


class PageRunner:
    """The three graphs of a model that gives vectors of the tokens of pages and queries, loaded."""

    def __init__(self, exported: Exported) -> None:
        self.exported, self.spec = exported, exported.spec
        self.embedder, self.decoder = ImageEmbedder(exported), exported.open(-1)
        self.load_seconds = sum(graph.load_seconds for graph in (*self.embedder.graphs, self.decoder))
        self.provider = self.decoder.provider

    def vectors(self, ids: Sequence[int], image: Images | None = None) -> Floats:
        """The vectors of the tokens of a query, or of a page with one image, T W."""
        assert self.spec.decoder is not None
        check_prompts(self.spec, self.spec.decoder, [ids])
        embed = CallByCall(self.embedder, image)
        decoding = Decoding(self.decoder, self.exported.cache, 1, len(ids), embed=embed)
        return decoding.score(ids).copy()


def images_apart(images: Images) -> list[Images]:
    """Return each of some images by itself."""
    if not isinstance(images, PackedImages):
        return [images[index : index + 1] for index in range(len(images))]
    starts = [0, *images.grids.prod(1).cumsum().tolist()]
    return [
        PackedImages(images.pixels[start:end], images.grids[index : index + 1])
        for index, (start, end) in enumerate(pairwise(starts))
    ]


def vector_count(spec: Model, image: Images) -> int:
    """The number of vectors of one image."""
    return image.vectors(spec)[0] if isinstance(image, PackedImages) else spec.vectors_per_image
