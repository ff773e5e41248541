"""Inputs of ``zoo attend`` as token ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cli.run_inputs import token_ids
from specs.embedding import Tokens
from specs.errors import UserError
from zoo.attention_maps.reading import AttentionInput
from zoo.generation.prompts import check_prompts

if TYPE_CHECKING:
    from exporters.model_source import ModelSource
    from exporters.runtime.text import TextTokenizer
    from specs.model import Model

DEFAULT_NEW_TOKENS = 12
"""Number of tokens that an encoder-decoder generates without a target."""


@dataclass(frozen=True)
class Given:
    """Inputs on the command line: texts or ids, and the target of an encoder-decoder."""

    texts: Sequence[str]
    ids: str | None
    target_text: str | None
    target_ids: str | None

    def new_tokens(self, spec: Model, asked: int | None) -> int:
        """The number of tokens to generate: as asked, else a default for an encoder-decoder without a target."""
        if asked is not None:
            return asked
        targeted = self.target_text is not None or self.target_ids is not None
        if spec.decoder is None or not _has_two(spec) or targeted or spec.head.kind != "language_modeling":
            return 0
        return min(DEFAULT_NEW_TOKENS, spec.context_length_of(spec.decoder) or DEFAULT_NEW_TOKENS)

    def reading(self, source: ModelSource, text: TextTokenizer | None) -> AttentionInput:
        """The token ids, with the special tokens of a text.

        Raises :class:`specs.errors.UserError` for options that exclude each other or do not apply to the model.
        """
        self._check(source.spec)
        ids, types = self._read(source.spec, text)
        return AttentionInput(ids, types, self._target(source, text))

    def _check(self, spec: Model) -> None:
        for _, stack in spec.stacks():
            embedding = spec.embedding_of(stack)
            if not embedding.takes_tokens:
                raise UserError(
                    f"{spec.name} takes {embedding.input_name}, but zoo attend supports only token inputs.\n"
                    "  Choose a text model."
                )
        if bool(self.texts) == (self.ids is not None):
            rule = "--text and --ids are mutually exclusive." if self.texts else "No input."
            raise UserError(f"{rule}\n  Pass --text, or token ids such as --ids 1,2,3.")
        if len(self.texts) > 1 and spec.architecture != "encoder":
            remedy = "Pass the decoder input as --target-text." if _has_two(spec) else "Join them into one."
            raise UserError(
                f"{spec.name} takes one text; only encoders take a pair.\n  value: {len(self.texts)} texts\n  {remedy}"
            )
        if len(self.texts) > 2:
            raise UserError(
                f"{spec.name} takes at most a pair of texts.\n  value: {len(self.texts)} texts\n  Pass --text twice."
            )
        if self.target_text is not None and self.target_ids is not None:
            raise UserError("--target-text and --target-ids are mutually exclusive.\n  Pass one of them.")
        for option, value in (("--target-text", self.target_text), ("--target-ids", self.target_ids)):
            if value is not None and not _has_two(spec):
                raise UserError(
                    f"{option} applies only to encoder-decoders, and {spec.name} is architecture: {spec.architecture}.\n"
                    f"  value: {value!r}\n  Pass the whole input as --text or --ids."
                )

    def _read(self, spec: Model, text: TextTokenizer | None) -> tuple[list[int], list[int] | None]:
        if self.ids is not None:
            return token_ids(self.ids), None
        tokenizer = _needed("--text", text)
        if len(self.texts) == 1:
            return tokenizer.ids(self.texts)[0], None
        ids, types = tokenizer.pair(*self.texts)
        embedding = spec.embedding_of(spec.last_stack)
        return ids, types if isinstance(embedding, Tokens) and embedding.token_types else None

    def _target(self, source: ModelSource, text: TextTokenizer | None) -> list[int]:
        if not _has_two(source.spec):
            return []
        if self.target_ids is not None:
            return token_ids(self.target_ids, "--target-ids")
        start = [int(source.settings.get("decoder_start_token_id") or 0)]
        if self.target_text is None:
            return start
        return start + _needed("--target-text", text).ids([self.target_text])[0]


def check_length(spec: Model, reading: AttentionInput, new_tokens: int) -> None:
    """Raise :class:`specs.errors.UserError` unless the ids are in the vocabulary and fit the context with the new tokens.

    The last generated token is never an input.
    """
    if new_tokens and spec.head.kind != "language_modeling":
        raise UserError(
            f"--max-new-tokens needs a head of kind language_modeling, and that of {spec.name} is {spec.head.kind}.\n"
            f"  value: {new_tokens}\n  Remove the option."
        )
    if spec.encoder is not None:
        check_prompts(spec, spec.encoder, [reading.ids])
    if spec.decoder is not None:
        ids = reading.target if _has_two(spec) else reading.ids
        check_prompts(spec, spec.decoder, [ids])
        most = spec.context_length_of(spec.decoder)
        if most is not None and len(ids) + new_tokens - 1 > most:
            raise UserError(
                f"Input and new tokens must fit the context of {spec.name}, which is {most} tokens.\n"
                f"  value: {len(ids)} tokens, and --max-new-tokens {new_tokens}\n"
                f"  Pass --max-new-tokens {most - len(ids) + 1} or less."
            )


def _has_two(spec: Model) -> bool:
    return spec.architecture == "encoder-decoder"


def _needed(option: str, text: TextTokenizer | None) -> TextTokenizer:
    if text is None:
        raise UserError(
            f"{option} needs a tokenizer, and there is no tokenizer.json beside the weights.\n"
            "  Pass --tokenizer PATH, or token ids with --ids."
        )
    return text
