"""Vectors of pages, which are images, and of queries, for retrieval by late interaction (ColPali, ColQwen2, ColModernVBERT)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
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
"""The number of tokens after a query, whose vectors are compared as well."""

_QWEN = "<|im_start|>user\n<|vision_start|>{image}<|vision_end|>Describe the image.<|im_end|><|endoftext|>"
_MODERN = "<|begin_of_text|>User:{image}Describe the image.<end_of_utterance>\nAssistant:"
_END = "<end_of_utterance>"


@dataclass(frozen=True)
class PagePrompts:
    """The texts around a page and a query as the processors of ColPali, ColQwen2 and ColModernVBERT write them, or the settings
    of a checkpoint's processor.

    ``plain``: these texts hold the special tokens, and the tokenizer adds none.
    """

    spec: Model
    tokenizer: TextTokenizer
    page: str
    before_query: str
    after_query: str
    plain: bool

    @classmethod
    def beside(cls, directory: Path, spec: Model, tokenizer: TextTokenizer) -> PagePrompts:
        """Read the settings in a directory.  Raises :class:`specs.base.errors.UserError` without a padding token."""
        settings, image = stated_in(directory / PROCESSOR), tokenizer.token(spec.image_connector.token)
        page, query = (settings.get(name) or None for name in ("visual_prompt_prefix", "query_prefix"))
        padding = tokenizer.stated("pad_token") or ""
        if spec.packs_images:
            texts = (page or _QWEN.format(image=image), query or "Query: ", f"{padding * AUGMENTATION}\n")
        elif spec.stack("decoder").bidirectional == "windows":
            texts = (page or _MODERN.format(image=image), query or "", _END * AUGMENTATION)
        else:
            start = tokenizer.stated("bos_token") or ""
            page = f"{image}{start}{page or 'Describe the image.'}\n"
            texts = (page, f"{start}{query or 'Question: '}", f"{padding * AUGMENTATION}\n")
        plain = not spec.packs_images and spec.stack("decoder").bidirectional == "prompt"
        whole, before, after = map(str, texts)
        prompts, token = cls(spec, tokenizer, whole, before, after, plain), spec.image_connector.token
        if tokenizer.padding_id is None or prompts.page_ids([token]).count(token) != 1:
            raise UserError(
                f"{tokenizer.path} must name a pad_token, and the text of a page in {PROCESSOR} must have the token of images ({spec.image_connector.token}) once\n"
                f"  value: {whole!r}\n  Use the tokenizer and the processor of the checkpoint."
            )
        return prompts

    def page_ids(self, image: Sequence[int]) -> list[int]:
        """The token ids of a page, in which the ids of its image replace the placeholder."""
        token = self.spec.image_connector.token
        ids = self._ids(self.page)
        return [part for word in ids for part in (image if word == token else [word])]

    def query_ids(self, query: str) -> list[int]:
        """The token ids of a query."""
        return self._ids(f"{self.before_query}{query}{self.after_query}")

    def _ids(self, text: str) -> list[int]:
        return self.tokenizer.plain(text) if self.plain else self.tokenizer.ids([text])[0]


class PageRunner:
    """The three graphs of a model that gives vectors of the tokens of pages and queries, loaded."""

    def __init__(self, exported: Exported) -> None:
        self.exported, self.spec = exported, exported.spec
        self.embedder, self.decoder = ImageEmbedder(exported), exported.open(-1)
        self.load_seconds = sum(graph.load_seconds for graph in (*self.embedder.graphs, self.decoder))
        self.provider = self.decoder.provider

    def vectors(self, ids: Sequence[int], image: Images | None = None) -> Floats:
        """The vectors of the tokens of a query, or of a page with the tiles of its image, T W."""
        check_prompts(self.spec, self.spec.stack("decoder"), [ids])
        embed = CallByCall(self.embedder, image)
        decoding = Decoding(self.decoder, self.exported.cache, 1, len(ids), embed=embed)
        return decoding.score(ids).copy()


def images_apart(images: Images, counts: Sequence[int]) -> list[Images]:
    """Split images by page; ``counts`` are the tiles of each page, of images of one size."""
    if not isinstance(images, PackedImages):
        ends = [0, *accumulate(counts)]
        return [images[start:end] for start, end in pairwise(ends)]
    starts = [0, *images.grids.prod(1).cumsum().tolist()]
    return [
        PackedImages(images.pixels[start:end], images.grids[index : index + 1])
        for index, (start, end) in enumerate(pairwise(starts))
    ]
