"""What ``zoo attend`` is given to read, as token ids that the model takes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cli.run import token_ids
from specs.embedding import Tokens
from specs.errors import UserError
from zoo.attending.reading import Reading
from zoo.generation.prompts import check_prompts

if TYPE_CHECKING:
    from exporters.opened import Opened
    from exporters.runtime.text import Text
    from specs.model import Model

GOES_ON = 12
"""How many tokens an encoder-decoder writes where it is not told what its decoder reads."""


@dataclass(frozen=True)
class Given:
    """What stands on the command line: texts or ids, and those of a decoder that has an encoder."""

    texts: Sequence[str]
    ids: str | None
    target_text: str | None
    target_ids: str | None

    def new_tokens(self, spec: Model, asked: int | None) -> int:
        """How many tokens are written: as asked, or some where a decoder would begin with its start token alone."""
        if asked is not None:
            return asked
        targeted = self.target_text is not None or self.target_ids is not None
        if spec.decoder is None or not _has_two(spec) or targeted or spec.head.kind != "language_modeling":
            return 0
        return min(GOES_ON, spec.context_length_of(spec.decoder) or GOES_ON)

    def reading(self, source: Opened, text: Text | None) -> Reading:
        """Token ids, with the special tokens around a text.

        Raises :class:`specs.errors.UserError` for what does not go together, or with the model.
        """
        self._check(source.spec)
        ids, types = self._read(source.spec, text)
        return Reading(ids, types, self._target(source, text))

    def _check(self, spec: Model) -> None:
        for _, stack in spec.stacks():
            embedding = spec.embedding_of(stack)
            if not embedding.takes_tokens:
                raise UserError(
                    f"{spec.name} takes {embedding.input_name}, and zoo attend has tokens to give\n"
                    "  choose a model of text"
                )
        if bool(self.texts) == (self.ids is not None):
            rule = "--text and --ids say twice what is read" if self.texts else "there is nothing to read"
            raise UserError(f"{rule}\n  give --text, or token ids with --ids, such as --ids 1,2,3")
        if len(self.texts) > 1 and spec.architecture != "encoder":
            remedy = "--target-text is what the decoder reads" if _has_two(spec) else "join them"
            raise UserError(
                f"a pair of texts is for encoders, and {spec.name} reads one\n  value: {len(self.texts)} texts\n  {remedy}"
            )
        if len(self.texts) > 2:
            raise UserError(
                f"{spec.name} reads a pair of texts at most\n  value: {len(self.texts)} texts\n  give --text twice"
            )
        if self.target_text is not None and self.target_ids is not None:
            raise UserError(
                "--target-text and --target-ids say twice what the decoder reads\n  give one of them"
            )
        for option, value in (("--target-text", self.target_text), ("--target-ids", self.target_ids)):
            if value is not None and not _has_two(spec):
                raise UserError(
                    f"{option} is of encoder-decoders, and {spec.name} is of architecture: {spec.architecture}\n"
                    f"  value: {value!r}\n  give all that it reads with --text or --ids"
                )

    def _read(self, spec: Model, text: Text | None) -> tuple[list[int], list[int] | None]:
        if self.ids is not None:
            return token_ids(self.ids), None
        tokenizer = _needed("--text", text)
        if len(self.texts) == 1:
            return tokenizer.ids(self.texts)[0], None
        ids, types = tokenizer.pair(*self.texts)
        embedding = spec.embedding_of(spec.last_stack)
        return ids, types if isinstance(embedding, Tokens) and embedding.token_types else None

    def _target(self, source: Opened, text: Text | None) -> list[int]:
        if not _has_two(source.spec):
            return []
        if self.target_ids is not None:
            return token_ids(self.target_ids, "--target-ids")
        start = [int(source.settings.get("decoder_start_token_id") or 0)]
        if self.target_text is None:
            return start
        return start + _needed("--target-text", text).ids([self.target_text])[0]


def check_length(spec: Model, reading: Reading, new_tokens: int) -> None:
    """Raise :class:`specs.errors.UserError` unless all ids are of the vocabulary and fit, with what is written after them.

    The last token that is written is not read.
    """
    if new_tokens and spec.head.kind != "language_modeling":
        raise UserError(
            f"--max-new-tokens needs a head that scores the next token, and that of {spec.name} is {spec.head.kind}\n"
            f"  value: {new_tokens}\n  leave it out"
        )
    if spec.encoder is not None:
        check_prompts(spec, spec.encoder, [reading.ids])
    if spec.decoder is not None:
        ids = reading.target if _has_two(spec) else reading.ids
        check_prompts(spec, spec.decoder, [ids])
        most = spec.context_length_of(spec.decoder)
        if most is not None and len(ids) + new_tokens - 1 > most:
            raise UserError(
                f"what {spec.name} reads and writes must fit its context, which is {most} tokens\n"
                f"  value: {len(ids)} tokens, and --max-new-tokens {new_tokens}\n"
                f"  {most - len(ids) + 1} new ones or fewer would work"
            )


def _has_two(spec: Model) -> bool:
    return spec.architecture == "encoder-decoder"


def _needed(option: str, text: Text | None) -> Text:
    if text is None:
        raise UserError(
            f"{option} needs a tokenizer, and there is no tokenizer.json beside the weights\n"
            "  give one with --tokenizer, or token ids with --ids"
        )
    return text
